//! The interpreter of tensor IR: the formula itself, in f64.

use crate::array::Array;
use crate::error::CallError;
use crate::view::ArrayView;
use onefold_ir::interp::{self, Data, EvalError, Tensor};
use onefold_ir::{DType, Module};

/// Evaluate a function in f64, by the reference interpreter. Floats of narrow types are not rounded at the end, so that
/// errors of kernels can be measured against them; integers and `bool` come as numbers too.
///
/// # Errors
/// Inputs that do not fit, or values that the formula forbids.
pub fn evaluate(module: &Module, func: &str, inputs: &[ArrayView<'_>]) -> Result<Vec<Vec<f64>>, CallError> {
    Ok(tensors(module, func, inputs)?.iter().map(Tensor::to_f64).collect())
}

/// How far results move when inputs move by half a unit in the last place: for each output, element by element. No kernel that
/// computes in the dtypes of the formula can promise to be closer than that to [`evaluate`].
///
/// Each element is moved up or down as a fixed hash of its position says, so that the outcome is the same everywhere.
///
/// # Errors
/// As [`evaluate`].
pub fn sensitivity(module: &Module, func: &str, inputs: &[ArrayView<'_>]) -> Result<Vec<Vec<f64>>, CallError> {
    let given = inputs.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
    let mut moved = given.clone();
    for tensor in &mut moved {
        // Narrower floats are exact in f32, in which kernels compute.
        let unit = if tensor.dtype == DType::F64 { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 };
        if let Data::Float(values) = &mut tensor.data {
            for (at, value) in values.iter_mut().enumerate() {
                let up = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0;
                *value += if up { *value * unit } else { -*value * unit };
            }
        }
    }
    let (before, after) = (interpret(module, func, &given)?, interpret(module, func, &moved)?);
    let apart = |(a, b): (f64, f64)| if (a - b).is_finite() { (a - b).abs() } else { 0.0 };
    let outputs = before.iter().zip(&after);
    Ok(outputs.map(|(a, b)| a.to_f64().into_iter().zip(b.to_f64()).map(apart).collect()).collect())
}

/// Evaluate a function; its results as arrays.
pub(crate) fn run(module: &Module, func: &str, inputs: &[ArrayView<'_>]) -> Result<Vec<Array>, CallError> {
    let mut results = vec![];
    for tensor in tensors(module, func, inputs)? {
        let array = match &tensor.data {
            Data::Float(values) => Array::from_f64(tensor.dtype, &tensor.shape, values),
            Data::Int(values) => Array::from_i64(tensor.dtype, &tensor.shape, values),
        };
        results.push(array.map_err(|error| CallError::Array { name: "a result".to_owned(), error })?);
    }
    Ok(results)
}

fn tensors(module: &Module, func: &str, inputs: &[ArrayView<'_>]) -> Result<Vec<Tensor>, CallError> {
    interpret(module, func, &inputs.iter().map(tensor).collect::<Result<Vec<_>, _>>()?)
}

fn tensor(view: &ArrayView<'_>) -> Result<Tensor, CallError> {
    let array = view.to_array().map_err(|error| CallError::Array { name: "an input".to_owned(), error })?;
    let data = if array.dtype().is_float() { Data::Float(array.to_f64()) } else { Data::Int(array.to_i64()) };
    Ok(Tensor { dtype: array.dtype(), shape: array.shape().to_vec(), data })
}

fn interpret(module: &Module, func: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, CallError> {
    interp::run(module, func, inputs).map_err(|error| match error {
        EvalError::Size(error) => CallError::Size(error),
        EvalError::Gather { .. } => CallError::OutOfRange,
        EvalError::Scale(_) => CallError::BadScale,
        EvalError::EmptyArgMax(axis) => CallError::EmptyArgMax { axis },
        EvalError::Dtype { input, expected, got } => CallError::DType { name: input, expected, found: got },
        other => CallError::Interpreter(other.to_string()),
    })
}
