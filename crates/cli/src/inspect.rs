//! `onefold inspect`: a stage as text.

use crate::args::{BackendArg, FormatArg, Inspect, StageArg};
use crate::failure::Failure;
use crate::{emit, source};
use onefold::inspect::{fold_json, stage, Format, Stage};

/// Print a stage of one function, or of all.
pub fn inspect(args: &Inspect) -> Result<(), Failure> {
    if args.stage == StageArg::Llvm {
        // Said before the file is read: no file would do.
        source::backend(BackendArg::Llvm)?;
    }
    let module = source::read(&args.source.file)?;
    let funcs = source::functions(&module, &args.source)?;
    let compiler = source::compiler(args.backend, args.form)?;
    let compiler = source::on_cpu(compiler, args.cpu);
    let unavailable = |what: &str| Failure::Usage(format!("{what} is not available in this version"));
    let which = args.stage.stage();
    let format = args.format.format().ok_or_else(|| unavailable("--format html"))?;
    if (which, format) == (Stage::Fold, Format::Json) {
        let names: Vec<&str> = funcs.iter().map(String::as_str).collect();
        return emit(&fold_json(&compiler, &module, &names)?);
    }
    if args.format == FormatArg::Dot && funcs.len() > 1 {
        return Err(Failure::Usage("a graph shows one function: say which (--func)".to_owned()));
    }
    let mut texts = vec![];
    for func in &funcs {
        texts.push(stage(&compiler, &module, func, which, format)?);
    }
    emit(&texts.join("\n"))
}
