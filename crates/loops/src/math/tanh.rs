//! Hyperbolic tangent.

use super::coefficients::{TANH_F32, TANH_F64};
use super::exp::exp_nonpositive;
use super::{Arithmetic, Math};
use crate::{BinOp, Cmp, Reg, UnOp};

/// `tanh x`: a polynomial near zero, `1 - 2/(1 + e^(2|x|))` beyond, in a form that cannot overflow.
pub fn tanh<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let square = m.mul(x, x);
    let tail = m.polynomial(if m.is_f64() { TANH_F64 } else { TANH_F32 }, square);
    let cube = m.mul(square, x);
    let near = m.fma(tail, cube, x);
    let magnitude = m.a.unary(UnOp::Abs, x);
    let minus_two = m.float(-2.0);
    let exponent = m.mul(magnitude, minus_two);
    let small = exp_nonpositive(m.a, exponent);
    // (1 - t) / (1 + t) with t = e^(-2|x|) loses nothing here, since t < 0.29.
    let one = m.float(1.0);
    let above = m.sub(one, small);
    let below = m.add(one, small);
    let far = m.a.binary(BinOp::Div, above, below);
    let far = m.with_sign(far, x);
    let limit = m.float(0.625);
    let is_near = m.a.compare(Cmp::Lt, magnitude, limit);
    m.a.select(is_near, near, far)
}
