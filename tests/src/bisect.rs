//! Which stage makes a result wrong: the same function run by every stage's own definition.

use onefold::{Array, ArrayView, Backend, Compiler, Form, Module};
use onefold_ir::{bind_sizes, Extent};
use onefold_passes::{derive, interp, Options};

/// Results as numbers, one list for each output.
type Values = Vec<Vec<f64>>;

/// How two lists of results are compared: error allowed as a share of the largest magnitude of an output, or of 1.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub f64);

/// Run a function through the interpreter of tensor IR, the fold program at several tile sizes, loop IR and native code. The
/// error names the first stage that parts from the one before.
///
/// # Errors
/// Two stages disagree, or one fails.
pub fn bisect(module: &Module, name: &str, inputs: &[Array], form: Form, bound: Bound) -> Result<(), String> {
    let func = module.func(name).ok_or("no such function")?;
    let views: Vec<ArrayView<'_>> = inputs.iter().map(Array::view).collect();
    let tensor = onefold::evaluate(module, name, &views).map_err(|e| format!("tensor IR: {e}"))?;

    let options = Options { form, ..Options::default() };
    let derived = derive(module, func, &options).map_err(|e| format!("derivation: {e}"))?;
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|a| a.shape().to_vec()).collect();
    let sizes = bind_sizes(func, &shapes).map_err(|e| e.to_string())?;
    let symbolic: Vec<i64> = func
        .axes
        .iter()
        .zip(&sizes)
        .filter(|(axis, _)| axis.extent == Extent::Symbolic)
        .map(|(_, size)| *size as i64)
        .collect();
    let mut numbers: Values = inputs.iter().map(Array::to_f64).collect();
    numbers.extend(derived.source.constants.iter().map(|k| module.constants[*k].data.clone()));
    for tile in [1, 5, 1 << 20] {
        let fold = interp::run(&derived.program, &symbolic, &numbers, tile)
            .map_err(|e| format!("fold program, tiles of {tile}: {e}\n{}", derived.program))?;
        compare(&tensor, &fold, bound)
            .map_err(|e| format!("tensor IR and fold program (tiles of {tile}) part: {e}\n{}", derived.program))?;
    }
    for backend in Backend::ALL.iter().copied().filter(|b| *b != Backend::Interp) {
        let kernel = Compiler::new().backend(backend).form(form).threads(1).compile(module, name);
        let kernel = kernel.map_err(|e| format!("{backend}: {e}\n{}", derived.program))?;
        let results = kernel.run(&views).map_err(|e| format!("{backend}: {e}\n{}", derived.program))?;
        let results: Values = results.iter().map(Array::to_f64).collect();
        compare(&tensor, &results, bound)
            .map_err(|e| format!("fold program and {backend} part: {e}\n{}", derived.program))?;
    }
    Ok(())
}

fn compare(want: &Values, got: &Values, bound: Bound) -> Result<(), String> {
    for (output, (want, got)) in want.iter().zip(got).enumerate() {
        let largest = want.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
        if want.len() != got.len() {
            return Err(format!("output {output} has {} elements, not {}", got.len(), want.len()));
        }
        for (at, (w, g)) in want.iter().zip(got).enumerate() {
            // Near the end of the range a sum may become infinite in f32 where it does not in f64.
            let infinite = w.abs() > 1e38 && g.is_infinite();
            if !((w - g).abs() <= bound.0 * largest + 1e-37 || w == g || w.is_nan() && g.is_nan() || infinite) {
                return Err(format!("output {output}, element {at} is {g}, not {w}"));
            }
        }
    }
    Ok(())
}
