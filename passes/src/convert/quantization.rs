//! Quantization as arithmetic on floats.

use super::{Converter, Substitution};
use crate::error::PassError;
use crate::term::{TermId, TermOp};
use onefold_ir::{BinaryOp, CmpOp, DType, NodeId, Op, UnaryOp};

impl Converter<'_> {
    /// Rounding to and scaling from integers.
    pub(super) fn quantization(
        &mut self,
        op: &Op,
        args: &[NodeId],
        dtype: DType,
        subst: &Substitution,
    ) -> Result<TermId, PassError> {
        let args = args.iter().map(|a| self.node(*a, subst)).collect::<Result<Vec<_>, _>>()?;
        let (x, scale) = (args[0], args[1]);
        let float = self.terms.get(scale).dtype;
        let zero = self.cast(args[2], float);
        if *op == Op::Dequantize {
            let x = self.cast(x, float);
            let shifted = self.terms.binary(BinaryOp::Sub, x, zero);
            let scaled = self.terms.binary(BinaryOp::Mul, shifted, scale);
            return Ok(match args.get(3) {
                Some(&offset) => self.terms.binary(BinaryOp::Add, scaled, offset),
                None => scaled,
            });
        }
        let (lo, hi) = int_range(dtype);
        let (lo, hi) = (self.terms.float(lo, float), self.terms.float(hi, float));
        let steps = self.terms.binary(BinaryOp::Div, x, scale);
        let rounded = self.terms.unary(UnaryOp::Round, steps);
        let shifted = self.terms.binary(BinaryOp::Add, rounded, zero);
        let low = self.terms.binary(BinaryOp::Max, shifted, lo);
        let clamped = self.terms.binary(BinaryOp::Min, low, hi);
        let is_number = self.terms.make(TermOp::Compare(CmpOp::Eq), DType::Bool, vec![x, x]);
        let value = self.terms.make(TermOp::Select, float, vec![is_number, clamped, zero]);
        Ok(self.cast(value, dtype))
    }
}

/// Range of an integer type's values as floats.
fn int_range(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::I4 => (-8.0, 7.0),
        DType::U4 => (0.0, 15.0),
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        _ => (f64::from(i32::MIN), f64::from(i32::MAX)),
    }
}
