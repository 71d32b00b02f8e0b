//! Files with functions in them.

use crate::args::{BackendArg, CpuArg, FormArg, Source};
use crate::failure::Failure;
use onefold::{Backend, Compiler, Form, Module};
use std::path::Path;

/// Read and parse a file.
pub fn read(file: &Path) -> Result<Module, Failure> {
    Ok(onefold::parse(&file.display().to_string(), &text(file)?).map_err(onefold::Error::from)?)
}

/// The text of a file.
pub fn text(file: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(file).map_err(|e| Failure::Input(format!("{}: {e}", file.display())))?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let before = &e.as_bytes()[..at];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        Failure::Input(format!("{}:{line}:{column}: the text is not UTF-8", file.display()))
    })
}

/// The functions meant: the one named, or all.
pub fn functions(module: &Module, source: &Source) -> Result<Vec<String>, Failure> {
    if let (None, false) = (&source.func, module.funcs.is_empty()) {
        return Ok(module.funcs.iter().map(|f| f.name.clone()).collect());
    }
    Ok(vec![function(module, source)?])
}

/// The function meant: the one named, or the only one.
pub fn function(module: &Module, source: &Source) -> Result<String, Failure> {
    match onefold::choose(module, source.func.as_deref()) {
        Ok(func) => Ok(func.name.clone()),
        Err(onefold::Error::Empty) => Err(Failure::Input(format!("{}: there is no function", source.file.display()))),
        Err(error) => Err(error.into()),
    }
}

/// One form.
pub fn form(form: FormArg) -> Result<Form, Failure> {
    match form.forms() {
        [one] => Ok(*one),
        _ => Err(Failure::Usage("--form all is for bench only".to_owned())),
    }
}

/// A backend that this build has.
pub fn backend(backend: BackendArg) -> Result<Backend, Failure> {
    match backend {
        BackendArg::Cranelift => Ok(Backend::Cranelift),
        BackendArg::Loops => Ok(Backend::Loops),
        BackendArg::Interp => Ok(Backend::Interp),
        BackendArg::Llvm if Backend::ALL.contains(&Backend::Llvm) => Ok(Backend::Llvm),
        BackendArg::Llvm => Err(no_llvm()),
    }
}

/// LLVM is not part of this build.
fn no_llvm() -> Failure {
    Failure::Usage("this onefold was built without the feature `llvm`; use --backend cranelift".to_owned())
}

/// A compiler for these options.
pub fn compiler(backend_arg: BackendArg, form_arg: FormArg) -> Result<Compiler, Failure> {
    Ok(Compiler::new().backend(backend(backend_arg)?).form(form(form_arg)?))
}

/// For a CPU, if one is asked for.
pub fn on_cpu(compiler: Compiler, cpu: Option<CpuArg>) -> Compiler {
    match cpu {
        Some(cpu) => compiler.cpu(cpu.cpu()),
        None => compiler,
    }
}

/// `NAME=VALUE`.
pub fn pair<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(Failure::Usage(format!("{option} {text}: NAME=VALUE is expected"))),
    }
}
