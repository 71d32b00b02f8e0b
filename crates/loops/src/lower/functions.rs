//! Functions that are not one instruction: they come from [`crate::math`].

use super::emit::Emit;
use super::{LowerError, Lowering};
use crate::math::{self, Arithmetic};
use crate::{BinOp, Cmp, Elem, Expr, Number, Reg, Ty, UnOp};
use onefold_ir::{BinaryOp, UnaryOp};
use onefold_passes::term::{TermId, TermOp, WideOp};

/// Emits what functions are made of.
pub struct Maker<'a> {
    emit: &'a mut Emit,
    fma: bool,
}

impl Arithmetic for Maker<'_> {
    fn ty(&self, x: Reg) -> Ty {
        self.emit.ty(x)
    }

    fn constant(&mut self, ty: Ty, value: Number) -> Reg {
        self.emit.constant(ty, value)
    }

    fn unary(&mut self, op: UnOp, x: Reg) -> Reg {
        self.emit.un(op, x)
    }

    fn binary(&mut self, op: BinOp, x: Reg, y: Reg) -> Reg {
        self.emit.bin(op, x, y)
    }

    fn fma(&mut self, x: Reg, y: Reg, z: Reg) -> Reg {
        if self.fma {
            let ty = self.emit.ty(x);
            return self.emit.let_(ty, "v", Expr::Fma(x, y, z));
        }
        let product = self.emit.mul(x, y);
        self.emit.add(product, z)
    }

    fn compare(&mut self, op: Cmp, x: Reg, y: Reg) -> Reg {
        self.emit.cmp(op, x, y)
    }

    fn select(&mut self, mask: Reg, yes: Reg, no: Reg) -> Reg {
        self.emit.select(mask, yes, no)
    }

    fn convert(&mut self, elem: Elem, x: Reg) -> Reg {
        self.emit.convert(elem, x)
    }

    fn bitcast(&mut self, elem: Elem, x: Reg) -> Reg {
        let ty = self.emit.ty(x).with(elem);
        self.emit.let_(ty, "bits", Expr::Bitcast(elem, x))
    }
}

impl Lowering<'_> {
    /// What functions are made with.
    pub fn maker(&mut self) -> Maker<'_> {
        Maker { fma: self.target.fma, emit: &mut self.emit }
    }

    /// A function of one float, which is the value of a term.
    pub fn function(&mut self, op: UnaryOp, x: Reg, argument: TermId) -> Result<Reg, LowerError> {
        let nonpositive = self.program.terms.interval(argument).is_nonpositive();
        // Its one constant for ln 2 is exact enough only if the product with it is not rounded.
        let rounded = self.target.fma && self.is_rounded(argument);
        let mut maker = self.maker();
        Ok(match op {
            UnaryOp::Exp if nonpositive && rounded => math::exp_nonpositive_rounded(&mut maker, x),
            UnaryOp::Exp if nonpositive => math::exp_nonpositive(&mut maker, x),
            UnaryOp::Exp => math::exp(&mut maker, x),
            UnaryOp::Exp2 => math::exp2(&mut maker, x),
            UnaryOp::Log => math::log(&mut maker, x),
            UnaryOp::Log2 => math::log2(&mut maker, x),
            UnaryOp::Tanh => math::tanh(&mut maker, x),
            UnaryOp::Erf => math::erf(&mut maker, x),
            other => return Err(LowerError::internal(format!("{other:?} taken for a function"))),
        })
    }

    /// Whether a term is a sum or a difference of floats, or a product with one: its value is off by half a unit in the last place or so.
    fn is_rounded(&self, id: TermId) -> bool {
        let term = self.program.terms.get(id);
        match term.op {
            TermOp::Binary(BinaryOp::Add | BinaryOp::Sub) => true,
            TermOp::Binary(BinaryOp::Mul) => term.args.iter().any(|a| self.is_rounded(*a)),
            _ => false,
        }
    }

    /// A part of an exponential. Mantissa and exponent of one operand come together.
    pub fn wide_part(&mut self, op: WideOp, x: Reg) -> Reg {
        if op == WideOp::Power {
            return math::power_of_two(&mut self.maker(), x);
        }
        let (mantissa, exponent) = match self.parts.get(&x) {
            Some(parts) => *parts,
            None => {
                let parts = math::mantissa_exponent(&mut self.maker(), x);
                self.parts.insert(x, parts);
                parts
            }
        };
        if op == WideOp::Mantissa {
            mantissa
        } else {
            exponent
        }
    }
}
