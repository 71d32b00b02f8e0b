//! Arrays that own their memory.

use crate::element::{bytes_of, elements_of, get_f64, set_f64, Element};
use crate::memory;
use crate::view::{ArrayView, ArrayViewMut};
use onefold_ir::DType;
use onefold_runtime::{Buffer, OutOfMemory};
use std::fmt;

/// Why there is no such array or view.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArrayError {
    /// More elements or bytes than memory has addresses.
    #[error("the number of elements or bytes overflows")]
    TooLarge,
    /// Data that is not as long as the shape says.
    #[error("shape {shape:?} has {expected} {what}, but {found} were given")]
    Count {
        /// The shape.
        shape: Vec<usize>,
        /// What it needs.
        expected: usize,
        /// What there was.
        found: usize,
        /// `elements` or `bytes`.
        what: &'static str,
    },
    /// Shape and strides of different length.
    #[error("a shape of rank {shape} with {strides} strides")]
    Rank {
        /// Length of the shape.
        shape: usize,
        /// Length of the strides.
        strides: usize,
    },
    /// Strides that lead out of the slice.
    #[error("shape {shape:?} with strides {strides:?} leaves a slice of {len} elements")]
    OutOfBounds {
        /// The shape.
        shape: Vec<usize>,
        /// The strides.
        strides: Vec<isize>,
        /// Length of the slice.
        len: usize,
    },
    /// Two positions of a mutable view are one element.
    #[error("shape {shape:?} with strides {strides:?} writes one element twice")]
    Repeats {
        /// The shape.
        shape: Vec<usize>,
        /// The strides.
        strides: Vec<isize>,
    },
    /// A byte of a `bool` array that is neither 0 nor 1.
    #[error("byte {value} at position {at} is not a bool")]
    NotBool {
        /// Where.
        at: usize,
        /// What stands there.
        value: u8,
    },
    /// Not enough memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// A dense row-major array on a 64-byte boundary.
///
/// ```
/// use onefold::{Array, DType};
///
/// let x = Array::from_vec(&[2, 3], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(x.dtype(), DType::F32);
/// assert_eq!(x.shape(), &[2, 3]);
/// assert_eq!(x.as_slice::<f32>().unwrap()[4], 5.0);
/// # Ok::<(), onefold::ArrayError>(())
/// ```
#[derive(Debug)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    data: Buffer,
}

impl Array {
    /// All elements 0.
    ///
    /// # Errors
    /// The size overflows or is more than there is memory.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Array, ArrayError> {
        let bytes = elements_of(shape).and_then(|n| bytes_of(dtype, n)).ok_or(ArrayError::TooLarge)?;
        Ok(Array { dtype, shape: shape.to_vec(), data: Buffer::zeroed(bytes)? })
    }

    /// From elements in row-major order.
    ///
    /// # Errors
    /// Their number is not that of the shape.
    pub fn from_vec<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Array, ArrayError> {
        Array::from_slice(shape, &elements)
    }

    /// From elements in row-major order.
    ///
    /// # Errors
    /// Their number is not that of the shape.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Array, ArrayError> {
        let expected = elements_of(shape).ok_or(ArrayError::TooLarge)?;
        if elements.len() != expected {
            let found = elements.len();
            return Err(ArrayError::Count { shape: shape.to_vec(), expected, found, what: "elements" });
        }
        Ok(Array { dtype: T::DTYPE, shape: shape.to_vec(), data: Buffer::copied(memory::bytes(elements))? })
    }

    /// From bytes in row-major order and the machine's byte order; of 4-bit integers, two to a byte, the first in the low half.
    ///
    /// # Errors
    /// Their number is not that of the shape, or those of a `bool` array are neither 0 nor 1.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(dtype, shape)?;
        let expected = array.bytes().len();
        if bytes.len() != expected {
            return Err(ArrayError::Count { shape: shape.to_vec(), expected, found: bytes.len(), what: "bytes" });
        }
        if let (DType::Bool, Some(at)) = (dtype, bytes.iter().position(|b| *b > 1)) {
            return Err(ArrayError::NotBool { at, value: bytes[at] });
        }
        array.data.as_mut_slice().copy_from_slice(bytes);
        Ok(array)
    }

    /// From numbers, rounded to the dtype.
    ///
    /// # Errors
    /// Their number is not that of the shape.
    pub fn from_f64(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(dtype, shape)?;
        if values.len() != array.len() {
            let (expected, found) = (array.len(), values.len());
            return Err(ArrayError::Count { shape: shape.to_vec(), expected, found, what: "elements" });
        }
        for (at, value) in values.iter().enumerate() {
            set_f64(dtype, array.data.as_mut_slice(), at, *value);
        }
        Ok(array)
    }

    /// From integers, saturated to the dtype (`bool` is not 0).
    ///
    /// # Errors
    /// Their number is not that of the shape.
    pub fn from_i64(dtype: DType, shape: &[usize], values: &[i64]) -> Result<Array, ArrayError> {
        if dtype == DType::I64 {
            return Array::from_slice(shape, values);
        }
        // Exact: every other integer type, and what saturates to it, survives the way through f64.
        let values: Vec<f64> = values.iter().map(|v| *v as f64).collect();
        Array::from_f64(dtype, shape, &values)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Lengths of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        elements_of(&self.shape).unwrap_or(0)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    /// All bytes, for kernels that write them.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_slice()
    }

    /// The elements in row-major order; `None` if the array's dtype is another.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (T::DTYPE == self.dtype).then(|| memory::elements(self.data.as_slice())).flatten()
    }

    /// The elements in row-major order, to be changed; `None` if the array's dtype is another.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        (T::DTYPE == self.dtype).then(|| memory::elements_mut(self.data.as_mut_slice())).flatten()
    }

    /// One element in row-major order as a number (`bool` as 0 and 1).
    pub fn get_f64(&self, at: usize) -> Option<f64> {
        (at < self.len()).then(|| get_f64(self.dtype, self.bytes(), at))
    }

    /// All elements as numbers.
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.len()).map(|at| get_f64(self.dtype, self.bytes(), at)).collect()
    }

    /// All elements as integers, truncated where they are not.
    pub fn to_i64(&self) -> Vec<i64> {
        match self.as_slice::<i64>() {
            Some(elements) => elements.to_vec(),
            None => self.to_f64().iter().map(|v| *v as i64).collect(),
        }
    }

    /// A view of the whole.
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView::of_array(self)
    }

    /// A view of the whole, to be written.
    pub fn view_mut(&mut self) -> ArrayViewMut<'_> {
        ArrayViewMut::of_array(self)
    }
}

impl PartialEq for Array {
    /// The same dtype, shape and bytes: NaN equals itself, and 0 differs from -0.
    fn eq(&self, other: &Array) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl fmt::Display for Array {
    /// Dtype and shape: `f32[2, 3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        write!(f, "{}[{}]", self.dtype, sizes.join(", "))
    }
}
