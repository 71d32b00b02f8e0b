//! Elementwise operations on runs of elements.
//!
//! Floats are computed in f64 and not rounded to their dtype, but where the dtype overflows they are infinite: the class of
//! every value is that of its dtype. f16 and bf16 compute in f32, as kernels do; their own range counts where a value is
//! converted to them or leaves the function. Integers wrap.

use crate::types::int_range;
use crate::{BinaryOp, CmpOp, DType, UnaryOp};

/// Halfway between the largest f32 and the next power of two: from here on f32 rounds to infinity.
const F32_OVERFLOW: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;

/// The same for f16 and bf16.
const F16_OVERFLOW: f64 = 65_520.0;
const BF16_OVERFLOW: f64 = 339_617_752_923_046_005_526_922_703_901_628_039_168.0;

/// The value rounded to a floating-point dtype, ties to even.
pub(super) fn round_to(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(v as f32),
        DType::F16 => half::f16::from_f64(v).to_f64(),
        DType::BF16 => half::bf16::from_f64(v).to_f64(),
        _ => v,
    }
}

/// Infinite where the dtype's arithmetic overflows.
pub(super) fn settle(dtype: DType, values: &mut [f64]) {
    if dtype == DType::F64 {
        return;
    }
    overflow(F32_OVERFLOW, values);
}

/// Infinite where the dtype itself overflows: for results.
pub(super) fn settle_result(dtype: DType, values: &mut [f64]) {
    match dtype {
        DType::F16 => overflow(F16_OVERFLOW, values),
        DType::BF16 => overflow(BF16_OVERFLOW, values),
        _ => {}
    }
}

fn overflow(limit: f64, values: &mut [f64]) {
    for v in values {
        if v.abs() >= limit {
            *v = f64::INFINITY.copysign(*v);
        }
    }
}

/// The integer as its dtype holds it.
pub(super) fn wrap(dtype: DType, v: i64) -> i64 {
    match dtype {
        DType::I8 => i64::from(v as i8),
        DType::U8 => i64::from(v as u8),
        DType::I4 => v << 60 >> 60,
        DType::U4 => v & 15,
        DType::I32 => i64::from(v as i32),
        DType::Bool => i64::from(v != 0),
        _ => v,
    }
}

/// The nearest value of an integer dtype.
pub(super) fn saturate(dtype: DType, v: i64) -> i64 {
    int_range(dtype).map_or(i64::from(v != 0), |(lo, hi)| v.clamp(lo, hi))
}

/// From float to integer or `bool`: toward zero, saturating, NaN to 0.
pub(super) fn to_int(dtype: DType, v: f64) -> i64 {
    if dtype == DType::Bool {
        i64::from(v != 0.0)
    } else {
        saturate(dtype, v as i64)
    }
}

pub(super) fn unary_float(op: UnaryOp, dtype: DType, x: &[f64], out: &mut [f64]) {
    fn map(x: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
        for (o, v) in out.iter_mut().zip(x) {
            *o = f(*v);
        }
    }
    match op {
        UnaryOp::Neg => map(x, out, |v| -v),
        UnaryOp::Exp => map(x, out, f64::exp),
        UnaryOp::Log => map(x, out, f64::ln),
        UnaryOp::Exp2 => map(x, out, f64::exp2),
        UnaryOp::Log2 => map(x, out, f64::log2),
        UnaryOp::Tanh => map(x, out, f64::tanh),
        UnaryOp::Erf => map(x, out, libm::erf),
        UnaryOp::Sqrt => map(x, out, f64::sqrt),
        UnaryOp::Rsqrt => map(x, out, |v| 1.0 / v.sqrt()),
        UnaryOp::Abs => map(x, out, f64::abs),
        UnaryOp::Floor => map(x, out, f64::floor),
        UnaryOp::Round => map(x, out, f64::round_ties_even),
        UnaryOp::Not => map(x, out, |_| f64::NAN),
    }
    settle(dtype, out);
}

pub(super) fn unary_int(op: UnaryOp, dtype: DType, x: &[i64], out: &mut [i64]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o = match op {
            UnaryOp::Neg => wrap(dtype, v.wrapping_neg()),
            UnaryOp::Abs => wrap(dtype, v.wrapping_abs()),
            _ => i64::from(*v == 0),
        };
    }
}

/// The larger of two, NaN if either is.
pub(super) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b {
        a
    } else {
        b
    }
}

/// The smaller of two, NaN if either is.
pub(super) fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b {
        a
    } else {
        b
    }
}

pub(super) fn binary_float(op: BinaryOp, dtype: DType, a: &[f64], b: &[f64], out: &mut [f64]) {
    fn map(a: &[f64], b: &[f64], out: &mut [f64], f: impl Fn(f64, f64) -> f64) {
        for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
            *o = f(*x, *y);
        }
    }
    match op {
        BinaryOp::Add => map(a, b, out, |x, y| x + y),
        BinaryOp::Sub => map(a, b, out, |x, y| x - y),
        BinaryOp::Mul => map(a, b, out, |x, y| x * y),
        BinaryOp::Div => map(a, b, out, |x, y| x / y),
        BinaryOp::Min => map(a, b, out, min),
        BinaryOp::Max => map(a, b, out, max),
        BinaryOp::Pow => map(a, b, out, f64::powf),
        // The others are of integers: a verified function has none here.
        _ => map(a, b, out, |_, _| f64::NAN),
    }
    settle(dtype, out);
}

/// Integer quotients and remainders by 0 are 0; shifts by the width or more, or by less than nothing, shift everything out.
pub(super) fn binary_int(op: BinaryOp, dtype: DType, a: &[i64], b: &[i64], out: &mut [i64]) {
    let bits = dtype.bits();
    for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
        let amount = u32::try_from(y).ok().filter(|n| *n < bits);
        let v = match op {
            BinaryOp::Add => x.wrapping_add(y),
            BinaryOp::Sub => x.wrapping_sub(y),
            BinaryOp::Mul => x.wrapping_mul(y),
            BinaryOp::Div => x.checked_div(y).unwrap_or(if y == 0 { 0 } else { x }),
            BinaryOp::Rem => x.checked_rem(y).unwrap_or(0),
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
            BinaryOp::Pow => 0,
            BinaryOp::Shl => amount.map_or(0, |n| x << n),
            BinaryOp::Shr => amount.map_or(if x < 0 { -1 } else { 0 }, |n| x >> n),
            BinaryOp::And => x & y,
            BinaryOp::Or => x | y,
            BinaryOp::Xor => x ^ y,
        };
        *o = wrap(dtype, v);
    }
}

pub(super) fn compare<T: PartialOrd + Copy>(op: CmpOp, a: &[T], b: &[T], out: &mut [i64]) {
    let test: fn(&T, &T) -> bool = match op {
        CmpOp::Lt => T::lt,
        CmpOp::Le => T::le,
        CmpOp::Gt => T::gt,
        CmpOp::Ge => T::ge,
        CmpOp::Eq => T::eq,
        CmpOp::Ne => T::ne,
    };
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = i64::from(test(x, y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_follows_the_dtype() {
        let mut v = [3.4028234e38, -3.5e38, 1e300, f64::NAN];
        settle(DType::F32, &mut v);
        assert_eq!(&v[..3], &[3.4028234e38, f64::NEG_INFINITY, f64::INFINITY]);
        assert!(v[3].is_nan());
        // The constants are where the types themselves round to infinity.
        assert!((F32_OVERFLOW as f32).is_infinite() && (F32_OVERFLOW.next_down() as f32).is_finite());
        assert!(half::bf16::from_f64(BF16_OVERFLOW).is_infinite());
        assert!(half::bf16::from_f64(BF16_OVERFLOW * 0.9999).is_finite());
    }

    #[test]
    fn integers_wrap_and_never_trap() {
        let mut out = [0];
        binary_int(BinaryOp::Add, DType::I8, &[127], &[1], &mut out);
        assert_eq!(out, [-128]);
        binary_int(BinaryOp::Div, DType::I64, &[i64::MIN], &[-1], &mut out);
        assert_eq!(out, [i64::MIN]);
        binary_int(BinaryOp::Div, DType::I32, &[7], &[0], &mut out);
        assert_eq!(out, [0]);
        binary_int(BinaryOp::Shr, DType::I8, &[-128], &[9], &mut out);
        assert_eq!(out, [-1]);
        assert_eq!(to_int(DType::U8, 300.7), 255);
        assert_eq!(to_int(DType::I32, f64::NAN), 0);
        assert_eq!(saturate(DType::I4, -9), -8);
    }

    #[test]
    fn nan_spreads_through_max_and_min() {
        assert!(max(f64::NAN, 1.0).is_nan() && max(1.0, f64::NAN).is_nan());
        assert!(min(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert_eq!(max(1.0, 2.0), 2.0);
    }
}
