//! Scalar meaning of the elementwise primitives in f64.

use crate::term::WideOp;
use onefold_ir::{BinaryOp, CmpOp, UnaryOp};

/// A function of one float; `None` for what is not one.
pub fn unary(op: UnaryOp, x: f64) -> Option<f64> {
    Some(match op {
        UnaryOp::Neg => -x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Abs => x.abs(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Erf | UnaryOp::Not => return None,
    })
}

/// Parts of an exponential.
pub fn wide(op: WideOp, x: f64) -> f64 {
    let exponent = |x: f64| (x * std::f64::consts::LOG2_E).round_ties_even();
    match op {
        WideOp::Exponent => exponent(x),
        WideOp::Mantissa if x == f64::NEG_INFINITY => 1.0,
        WideOp::Mantissa => (x - exponent(x) * std::f64::consts::LN_2).exp(),
        WideOp::Power => x.exp2(),
    }
}

/// A function of two floats; `None` for what is not one.
pub fn binary(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Min if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Max if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Pow => a.powf(b),
        _ => return None,
    })
}

/// A comparison of two floats.
pub fn compare(op: CmpOp, a: f64, b: f64) -> bool {
    match op {
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
    }
}
