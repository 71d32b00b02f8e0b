//! Error function.

use super::coefficients::{ERFCX_F32, ERFCX_F64, ERF_F32, ERF_F64};
use super::exp::exp_nonpositive;
use super::{Arithmetic, Math};
use crate::{BinOp, Cmp, Reg, UnOp};

/// `erf x`: `x P(x^2)` up to 1, beyond it `1 - e^(-x^2) Q(1/(1 + x/2))`.
pub fn erf<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let square = m.mul(x, x);
    let ratio = m.polynomial(if m.is_f64() { ERF_F64 } else { ERF_F32 }, square);
    let near = m.mul(ratio, x);
    let magnitude = m.a.unary(UnOp::Abs, x);
    // From here on erf is 1 to the last bit; the fit ends there.
    let clamped = m.at_most(if m.is_f64() { 6.0 } else { 4.0 }, magnitude);
    let (one, half) = (m.float(1.0), m.float(0.5));
    let denominator = m.fma(clamped, half, one);
    let t = m.a.binary(BinOp::Div, one, denominator);
    let scaled = m.polynomial(if m.is_f64() { ERFCX_F64 } else { ERFCX_F32 }, t);
    let minus = m.a.unary(UnOp::Neg, clamped);
    let exponent = m.mul(minus, clamped);
    let decay = exp_nonpositive(m.a, exponent);
    let complement = m.mul(decay, scaled);
    let far = m.sub(one, complement);
    let far = m.with_sign(far, x);
    let is_near = m.a.compare(Cmp::Lt, magnitude, one);
    m.a.select(is_near, near, far)
}
