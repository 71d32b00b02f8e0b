//! The text format: reading it.

mod ast;
mod diagnostic;
mod lex;
mod lower;
mod parse;
mod suggest;

pub use diagnostic::{Diagnostic, Diagnostics, MAX_ERRORS};

pub use lower::MacroArg;
pub(crate) use lower::{expand_for_builder, holds};

use crate::Module;
use diagnostic::Sink;
pub(crate) use suggest::nearest;

/// The macros that every text may use.
pub const PRELUDE: &str = include_str!("prelude.fold");

/// Reads a text: macros are expanded, types inferred and checked.
///
/// # Errors
/// Whatever is wrong with the text, with places; see [`Diagnostics`].
pub fn parse(source_name: &str, text: &str) -> Result<Module, Diagnostics> {
    let mut sink = Sink::new(text);
    if u32::try_from(text.len()).is_err() {
        sink.error(crate::Span::default(), "the text is longer than 4 GB", "too long");
        return Err(sink.finish(source_name));
    }
    let tokens = lex::lex(text, &mut sink);
    let file = parse::parse_tokens(&tokens, &mut sink);
    let module = lower::lower(&file, &mut sink);
    if sink.is_empty() {
        Ok(module)
    } else {
        Err(sink.finish(source_name))
    }
}
