//! The checks of one file on one backend.

use onefold::inspect::streams;
use onefold::{Array, ArrayView, Backend, Compiler, DType, Form, Func, Kernel, Module};
use onefold_ir::filetest::{read, Fact, FileTest, Run};
use onefold_ir::interp::Tensor;

/// Which way a file is checked.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What runs the kernels.
    pub backend: Backend,
    /// How far they are fused.
    pub form: Form,
}

/// Error of results without an `expect`, as a share of the largest magnitude along the last axis.
const TOLERANCE: f64 = 2e-6;

/// Do all that a file asks for. The error says what went wrong.
///
/// # Errors
/// A check fails, or the file cannot be read.
pub fn check_file(name: &str, text: &str, case: Case) -> Result<(), String> {
    let test = read(text).map_err(|e| format!("{name}: {e}"))?;
    let module = match onefold::parse(name, text) {
        Ok(module) if test.parse_errors.is_empty() => module,
        Ok(_) => return Err("the file parses, but errors are expected".to_owned()),
        Err(errors) => {
            let said = errors.to_string();
            let missing = test.parse_errors.iter().find(|e| !said.contains(e.as_str()));
            return match missing {
                None if !test.parse_errors.is_empty() => Ok(()),
                Some(text) => Err(format!("no error says `{text}`:\n{said}")),
                None => Err(said),
            };
        }
    };
    onefold::verify(&module).map_err(|e| e.to_string())?;
    let options = Options::of(&test)?;
    if case.form == Form::Wide && !options.wide || case.form == Form::Plain && options.not_plain {
        return Ok(());
    }
    let compiler = Compiler::new().backend(case.backend).form(case.form).threads(1);
    for run in &test.runs {
        check_run(&module, &compiler, run).map_err(|e| format!("line {}: {e}", run.line))?;
    }
    if case.form == Form::Fused && case.backend == Backend::Cranelift {
        for fact in &test.facts {
            check_fact(&module, &compiler, fact).map_err(|e| format!("line {}: {e}", fact.line))?;
        }
    }
    Ok(())
}

/// `// option:` lines.
#[derive(Default)]
struct Options {
    /// Numbers are small enough for wide exponents.
    wide: bool,
    /// The formula as it stands gives something else in f32.
    not_plain: bool,
}

impl Options {
    fn of(test: &FileTest) -> Result<Options, String> {
        let mut options = Options::default();
        for fact in test.facts.iter().filter(|f| f.key == "option") {
            for (name, value) in &fact.values {
                match name.as_str() {
                    "wide" => options.wide = *value != 0.0,
                    "plain" => options.not_plain = *value == 0.0,
                    _ => return Err(format!("line {}: unknown option {name}", fact.line)),
                }
            }
        }
        Ok(options)
    }
}

fn function<'m>(module: &'m Module, name: Option<&String>) -> Result<&'m Func, String> {
    match name {
        Some(name) => module.func(name).ok_or_else(|| format!("no function @{name}")),
        None => module.funcs.first().ok_or_else(|| "no functions".to_owned()),
    }
}

fn check_run(module: &Module, compiler: &Compiler, run: &Run) -> Result<(), String> {
    let func = function(module, run.func.as_ref())?;
    let kernel = compiler.compile(module, &func.name).map_err(|e| e.to_string())?;
    let mut inputs = vec![];
    for param in &func.params {
        let given = run.inputs.iter().find(|(name, _)| *name == param.name);
        let given = &given.ok_or_else(|| format!("no input {}", param.name))?.1;
        inputs.push(Array::from_f64(param.dtype, &given.shape, &given.data).map_err(|e| e.to_string())?);
    }
    let views: Vec<ArrayView<'_>> = inputs.iter().map(Array::view).collect();
    let results = match (kernel.run(&views), &run.error) {
        (Ok(results), None) => results,
        (Ok(_), Some(error)) => return Err(format!("succeeds, but the error `{error}` is expected")),
        (Err(said), Some(error)) if said.to_string().contains(error.as_str()) => return Ok(()),
        (Err(said), _) => return Err(said.to_string()),
    };
    same_on_threads(&kernel, &views, &results)?;
    for expect in &run.expects {
        let at = match expect.output.parse::<usize>() {
            Ok(at) => Some(at),
            Err(_) => func.results.iter().position(|r| r.name == expect.output),
        };
        let result = at.and_then(|at| results.get(at)).ok_or_else(|| format!("no output {}", expect.output))?;
        expect.check(&tensor(result)).map_err(|e| format!("line {}: {e}", expect.line))?;
    }
    if run.expects.is_empty() {
        let references = onefold::evaluate(module, &func.name, &views).map_err(|e| e.to_string())?;
        for ((declared, got), want) in func.results.iter().zip(&results).zip(&references) {
            close(got, want, run.scale).map_err(|e| format!("{}: {e}", declared.name))?;
        }
    }
    Ok(())
}

/// Results must not depend on the number of threads, bit for bit.
fn same_on_threads(kernel: &Kernel, inputs: &[ArrayView<'_>], results: &[Array]) -> Result<(), String> {
    let again = kernel.with_threads(3).run(inputs).map_err(|e| format!("on three threads: {e}"))?;
    if again == results {
        Ok(())
    } else {
        Err("results on three threads are others".to_owned())
    }
}

fn tensor(array: &Array) -> Tensor {
    if array.dtype().is_float() {
        Tensor::float(array.dtype(), array.shape(), &array.to_f64())
    } else {
        Tensor::int(array.dtype(), array.shape(), &array.to_i64())
    }
}

/// As exact as the dtype and the general bound allow, and of the same class. `scale` is what the largest magnitude counts for at
/// least.
fn close(got: &Array, want: &[f64], scale: f64) -> Result<(), String> {
    let row = got.shape().last().copied().unwrap_or(1).max(1);
    let tolerance = match got.dtype() {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => TOLERANCE,
    };
    for (r, reference) in want.chunks(row).enumerate() {
        let largest = reference.iter().filter(|v| v.is_finite()).fold(scale, |m, v| m.max(v.abs()));
        for (c, want) in reference.iter().enumerate() {
            let value = got.get_f64(r * row + c).unwrap_or(f64::NAN);
            let near = got.dtype().is_float() && (value - want).abs() <= tolerance * largest + 1e-37;
            if !(near || value == *want || value.is_nan() && want.is_nan()) {
                return Err(format!("element {c} of row {r} is {value}, the interpreter says {want}"));
            }
        }
    }
    Ok(())
}

fn check_fact(module: &Module, compiler: &Compiler, fact: &Fact) -> Result<(), String> {
    let func = function(module, fact.func.as_ref())?;
    let facts = streams(compiler, module, &func.name).map_err(|e| e.to_string())?;
    for (name, expected) in &fact.values {
        let found = match fact.key.as_str() {
            "streams" => facts.reads.iter().find(|(input, _)| input == name).map(|(_, n)| f64::from(*n)),
            "passes" => Some(facts.passes as f64),
            "stored" => Some(facts.intermediates.len() as f64),
            _ => continue,
        };
        if found != Some(*expected) {
            let found = found.map_or("nothing".to_owned(), |n| n.to_string());
            return Err(format!("{} {name} is {found}, not {expected}", fact.key));
        }
    }
    Ok(())
}
