//! Everything that is checked before a kernel runs.

use crate::array::ArrayError;
use crate::element::{bytes_of, elements_of};
use crate::error::CallError;
use crate::kernel::Compiled;
use crate::memory::Place;
use crate::view::{ArrayView, ArrayViewMut};
use onefold_ir::{bind_sizes, Func, Op};

fn count(compiled: &Compiled, what: &'static str, expected: usize, found: usize) -> Result<(), CallError> {
    if expected == found {
        return Ok(());
    }
    Err(CallError::Count { func: compiled.func.name.clone(), what, expected, found })
}

/// Lengths of all axes, for inputs of these shapes.
pub(crate) fn sizes(compiled: &Compiled, shapes: &[Vec<usize>]) -> Result<Vec<u64>, CallError> {
    count(compiled, "inputs", compiled.signature.inputs.len(), shapes.len())?;
    let sizes = bind_sizes(&compiled.func, shapes)?;
    for node in &compiled.func.nodes {
        if let Op::ArgMax(axis) = node.op {
            if sizes[usize::from(axis.0)] == 0 {
                return Err(CallError::EmptyArgMax { axis: compiled.func.axis(axis).name.clone() });
            }
        }
    }
    Ok(sizes)
}

/// Inputs of a call; gives the lengths of all axes.
pub(crate) fn inputs(compiled: &Compiled, inputs: &[ArrayView<'_>]) -> Result<Vec<u64>, CallError> {
    count(compiled, "inputs", compiled.signature.inputs.len(), inputs.len())?;
    for (argument, view) in compiled.signature.inputs.iter().zip(inputs) {
        if argument.dtype != view.dtype() {
            let name = argument.name.clone();
            return Err(CallError::DType { name, expected: argument.dtype, found: view.dtype() });
        }
    }
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|v| v.shape().to_vec()).collect();
    let sizes = sizes(compiled, &shapes)?;
    scales(compiled, inputs)?;
    Ok(sizes)
}

/// Scales of quantizations that are inputs must be finite and positive. There are few of them beside what they scale, so
/// they are looked at here, before a kernel runs. (Literal ones are verified with the function.)
fn scales(compiled: &Compiled, inputs: &[ArrayView<'_>]) -> Result<(), CallError> {
    let func = &compiled.func;
    for node in &func.nodes {
        let (Op::Quantize | Op::Dequantize, Some(scale)) = (&node.op, node.args.get(1)) else { continue };
        let Op::Param(at) = func.node(*scale).op else { continue };
        let Some(view) = inputs.get(at) else { continue };
        let array = view
            .to_array()
            .map_err(|error| CallError::Array { name: compiled.signature.inputs[at].name.clone(), error })?;
        if array.to_f64().iter().any(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(CallError::BadScale);
        }
    }
    Ok(())
}

/// Shapes of the results.
pub(crate) fn result_shapes(func: &Func, sizes: &[u64]) -> Result<Vec<Vec<usize>>, CallError> {
    let too_large = |name: &str| CallError::Array { name: name.to_owned(), error: ArrayError::TooLarge };
    let mut shapes = vec![];
    for result in &func.results {
        let size = |n: u64| usize::try_from(n).map_err(|_| too_large(&result.name));
        let shape: Vec<usize> =
            result.axes.iter().map(|a| size(sizes[usize::from(a.0)])).collect::<Result<_, CallError>>()?;
        let dtype = func.node(result.node).ty.dtype;
        elements_of(&shape).and_then(|n| bytes_of(dtype, n)).ok_or_else(|| too_large(&result.name))?;
        shapes.push(shape);
    }
    Ok(shapes)
}

/// Outputs of a call.
pub(crate) fn outputs(
    compiled: &Compiled,
    sizes: &[u64],
    inputs: &[ArrayView<'_>],
    outputs: &[ArrayViewMut<'_>],
) -> Result<(), CallError> {
    let signature = &compiled.signature;
    count(compiled, "outputs", signature.outputs.len(), outputs.len())?;
    let shapes = result_shapes(&compiled.func, sizes)?;
    for ((argument, view), shape) in signature.outputs.iter().zip(outputs).zip(shapes) {
        let name = argument.name.clone();
        if argument.dtype != view.dtype() {
            return Err(CallError::DType { name, expected: argument.dtype, found: view.dtype() });
        }
        if shape != view.shape() {
            return Err(CallError::OutputShape { name, expected: shape, found: view.shape().to_vec() });
        }
    }
    for (at, (argument, view)) in signature.outputs.iter().zip(outputs).enumerate() {
        let overlap = |other: String| CallError::Overlap { output: argument.name.clone(), other };
        for (other, input) in signature.inputs.iter().zip(inputs) {
            if overlaps(view.place(), input.place()) {
                return Err(overlap(format!("input {}", other.name)));
            }
        }
        for (other, earlier) in signature.outputs.iter().zip(&outputs[..at]) {
            if overlaps(view.place(), earlier.place()) {
                return Err(overlap(format!("output {}", other.name)));
            }
        }
    }
    Ok(())
}

/// Whether two places share memory.
fn overlaps(a: &Place, b: &Place) -> bool {
    let ((a0, a1), (b0, b1)) = (a.range(), b.range());
    if a0 == a1 || b0 == b1 || a1 <= b0 || b1 <= a0 {
        return false;
    }
    if a.is_dense() && b.is_dense() {
        return true;
    }
    // Columns of one array lie between each other without overlapping. Rare enough to look at every element.
    let width = |p: &Place| (p.dtype.bits() as usize / 8).max(1);
    let spans = |p: &Place| {
        let start = p.start() as usize;
        let mut spans: Vec<(usize, usize)> =
            p.offsets().map(|o| start.wrapping_add_signed(o)).map(|at| (at, at + width(p))).collect();
        spans.sort_unstable();
        spans
    };
    let (a, b) = (spans(a), spans(b));
    let mut others = b.iter().peekable();
    a.iter().any(|(start, end)| {
        while others.next_if(|o| o.1 <= *start).is_some() {}
        others.peek().is_some_and(|o| o.0 < *end)
    })
}
