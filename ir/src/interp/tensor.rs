//! Arrays as the interpreter sees them.

use super::scalar::round_to;
use crate::DType;

/// An array: floats of any width as f64, integers and truth values as i64.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements, row by row.
    pub data: Data,
}

/// Elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Of the floating-point types.
    Float(Vec<f64>),
    /// Of the integer types and `bool` (0 or 1).
    Int(Vec<i64>),
}

impl Tensor {
    /// Elements of a floating-point type, rounded to it.
    ///
    /// A dtype that is not one gives a tensor that [`super::run`] refuses.
    pub fn float(dtype: DType, shape: &[usize], data: &[f64]) -> Tensor {
        let data = data.iter().map(|v| round_to(dtype, *v)).collect();
        Tensor { dtype, shape: shape.to_vec(), data: Data::Float(data) }
    }

    /// Elements of an integer type or `bool`.
    pub fn int(dtype: DType, shape: &[usize], data: &[i64]) -> Tensor {
        Tensor { dtype, shape: shape.to_vec(), data: Data::Int(data.to_vec()) }
    }

    /// f32 elements.
    pub fn f32(shape: &[usize], data: &[f32]) -> Tensor {
        let data = data.iter().map(|v| f64::from(*v)).collect();
        Tensor { dtype: DType::F32, shape: shape.to_vec(), data: Data::Float(data) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All elements as f64 (i64 beyond 2^53 rounds).
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            Data::Float(v) => v.clone(),
            Data::Int(v) => v.iter().map(|v| *v as f64).collect(),
        }
    }
}

impl Data {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::Float(v) => v.len(),
            Data::Int(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for elements of a dtype, all zero; nothing if there is not that much memory.
    pub(super) fn zeroed(dtype: DType, len: usize) -> Option<Data> {
        fn zeros<T: Clone + Default>(len: usize) -> Option<Vec<T>> {
            let mut v = Vec::new();
            v.try_reserve_exact(len).ok()?;
            v.resize(len, T::default());
            Some(v)
        }
        if dtype.is_float() {
            zeros(len).map(Data::Float)
        } else {
            zeros(len).map(Data::Int)
        }
    }
}
