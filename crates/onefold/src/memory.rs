//! Where views become memory: the only place of this crate with unsafe code.
//!
//! A [`Place`] is a pointer with a shape and strides, all of whose elements are known to be in bounds; views are built on it
//! and add who owns what. Kernels are called here too.

use crate::array::ArrayError;
use crate::element::{bytes_of, elements_of, Element};
use onefold_ir::DType;
use onefold_loops::{CallArgs, Code};

/// Dtype, shape, strides in elements and the address of the first element.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    start: *mut u8,
}

/// Strides of a dense row-major array.
pub(crate) fn dense_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1isize;
    for (stride, len) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(isize::try_from(*len).unwrap_or(isize::MAX).max(1));
    }
    strides
}

impl Place {
    /// The dense bytes of an array, whose number is that of the shape.
    pub(crate) fn of_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Place {
        Place { dtype, shape: shape.to_vec(), strides: dense_strides(shape), start: bytes.as_ptr().cast_mut() }
    }

    /// As [`Place::of_bytes`], to be written.
    pub(crate) fn of_bytes_mut(dtype: DType, shape: &[usize], bytes: &mut [u8]) -> Place {
        Place { dtype, shape: shape.to_vec(), strides: dense_strides(shape), start: bytes.as_mut_ptr() }
    }

    /// Elements of a slice, from position `offset` on, with strides in elements.
    pub(crate) fn strided<T: Element>(
        len: usize,
        start: *mut T,
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Place, ArrayError> {
        if shape.len() != strides.len() {
            return Err(ArrayError::Rank { shape: shape.len(), strides: strides.len() });
        }
        elements_of(shape).and_then(|n| bytes_of(T::DTYPE, n)).ok_or(ArrayError::TooLarge)?;
        let (low, high) = reach(shape, strides).ok_or(ArrayError::TooLarge)?;
        let empty = shape.contains(&0);
        let inside = |at: isize| offset.checked_add_signed(at).is_some_and(|at| at < len);
        if !(empty || inside(low) && inside(high)) {
            return Err(ArrayError::OutOfBounds { shape: shape.to_vec(), strides: strides.to_vec(), len });
        }
        let start = if empty { start } else { start.wrapping_add(offset) };
        Ok(Place { dtype: T::DTYPE, shape: shape.to_vec(), strides: strides.to_vec(), start: start.cast() })
    }

    /// The array of another library, whose elements are where it says.
    ///
    /// # Safety
    /// Every position within the shape is a valid element of that type at `start + sum(position * stride)`.
    #[cfg(feature = "ndarray")]
    pub(crate) unsafe fn foreign<T: Element>(start: *mut T, shape: &[usize], strides: &[isize]) -> Place {
        Place { dtype: T::DTYPE, shape: shape.to_vec(), strides: strides.to_vec(), start: start.cast() }
    }

    /// Reverse the order of axes. (4-bit elements are not addressable and stay as they are.)
    pub(crate) fn transpose(&mut self) {
        if self.dtype.bits() >= 8 {
            self.shape.reverse();
            self.strides.reverse();
        }
    }

    /// Number of elements; shapes were checked when the place was made.
    pub(crate) fn elements(&self) -> usize {
        elements_of(&self.shape).unwrap_or(0)
    }

    /// Whether elements stand in row-major order without gaps, where kernels expect them.
    pub(crate) fn is_dense(&self) -> bool {
        let mut step = 1isize;
        for (stride, len) in self.strides.iter().zip(&self.shape).rev() {
            if *len != 1 {
                if *stride != step && self.elements() != 0 {
                    return false;
                }
                step = step.saturating_mul(*len as isize);
            }
        }
        self.dtype.bits() < 8 || (self.start as usize).is_multiple_of(self.dtype.bits() as usize / 8)
    }

    /// Whether two positions may be the same element.
    pub(crate) fn repeats(&self) -> bool {
        if self.elements() == 0 {
            return false;
        }
        let mut axes: Vec<(usize, usize)> = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|(n, _)| **n > 1)
            .map(|(n, s)| (s.unsigned_abs(), *n))
            .collect();
        axes.sort_unstable();
        let mut extent = 0usize;
        for (stride, len) in axes {
            if stride <= extent {
                return true;
            }
            extent = extent.saturating_add(stride.saturating_mul(len - 1));
        }
        false
    }

    /// First and one past the last address.
    pub(crate) fn range(&self) -> (usize, usize) {
        let at = self.start as usize;
        if self.elements() == 0 {
            return (at, at);
        }
        if self.dtype.bits() < 8 {
            return (at, at.saturating_add(bytes_of(self.dtype, self.elements()).unwrap_or(0)));
        }
        let width = self.dtype.bits() as isize / 8;
        let (low, high) = reach(&self.shape, &self.strides).unwrap_or((0, 0));
        (at.saturating_add_signed(low * width), at.saturating_add_signed((high + 1) * width))
    }

    /// Byte distance from the first element, for each element in row-major order.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = isize> + '_ {
        let width = (self.dtype.bits() / 8) as isize;
        let mut position = vec![0usize; self.shape.len()];
        let mut offset = 0isize;
        (0..self.elements()).map(move |_| {
            let here = offset * width;
            for axis in (0..position.len()).rev() {
                position[axis] += 1;
                offset += self.strides[axis];
                if position[axis] < self.shape[axis] {
                    break;
                }
                offset -= self.strides[axis] * self.shape[axis] as isize;
                position[axis] = 0;
            }
            here
        })
    }

    /// Address of the first element.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Copy the elements into dense bytes.
    pub(crate) fn read(&self, into: &mut [u8]) {
        let width = self.dtype.bits() as usize / 8;
        if width == 0 || self.is_dense() {
            let bytes = bytes_of(self.dtype, self.elements()).unwrap_or(0).min(into.len());
            // SAFETY: a dense place covers that many bytes, and `into` is a different, exclusive borrow of at least as many.
            unsafe { std::ptr::copy_nonoverlapping(self.start, into.as_mut_ptr(), bytes) };
            return;
        }
        for (offset, element) in self.offsets().zip(into.chunks_exact_mut(width)) {
            // SAFETY: every offset is that of an element, which is `width` bytes long.
            unsafe { std::ptr::copy_nonoverlapping(self.start.offset(offset), element.as_mut_ptr(), width) };
        }
    }

    /// Copy dense bytes into the elements.
    ///
    /// # Safety
    /// The place is writable and nothing else accesses it now.
    pub(crate) unsafe fn write(&self, from: &[u8]) {
        let width = self.dtype.bits() as usize / 8;
        if width == 0 || self.is_dense() {
            let bytes = bytes_of(self.dtype, self.elements()).unwrap_or(0).min(from.len());
            // SAFETY: as in `read`; the caller promises exclusive access.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.start, bytes) };
            return;
        }
        for (offset, element) in self.offsets().zip(from.chunks_exact(width)) {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(element.as_ptr(), self.start.offset(offset), width) };
        }
    }
}

/// Least and greatest offset in elements; `None` on overflow.
fn reach(shape: &[usize], strides: &[isize]) -> Option<(isize, isize)> {
    let (mut low, mut high) = (0isize, 0isize);
    for (len, stride) in shape.iter().zip(strides) {
        let far = isize::try_from(len.saturating_sub(1)).ok()?.checked_mul(*stride)?;
        if far < 0 {
            low = low.checked_add(far)?;
        } else {
            high = high.checked_add(far)?;
        }
    }
    Some((low, high))
}

/// The bytes of a slice.
pub(crate) fn bytes<T: Element>(slice: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, so all their bytes are initialised.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), std::mem::size_of_val(slice)) }
}

/// Bytes as elements, if they are those of that type: aligned, a whole number of them, and (for `bool`) 0 or 1.
pub(crate) fn elements<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    if T::DTYPE == DType::Bool && bytes.iter().any(|b| *b > 1) {
        return None;
    }
    // SAFETY: every bit pattern is a value of the other element types; those of `bool` were checked.
    let (before, middle, after) = unsafe { bytes.align_to::<T>() };
    (before.is_empty() && after.is_empty()).then_some(middle)
}

/// As [`elements`], exclusively.
pub(crate) fn elements_mut<T: Element>(bytes: &mut [u8]) -> Option<&mut [T]> {
    if T::DTYPE == DType::Bool && bytes.iter().any(|b| *b > 1) {
        return None;
    }
    // SAFETY: as in `elements`; whatever is written is a value of the type, hence valid bytes.
    let (before, middle, after) = unsafe { bytes.align_to_mut::<T>() };
    (before.is_empty() && after.is_empty()).then_some(middle)
}

/// Pointers to the arrays of one call, shared by its threads.
pub(crate) struct Pointers(Vec<*mut u8>);

// SAFETY: threads only hand the pointers on to the kernel, whose shares write disjoint parts.
unsafe impl Sync for Pointers {}

impl Pointers {
    pub(crate) fn new(places: impl Iterator<Item = *mut u8>) -> Pointers {
        Pointers(places.collect())
    }
}

/// Run a share of a kernel.
///
/// # Safety
/// The pointers are those of dense arrays as long as the kernel's input and output buffers are at these sizes; outputs overlap
/// nothing and are exclusively ours; shares that run at the same time are disjoint; scratch is as large as the kernel needs.
pub(crate) unsafe fn call(
    code: &dyn Code,
    sizes: &[i64],
    buffers: &Pointers,
    scratch: *mut u8,
    share: (i64, i64),
) -> i32 {
    let args = CallArgs { sizes, buffers: &buffers.0, scratch, begin: share.0, end: share.1 };
    // SAFETY: promised by the caller.
    unsafe { code.call(&args) }
}
