//! Elementary functions on vectors, built in loop IR: no library call in an inner loop.
//!
//! Each is a range reduction and a polynomial; the polynomials are our own near-minimax fits (`scripts/fit.py`), the reductions are the usual
//! ones (Cody and Waite, "Software Manual for the Elementary Functions", 1980). NaN goes through every one. Errors against f64, measured by
//! the tests over dense grids: see `docs/design/numerics.md`.

mod coefficients;
mod erf;
mod exp;
mod log;
mod tanh;

pub use erf::erf;
pub use exp::{exp, exp2, exp_nonpositive, exp_nonpositive_rounded, mantissa_exponent, power_of_two};
pub use log::{log, log2};
pub use tanh::tanh;

use crate::{BinOp, Cmp, Elem, Number, Reg, Ty, UnOp};

/// What emits the operations: registers of `f32` or `f64`, any number of lanes.
pub trait Arithmetic {
    /// Type of a register.
    fn ty(&self, x: Reg) -> Ty;
    /// A constant in every lane.
    fn constant(&mut self, ty: Ty, value: Number) -> Reg;
    /// One operand.
    fn unary(&mut self, op: UnOp, x: Reg) -> Reg;
    /// Two operands of one type.
    fn binary(&mut self, op: BinOp, x: Reg, y: Reg) -> Reg;
    /// `x * y + z`, rounded once if the target can, else twice.
    fn fma(&mut self, x: Reg, y: Reg, z: Reg) -> Reg;
    /// A comparison.
    fn compare(&mut self, op: Cmp, x: Reg, y: Reg) -> Reg;
    /// One of two by a mask.
    fn select(&mut self, mask: Reg, yes: Reg, no: Reg) -> Reg;
    /// Conversion of the element.
    fn convert(&mut self, elem: Elem, x: Reg) -> Reg;
    /// Same bits.
    fn bitcast(&mut self, elem: Elem, x: Reg) -> Reg;
}

/// Short names for the functions of this module.
pub(crate) struct Math<'a, A: Arithmetic> {
    pub a: &'a mut A,
    /// The float type at hand.
    pub ty: Ty,
}

impl<'a, A: Arithmetic> Math<'a, A> {
    pub fn new(a: &'a mut A, x: Reg) -> Math<'a, A> {
        let ty = a.ty(x);
        Math { a, ty }
    }

    pub fn is_f64(&self) -> bool {
        self.ty.elem == Elem::F64
    }

    /// The integer type of the same width.
    pub fn int_ty(&self) -> Ty {
        self.ty.with(if self.is_f64() { Elem::I64 } else { Elem::I32 })
    }

    pub fn float(&mut self, value: f64) -> Reg {
        self.a.constant(self.ty, Number::Float(value))
    }

    pub fn int(&mut self, value: i64) -> Reg {
        let ty = self.int_ty();
        self.a.constant(ty, Number::Int(value))
    }

    pub fn add(&mut self, x: Reg, y: Reg) -> Reg {
        self.a.binary(BinOp::Add, x, y)
    }

    pub fn sub(&mut self, x: Reg, y: Reg) -> Reg {
        self.a.binary(BinOp::Sub, x, y)
    }

    pub fn mul(&mut self, x: Reg, y: Reg) -> Reg {
        self.a.binary(BinOp::Mul, x, y)
    }

    pub fn fma(&mut self, x: Reg, y: Reg, z: Reg) -> Reg {
        self.a.fma(x, y, z)
    }

    /// At most `bound`; NaN stays. The instruction gives its second operand where the two are unordered.
    pub fn at_most(&mut self, bound: f64, x: Reg) -> Reg {
        let bound = self.float(bound);
        self.a.binary(BinOp::Min, bound, x)
    }

    /// At least `bound`; NaN stays.
    pub fn at_least(&mut self, bound: f64, x: Reg) -> Reg {
        let bound = self.float(bound);
        self.a.binary(BinOp::Max, bound, x)
    }

    /// A polynomial, highest power first.
    pub fn polynomial(&mut self, coefficients: &[f64], x: Reg) -> Reg {
        let mut value = self.float(coefficients[0]);
        for c in &coefficients[1..] {
            let c = self.float(*c);
            value = self.fma(value, x, c);
        }
        value
    }

    pub fn as_int(&mut self, x: Reg) -> Reg {
        let elem = self.int_ty().elem;
        self.a.bitcast(elem, x)
    }

    pub fn as_float(&mut self, x: Reg) -> Reg {
        self.a.bitcast(self.ty.elem, x)
    }

    pub fn shift_left(&mut self, x: Reg, by: i64) -> Reg {
        let by = self.int(by);
        self.a.binary(BinOp::Shl, x, by)
    }

    /// The magnitude's value with the sign of another.
    pub fn with_sign(&mut self, magnitude: Reg, sign_of: Reg) -> Reg {
        let mask = self.int(if self.is_f64() { i64::MIN } else { i64::from(i32::MIN) });
        let bits = self.as_int(sign_of);
        let sign = self.a.binary(BinOp::And, bits, mask);
        let magnitude = self.as_int(magnitude);
        let all = self.a.binary(BinOp::Or, magnitude, sign);
        self.as_float(all)
    }
}
