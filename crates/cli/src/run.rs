//! `onefold run`: compile, run, and show or write what comes out.

use crate::args::{BackendArg, FormArg, Run};
use crate::failure::Failure;
use crate::npy::Pending;
use crate::{emit, fill, source, summary, verify};
use onefold::{Array, ArrayView, Backend, Kernel, Module};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// The whole command.
pub fn run(args: &Run, quiet: bool) -> Result<(), Failure> {
    if args.tolerance.is_some_and(|t| t.is_nan() || t < 0.0) {
        return Err(Failure::Usage("--tolerance must not be negative".to_owned()));
    }
    let given = fill::sizes(&args.fill.sizes)?;
    let module = source::read(&args.source.file)?;
    let func = source::function(&module, &args.source)?;
    let kernel = compile(args, &module, &func)?;
    if let Some(name) = given.keys().find(|n| !kernel.axes().contains(&n.as_str())) {
        return Err(Failure::Usage(format!("--size {name}: @{func} has no axis {name} whose length is open")));
    }
    let files = fill::files(&args.inputs, &kernel)?;
    let places = places(&args.outputs, &kernel)?;
    let mut arrays = fill::read(&files, &kernel)?;
    if args.fill.random {
        fill::random(&mut arrays, &kernel, &given, args.fill.seed)?;
    }
    let mut inputs: Vec<Array> = vec![];
    for (input, array) in kernel.signature().inputs.iter().zip(arrays) {
        let missing =
            || Failure::Usage(format!("input {} is missing: --input {}=FILE.npy, or --random", input, input.name));
        inputs.push(array.ok_or_else(missing)?);
    }
    let views: Vec<ArrayView<'_>> = inputs.iter().map(Array::view).collect();
    let start = Instant::now();
    let results = kernel.run(&views)?;
    log::debug!("@{func}: ran in {:.2?}", start.elapsed());
    let mut text = String::new();
    let mut pending = vec![];
    for (at, (output, array)) in kernel.signature().outputs.iter().zip(&results).enumerate() {
        match places.get(&at) {
            Some(file) => {
                let written = Pending::write(Path::new(file), array);
                pending.push((*file, written.map_err(|e| Failure::Input(format!("{file}: {e}")))?));
            }
            None => text.push_str(&summary::line(output, array)),
        }
    }
    let verdict = if args.verify { check(args, &module, &func, &views, &results, &mut text)? } else { Ok(()) };
    if verdict.is_ok() {
        for (file, written) in pending {
            written.finish().map_err(|e| Failure::Input(format!("{file}: {e}")))?;
        }
    }
    if !quiet {
        emit(&text)?;
    }
    verdict
}

fn compile(args: &Run, module: &Module, func: &str) -> Result<Kernel, Failure> {
    if args.form == FormArg::All {
        return Err(Failure::Usage("--form all is for bench only".to_owned()));
    }
    let mut compiler = source::on_cpu(source::compiler(args.backend, args.form)?, args.cpu);
    if let Some(threads) = args.threads {
        compiler = compiler.threads(threads.into());
    }
    let kernel = compiler.compile(module, func)?;
    for warning in kernel.warnings() {
        log::warn!("@{func}: {warning}");
    }
    Ok(kernel)
}

/// `--out` options: file by number of output.
fn places<'a>(options: &'a [String], kernel: &Kernel) -> Result<BTreeMap<usize, &'a str>, Failure> {
    let outputs = &kernel.signature().outputs;
    let mut places = BTreeMap::new();
    for option in options {
        let (name, file) = source::pair("--out", option)?;
        let by_name = outputs.iter().position(|o| o.name == name);
        let at = by_name.or_else(|| name.parse().ok().filter(|at| *at < outputs.len()));
        let names: Vec<&str> = outputs.iter().map(|o| o.name.as_str()).collect();
        let unknown =
            || Failure::Usage(format!("--out {option}: there is no output {name}, only {}", names.join(", ")));
        if places.insert(at.ok_or_else(unknown)?, file).is_some() {
            return Err(Failure::Usage(format!("--out {name} is given twice")));
        }
    }
    Ok(places)
}

/// Compare with the reference; the inner result is the verdict.
fn check(
    args: &Run,
    module: &Module,
    func: &str,
    inputs: &[ArrayView<'_>],
    results: &[Array],
    text: &mut String,
) -> Result<Result<(), Failure>, Failure> {
    if source::backend(args.backend)? == Backend::Interp && args.backend == BackendArg::Interp {
        log::warn!("--verify compares the interpreter with itself");
    }
    let start = Instant::now();
    let references = onefold::evaluate(module, func, inputs)?;
    let noise = match args.tolerance {
        Some(_) => references.iter().map(|r| vec![0.0; r.len()]).collect(),
        None => onefold::sensitivity(module, func, inputs)?,
    };
    let tolerance = args.tolerance.unwrap_or(verify::TOLERANCE);
    let mut fine = true;
    let outputs =
        source::compiler(BackendArg::Interp, FormArg::Plain)?.compile(module, func)?.signature().outputs.clone();
    for (((output, got), want), noise) in outputs.iter().zip(results).zip(&references).zip(&noise) {
        let report = verify::compare(output, got, want, tolerance, noise);
        text.push_str(&report.line);
        fine &= report.fine;
    }
    log::debug!("@{func}: verified in {:.2?}", start.elapsed());
    let bounds = || Failure::Bounds("results are not within bounds of the f64 interpreter".to_owned());
    Ok(if fine { Ok(()) } else { Err(bounds()) })
}
