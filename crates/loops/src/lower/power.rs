//! Powers, with the special cases of IEEE `pow`.

use super::functions::Maker;
use super::Lowering;
use crate::math::{self, Arithmetic};
use crate::{BinOp, Cmp, Elem, Expr, Number, Reg, UnOp};

impl Lowering<'_> {
    /// `a` to the power `b`. Of f32 computed in f64, so that the product with the logarithm keeps what the result needs.
    pub fn power(&mut self, a: Reg, b: Reg) -> Reg {
        let ty = self.emit.ty(a);
        let (wide_a, wide_b) = (self.emit.convert(Elem::F64, a), self.emit.convert(Elem::F64, b));
        let result = self.power_f64(wide_a, wide_b);
        self.emit.convert(ty.elem, result)
    }

    fn power_f64(&mut self, a: Reg, b: Reg) -> Reg {
        let mut m: Maker<'_> = self.maker();
        let ty = m.ty(a);
        let number = |m: &mut Maker<'_>, v: f64| m.constant(ty, Number::Float(v));
        let (zero, one) = (number(&mut m, 0.0), number(&mut m, 1.0));
        let magnitude = m.unary(UnOp::Abs, a);
        let log = math::log2(&mut m, magnitude);
        let exponent = m.binary(BinOp::Mul, b, log);
        let mut value = math::exp2(&mut m, exponent);
        // A negative base: the sign of odd integral exponents, NaN at exponents that are not integral.
        let half = number(&mut m, 0.5);
        let whole = m.unary(UnOp::Floor, b);
        let is_whole = m.compare(Cmp::Eq, whole, b);
        let halved = m.binary(BinOp::Mul, b, half);
        let floor = m.unary(UnOp::Floor, halved);
        let is_even = m.compare(Cmp::Eq, floor, halved);
        let bits = m.bitcast(Elem::I64, a);
        let int_ty = ty.with(Elem::I64);
        let no_bits = m.constant(int_ty, Number::Int(0));
        let is_negative = m.compare(Cmp::Lt, bits, no_bits);
        let is_odd = {
            let odd = m.unary(UnOp::Not, is_even);
            m.binary(BinOp::And, odd, is_whole)
        };
        let flips = m.binary(BinOp::And, is_negative, is_odd);
        let minus = m.unary(UnOp::Neg, value);
        value = m.select(flips, minus, value);
        let infinity = number(&mut m, f64::INFINITY);
        let not_a_number = number(&mut m, f64::NAN);
        let is_finite = m.compare(Cmp::Lt, magnitude, infinity);
        let below = m.compare(Cmp::Lt, a, zero);
        let broken = m.unary(UnOp::Not, is_whole);
        let undefined = m.binary(BinOp::And, below, broken);
        let undefined = m.binary(BinOp::And, undefined, is_finite);
        // An infinite exponent is integral and even here: floor leaves it.
        value = m.select(undefined, not_a_number, value);
        // One of them NaN; 1 to any power and anything to the power 0 are 1; -1 to an infinite power too.
        for x in [a, b] {
            let is_nan = m.compare(Cmp::Uno, x, x);
            value = m.select(is_nan, not_a_number, value);
        }
        let exponent_size = m.unary(UnOp::Abs, b);
        let endless = m.compare(Cmp::Eq, exponent_size, infinity);
        let unit = m.compare(Cmp::Eq, magnitude, one);
        let steady = m.binary(BinOp::And, endless, unit);
        let is_one = m.compare(Cmp::Eq, a, one);
        let is_zero = m.compare(Cmp::Eq, b, zero);
        for case in [steady, is_one, is_zero] {
            value = m.select(case, one, value);
        }
        self.emit.let_(ty, "power", Expr::Copy(value))
    }
}
