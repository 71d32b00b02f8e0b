//! Views: arrays that others own, of any strides.

use crate::array::{Array, ArrayError};
use crate::element::{elements_of, Element};
use crate::memory::{self, Place};
use onefold_ir::DType;
use std::marker::PhantomData;

/// An array that is read.
///
/// Strides count elements and may be negative or 0: a reversed, transposed or repeated array is a view like any other.
///
/// ```
/// use onefold::ArrayView;
///
/// let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let rows = ArrayView::new(&[2, 3], &data)?;
/// let columns = ArrayView::strided(&data, 0, &[3, 2], &[1, 3])?; // transposed
/// assert_eq!(columns.to_array()?.as_slice::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # let _ = rows;
/// # Ok::<(), onefold::ArrayError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrayView<'a> {
    place: Place,
    owner: PhantomData<&'a [u8]>,
}

/// An array that is written.
#[derive(Debug)]
pub struct ArrayViewMut<'a> {
    place: Place,
    owner: PhantomData<&'a mut [u8]>,
}

// SAFETY: a view is a shared borrow of plain data.
unsafe impl Send for ArrayView<'_> {}
// SAFETY: as above.
unsafe impl Sync for ArrayView<'_> {}
// SAFETY: a mutable view is an exclusive borrow of plain data.
unsafe impl Send for ArrayViewMut<'_> {}
// SAFETY: through a shared reference to it nothing is written.
unsafe impl Sync for ArrayViewMut<'_> {}

fn counted(shape: &[usize], found: usize) -> Result<(), ArrayError> {
    let expected = elements_of(shape).ok_or(ArrayError::TooLarge)?;
    if found == expected {
        Ok(())
    } else {
        Err(ArrayError::Count { shape: shape.to_vec(), expected, found, what: "elements" })
    }
}

impl<'a> ArrayView<'a> {
    /// A dense row-major array.
    ///
    /// # Errors
    /// The slice is not as long as the shape says.
    pub fn new<T: Element>(shape: &[usize], data: &'a [T]) -> Result<ArrayView<'a>, ArrayError> {
        counted(shape, data.len())?;
        ArrayView::strided(data, 0, shape, &memory::dense_strides(shape))
    }

    /// Elements of a slice: the first at `offset`, neighbours along each axis as far apart as its stride.
    ///
    /// # Errors
    /// Some element lies outside the slice.
    pub fn strided<T: Element>(
        data: &'a [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<ArrayView<'a>, ArrayError> {
        let place = Place::strided(data.len(), data.as_ptr().cast_mut(), offset, shape, strides)?;
        Ok(ArrayView { place, owner: PhantomData })
    }

    pub(crate) fn of_array(array: &'a Array) -> ArrayView<'a> {
        ArrayView { place: Place::of_bytes(array.dtype(), array.shape(), array.bytes()), owner: PhantomData }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.place.dtype
    }

    /// Lengths of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.place.shape
    }

    /// Distances between neighbours along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.place.strides
    }

    /// The same elements with axes in the opposite order.
    #[must_use]
    pub fn transposed(mut self) -> ArrayView<'a> {
        self.place.transpose();
        self
    }

    /// A dense copy.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn to_array(&self) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(self.dtype(), self.shape())?;
        self.place.read(array.bytes_mut());
        Ok(array)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

impl<'a> ArrayViewMut<'a> {
    /// A dense row-major array.
    ///
    /// # Errors
    /// The slice is not as long as the shape says.
    pub fn new<T: Element>(shape: &[usize], data: &'a mut [T]) -> Result<ArrayViewMut<'a>, ArrayError> {
        counted(shape, data.len())?;
        ArrayViewMut::strided(data, 0, shape, &memory::dense_strides(shape))
    }

    /// Elements of a slice: the first at `offset`, neighbours along each axis as far apart as its stride.
    ///
    /// # Errors
    /// Some element lies outside the slice, or two positions are one element.
    pub fn strided<T: Element>(
        data: &'a mut [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<ArrayViewMut<'a>, ArrayError> {
        let place = Place::strided(data.len(), data.as_mut_ptr(), offset, shape, strides)?;
        if place.repeats() {
            return Err(ArrayError::Repeats { shape: shape.to_vec(), strides: strides.to_vec() });
        }
        Ok(ArrayViewMut { place, owner: PhantomData })
    }

    pub(crate) fn of_array(array: &'a mut Array) -> ArrayViewMut<'a> {
        let (dtype, shape) = (array.dtype(), array.shape().to_vec());
        ArrayViewMut { place: Place::of_bytes_mut(dtype, &shape, array.bytes_mut()), owner: PhantomData }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.place.dtype
    }

    /// Lengths of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.place.shape
    }

    /// Distances between neighbours along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.place.strides
    }

    /// Copy an array's elements here.
    pub(crate) fn assign(&mut self, bytes: &[u8]) {
        // SAFETY: a mutable view is an exclusive borrow of its elements.
        unsafe { self.place.write(bytes) }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

#[cfg(feature = "ndarray")]
mod foreign {
    use super::{memory::Place, ArrayView, ArrayViewMut, Element, PhantomData};

    impl<'a, T: Element, D: ndarray::Dimension> From<ndarray::ArrayView<'a, T, D>> for ArrayView<'a> {
        fn from(view: ndarray::ArrayView<'a, T, D>) -> ArrayView<'a> {
            // SAFETY: ndarray guarantees that every index within the shape is a valid element.
            let place = unsafe { Place::foreign(view.as_ptr().cast_mut(), view.shape(), view.strides()) };
            ArrayView { place, owner: PhantomData }
        }
    }

    impl<'a, T: Element, D: ndarray::Dimension> From<ndarray::ArrayViewMut<'a, T, D>> for ArrayViewMut<'a> {
        fn from(mut view: ndarray::ArrayViewMut<'a, T, D>) -> ArrayViewMut<'a> {
            let start = view.as_mut_ptr();
            // SAFETY: as above; a mutable view's elements are distinct and exclusively borrowed.
            let place = unsafe { Place::foreign(start, view.shape(), view.strides()) };
            ArrayViewMut { place, owner: PhantomData }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_lead_anywhere_inside() {
        let data: Vec<i32> = (0..12).collect();
        let reversed = ArrayView::strided(&data, 11, &[3, 4], &[-4, -1]).expect("inside");
        let back: Vec<i32> = (0..12).rev().collect();
        assert_eq!(reversed.to_array().expect("memory").as_slice::<i32>(), Some(&back[..]));
        let repeated = ArrayView::strided(&data, 5, &[2, 3], &[0, 0]).expect("inside");
        assert_eq!(repeated.to_array().expect("memory").to_f64(), [5.0; 6]);
        assert!(ArrayView::strided(&data, 0, &[3, 4], &[4, 2]).is_err());
        assert!(ArrayView::strided(&data, 0, &[2], &[-1]).is_err());
        assert!(ArrayView::strided(&data, 99, &[0, 4], &[4, 2]).is_ok());
        assert!(ArrayView::strided(&data, 0, &[usize::MAX, 4], &[isize::MAX, 2]).is_err());
    }

    #[test]
    fn what_is_written_is_written_once() {
        let mut data = [0.0f32; 12];
        assert!(ArrayViewMut::strided(&mut data, 0, &[3, 4], &[0, 1]).is_err());
        assert!(ArrayViewMut::strided(&mut data, 0, &[3, 4], &[3, 1]).is_err());
        let mut view = ArrayViewMut::strided(&mut data, 0, &[4, 3], &[1, 4]).expect("distinct");
        let rows: Vec<f32> = (0..12).map(|v| v as f32).collect();
        view.assign(memory::bytes(&rows));
        assert_eq!(data[..5], [0.0, 3.0, 6.0, 9.0, 1.0]);
    }
}
