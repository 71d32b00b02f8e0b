//! Numbers that carry a bound on their own rounding error: running error analysis (Higham, "Accuracy and Stability of Numerical
//! Algorithms", 2nd ed., 3.3). A law that is multiplied back may differ by as much and no more, also where near values cancel.

use crate::eval;
use crate::interp as scalar;
use crate::term::{Term, TermOp, WideOp};
use onefold_ir::{BinaryOp, DType, ReduceOp, UnaryOp};
use std::f64::consts::LN_2;

/// Rounding of one operation. Library functions err by a few units, which the check allows for.
const UNIT: f64 = f64::EPSILON;

/// A value and how far it may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// As computed in f64.
    pub value: f64,
    /// A bound on its error, to first order.
    pub error: f64,
}

impl Measured {
    /// A number as it stands.
    pub fn exact(value: f64) -> Measured {
        Measured { value, error: 0.0 }
    }

    /// Of the result of one operation that was rounded.
    fn rounded(value: f64, error: f64) -> Measured {
        Measured { value, error: error + UNIT * value.abs() }
    }

    /// The sum.
    pub fn plus(self, other: Measured) -> Measured {
        Measured::rounded(self.value + other.value, self.error + other.error)
    }

    /// The product.
    pub fn times(self, other: Measured) -> Measured {
        let error = self.value.abs() * other.error + other.value.abs() * self.error + self.error * other.error;
        Measured::rounded(self.value * other.value, if error.is_nan() { 0.0 } else { error })
    }
}

/// An elementwise operation on its operands; `None` for anything else. Floats are computed in f64 whatever their type is: what leaves the
/// range at a prefix is decided elsewhere.
pub fn apply(term: &Term, v: &dyn Fn(usize) -> Measured) -> Option<Measured> {
    let dtype = if term.dtype.is_float() { DType::F64 } else { term.dtype };
    let a = |i: usize| v(i).value;
    let value = match &term.op {
        TermOp::Literal(value) => value.as_f64(),
        TermOp::Unary(op) => scalar::unary(*op, dtype, a(0)),
        TermOp::Wide(op) => eval::wide(*op, a(0)),
        TermOp::Binary(BinaryOp::Add) if term.dtype.is_float() => return Some(v(0).plus(v(1))),
        TermOp::Binary(BinaryOp::Mul) if term.dtype.is_float() => return Some(v(0).times(v(1))),
        TermOp::Binary(op) => scalar::binary(*op, dtype, a(0), a(1)),
        TermOp::Compare(op) => f64::from(u8::from(eval::compare(*op, a(0), a(1)))),
        TermOp::Select => return Some(v(if a(0) != 0.0 { 1 } else { 2 })),
        TermOp::Cast => scalar::cast(dtype, a(0)),
        _ => return None,
    };
    if !term.dtype.is_float() {
        return Some(Measured::exact(value));
    }
    Some(Measured::rounded(value, propagated(&term.op, value, v)))
}

/// How much of the result's error comes from its operands'.
fn propagated(op: &TermOp, value: f64, v: &dyn Fn(usize) -> Measured) -> f64 {
    let Measured { value: a, error: e } = match op {
        TermOp::Literal(_) => return 0.0,
        _ => v(0),
    };
    let step = |f: fn(f64) -> f64| (f(a + e) - f(a - e)).abs();
    let error = match op {
        TermOp::Unary(op) => match op {
            UnaryOp::Exp => value * e,
            UnaryOp::Exp2 => value * e * LN_2,
            UnaryOp::Log => e / a.abs(),
            UnaryOp::Log2 => e / a.abs() / LN_2,
            UnaryOp::Sqrt => (e / (2.0 * value)).min(e.sqrt()),
            UnaryOp::Rsqrt => value * e / (2.0 * a.abs()),
            UnaryOp::Floor => step(f64::floor),
            UnaryOp::Round => step(f64::round_ties_even),
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not => e,
            // Slopes of at most 2 / sqrt(pi); the series for erf is good to some units.
            UnaryOp::Tanh | UnaryOp::Erf => 1.2 * e + 1e-13,
        },
        TermOp::Wide(WideOp::Exponent) => (e / LN_2).ceil(),
        TermOp::Wide(WideOp::Mantissa) => value * e + UNIT * a.abs(),
        TermOp::Wide(WideOp::Power) => value * e * LN_2,
        TermOp::Binary(op) => {
            let Measured { value: b, error: f } = v(1);
            match op {
                BinaryOp::Div => (e + value.abs() * f) / b.abs(),
                BinaryOp::Pow => value.abs() * (b.abs() * e / a.abs() + a.abs().ln().abs() * f),
                _ => e + f,
            }
        }
        _ => e,
    };
    // 0/0 and the like: an exact zero has no error to pass on.
    if error.is_nan() {
        0.0
    } else {
        error
    }
}

/// A reduction.
pub fn reduce(op: ReduceOp, values: &[Measured]) -> Measured {
    if values.iter().any(|v| v.value.is_nan()) {
        return Measured::exact(f64::NAN);
    }
    let error = values.iter().map(|v| v.error).fold(0.0, f64::max);
    let extreme = |value| Measured { value, error };
    let all = values.iter().copied();
    match op {
        ReduceOp::Sum => all.fold(Measured::exact(0.0), Measured::plus),
        ReduceOp::Prod => all.fold(Measured::exact(1.0), Measured::times),
        ReduceOp::Max => extreme(all.map(|v| v.value).fold(f64::NEG_INFINITY, f64::max)),
        ReduceOp::Min => extreme(all.map(|v| v.value).fold(f64::INFINITY, f64::min)),
    }
}
