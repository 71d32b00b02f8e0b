//! The interpreter of tensor IR: the formula itself, in f64.

use crate::array::Array;
use crate::error::CallError;
use crate::view::ArrayView;
use onefold_ir::interp::{self, Data, EvalError, Tensor};
use onefold_ir::Module;

/// Evaluate a function in f64, by the reference interpreter. Floats of narrow types are not rounded at the end, so that
/// errors of kernels can be measured against them; integers and `bool` come as numbers too.
///
/// # Errors
/// Inputs that do not fit, or values that the formula forbids.
pub fn evaluate(module: &Module, func: &str, inputs: &[ArrayView<'_>]) -> Result<Vec<Vec<f64>>, CallError> {
    Ok(tensors(module, func, inputs)?.iter().map(Tensor::to_f64).collect())
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
    let mut given = vec![];
    for view in inputs {
        let array = view.to_array().map_err(|error| CallError::Array { name: "an input".to_owned(), error })?;
        let data = if array.dtype().is_float() { Data::Float(array.to_f64()) } else { Data::Int(array.to_i64()) };
        given.push(Tensor { dtype: array.dtype(), shape: array.shape().to_vec(), data });
    }
    interp::run(module, func, &given).map_err(|error| match error {
        EvalError::Size(error) => CallError::Size(error),
        EvalError::Gather { .. } => CallError::OutOfRange,
        EvalError::Scale(_) => CallError::BadScale,
        EvalError::EmptyArgMax(axis) => CallError::EmptyArgMax { axis },
        EvalError::Dtype { input, expected, got } => CallError::DType { name: input, expected, found: got },
        other => CallError::Interpreter(other.to_string()),
    })
}
