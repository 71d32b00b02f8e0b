//! Finiteness: which values are numbers, neither infinite nor NaN, whatever the inputs are.
//!
//! Inputs may hold anything, so only what is made of positions, sizes, literals and truth values is finite. Laws that would
//! turn an infinity or a NaN into a number (`0 * x = 0`, `x - x = 0`) ask for it.

use crate::interval::Interval;
use crate::lang::{Facts, NodeOp};
use crate::term::{TermOp, WideOp};
use onefold_ir::{BinaryOp, DType, UnaryOp};

/// Whether a node's value is finite, from its operands and the bounds on its own value.
pub fn of(op: &NodeOp, dtype: DType, args: &[&Facts], bounds: Interval) -> bool {
    if !dtype.is_float() {
        return true;
    }
    let all = || args.iter().all(|a| a.finite);
    // With bounds inside the dtype's range nothing overflows, also on the way: sums and products of finite numbers are monotone in
    // the magnitudes that the bounds were made of.
    let bounded = || all() && within(dtype, bounds);
    match op {
        NodeOp::Add(_) | NodeOp::Mul(_) => bounded(),
        NodeOp::Recip(_) => bounded() && excludes_zero(args[0].interval),
        NodeOp::Opaque(..) => false,
        NodeOp::Prim(op, _) => match op {
            TermOp::Literal(value) => value.as_f64().is_finite(),
            // Positions exceed only the range of the narrowest type.
            TermOp::Index(_) | TermOp::Size(_) | TermOp::Seen(_) => dtype != DType::F16,
            TermOp::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Round) => all(),
            TermOp::Unary(UnaryOp::Tanh | UnaryOp::Erf) => all(),
            TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2) | TermOp::Cast => bounded(),
            TermOp::Unary(UnaryOp::Sqrt) => all() && args[0].interval.is_nonnegative(),
            TermOp::Unary(UnaryOp::Log | UnaryOp::Log2) => all() && args[0].interval.is_positive(),
            TermOp::Wide(WideOp::Power) => bounded(),
            TermOp::Binary(BinaryOp::Min | BinaryOp::Max) => all(),
            TermOp::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) => bounded(),
            TermOp::Select => args[1].finite && args[2].finite,
            // Over nothing the extremes are infinite, and sums may overflow.
            _ => false,
        },
    }
}

fn excludes_zero(x: Interval) -> bool {
    x.is_positive() || x.hi < 0.0
}

fn within(dtype: DType, bounds: Interval) -> bool {
    let largest = match dtype {
        DType::F16 => 65504.0,
        DType::F64 => f64::MAX,
        _ => f64::from(f32::MAX) * 0.99,
    };
    bounds.lo >= -largest && bounds.hi <= largest
}
