//! Rust types that stand for element types of arrays.

use half::{bf16, f16};
use onefold_ir::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values are the elements of arrays of one dtype. Implemented for `f32`, `f64`, [`half::f16`],
/// [`half::bf16`], `i8`, `u8`, `i32`, `i64` and `bool`.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),*) => {
        $(
            impl sealed::Sealed for $ty {}
            impl Element for $ty {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

elements!(f32 => F32, f64 => F64, f16 => F16, bf16 => BF16, i8 => I8, u8 => U8, i32 => I32, i64 => I64, bool => Bool);

/// Bytes that so many elements take; two 4-bit ones share a byte. `None` on overflow, also of `isize`, beyond which no
/// array can be.
pub(crate) fn bytes_of(dtype: DType, elements: usize) -> Option<usize> {
    let bytes = match dtype.bits() {
        4 => elements.div_ceil(2),
        bits => elements.checked_mul(bits as usize / 8)?,
    };
    isize::try_from(bytes).ok().map(|_| bytes)
}

/// Number of elements of a shape; 0 if any length is 0, however large the others are.
pub(crate) fn elements_of(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s))
}

/// Element `at` of dense little-endian bytes, as a float (`bool` as 0 and 1).
pub(crate) fn get_f64(dtype: DType, bytes: &[u8], at: usize) -> f64 {
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        let mut part = [0; N];
        if let Some(found) = bytes.get(at * N..at * N + N) {
            part.copy_from_slice(found);
        }
        part
    }
    match dtype {
        DType::F32 => f64::from(f32::from_ne_bytes(part(bytes, at))),
        DType::F64 => f64::from_ne_bytes(part(bytes, at)),
        DType::F16 => f16::from_ne_bytes(part(bytes, at)).to_f64(),
        DType::BF16 => bf16::from_ne_bytes(part(bytes, at)).to_f64(),
        DType::I8 => f64::from(i8::from_ne_bytes(part(bytes, at))),
        DType::U8 | DType::Bool => f64::from(u8::from_ne_bytes(part(bytes, at))),
        DType::I32 => f64::from(i32::from_ne_bytes(part(bytes, at))),
        DType::I64 => i64::from_ne_bytes(part(bytes, at)) as f64,
        DType::U4 => f64::from(nibble(bytes, at)),
        DType::I4 => f64::from((nibble(bytes, at) << 4) as i8 >> 4),
    }
}

/// Set element `at` of dense bytes from a float: rounded to nearest even, integers truncated and saturated, `bool` is not 0.
pub(crate) fn set_f64(dtype: DType, bytes: &mut [u8], at: usize, value: f64) {
    fn put<const N: usize>(bytes: &mut [u8], at: usize, part: [u8; N]) {
        if let Some(place) = bytes.get_mut(at * N..at * N + N) {
            place.copy_from_slice(&part);
        }
    }
    match dtype {
        DType::F32 => put(bytes, at, (value as f32).to_ne_bytes()),
        DType::F64 => put(bytes, at, value.to_ne_bytes()),
        DType::F16 => put(bytes, at, f16::from_f64(value).to_ne_bytes()),
        DType::BF16 => put(bytes, at, bf16::from_f64(value).to_ne_bytes()),
        DType::I8 => put(bytes, at, (value as i8).to_ne_bytes()),
        DType::U8 => put(bytes, at, [value as u8]),
        DType::Bool => put(bytes, at, [u8::from(value != 0.0)]),
        DType::I32 => put(bytes, at, (value as i32).to_ne_bytes()),
        DType::I64 => put(bytes, at, (value as i64).to_ne_bytes()),
        DType::U4 => set_nibble(bytes, at, (value as u8).min(15)),
        DType::I4 => set_nibble(bytes, at, (value as i8).clamp(-8, 7) as u8 & 15),
    }
}

fn nibble(bytes: &[u8], at: usize) -> u8 {
    let byte = bytes.get(at / 2).copied().unwrap_or(0);
    byte >> (4 * (at % 2)) & 15
}

fn set_nibble(bytes: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(at / 2) {
        let shift = 4 * (at % 2);
        *byte = *byte & !(15 << shift) | value << shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_stores_and_loads() {
        for dtype in DType::ALL {
            let mut bytes = vec![0; bytes_of(dtype, 5).expect("small")];
            for at in 0..5 {
                set_f64(dtype, &mut bytes, at, (at % 2) as f64);
            }
            for at in 0..5 {
                assert_eq!(get_f64(dtype, &bytes, at), (at % 2) as f64, "{dtype}");
            }
        }
        let mut bytes = [0; 2];
        set_f64(DType::I4, &mut bytes, 1, -3.0);
        set_f64(DType::I4, &mut bytes, 2, 100.0);
        assert_eq!([0, 1, 2].map(|at| get_f64(DType::I4, &bytes, at)), [0.0, -3.0, 7.0]);
    }

    #[test]
    fn large_shapes_do_not_overflow() {
        assert_eq!(elements_of(&[usize::MAX, 2]), None);
        assert_eq!(elements_of(&[usize::MAX, 2, 0]), Some(0));
        assert_eq!(bytes_of(DType::F64, usize::MAX / 8), None);
    }
}
