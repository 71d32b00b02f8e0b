//! Right-hand sides.

use crate::translate::{TranslateError, Translator};
use crate::types;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{types as clif, ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value};
use onefold_loops::{BinOp, Cmp, Elem, Expr, Fold, Number, Ty, UnOp};

impl Translator<'_> {
    /// The value of an expression, of the type of the register that it is assigned to.
    pub fn expr(&mut self, expr: &Expr, ty: Ty) -> Result<Value, TranslateError> {
        Ok(match expr {
            Expr::Const(ty, number) => self.constant(*ty, *number),
            Expr::Copy(x) => self.get(*x),
            Expr::Unary(op, x) => {
                let ty = self.kernel.ty(*x);
                let x = self.get(*x);
                self.unary(*op, ty, x)?
            }
            Expr::Binary(op, x, y) => {
                let ty = self.kernel.ty(*x);
                let (x, y) = (self.get(*x), self.get(*y));
                self.binary(*op, ty, x, y)?
            }
            Expr::Fma(x, y, z) => {
                let (x, y, z) = (self.get(*x), self.get(*y), self.get(*z));
                self.b.ins().fma(x, y, z)
            }
            Expr::Compare(cmp, x, y) => {
                let ty = self.kernel.ty(*x);
                let (x, y) = (self.get(*x), self.get(*y));
                self.compare(*cmp, ty, x, y)
            }
            Expr::Select(c, x, y) => {
                let (c, x, y) = (self.get(*c), self.get(*x), self.get(*y));
                self.select(ty, c, x, y)
            }
            Expr::Convert(_, x) => {
                let from = self.kernel.ty(*x);
                let x = self.get(*x);
                self.convert(from, ty, x)?
            }
            Expr::Bitcast(_, x) => {
                let from = self.kernel.ty(*x);
                let x = self.get(*x);
                if ty.elem.bytes() == 1 {
                    // Bytes are held extended, truth values in masks.
                    return self.convert(from, ty, x);
                }
                let to = types::of(ty).ok_or(TranslateError::Type(ty))?;
                self.bitcast(to, x)
            }
            Expr::Splat(_, x) => {
                let from = self.kernel.ty(*x);
                let x = self.get(*x);
                self.splat(from, ty, x)?
            }
            Expr::Extract(x, lane) => {
                let from = self.kernel.ty(*x);
                let x = self.get(*x);
                self.extract(from, x, *lane)
            }
            Expr::Iota(ty) => self.iota(*ty)?,
            Expr::Reduce(fold, x) => {
                let from = self.kernel.ty(*x);
                let x = self.get(*x);
                self.reduce(*fold, from, x)?
            }
            Expr::Load { ty, buf, offset, stride, tail } => self.load(*ty, *buf, *offset, *stride, *tail)?,
        })
    }

    /// Same bits as another type of equal width.
    pub fn bitcast(&mut self, to: Type, x: Value) -> Value {
        if self.b.func.dfg.value_type(x) == to {
            return x;
        }
        let mut flags = MemFlagsData::new();
        flags.set_endianness(Endianness::Little);
        self.b.ins().bitcast(to, flags, x)
    }

    fn unary(&mut self, op: UnOp, ty: Ty, x: Value) -> Result<Value, TranslateError> {
        let float = ty.elem.is_float();
        let held = self.b.func.dfg.value_type(x);
        Ok(match op {
            UnOp::Neg if float => self.b.ins().fneg(x),
            UnOp::Neg => {
                let y = self.b.ins().ineg(x);
                self.wrap(ty, y)
            }
            UnOp::Abs if float => self.b.ins().fabs(x),
            UnOp::Abs if ty.elem == Elem::U8 => x,
            UnOp::Abs => {
                let y = self.b.ins().iabs(x);
                self.wrap(ty, y)
            }
            UnOp::Sqrt => self.b.ins().sqrt(x),
            UnOp::Floor => self.b.ins().floor(x),
            UnOp::Nearest => self.b.ins().nearest(x),
            UnOp::Not if ty == Ty::scalar(Elem::Bool) => {
                let one = self.b.ins().iconst(held, 1);
                self.b.ins().bxor(x, one)
            }
            UnOp::Not => {
                let y = self.b.ins().bnot(x);
                self.wrap(ty, y)
            }
        })
    }

    fn binary(&mut self, op: BinOp, ty: Ty, x: Value, y: Value) -> Result<Value, TranslateError> {
        let float = ty.elem.is_float();
        let value = match op {
            BinOp::Add if float => self.b.ins().fadd(x, y),
            BinOp::Sub if float => self.b.ins().fsub(x, y),
            BinOp::Mul if float => self.b.ins().fmul(x, y),
            BinOp::Div if float => self.b.ins().fdiv(x, y),
            // `a < b ? a : b`: one minps.
            BinOp::Min if float => {
                let c = self.b.ins().fcmp(FloatCC::LessThan, x, y);
                self.blend(c, x, y)
            }
            // `a > b ? a : b`, said as `b < a`: one maxps.
            BinOp::Max if float => {
                let c = self.b.ins().fcmp(FloatCC::LessThan, y, x);
                self.blend(c, x, y)
            }
            BinOp::Add => self.b.ins().iadd(x, y),
            BinOp::Sub => self.b.ins().isub(x, y),
            BinOp::Mul if self.b.func.dfg.value_type(x) == clif::I8X16 => self.multiply_bytes(x, y),
            BinOp::Mul => self.b.ins().imul(x, y),
            BinOp::Div | BinOp::Rem => return self.divide(op, ty, x, y),
            BinOp::Min | BinOp::Max => {
                let c = self.compare(if op == BinOp::Min { Cmp::Lt } else { Cmp::Gt }, ty, x, y);
                return Ok(self.select(ty, c, x, y));
            }
            BinOp::And => self.b.ins().band(x, y),
            BinOp::Or => self.b.ins().bor(x, y),
            BinOp::Xor => self.b.ins().bxor(x, y),
            BinOp::Shl | BinOp::Shr | BinOp::Ushr => return self.shift(op, ty, x, y),
        };
        Ok(if float { value } else { self.wrap(ty, value) })
    }

    /// There is no product of sixteen bytes; there are products of eight words, of which the lower bytes are kept.
    fn multiply_bytes(&mut self, x: Value, y: Value) -> Value {
        let low_byte = self.int(clif::I16X8, 0xff);
        let (x_low, y_low) = (self.b.ins().uwiden_low(x), self.b.ins().uwiden_low(y));
        let (x_high, y_high) = (self.b.ins().uwiden_high(x), self.b.ins().uwiden_high(y));
        let products = [(x_low, y_low), (x_high, y_high)].map(|(x, y)| {
            let product = self.b.ins().imul(x, y);
            self.b.ins().band(product, low_byte)
        });
        self.b.ins().unarrow(products[0], products[1])
    }

    /// Integer division: vectors lane by lane; the one quotient that overflows wraps instead of trapping.
    fn divide(&mut self, op: BinOp, ty: Ty, x: Value, y: Value) -> Result<Value, TranslateError> {
        self.lanes(ty, ty, &[x, y], |t, v| {
            let held = t.b.func.dfg.value_type(v[0]);
            let minus = t.int(held, -1);
            let zero = t.int(held, 0);
            let one = t.int(held, 1);
            let by_minus = t.b.ins().icmp(IntCC::Equal, v[1], minus);
            let safe = t.b.ins().select(by_minus, one, v[1]);
            let value = if op == BinOp::Div { t.b.ins().sdiv(v[0], safe) } else { t.b.ins().srem(v[0], safe) };
            let negated = if op == BinOp::Div { t.b.ins().ineg(v[0]) } else { zero };
            let value = t.b.ins().select(by_minus, negated, value);
            Ok(t.wrap(Ty::scalar(ty.elem), value))
        })
    }

    /// Shifts by an amount per lane: vectors lane by lane unless all lanes are one constant, which lowering makes of a scalar.
    fn shift(&mut self, op: BinOp, ty: Ty, x: Value, y: Value) -> Result<Value, TranslateError> {
        if let (true, Some(amount)) = (ty.lanes > 1, self.splatted_constant(y)) {
            let amount = self.b.ins().iconst(clif::I32, amount);
            return Ok(self.shift_lanes(op, ty, x, amount));
        }
        self.lanes(ty, ty, &[x, y], |t, v| Ok(t.shift_lanes(op, Ty::scalar(ty.elem), v[0], v[1])))
    }

    /// A shift of all lanes by one amount.
    fn shift_lanes(&mut self, op: BinOp, ty: Ty, x: Value, amount: Value) -> Value {
        let held = self.b.func.dfg.value_type(x);
        let value = match op {
            BinOp::Shl => self.b.ins().ishl(x, amount),
            BinOp::Shr if ty.elem != Elem::U8 => self.b.ins().sshr(x, amount),
            BinOp::Ushr if ty.elem == Elem::I8 && held.lane_bits() > 8 => {
                let low = self.int(held, 0xff);
                let byte = self.b.ins().band(x, low);
                self.b.ins().ushr(byte, amount)
            }
            _ => self.b.ins().ushr(x, amount),
        };
        self.wrap(ty, value)
    }

    /// The amount in every lane of a vector constant.
    fn splatted_constant(&self, x: Value) -> Option<i64> {
        use cranelift_codegen::ir::{InstructionData, Opcode, ValueDef};
        let ValueDef::Result(inst, _) = self.b.func.dfg.value_def(x) else { return None };
        let InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } = self.b.func.dfg.insts[inst]
        else {
            return None;
        };
        let held = self.b.func.dfg.value_type(x);
        let bytes = self.b.func.dfg.constants.get(constant_handle).as_slice();
        let width = held.lane_bits() as usize / 8;
        let first = &bytes[..width];
        bytes.chunks(width).all(|c| c == first).then(|| {
            let mut wide = [0u8; 8];
            wide[..width].copy_from_slice(first);
            i64::from_le_bytes(wide)
        })
    }

    /// Integers held in wider lanes are brought back to their range.
    pub fn wrap(&mut self, ty: Ty, x: Value) -> Value {
        if !matches!(ty.elem, Elem::I8 | Elem::U8) {
            return x;
        }
        let held = self.b.func.dfg.value_type(x);
        let spare = i64::from(held.lane_bits()) - 8;
        if spare == 0 {
            return x;
        }
        let amount = self.b.ins().iconst(clif::I32, spare);
        let up = self.b.ins().ishl(x, amount);
        if ty.elem == Elem::I8 {
            self.b.ins().sshr(up, amount)
        } else {
            self.b.ins().ushr(up, amount)
        }
    }

    fn compare(&mut self, cmp: Cmp, ty: Ty, x: Value, y: Value) -> Value {
        let mask = if ty.elem.is_float() {
            let code = match cmp {
                Cmp::Lt => FloatCC::LessThan,
                Cmp::Le => FloatCC::LessThanOrEqual,
                Cmp::Gt => FloatCC::GreaterThan,
                Cmp::Ge => FloatCC::GreaterThanOrEqual,
                Cmp::Eq => FloatCC::Equal,
                Cmp::Ne => FloatCC::NotEqual,
                Cmp::Uno => FloatCC::Unordered,
            };
            self.b.ins().fcmp(code, x, y)
        } else {
            // True is the larger one, but in masks it is held as -1.
            let (x, y) = if ty.elem == Elem::Bool && ty.lanes > 1 { (y, x) } else { (x, y) };
            let code = match cmp {
                Cmp::Lt => IntCC::SignedLessThan,
                Cmp::Le => IntCC::SignedLessThanOrEqual,
                Cmp::Gt => IntCC::SignedGreaterThan,
                Cmp::Ge => IntCC::SignedGreaterThanOrEqual,
                Cmp::Eq => IntCC::Equal,
                Cmp::Ne => IntCC::NotEqual,
                // Integers are never unordered.
                Cmp::Uno => {
                    let zero = self.constant(ty.with(Elem::Bool), Number::Int(0));
                    return zero;
                }
            };
            // Bytes that fill their lanes have no room for a sign.
            let code = if (ty.elem, ty.lanes) == (Elem::U8, 16) { code.unsigned() } else { code };
            self.b.ins().icmp(code, x, y)
        };
        if ty.lanes == 2 && ty.elem.bytes() == 4 {
            return self.b.ins().swiden_low(mask);
        }
        mask
    }

    /// `mask ? x : y` of values of one held type; the mask has that many lanes.
    pub fn blend(&mut self, mask: Value, x: Value, y: Value) -> Value {
        let held = self.b.func.dfg.value_type(x);
        if !held.is_vector() {
            return self.b.ins().select(mask, x, y);
        }
        let mask = self.bitcast(held, mask);
        self.b.ins().bitselect(mask, x, y)
    }

    fn select(&mut self, ty: Ty, c: Value, x: Value, y: Value) -> Value {
        if ty.lanes == 2 && types::of(ty).is_some_and(|t| t.lane_count() == 4) {
            let narrow = self.narrow_mask(c);
            return self.blend(narrow, x, y);
        }
        self.blend(c, x, y)
    }

    /// Two lanes of 64 bits to the lower two of 32.
    fn narrow_mask(&mut self, mask: Value) -> Value {
        let bytes = self.bitcast(clif::I8X16, mask);
        let order: Vec<u8> = vec![0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11];
        let order = self.b.func.dfg.immediates.push(ConstantData::from(order));
        let shuffled = self.b.ins().shuffle(bytes, bytes, order);
        self.bitcast(clif::I32X4, shuffled)
    }

    fn count_or_first(&mut self, fold: Fold, from: Ty, mask: Value) -> Value {
        let signs = self.b.ins().vhigh_bits(clif::I64, mask);
        if fold == Fold::Count {
            return self.b.ins().popcnt(signs);
        }
        // One more bit behind the lanes: what is found if none of them is true.
        let stop = self.b.ins().bor_imm_s(signs, 1 << from.lanes);
        self.b.ins().ctz(stop)
    }

    fn reduce(&mut self, fold: Fold, from: Ty, x: Value) -> Result<Value, TranslateError> {
        if from.lanes == 1 {
            return Ok(x);
        }
        match fold {
            // One instruction moves the sign bits out, and a branch compares them.
            Fold::Any | Fold::All if self.is_x86 => {
                let signs = self.b.ins().vhigh_bits(clif::I32, x);
                let none_or_all = if fold == Fold::Any { 0 } else { (1i64 << from.lanes) - 1 };
                let cc = if fold == Fold::Any { IntCC::NotEqual } else { IntCC::Equal };
                return Ok(self.b.ins().icmp_imm_s(cc, signs, none_or_all));
            }
            Fold::Count | Fold::First => return Ok(self.count_or_first(fold, from, x)),
            Fold::Any => return Ok(self.b.ins().vany_true(x)),
            Fold::All => return Ok(self.b.ins().vall_true(x)),
            _ => {}
        }
        let op = match fold {
            Fold::Add => BinOp::Add,
            Fold::Mul => BinOp::Mul,
            Fold::Min => BinOp::Min,
            _ => BinOp::Max,
        };
        let mut lanes: Vec<Value> = (0..from.lanes).map(|lane| self.extract(from, x, lane)).collect();
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            for (low, high) in lanes.iter_mut().zip(upper) {
                *low = self.binary(op, Ty::scalar(from.elem), *low, high)?;
            }
        }
        Ok(lanes[0])
    }
}
