//! Logarithms.

use super::coefficients::{LOG_F32, LOG_F64};
use super::{Arithmetic, Math};
use crate::{BinOp, Cmp, Elem, Reg};
use std::f64::consts::{LN_2, LOG2_E};

/// `x = 2^e * (1 + f)`, 1 + f between sqrt(1/2) and sqrt(2).
struct Split {
    e: Reg,
    f: Reg,
}

impl<A: Arithmetic> Math<'_, A> {
    fn split(&mut self, x: Reg) -> Split {
        let (width, bias, smallest, up) = if self.is_f64() {
            (52, 1023i64, f64::MIN_POSITIVE, 54)
        } else {
            (23, 127i64, f64::from(f32::MIN_POSITIVE), 25)
        };
        // Subnormal arguments are scaled into the normal range.
        let smallest = self.float(smallest);
        let is_small = self.a.compare(Cmp::Lt, x, smallest);
        let factor = self.float((1i64 << up) as f64);
        let scaled = self.mul(x, factor);
        let x = self.a.select(is_small, scaled, x);
        let bits = self.as_int(x);
        // Subtracting the bits of sqrt(1/2) makes the exponent field that of the interval asked for.
        let root = if self.is_f64() {
            std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64
        } else {
            i64::from(std::f32::consts::FRAC_1_SQRT_2.to_bits())
        };
        let root = self.int(root);
        let relative = self.sub(bits, root);
        let width_reg = self.int(width);
        let exponent = self.a.binary(BinOp::Shr, relative, width_reg);
        let placed = self.shift_left(exponent, width);
        let fraction = self.sub(bits, placed);
        let m = self.as_float(fraction);
        let one = self.float(1.0);
        let f = self.sub(m, one);
        let up = self.int(up);
        let lower = self.sub(exponent, up);
        let exponent = self.a.select(is_small, lower, exponent);
        let _ = bias;
        let e = self.a.convert(self.ty.elem, exponent);
        Split { e, f }
    }

    /// `log(1 + f)` as a large and a small part.
    fn log1p_reduced(&mut self, f: Reg) -> (Reg, Reg) {
        if self.ty.elem == Elem::F64 {
            let two = self.float(2.0);
            let sum = self.add(two, f);
            let s = self.a.binary(BinOp::Div, f, sum);
            let z = self.mul(s, s);
            let tail = self.polynomial(LOG_F64, z);
            let tail = self.mul(tail, z);
            // log(1 + f) = f - f^2/2 + s * (f^2/2 + R), with 2s = f - s*f.
            let half = self.float(0.5);
            let square = self.mul(f, f);
            let hfsq = self.mul(square, half);
            let inner = self.add(hfsq, tail);
            let correction = self.mul(s, inner);
            let small = self.sub(correction, hfsq);
            return (f, small);
        }
        let square = self.mul(f, f);
        let tail = self.polynomial(LOG_F32, f);
        let cube = self.mul(square, f);
        let minus_half = self.float(-0.5);
        let halved = self.mul(square, minus_half);
        let small = self.fma(tail, cube, halved);
        (f, small)
    }

    /// -inf at 0, NaN below, inf and NaN as they are.
    fn special(&mut self, x: Reg, value: Reg) -> Reg {
        let (zero, lowest, nan, infinite) =
            (self.float(0.0), self.float(f64::NEG_INFINITY), self.float(f64::NAN), self.float(f64::INFINITY));
        let is_infinite = self.a.compare(Cmp::Eq, x, infinite);
        let value = self.a.select(is_infinite, infinite, value);
        let is_zero = self.a.compare(Cmp::Eq, x, zero);
        let value = self.a.select(is_zero, lowest, value);
        let is_regular = self.a.compare(Cmp::Ge, x, zero);
        self.a.select(is_regular, value, nan)
    }
}

/// Natural logarithm.
pub fn log<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let Split { e, f } = m.split(x);
    let (large, small) = m.log1p_reduced(f);
    // ln 2 in two parts; the first has trailing zeros, so that its product with e is exact.
    let high = if m.is_f64() { 0.693_147_180_369_123_8 } else { 0.693_359_375 };
    let (high_reg, low_reg) = (m.float(high), m.float(LN_2 - high));
    let small = m.fma(e, low_reg, small);
    let sum = m.add(large, small);
    let value = m.fma(e, high_reg, sum);
    m.special(x, value)
}

/// Logarithm to base 2.
pub fn log2<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let Split { e, f } = m.split(x);
    let (large, small) = m.log1p_reduced(f);
    // log2(e) in two parts as well: the large part's product with the first keeps all its bits.
    let high = 1.4375;
    let (high_reg, low_reg) = (m.float(high), m.float(LOG2_E - high));
    let product = m.mul(small, high_reg);
    let product = m.fma(small, low_reg, product);
    let product = m.fma(large, low_reg, product);
    let value = m.fma(large, high_reg, product);
    let value = m.add(value, e);
    m.special(x, value)
}
