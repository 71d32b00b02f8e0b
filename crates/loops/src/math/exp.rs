//! Exponentials.

use super::coefficients::{EXP_F32, EXP_F64, EXP_SHORT_F32};
use super::{Arithmetic, Math};
use crate::{BinOp, Cmp, Reg};
use std::f64::consts::{LN_2, LOG2_E};

/// Adding this to a small number leaves the number's nearest integer, half to even, in the low bits of the sum.
const MAGIC_F32: f64 = 12_582_912.0; // 1.5 * 2^23
const MAGIC_F64: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
const LN2_HIGH_F32: f64 = 0.693_145_751_953_125;
const LN2_LOW_F32: f64 = LN_2 - LN2_HIGH_F32;
/// ln 2 in one part: 1.9e-9 too large.
const LN2_F32: f64 = 0.693_147_182_464_599_6;
const LN2_HIGH_F64: f64 = 0.693_147_180_369_123_8;
const LN2_LOW_F64: f64 = 1.908_214_929_270_587_7e-10;

/// `x = n * ln 2 + r`.
struct Reduced {
    /// The sum with the magic number: its low bits are n.
    shifted: Reg,
    /// n as a float.
    n: Reg,
    /// The rest, at most ln 2 / 2 and a little.
    r: Reg,
}

impl<A: Arithmetic> Math<'_, A> {
    fn magic(&mut self) -> Reg {
        let value = if self.is_f64() { MAGIC_F64 } else { MAGIC_F32 };
        self.float(value)
    }

    /// The integer nearest to `x / ln 2`: as the low bits of a sum with the magic number, and as a float.
    fn nearest_power(&mut self, x: Reg) -> (Reg, Reg) {
        let log2_e = self.float(LOG2_E);
        let magic = self.magic();
        let shifted = self.fma(x, log2_e, magic);
        (shifted, self.sub(shifted, magic))
    }

    fn reduce(&mut self, x: Reg) -> Reduced {
        let (shifted, n) = self.nearest_power(x);
        let r = self.remainder(n, x);
        Reduced { shifted, n, r }
    }

    /// `x - n * ln 2`.
    fn remainder(&mut self, n: Reg, x: Reg) -> Reg {
        let (high, low) = if self.is_f64() { (LN2_HIGH_F64, LN2_LOW_F64) } else { (LN2_HIGH_F32, LN2_LOW_F32) };
        let (high, low) = (self.float(-high), self.float(-low));
        let r = self.fma(n, high, x);
        self.fma(n, low, r)
    }

    /// `exp(r)` for a reduced argument.
    fn exp_reduced(&mut self, r: Reg) -> Reg {
        let tail = if self.is_f64() { EXP_F64 } else { EXP_F32 };
        self.polynomial(&[tail, &[1.0, 1.0]].concat(), r)
    }

    /// `2^n` from the low bits of a sum with the magic number, n between the smallest normal exponent less one (then 0) and the largest.
    fn power(&mut self, shifted: Reg) -> Reg {
        let (width, bias) = if self.is_f64() { (52, 1023i64 << 52) } else { (23, 127i64 << 23) };
        let bits = self.as_int(shifted);
        let placed = self.shift_left(bits, width);
        let bias = self.int(bias);
        let biased = self.add(placed, bias);
        self.as_float(biased)
    }

    /// `p * 2^n` for any n that the clamp of the argument leaves: in two steps, so that subnormal results round once and the largest do not
    /// overflow on the way.
    fn scale(&mut self, p: Reg, shifted: Reg) -> Reg {
        let (width, bias, magic) = if self.is_f64() {
            (52, 1023i64, MAGIC_F64.to_bits() as i64)
        } else {
            (23, 127i64, i64::from((MAGIC_F32 as f32).to_bits()))
        };
        let bits = self.as_int(shifted);
        let magic = self.int(magic);
        let n = self.sub(bits, magic);
        let one = self.int(1);
        let half = self.a.binary(BinOp::Shr, n, one);
        let rest = self.sub(n, half);
        let mut value = p;
        for part in [half, rest] {
            let bias = self.int(bias);
            let biased = self.add(part, bias);
            let bits = self.shift_left(biased, width);
            let power = self.as_float(bits);
            value = self.mul(value, power);
        }
        value
    }
}

/// `e^x` over the whole range: subnormal results are kept, too large ones are inf, too small ones 0.
pub fn exp<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let (lo, hi) = if m.is_f64() { (-746.0, 710.0) } else { (-104.0, 89.0) };
    let x = m.at_most(hi, x);
    let x = m.at_least(lo, x);
    let Reduced { shifted, r, .. } = m.reduce(x);
    let p = m.exp_reduced(r);
    m.scale(p, shifted)
}

/// `e^x` for x <= 0 or NaN. Results below the smallest normal number are 0 (or that number's neighbours): cheaper than [`exp`], and what a
/// share of a whole needs.
pub fn exp_nonpositive<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    // Below, n is one less than the smallest normal exponent, and its power of two is 0.
    let x = m.at_least(if m.is_f64() { -1023.0 * LN_2 } else { -127.0 * LN_2 }, x);
    let Reduced { shifted, r, .. } = m.reduce(x);
    let p = m.exp_reduced(r);
    let power = m.power(shifted);
    m.mul(p, power)
}

/// As [`exp_nonpositive`] for an `x` that was rounded before it came here, such as a difference: it is off by up to `2^-24 |x|`,
/// so in `f32` ln 2 is one constant, whose error is a twentieth of that, and the polynomial is a term shorter (1.5 `2^-24`).
/// `e^0` is 1 exactly.
pub fn exp_nonpositive_rounded<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    if m.is_f64() {
        return exp_nonpositive(a, x);
    }
    let x = m.at_least(-127.0 * LN_2, x);
    let (shifted, n) = m.nearest_power(x);
    let ln2 = m.float(-LN2_F32);
    let r = m.fma(n, ln2, x);
    let p = m.polynomial(&[EXP_SHORT_F32, &[1.0]].concat(), r);
    let power = m.power(shifted);
    m.mul(p, power)
}

/// `2^x` over the whole range.
pub fn exp2<A: Arithmetic>(a: &mut A, x: Reg) -> Reg {
    let mut m = Math::new(a, x);
    let (lo, hi) = if m.is_f64() { (-1077.0, 1025.0) } else { (-151.0, 129.0) };
    let x = m.at_most(hi, x);
    let x = m.at_least(lo, x);
    let magic = m.magic();
    let shifted = m.add(x, magic);
    let n = m.sub(shifted, magic);
    let fraction = m.sub(x, n);
    let ln2 = m.float(LN_2);
    let r = m.mul(fraction, ln2);
    let p = m.exp_reduced(r);
    m.scale(p, shifted)
}

/// `e^x` as (mantissa, exponent): `x = -inf` gives (1, -inf), so that the exponent alone makes it 0 (Dukhan and Ablavatski, 2020). Accurate for |x| up to some 1e5.
pub fn mantissa_exponent<A: Arithmetic>(a: &mut A, x: Reg) -> (Reg, Reg) {
    let mut m = Math::new(a, x);
    let lowest = m.float(f64::NEG_INFINITY);
    let is_lowest = m.a.compare(Cmp::Eq, x, lowest);
    let zero = m.float(0.0);
    let finite = m.a.select(is_lowest, zero, x);
    let Reduced { n, r, .. } = m.reduce(finite);
    let mantissa = m.exp_reduced(r);
    let exponent = m.a.select(is_lowest, lowest, n);
    (mantissa, exponent)
}

/// `2^n` for an integral n <= 0; 0 where that is below the normal range; NaN stays.
pub fn power_of_two<A: Arithmetic>(a: &mut A, n: Reg) -> Reg {
    let mut m = Math::new(a, n);
    let clamped = m.at_least(if m.is_f64() { -1023.0 } else { -127.0 }, n);
    let magic = m.magic();
    let shifted = m.add(clamped, magic);
    let power = m.power(shifted);
    // The bits of a NaN make some power; the product with what is left of n keeps it.
    let is_nan = m.a.compare(Cmp::Uno, n, n);
    m.a.select(is_nan, n, power)
}
