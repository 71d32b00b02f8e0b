//! Elementwise operators on registers.

use super::affine;
use super::expr::compare_op;
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Elem, Expr, Number, Reg, UnOp};
use onefold_ir::{BinaryOp, CmpOp, DType, UnaryOp};
use onefold_passes::term::{Term, TermId, TermOp};

impl Lowering<'_> {
    /// An elementwise operator in so many lanes.
    pub fn apply(&mut self, id: TermId, term: &Term, lanes: u16) -> Result<Reg, LowerError> {
        let mut args = vec![];
        for arg in &term.args {
            args.push(self.lanes(*arg, lanes)?);
        }
        let of = self.program.terms.get(term.args[0]).dtype;
        match &term.op {
            TermOp::Unary(op) => self.unary(*op, term, args[0]),
            TermOp::Wide(op) => Ok(self.wide_part(*op, args[0])),
            TermOp::Binary(op) => self.binary(*op, term, args[0], args[1]),
            TermOp::Compare(op) => Ok(self.compare(*op, of, args[0], args[1])),
            TermOp::Select => Ok(self.pick(args[0], args[1], args[2])),
            TermOp::Cast => Ok(self.emit.cast(of, term.dtype, args[0])),
            other => Err(LowerError::internal(format!("{other:?} (term {}) in a fold program", id.0))),
        }
    }

    fn unary(&mut self, op: UnaryOp, term: &Term, x: Reg) -> Result<Reg, LowerError> {
        let dtype = term.dtype;
        let ty = self.emit.ty(x);
        Ok(match op {
            UnaryOp::Neg => {
                let y = self.emit.un(UnOp::Neg, x);
                self.emit.wrap(dtype, y)
            }
            UnaryOp::Abs => {
                let y = self.emit.un(UnOp::Abs, x);
                self.emit.wrap(dtype, y)
            }
            UnaryOp::Sqrt => self.emit.un(UnOp::Sqrt, x),
            UnaryOp::Floor => self.emit.un(UnOp::Floor, x),
            UnaryOp::Round => self.emit.un(UnOp::Nearest, x),
            UnaryOp::Not => self.emit.not(x),
            UnaryOp::Rsqrt => {
                let root = self.emit.un(UnOp::Sqrt, x);
                let one = self.emit.float(ty, 1.0);
                self.emit.bin(BinOp::Div, one, root)
            }
            UnaryOp::Exp | UnaryOp::Log | UnaryOp::Exp2 | UnaryOp::Log2 | UnaryOp::Tanh | UnaryOp::Erf => {
                self.function(op, x, term.args[0])?
            }
        })
    }

    fn binary(&mut self, op: BinaryOp, term: &Term, a: Reg, b: Reg) -> Result<Reg, LowerError> {
        let dtype = term.dtype;
        if dtype == DType::Bool {
            return Ok(self.logic(op, a, b));
        }
        let plain = match op {
            BinaryOp::Add => BinOp::Add,
            BinaryOp::Sub => BinOp::Sub,
            BinaryOp::Mul => BinOp::Mul,
            BinaryOp::And => BinOp::And,
            BinaryOp::Or => BinOp::Or,
            BinaryOp::Xor => BinOp::Xor,
            BinaryOp::Div if dtype.is_float() => BinOp::Div,
            BinaryOp::Div | BinaryOp::Rem => return Ok(self.quotient(op, term, a, b)),
            BinaryOp::Shl | BinaryOp::Shr => return Ok(self.shift(op, term, a, b)),
            BinaryOp::Min | BinaryOp::Max => {
                let greatest = op == BinaryOp::Max;
                // A constant first: the instruction gives its second operand where the two are unordered.
                let is_number = |at: usize| matches!(self.program.terms.get(term.args[at]).op, TermOp::Literal(v) if !v.as_f64().is_nan());
                let instruction = if greatest { BinOp::Max } else { BinOp::Min };
                return Ok(match (is_number(0), is_number(1)) {
                    (true, _) => self.emit.bin(instruction, a, b),
                    (_, true) => self.emit.bin(instruction, b, a),
                    _ => self.emit.extreme(greatest, a, b),
                });
            }
            BinaryOp::Pow => return Ok(self.power(a, b)),
        };
        let v = self.emit.bin(plain, a, b);
        Ok(self.emit.wrap(dtype, v))
    }

    fn logic(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Reg {
        match op {
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Max => self.emit.bin(BinOp::Or, a, b),
            BinaryOp::Sub | BinaryOp::Xor => self.emit.bin(BinOp::Xor, a, b),
            _ => self.emit.bin(BinOp::And, a, b),
        }
    }

    /// Quotient or remainder of integers: 0 where the divisor is, and no trap at the one quotient that does not fit.
    fn quotient(&mut self, op: BinaryOp, term: &Term, a: Reg, b: Reg) -> Reg {
        let ty = self.emit.ty(a);
        let instruction = if op == BinaryOp::Div { BinOp::Div } else { BinOp::Rem };
        if affine::literal(self.program, term.args[1]).is_some_and(|n| n > 0) {
            return self.emit.bin(instruction, a, b);
        }
        let int = |lower: &mut Self, n: i64| lower.emit.constant(ty, Number::Int(n));
        let (zero, one, minus) = (int(self, 0), int(self, 1), int(self, -1));
        let is_zero = self.emit.cmp(Cmp::Eq, b, zero);
        let is_minus = self.emit.cmp(Cmp::Eq, b, minus);
        let special = self.emit.bin(BinOp::Or, is_zero, is_minus);
        let divisor = self.emit.select(special, one, b);
        let plain = self.emit.bin(instruction, a, divisor);
        if op == BinaryOp::Rem {
            return self.emit.select(special, zero, plain);
        }
        let negated = self.emit.sub(zero, a);
        let negated = self.emit.wrap(term.dtype, negated);
        let v = self.emit.select(is_minus, negated, plain);
        self.emit.select(is_zero, zero, v)
    }

    /// Shifts by the width or more (or by less than nothing) shift everything out.
    fn shift(&mut self, op: BinaryOp, term: &Term, a: Reg, b: Reg) -> Reg {
        let ty = self.emit.ty(a);
        let bits = i64::from(term.dtype.bits());
        let int = |lower: &mut Self, n: i64| lower.emit.constant(ty, Number::Int(n));
        let instruction = if op == BinaryOp::Shl { BinOp::Shl } else { BinOp::Shr };
        if affine::literal(self.program, term.args[1]).is_some_and(|n| (0..bits).contains(&n)) {
            let v = self.emit.bin(instruction, a, b);
            return self.emit.wrap(term.dtype, v);
        }
        let (zero, last, limit) = (int(self, 0), int(self, bits - 1), int(self, bits));
        let above = self.emit.cmp(Cmp::Lt, b, limit);
        let below = self.emit.cmp(Cmp::Ge, b, zero);
        let fits = self.emit.bin(BinOp::And, above, below);
        // Shifting a signed number right by all but one bit leaves its sign.
        let signed = op == BinaryOp::Shr && !matches!(term.dtype, DType::U8 | DType::U4);
        let amount = self.emit.select(fits, b, if signed { last } else { zero });
        let v = self.emit.bin(instruction, a, amount);
        if signed {
            return v;
        }
        let v = self.emit.wrap(term.dtype, v);
        self.emit.select(fits, v, zero)
    }

    /// A comparison of values of a dtype.
    pub fn compare(&mut self, op: CmpOp, of: DType, a: Reg, b: Reg) -> Reg {
        if of != DType::Bool {
            return self.emit.cmp(compare_op(op), a, b);
        }
        let (x, y, strict) = match op {
            CmpOp::Eq => {
                let differ = self.emit.bin(BinOp::Xor, a, b);
                return self.emit.not(differ);
            }
            CmpOp::Ne => return self.emit.bin(BinOp::Xor, a, b),
            CmpOp::Lt => (a, b, true),
            CmpOp::Gt => (b, a, true),
            CmpOp::Le => (a, b, false),
            CmpOp::Ge => (b, a, false),
        };
        // x < y is "not x and y".
        let not = self.emit.not(x);
        self.emit.bin(if strict { BinOp::And } else { BinOp::Or }, not, y)
    }

    /// One of two values.
    pub fn pick(&mut self, mask: Reg, yes: Reg, no: Reg) -> Reg {
        if self.emit.ty(yes).elem != Elem::Bool {
            return self.emit.select(mask, yes, no);
        }
        let yes = self.emit.bin(BinOp::And, mask, yes);
        let not = self.emit.not(mask);
        let no = self.emit.bin(BinOp::And, not, no);
        self.emit.bin(BinOp::Or, yes, no)
    }

    /// A value with everything but live lanes replaced.
    pub fn masked(&mut self, mask: Option<Reg>, value: Reg, dead: Reg) -> Reg {
        match mask {
            Some(mask) => self.pick(mask, value, dead),
            None => value,
        }
    }

    /// A product added to a sum: `a * b + c`.
    pub fn multiply_add(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        let ty = self.emit.ty(a);
        if self.target.fma && ty.elem.is_float() {
            return self.emit.let_(ty, "v", Expr::Fma(a, b, c));
        }
        let product = self.emit.mul(a, b);
        self.emit.add(c, product)
    }
}
