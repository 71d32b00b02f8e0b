//! Elementwise operations on elements of any dtype, held as f64.

use crate::eval;
use onefold_ir::{BinaryOp, DType, UnaryOp};

/// The value as its dtype holds it: integers wrap, floats beyond the type's range are infinite. Floats are not rounded.
pub fn settle(dtype: DType, v: f64) -> f64 {
    match dtype {
        // Half-width types compute in f32.
        DType::F32 | DType::F16 | DType::BF16 if v.is_finite() && (v as f32).is_infinite() => f64::INFINITY.copysign(v),
        _ => v,
    }
}

fn wrap(dtype: DType, v: i64) -> f64 {
    match dtype {
        DType::I8 => f64::from(v as i8),
        DType::U8 => f64::from(v as u8),
        DType::I4 => (v << 60 >> 60) as f64,
        DType::U4 => (v & 15) as f64,
        DType::I32 => f64::from(v as i32),
        _ => v as f64,
    }
}

/// Conversion to a dtype; to integers saturating.
pub fn cast(dtype: DType, v: f64) -> f64 {
    let saturate = |lo: f64, hi: f64| if v.is_nan() { 0.0 } else { v.trunc().clamp(lo, hi) };
    match dtype {
        DType::F16 if v.abs() >= 65520.0 => f64::INFINITY.copysign(v),
        DType::BF16 if v.abs() >= 3.3961775e38 => f64::INFINITY.copysign(v),
        DType::Bool => f64::from(u8::from(v != 0.0)),
        DType::I4 => saturate(-8.0, 7.0),
        DType::U4 => saturate(0.0, 15.0),
        DType::I8 => saturate(-128.0, 127.0),
        DType::U8 => saturate(0.0, 255.0),
        DType::I32 => saturate(f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => saturate(i64::MIN as f64, i64::MAX as f64),
        _ => settle(dtype, v),
    }
}

/// One operand.
pub fn unary(op: UnaryOp, dtype: DType, v: f64) -> f64 {
    match (op, dtype) {
        (UnaryOp::Not, DType::Bool) => 1.0 - v,
        (UnaryOp::Not, _) => wrap(dtype, !(v as i64)),
        (UnaryOp::Neg, d) if d.is_int() => wrap(d, (v as i64).wrapping_neg()),
        (UnaryOp::Abs, d) if d.is_int() => wrap(d, (v as i64).wrapping_abs()),
        (UnaryOp::Erf, _) => erf(v),
        _ => settle(dtype, eval::unary(op, v).unwrap_or(f64::NAN)),
    }
}

/// Two operands of the dtype. Integer quotients and remainders by 0 are 0; shifts by the width or more shift everything out.
pub fn binary(op: BinaryOp, dtype: DType, a: f64, b: f64) -> f64 {
    if dtype.is_float() {
        return settle(dtype, eval::binary(op, a, b).unwrap_or(f64::NAN));
    }
    let (x, y) = (a as i64, b as i64);
    let amount = u32::try_from(y).ok().filter(|n| *n < dtype.bits());
    let v = match op {
        BinaryOp::Add => x.wrapping_add(y),
        BinaryOp::Sub => x.wrapping_sub(y),
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::Div => x.checked_div(y).unwrap_or(if y == 0 { 0 } else { x }),
        BinaryOp::Rem => x.checked_rem(y).unwrap_or(0),
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Pow => return f64::NAN,
        BinaryOp::Shl => amount.map_or(0, |n| x << n),
        BinaryOp::Shr => amount.map_or(if x < 0 { -1 } else { 0 }, |n| x >> n),
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
    };
    if dtype == DType::Bool {
        f64::from(u8::from(v != 0))
    } else {
        wrap(dtype, v)
    }
}

/// The error function, by its series near 0 and the continued fraction of its complement beyond.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() {
        return a;
    }
    if a < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..120 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = 0.0;
    for n in (1..60).rev() {
        fraction = f64::from(n) / 2.0 / (a + fraction);
    }
    let complement = (-a * a).exp() / ((a + fraction) * std::f64::consts::PI.sqrt());
    (1.0 - complement).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_is_right_on_both_sides_of_the_switch() {
        for (x, want) in [(0.5, 0.5204998778130465), (2.4, 0.9993114861033549), (2.6, 0.9997639655834707)] {
            assert!((erf(x) - want).abs() < 1e-14, "{x}: {}", erf(x));
            assert!((erf(-x) + want).abs() < 1e-14);
        }
        assert_eq!(erf(f64::INFINITY), 1.0);
    }

    #[test]
    fn integers_wrap_and_never_trap() {
        assert_eq!(binary(BinaryOp::Add, DType::I8, 127.0, 1.0), -128.0);
        assert_eq!(binary(BinaryOp::Div, DType::I32, 7.0, 0.0), 0.0);
        assert_eq!(cast(DType::U8, f64::NAN), 0.0);
        assert_eq!(cast(DType::U8, 300.0), 255.0);
    }
}
