//! `onefold bench`: forms of a function timed in turns, against each other and the machine.

use crate::args::Bench;
use crate::failure::Failure;
use crate::fill::{self, Sizes};
use crate::limit::Kind;
use crate::{emit, source};
use onefold::{Array, ArrayView, ArrayViewMut, Kernel, Module, Work};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

/// Cold compilations that are timed; the median counts.
const COMPILATIONS: usize = 3;

/// One thing to be timed: kernels that run one after the other.
struct Contender {
    func: String,
    form: &'static str,
    steps: Vec<Step>,
    compile_ms: f64,
    work: Work,
    times: Vec<f64>,
}

/// A kernel, where its inputs are, and room for its outputs.
struct Step {
    kernel: Kernel,
    inputs: Vec<Place>,
    outputs: Vec<Array>,
}

/// An array of the pool, or an output of an earlier step.
#[derive(Clone, Copy)]
enum Place {
    Pool(usize),
    Output(usize, usize),
}

/// Arrays that are filled with numbers, by name.
#[derive(Default)]
struct Pool {
    arrays: Vec<Array>,
    names: BTreeMap<String, usize>,
}

/// A function of a chain.
struct Part<'a> {
    module: &'a Module,
    text: &'a str,
    func: String,
}

/// Files named by `--then`, with their texts.
fn chain_files(args: &Bench) -> Result<BTreeMap<&str, (Module, String)>, Failure> {
    let mut files = BTreeMap::new();
    for name in args.chain.iter().filter(|name| name.contains(['.', '/'])) {
        let file = Path::new(name);
        files.insert(name.as_str(), (source::read(file)?, source::text(file)?));
    }
    Ok(files)
}

/// What `--then` says: functions of the file itself, or all of another.
fn chain<'a>(
    args: &Bench,
    module: &'a Module,
    text: &'a str,
    files: &'a BTreeMap<&str, (Module, String)>,
) -> Result<Vec<Part<'a>>, Failure> {
    let mut parts = vec![];
    for name in &args.chain {
        match files.get(name.as_str()) {
            Some((module, text)) => {
                parts.extend(module.funcs.iter().map(|f| Part { module, text, func: f.name.clone() }));
            }
            None => {
                let func = onefold::choose(module, Some(name))?.name.clone();
                parts.push(Part { module, text, func });
            }
        }
    }
    Ok(parts)
}

/// The whole command.
pub fn bench(args: &Bench, quiet: bool) -> Result<(), Failure> {
    let sizes = fill::sizes(&args.sizes)?;
    let text = source::text(&args.source.file)?;
    let module = source::read(&args.source.file)?;
    let func = source::function(&module, &args.source)?;
    let own = [Part { module: &module, text: &text, func: func.clone() }];
    let files = chain_files(args)?;
    let chain = chain(args, &module, &text, &files)?;
    let mut pool = Pool::default();
    let given: BTreeMap<&str, &str> =
        args.inputs.iter().map(|option| source::pair("--input", option)).collect::<Result<_, _>>()?;
    let mut contenders = vec![];
    for form in args.form.forms() {
        contenders.push(prepare(args, &own, (*form, form.name()), (&given, &sizes), &mut pool)?);
    }
    if !chain.is_empty() {
        contenders.push(prepare(args, &chain, (onefold::Form::Fused, "chain"), (&given, &sizes), &mut pool)?);
    }
    if let Some((name, file)) = given.iter().find(|(name, _)| !pool.names.contains_key(**name)) {
        return Err(Failure::Usage(format!("--input {name}={file}: there is no input {name}")));
    }
    let work = contenders[0].work;
    let kind = kind(&work);
    let working_set = pool.arrays.iter().map(|a| a.bytes().len()).sum::<usize>();
    let threads = usize::from(args.threads);
    let before = kind.measure(threads, working_set);
    let progress = !quiet && !args.json && std::io::stderr().is_terminal();
    for rep in 0..=args.reps {
        if progress {
            eprint!("\r{rep}/{} ", args.reps);
        }
        for contender in &mut contenders {
            let start = Instant::now();
            contender.run(&pool)?;
            // The first round warms up.
            if rep > 0 {
                contender.times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    if progress {
        eprint!("\r             \r");
    }
    let limit = before.max(kind.measure(threads, working_set));
    if args.json {
        report_json(args, &contenders, &sizes, kind, limit)
    } else {
        report(&contenders, kind, limit, before)
    }
}

/// What bounds a kernel: arithmetic if contractions do more than some operations a byte, else memory.
fn kind(work: &Work) -> Kind {
    if work.flops > 8 * work.bytes {
        Kind::Fma
    } else if work.written > work.bytes / 20 {
        Kind::ReadWrite
    } else {
        Kind::Read
    }
}

fn prepare(
    args: &Bench,
    parts: &[Part<'_>],
    (form, label): (onefold::Form, &'static str),
    (given, sizes): (&BTreeMap<&str, &str>, &Sizes),
    pool: &mut Pool,
) -> Result<Contender, Failure> {
    let fresh = || -> Result<onefold::Compiler, Failure> {
        let compiler = onefold::Compiler::new().backend(source::backend(args.backend)?).form(form);
        Ok(source::on_cpu(compiler, args.cpu).threads(args.threads.into()))
    };
    let mut compile_times = vec![];
    for _ in 0..COMPILATIONS {
        let start = Instant::now();
        let compiler = fresh()?;
        for part in parts {
            compiler.compile_text("", part.text, Some(&part.func))?;
        }
        compile_times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let compiler = fresh()?;
    let mut steps: Vec<Step> = vec![];
    let mut work = Work { bytes: 0, written: 0, flops: 0 };
    for part in parts {
        let kernel = compiler.compile(part.module, &part.func)?;
        read_given(&kernel, given, pool)?;
        let inputs = places(&kernel, &steps, pool, sizes, args.seed)?;
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|p| p.of(&steps, pool).shape().to_vec()).collect();
        if let Some(w) = kernel.work(&shapes)? {
            work.bytes += w.bytes;
            work.written += w.written;
            work.flops += w.flops;
        }
        let mut outputs = vec![];
        for (output, shape) in kernel.signature().outputs.iter().zip(kernel.result_shapes(&shapes)?) {
            let array = Array::zeros(output.dtype, &shape);
            outputs.push(array.map_err(|e| Failure::Input(format!("output {}: {e}", output.name)))?);
        }
        steps.push(Step { kernel, inputs, outputs });
    }
    let compile_ms = median(&mut compile_times);
    let func = parts.iter().map(|p| p.func.as_str()).collect::<Vec<_>>().join(",");
    Ok(Contender { func, form: label, steps, compile_ms, work, times: vec![] })
}

/// Put the arrays that files are given for in the pool.
fn read_given(kernel: &Kernel, given: &BTreeMap<&str, &str>, pool: &mut Pool) -> Result<(), Failure> {
    let of_kernel = |name: &str| kernel.signature().inputs.iter().any(|i| i.name == name);
    let wanted: BTreeMap<&str, &str> =
        given.iter().filter(|(n, _)| of_kernel(n) && !pool.names.contains_key(**n)).map(|(n, f)| (*n, *f)).collect();
    for (input, array) in kernel.signature().inputs.iter().zip(fill::read(&wanted, kernel)?) {
        if let Some(array) = array {
            pool.names.insert(input.name.clone(), pool.arrays.len());
            pool.arrays.push(array);
        }
    }
    Ok(())
}

/// Where each input comes from: an earlier result of the same name, an array of that name, the next unnamed result of the
/// step before, or new numbers.
fn places(kernel: &Kernel, steps: &[Step], pool: &mut Pool, sizes: &Sizes, seed: u64) -> Result<Vec<Place>, Failure> {
    let mut found: Vec<Option<Place>> = vec![];
    let mut unused: Vec<usize> = steps.last().map_or(vec![], |s| (0..s.outputs.len()).collect());
    for input in &kernel.signature().inputs {
        let fits = |step: &Step, at: &usize| {
            let output = &step.kernel.signature().outputs[*at];
            (output.dtype, output.axes.len()) == (input.dtype, input.axes.len())
        };
        let named = steps.iter().enumerate().rev().find_map(|(s, step)| {
            let at = step.kernel.signature().outputs.iter().position(|o| o.name == input.name)?;
            Some(Place::Output(s, at))
        });
        let pooled = || pool.names.get(&input.name).map(|at| Place::Pool(*at));
        let place = named.or_else(pooled).or_else(|| {
            let step = steps.last()?;
            let at = unused.iter().position(|at| fits(step, at))?;
            Some(Place::Output(steps.len() - 1, unused.remove(at)))
        });
        found.push(place);
    }
    let mut arrays: Vec<Option<Array>> = vec![];
    for place in &found {
        arrays.push(match place {
            Some(place) => {
                let copy = place.of(steps, pool).view().to_array();
                Some(copy.map_err(|e| Failure::Input(e.to_string()))?)
            }
            None => None,
        });
    }
    fill::random(&mut arrays, kernel, sizes, seed)?;
    let mut places = vec![];
    for ((place, array), input) in found.into_iter().zip(arrays).zip(&kernel.signature().inputs) {
        places.push(match (place, array) {
            (Some(place), _) => place,
            (None, Some(array)) => {
                pool.names.insert(input.name.clone(), pool.arrays.len());
                pool.arrays.push(array);
                Place::Pool(pool.arrays.len() - 1)
            }
            (None, None) => return Err(Failure::Usage(format!("input {} has no numbers", input.name))),
        });
    }
    Ok(places)
}

impl Place {
    fn of<'a>(self, steps: &'a [Step], pool: &'a Pool) -> &'a Array {
        match self {
            Place::Pool(at) => &pool.arrays[at],
            Place::Output(step, at) => &steps[step].outputs[at],
        }
    }
}

impl Contender {
    fn run(&mut self, pool: &Pool) -> Result<(), Failure> {
        for at in 0..self.steps.len() {
            let (before, rest) = self.steps.split_at_mut(at);
            let Step { kernel, inputs, outputs } = &mut rest[0];
            let views: Vec<ArrayView<'_>> = inputs.iter().map(|p| p.of(before, pool).view()).collect();
            let mut results: Vec<ArrayViewMut<'_>> = outputs.iter_mut().map(Array::view_mut).collect();
            kernel.call(&views, &mut results)?;
        }
        Ok(())
    }

    fn median(&self) -> f64 {
        median(&mut self.times.clone())
    }

    fn least(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// In the limit's unit.
    fn rate(&self, kind: Kind) -> f64 {
        let amount = if kind == Kind::Fma { self.work.flops } else { self.work.bytes };
        amount as f64 / (self.median() / 1e3)
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => times[n / 2],
        n => (times[n / 2 - 1] + times[n / 2]) / 2.0,
    }
}

/// Three digits after the point: more would be noise.
fn rounded(v: f64) -> f64 {
    (v * 1e3).round() / 1e3
}

fn report_json(args: &Bench, contenders: &[Contender], sizes: &Sizes, kind: Kind, limit: f64) -> Result<(), Failure> {
    let mut out = String::new();
    for c in contenders {
        let seconds = c.median() / 1e3;
        let line = json!({
            "func": c.func,
            "backend": source::backend(args.backend)?.name(),
            "threads": args.threads,
            "sizes": sizes,
            "form": c.form,
            "reps": args.reps,
            "median_ms": rounded(c.median()),
            "min_ms": rounded(c.least()),
            "bytes": c.work.bytes,
            "flops": c.work.flops,
            "GBs": rounded(c.work.bytes as f64 / seconds / 1e9),
            "GFLOPs": rounded(c.work.flops as f64 / seconds / 1e9),
            "compile_ms": rounded(c.compile_ms),
            "limit": { "kind": kind.name(), "value": rounded(limit / 1e9), "share": rounded(c.rate(kind) / limit) },
        });
        let _ = writeln!(out, "{line}");
    }
    emit(&out)
}

fn report(contenders: &[Contender], kind: Kind, limit: f64, before: f64) -> Result<(), Failure> {
    let unit = if kind == Kind::Fma { "GFLOP/s" } else { "GB/s" };
    let mut out = format!(
        "limit: {} {:.1} {unit} (before {:.1})\n{:<24} {:>10} {:>10} {:>8} {:>9} {:>6} {:>11} {:>7}\n",
        kind.name(),
        limit / 1e9,
        before / 1e9,
        "form",
        "median ms",
        "min ms",
        "GB/s",
        "GFLOP/s",
        "share",
        "compile ms",
        "ratio",
    );
    let first = contenders[0].median();
    for c in contenders {
        let seconds = c.median() / 1e3;
        let name = if c.form == "chain" { c.func.as_str() } else { c.form };
        let _ = writeln!(
            out,
            "{name:<24} {:>10.3} {:>10.3} {:>8.2} {:>9.2} {:>5.0}% {:>11.1} {:>7.2}",
            c.median(),
            c.least(),
            c.work.bytes as f64 / seconds / 1e9,
            c.work.flops as f64 / seconds / 1e9,
            100.0 * c.rate(kind) / limit,
            c.compile_ms,
            c.median() / first,
        );
    }
    emit(&out)
}
