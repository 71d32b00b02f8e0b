//! What a compiler does with a function, stage by stage, as text.
//!
//! ```
//! use onefold::inspect::{stage, Format, Stage};
//! use onefold::Compiler;
//!
//! let module = onefold::parse("lse.fold", "func @lse(%x: f32[b, v]) -> f32[b] {\n  return logsumexp[v](%x)\n}\n")?;
//! let fold = stage(&Compiler::new(), &module, "lse", Stage::Fold, Format::Text)?;
//! assert!(fold.contains("streams: x 1"));
//! # Ok::<(), onefold::inspect::InspectError>(())
//! ```

mod dot;
mod egraph;
mod json;

use crate::compiler::{find, Backend, Compiler};
use crate::error::Error;
use onefold_ir::{Func, Module};
use onefold_loops::Listing;
use onefold_passes::convert::convert;
use onefold_passes::fold::FoldProgram;
use onefold_passes::saturate::saturate;
use onefold_passes::{derive, Form};
use std::fmt;

/// A stage on the way from text to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Tensor IR, macros expanded.
    Tensor,
    /// The e-graph after saturation.
    EGraph,
    /// The fold program.
    Fold,
    /// Loop IR.
    Loop,
    /// Cranelift's IR.
    Clif,
    /// LLVM's IR.
    Llvm,
    /// Assembly.
    Asm,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 7] =
        [Stage::Tensor, Stage::EGraph, Stage::Fold, Stage::Loop, Stage::Clif, Stage::Llvm, Stage::Asm];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tensor => "tensor",
            Stage::EGraph => "egraph",
            Stage::Fold => "fold",
            Stage::Loop => "loop",
            Stage::Clif => "clif",
            Stage::Llvm => "llvm",
            Stage::Asm => "asm",
        }
    }
}

/// How a stage is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For Graphviz.
    Dot,
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Dot => "dot",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why there is nothing to show.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum InspectError {
    /// A stage fails.
    #[error(transparent)]
    Compile(#[from] Error),
    /// A stage has no such form.
    #[error("stage {} has no form as {}", stage.name(), format.name())]
    NoForm {
        /// The stage.
        stage: Stage,
        /// The format asked for.
        format: Format,
    },
}

impl From<onefold_ir::Diagnostics> for InspectError {
    fn from(error: onefold_ir::Diagnostics) -> InspectError {
        InspectError::Compile(error.into())
    }
}

/// One stage of a function.
///
/// # Errors
/// Compilation fails before that stage, or the stage has no such form.
pub fn stage(
    compiler: &Compiler,
    module: &Module,
    func: &str,
    stage: Stage,
    format: Format,
) -> Result<String, InspectError> {
    let func = find(module, func)?;
    match (stage, format) {
        (Stage::Tensor, Format::Text) => Ok(onefold_ir::print_func(module, func)),
        (Stage::EGraph, Format::Text | Format::Dot) => {
            let source = convert(module, func).map_err(Error::from)?;
            let options = compiler.options();
            let saturated = saturate(&source, &options.limits, options.form == Form::Wide, false);
            Ok(if format == Format::Dot { egraph::dot(&source, &saturated) } else { egraph::text(&source, &saturated) })
        }
        (Stage::Fold, Format::Text) => Ok(program(compiler, module, func)?.to_string()),
        (Stage::Fold, Format::Json) => {
            let functions = [json::function(&program(compiler, module, func)?)];
            Ok(json::document(&functions))
        }
        (Stage::Fold, Format::Dot) => Ok(dot::program(&program(compiler, module, func)?)),
        (Stage::Loop | Stage::Clif | Stage::Llvm | Stage::Asm, Format::Text) => {
            Ok(code(compiler, module, func, stage)?)
        }
        (stage, format) => Err(InspectError::NoForm { stage, format }),
    }
}

/// The fold programs of several functions as one JSON document.
///
/// # Errors
/// As [`stage`].
pub fn fold_json(compiler: &Compiler, module: &Module, funcs: &[&str]) -> Result<String, InspectError> {
    let mut functions = vec![];
    for name in funcs {
        functions.push(json::function(&program(compiler, module, find(module, name)?)?));
    }
    Ok(json::document(&functions))
}

/// What a fold program costs in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    /// How many times each input is streamed from memory, by name.
    pub reads: Vec<(String, u32)>,
    /// Number of passes, those that only store included.
    pub passes: usize,
    /// Names of arrays that are stored and read back.
    pub intermediates: Vec<String>,
}

/// The facts of a function's fold program that tests assert.
///
/// # Errors
/// The function has no fold program.
pub fn streams(compiler: &Compiler, module: &Module, func: &str) -> Result<Streams, InspectError> {
    let program = program(compiler, module, find(module, func)?)?;
    let reads = onefold_passes::schedule::reads::reads(&program);
    let facts = json::function(&program);
    Ok(Streams {
        reads: program.inputs.iter().map(|i| i.name.clone()).zip(reads).collect(),
        passes: facts["passes"].as_array().map_or(0, Vec::len),
        intermediates: program.intermediates.iter().map(|i| i.name.clone()).collect(),
    })
}

/// The chain of named laws from the user's term to the kernel.
///
/// # Errors
/// The function has no fold program.
pub fn explain(compiler: &Compiler, module: &Module, func: &str) -> Result<String, InspectError> {
    let func = find(module, func)?;
    let explanation = onefold_passes::explain::explain(module, func, compiler.options()).map_err(Error::from)?;
    Ok(explanation.to_string())
}

fn program(compiler: &Compiler, module: &Module, func: &Func) -> Result<FoldProgram, Error> {
    Ok(derive(module, func, compiler.options())?.program)
}

/// Loop IR and below. Listings are made for a fixed target, so that they are the same on every machine, unless asked for this one.
fn code(compiler: &Compiler, module: &Module, func: &Func, stage: Stage) -> Result<String, Error> {
    let program = program(compiler, module, func)?;
    let backend = compiler.listing_generator(match stage {
        Stage::Clif => Backend::Cranelift,
        Stage::Llvm => Backend::Llvm,
        _ => compiler.chosen(),
    })?;
    let target = backend.target();
    let mut texts = vec![];
    for kernel in compiler.lower(&program, &target)? {
        texts.push(match stage {
            Stage::Loop => kernel.to_string(),
            Stage::Asm => backend.listing(&kernel, Listing::Asm)?,
            _ => backend.listing(&kernel, Listing::Ir)?,
        });
    }
    Ok(texts.join("\n"))
}
