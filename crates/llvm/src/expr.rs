//! Right-hand sides.

use crate::emit::{kind, vector_value, Op, Result, Value};
use crate::level::Level;
use crate::translate::{TranslateError, Translator};
use crate::types;
use half::{bf16, f16};
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::{FloatPredicate, IntPredicate};
use onefold_loops::{BinOp, Cmp, Elem, Expr, Fold, Number, Ty, UnOp};

impl<'c> Translator<'_, '_, 'c> {
    /// The value of an expression, of the type of the register that it is assigned to.
    pub fn expr(&mut self, expr: &Expr, ty: Ty) -> Result<Value<'c>> {
        match expr {
            Expr::Const(ty, number) => self.constant(*ty, *number),
            Expr::Copy(x) => self.get(*x),
            Expr::Unary(op, x) => self.unary(*op, ty, self.get(*x)?),
            Expr::Binary(op, x, y) => self.binary(*op, ty.elem, self.get(*x)?, self.get(*y)?),
            Expr::Fma(x, y, z) => {
                arithmetic(ty)?;
                self.e.function("llvm.fma", &[self.get(*x)?, self.get(*y)?, self.get(*z)?])
            }
            Expr::Compare(cmp, x, y) => self.compare(*cmp, self.kernel.ty(*x), self.get(*x)?, self.get(*y)?),
            Expr::Select(c, x, y) => self.e.select(self.get(*c)?, self.get(*x)?, self.get(*y)?),
            Expr::Convert(_, x) => self.convert(self.kernel.ty(*x), ty, self.get(*x)?),
            Expr::Bitcast(_, x) => {
                let (from, x) = (self.kernel.ty(*x), self.get(*x)?);
                let to = types::of(self.e.context, ty)?;
                match (from.elem, ty.elem) {
                    (Elem::Bool, Elem::Bool) => Ok(x),
                    (Elem::Bool, _) => self.e.cast(Op::ZExt, x, to),
                    (_, Elem::Bool) => self.e.cast(Op::Trunc, x, to),
                    _ => self.e.bitcast(x, to),
                }
            }
            Expr::Splat(_, x) => self.e.splat(self.get(*x)?, types::of(self.e.context, ty)?),
            Expr::Extract(x, lane) => self.e.extract(self.get(*x)?, u32::from(*lane)),
            Expr::Iota(ty) => self.iota(*ty),
            Expr::Reduce(fold, x) => self.reduce(*fold, self.kernel.ty(*x).elem, self.get(*x)?),
            Expr::Load { ty, buf, offset, stride, tail } => self.load(*ty, *buf, *offset, *stride, *tail),
        }
    }

    /// A constant in every lane.
    pub fn constant(&self, ty: Ty, number: Number) -> Result<Value<'c>> {
        let held = types::of(self.e.context, ty)?;
        let float = match number {
            Number::Float(v) => v,
            Number::Int(v) => v as f64,
        };
        // From the integer itself: by way of f64 it would be rounded twice.
        let single = match number {
            Number::Float(v) => v as f32,
            Number::Int(v) => v as f32,
        };
        match (ty.elem, number) {
            (Elem::F32, _) => self.e.float(held, f64::from(single)),
            (Elem::F64, _) => self.e.float(held, float),
            (Elem::F16, _) => self.e.int(held, i64::from(f16::from_f32(float as f32).to_bits())),
            (Elem::BF16, _) => self.e.int(held, i64::from(bf16::from_f32(float as f32).to_bits())),
            (_, Number::Int(v)) => self.e.int(held, v),
            (_, Number::Float(_)) => Err(kind("a float constant of an integer type")),
        }
    }

    fn iota(&self, ty: Ty) -> Result<Value<'c>> {
        let lane = |n: u16| self.constant(Ty::scalar(ty.elem), Number::Int(i64::from(n)));
        types::of(self.e.context, ty)?;
        if ty.lanes == 1 {
            return lane(0);
        }
        let lanes: Vec<Value<'c>> = (0..ty.lanes).map(lane).collect::<Result<_>>()?;
        self.e.constants(&lanes)
    }

    fn unary(&self, op: UnOp, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        if !ty.elem.is_float() {
            return self.unary_of_integers(op, ty, x);
        }
        arithmetic(ty)?;
        let has_rounding = self.e.level != Level::Sse2;
        match op {
            UnOp::Neg => match x {
                Value::FloatValue(x) => Ok(self.e.b.build_float_neg(x, "")?.into()),
                _ => Ok(self.e.b.build_float_neg(vector_value(x)?, "")?.into()),
            },
            UnOp::Abs => self.e.function("llvm.fabs", &[x]),
            UnOp::Sqrt => self.e.function("llvm.sqrt", &[x]),
            UnOp::Floor if has_rounding => self.e.function("llvm.floor", &[x]),
            UnOp::Nearest if has_rounding => self.e.function("llvm.roundeven", &[x]),
            UnOp::Floor => {
                let nearest = self.nearest(ty, x)?;
                let one = self.e.float(x.get_type(), 1.0)?;
                let below = self.e.op(Op::FSub, nearest, one)?;
                let above = self.e.fcmp(FloatPredicate::OGT, nearest, x)?;
                self.e.select(above, below, nearest)
            }
            UnOp::Nearest => self.nearest(ty, x),
            UnOp::Not => Err(kind("the complement of floats")),
        }
    }

    /// Without an instruction for it: an addition whose last place is the units rounds, half to even.
    fn nearest(&self, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        let integers = if ty.elem == Elem::F32 { 23.0f64 } else { 52.0 };
        let large = self.e.float(x.get_type(), integers.exp2())?;
        let magic = self.e.function("llvm.copysign", &[large, x])?;
        let sum = self.e.op(Op::FAdd, x, magic)?;
        let rounded = self.e.op(Op::FSub, sum, magic)?;
        let rounded = self.e.function("llvm.copysign", &[rounded, x])?;
        let magnitude = self.e.function("llvm.fabs", &[x])?;
        let is_small = self.e.fcmp(FloatPredicate::OLT, magnitude, large)?;
        self.e.select(is_small, rounded, x)
    }

    fn unary_of_integers(&self, op: UnOp, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        let zero = self.e.int(x.get_type(), 0)?;
        match op {
            UnOp::Not => {
                let ones = self.e.int(x.get_type(), -1)?;
                self.e.op(Op::Xor, x, ones)
            }
            UnOp::Neg => self.e.op(Op::Sub, zero, x),
            UnOp::Abs if ty.elem == Elem::U8 => Ok(x),
            UnOp::Abs => {
                let negated = self.e.op(Op::Sub, zero, x)?;
                let below = self.e.icmp(IntPredicate::SLT, x, zero)?;
                self.e.select(below, negated, x)
            }
            _ => Err(kind("a root or a rounding of integers")),
        }
    }

    /// Two operands, lane by lane.
    pub fn binary(&self, op: BinOp, elem: Elem, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let float = elem.is_float();
        if float {
            arithmetic(Ty::scalar(elem))?;
        }
        // Bytes without sign are what `int` of the interpreter makes of them: between 0 and 255.
        let signed = !matches!(elem, Elem::U8 | Elem::Bool);
        let instruction = match op {
            BinOp::Add if float => Op::FAdd,
            BinOp::Sub if float => Op::FSub,
            BinOp::Mul if float => Op::FMul,
            BinOp::Div if float => Op::FDiv,
            BinOp::Min | BinOp::Max => {
                let cmp = if op == BinOp::Min { Cmp::Lt } else { Cmp::Gt };
                let c = self.compare(cmp, Ty::scalar(elem), x, y)?;
                return self.e.select(c, x, y);
            }
            _ if float => return Err(kind("an integer operation on floats")),
            BinOp::Add => Op::Add,
            BinOp::Sub => Op::Sub,
            BinOp::Mul => Op::Mul,
            BinOp::Div | BinOp::Rem => return self.divide(op, signed, x, y),
            BinOp::And => Op::And,
            BinOp::Or => Op::Or,
            BinOp::Xor => Op::Xor,
            BinOp::Shl => Op::Shl,
            BinOp::Shr if signed => Op::AShr,
            BinOp::Shr | BinOp::Ushr => Op::LShr,
        };
        if matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Ushr) {
            // Of a constant amount nothing remains of this; any other must not be undefined where it is not used.
            let width = self.e.int(y.get_type(), i64::from(elem.bytes() * 8 - 1))?;
            let amount = self.e.op(Op::And, y, width)?;
            return self.e.op(instruction, x, amount);
        }
        self.e.op(instruction, x, y)
    }

    /// Integer division without a trap: the one quotient that overflows wraps, and that by zero is some number.
    fn divide(&self, op: BinOp, signed: bool, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let (zero, one) = (self.e.int(y.get_type(), 0)?, self.e.int(y.get_type(), 1)?);
        let (unsafe_, quotient, remainder) = if signed {
            // 0 and -1 at once.
            let above = self.e.op(Op::Add, y, one)?;
            (self.e.icmp(IntPredicate::ULE, above, one)?, Op::SDiv, Op::SRem)
        } else {
            (self.e.icmp(IntPredicate::EQ, y, zero)?, Op::UDiv, Op::URem)
        };
        let divisor = self.e.select(unsafe_, one, y)?;
        match (op, signed) {
            (BinOp::Div, true) => {
                let value = self.e.op(quotient, x, divisor)?;
                let negated = self.e.op(Op::Sub, zero, x)?;
                self.e.select(unsafe_, negated, value)
            }
            (BinOp::Div, false) => self.e.op(quotient, x, divisor),
            // By one there is none, as by minus one.
            _ => self.e.op(remainder, x, divisor),
        }
    }

    fn compare(&self, cmp: Cmp, ty: Ty, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        if ty.elem.is_float() {
            arithmetic(ty)?;
            let predicate = match cmp {
                Cmp::Lt => FloatPredicate::OLT,
                Cmp::Le => FloatPredicate::OLE,
                Cmp::Gt => FloatPredicate::OGT,
                Cmp::Ge => FloatPredicate::OGE,
                Cmp::Eq => FloatPredicate::OEQ,
                Cmp::Ne => FloatPredicate::UNE,
                Cmp::Uno => FloatPredicate::UNO,
            };
            return self.e.fcmp(predicate, x, y);
        }
        let signed = !matches!(ty.elem, Elem::U8 | Elem::Bool);
        let predicate = match cmp {
            Cmp::Lt if signed => IntPredicate::SLT,
            Cmp::Le if signed => IntPredicate::SLE,
            Cmp::Gt if signed => IntPredicate::SGT,
            Cmp::Ge if signed => IntPredicate::SGE,
            Cmp::Lt => IntPredicate::ULT,
            Cmp::Le => IntPredicate::ULE,
            Cmp::Gt => IntPredicate::UGT,
            Cmp::Ge => IntPredicate::UGE,
            Cmp::Eq => IntPredicate::EQ,
            Cmp::Ne => IntPredicate::NE,
            Cmp::Uno => return Err(kind("integers without an order")),
        };
        self.e.icmp(predicate, x, y)
    }

    /// The lower half of the lanes with the upper half, until one is left.
    fn reduce(&self, fold: Fold, elem: Elem, x: Value<'c>) -> Result<Value<'c>> {
        let Value::VectorValue(mut x) = x else { return Ok(x) };
        let mut lanes = x.get_type().get_size();
        let op = match fold {
            Fold::Any | Fold::All => return self.any_or_all(fold, lanes, x.into()),
            Fold::Count | Fold::First => return self.count_or_first(fold, lanes, x.into()),
            Fold::Add => BinOp::Add,
            Fold::Mul => BinOp::Mul,
            Fold::Min => BinOp::Min,
            Fold::Max => BinOp::Max,
        };
        while lanes > 2 {
            lanes /= 2;
            let (low, high) = (self.e.shuffle(x, 0..lanes)?, self.e.shuffle(x, lanes..2 * lanes)?);
            x = vector_value(self.binary(op, elem, low.into(), high.into())?)?;
        }
        let (low, high) = (self.e.extract(x.into(), 0)?, self.e.extract(x.into(), 1)?);
        self.binary(op, elem, low, high)
    }

    /// A mask as an integer of as many bits.
    fn bits_of(&self, lanes: u32, x: Value<'c>) -> Result<(IntType<'c>, Value<'c>)> {
        let lanes = std::num::NonZeroU32::new(lanes).ok_or_else(|| kind("a vector without lanes"))?;
        let mask = self.e.context.custom_width_int_type(lanes).map_err(|_| kind("a mask so wide"))?;
        Ok((mask, self.e.bitcast(x, BasicTypeEnum::IntType(mask))?))
    }

    fn count_or_first(&self, fold: Fold, lanes: u32, x: Value<'c>) -> Result<Value<'c>> {
        let (mask, bits) = self.bits_of(lanes, x)?;
        let found = if fold == Fold::Count {
            self.e.call("llvm.ctpop", &[mask.into()], &[bits])?.1
        } else {
            let of_none = self.e.context.bool_type().const_zero();
            self.e.call("llvm.cttz", &[mask.into()], &[bits, of_none.into()])?.1
        };
        let found = found.ok_or_else(|| kind("a number of bits"))?;
        self.e.cast(Op::ZExt, found, self.e.context.i64_type().into())
    }

    fn any_or_all(&self, fold: Fold, lanes: u32, x: Value<'c>) -> Result<Value<'c>> {
        let (mask, bits) = self.bits_of(lanes, x)?;
        if fold == Fold::Any {
            let none = mask.const_zero();
            self.e.icmp(IntPredicate::NE, bits, none.into())
        } else {
            self.e.icmp(IntPredicate::EQ, bits, mask.const_all_ones().into())
        }
    }
}

/// Half floats are stored and converted only.
fn arithmetic(ty: Ty) -> std::result::Result<(), TranslateError> {
    match ty.elem {
        Elem::F16 | Elem::BF16 => Err(TranslateError::Operation(format!("arithmetic of {ty}"))),
        _ => Ok(()),
    }
}
