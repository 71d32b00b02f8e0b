//! `onefold explain`: the laws between formula and kernel.

use crate::args::{BackendArg, Explain};
use crate::failure::Failure;
use crate::{emit, source};

/// Print the chain of one function, or of all.
pub fn explain(args: &Explain) -> Result<(), Failure> {
    let module = source::read(&args.source.file)?;
    let compiler = source::compiler(BackendArg::Cranelift, args.form)?;
    let mut texts = vec![];
    for func in source::functions(&module, &args.source)? {
        texts.push(onefold::inspect::explain(&compiler, &module, &func)?);
    }
    emit(&texts.join("\n"))
}
