//! Conversions between element types.

use crate::translate::{TranslateError, Translator};
use crate::types;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{types as clif, InstBuilder, Type, Value};
use onefold_loops::{Elem, Ty};

impl Translator<'_> {
    /// A register's value as another element type.
    pub fn convert(&mut self, from: Ty, to: Ty, x: Value) -> Result<Value, TranslateError> {
        if from.elem == to.elem {
            return Ok(x);
        }
        let by_lane =
            |t: &mut Self| t.lanes(from, to, &[x], |t, v| t.convert(Ty::scalar(from.elem), Ty::scalar(to.elem), v[0]));
        let has_half = |ty: Ty| matches!(ty.elem, Elem::F16 | Elem::BF16);
        match (from.elem, to.elem) {
            // Held in lanes that are not those of `f32`.
            _ if (has_half(from) || has_half(to)) && !matches!(from.lanes, 1 | 4) => by_lane(self),
            (_, Elem::Bool) if from.lanes > 1 => by_lane(self),
            (Elem::I8 | Elem::U8, Elem::I8 | Elem::U8) => Ok(self.wrap(to, x)),
            (Elem::Bool, Elem::I8 | Elem::U8) if from.lanes > 1 => {
                let one = self.int(self.b.func.dfg.value_type(x), 1);
                Ok(self.b.ins().band(x, one))
            }
            (Elem::F16 | Elem::BF16, _) => {
                let float = self.widen_half(from.elem, x);
                self.convert(from.with(Elem::F32), to, float)
            }
            (_, Elem::F16 | Elem::BF16) => {
                let float = self.convert(from, from.with(Elem::F32), x)?;
                Ok(self.narrow_to_half(to.elem, float))
            }
            (Elem::Bool, _) => {
                let number = self.truth(from, x);
                self.convert(from.with(Elem::I32), to, number)
            }
            (_, Elem::Bool) => {
                let word = self.convert(from, from.with(Elem::I32), x)?;
                let byte = self.b.ins().ireduce(clif::I8, word);
                let one = self.b.ins().iconst(clif::I8, 1);
                Ok(self.b.ins().band(byte, one))
            }
            (Elem::I8 | Elem::U8, Elem::I32) if from.lanes == 1 || from.lanes == 4 => Ok(x),
            (Elem::I8 | Elem::U8, Elem::F32 | Elem::I64 | Elem::F64) if from.lanes == 1 || from.lanes == 4 => {
                self.convert(from.with(Elem::I32), to, x)
            }
            (Elem::I32, Elem::I8 | Elem::U8) if from.lanes == 1 || from.lanes == 4 => Ok(self.wrap(to, x)),
            (_, Elem::I8 | Elem::U8) if from.elem != Elem::I32 => {
                let word = self.convert(from, from.with(Elem::I32), x)?;
                self.convert(from.with(Elem::I32), to, word)
            }
            _ if from.lanes > 2 && (from.elem.bytes() == 8 || to.elem.bytes() == 8) => Err(unknown(from, to)),
            (Elem::F32, Elem::F64) if from.lanes == 1 => Ok(self.b.ins().fpromote(clif::F64, x)),
            (Elem::F32, Elem::F64) => Ok(self.b.ins().fvpromote_low(x)),
            (Elem::F64, Elem::F32) if from.lanes == 1 => Ok(self.b.ins().fdemote(clif::F32, x)),
            (Elem::F64, Elem::F32) => Ok(self.b.ins().fvdemote(x)),
            (Elem::I32, Elem::F32) => {
                let held = if from.lanes == 1 { clif::F32 } else { clif::F32X4 };
                Ok(self.b.ins().fcvt_from_sint(held, x))
            }
            (Elem::F32, Elem::I32) if from.lanes > 1 && self.is_x86 => Ok(self.b.ins().x86_cvtt2dq(clif::I32X4, x)),
            (Elem::F32, Elem::I32) if from.lanes > 1 => Ok(self.b.ins().fcvt_to_sint_sat(clif::I32X4, x)),
            (Elem::I32, Elem::I64) if from.lanes == 2 => Ok(self.b.ins().swiden_low(x)),
            _ => self.lanes(from, to, &[x], |t, v| t.convert_scalar(from.elem, to.elem, v[0])),
        }
    }

    fn convert_scalar(&mut self, from: Elem, to: Elem, x: Value) -> Result<Value, TranslateError> {
        let held = types::of(Ty::scalar(to)).ok_or(TranslateError::Type(Ty::scalar(to)))?;
        Ok(match (from.is_float(), to.is_float()) {
            (true, true) => return self.convert(Ty::scalar(from), Ty::scalar(to), x),
            (true, false) => self.b.ins().fcvt_to_sint_sat(held, x),
            (false, true) => self.b.ins().fcvt_from_sint(held, x),
            (false, false) if held == clif::I64 => self.b.ins().sextend(held, x),
            (false, false) if self.b.func.dfg.value_type(x) == clif::I64 => self.b.ins().ireduce(held, x),
            (false, false) => self.wrap(Ty::scalar(to), x),
        })
    }

    /// Truth values as 0 and 1 of type `i32`.
    fn truth(&mut self, from: Ty, x: Value) -> Value {
        let held = self.b.func.dfg.value_type(x);
        if from.lanes == 1 {
            return self.b.ins().uextend(clif::I32, x);
        }
        let one = self.int(held, 1);
        let bits = self.b.ins().band(x, one);
        if from.lanes != 2 {
            return bits;
        }
        // Two lanes of 32 bits stand in the lower half.
        let (low, high) = (self.b.ins().extractlane(bits, 0), self.b.ins().extractlane(bits, 1));
        let (low, high) = (self.b.ins().ireduce(clif::I32, low), self.b.ins().ireduce(clif::I32, high));
        let zero = self.int(clif::I32X4, 0);
        let first = self.b.ins().insertlane(zero, low, 0);
        self.b.ins().insertlane(first, high, 1)
    }

    fn shift_by(&mut self, x: Value, amount: i64, left: bool) -> Value {
        let amount = self.b.ins().iconst(clif::I32, amount);
        if left {
            self.b.ins().ishl(x, amount)
        } else {
            self.b.ins().ushr(x, amount)
        }
    }

    /// Half floats, held as bits in 32-bit lanes, to `f32`.
    fn widen_half(&mut self, elem: Elem, bits: Value) -> Value {
        let held = self.b.func.dfg.value_type(bits);
        let float = float_of(held);
        if elem == Elem::BF16 {
            let up = self.shift_by(bits, 16, true);
            return self.bitcast(float, up);
        }
        // Exponent and fraction in place, then the exponent's bias by a multiplication that also normalises subnormals.
        let low = self.int(held, 0x7fff);
        let magnitude = self.b.ins().band(bits, low);
        let placed = self.shift_by(magnitude, 13, true);
        let as_float = self.bitcast(float, placed);
        let bias = self.int(held, 0x7780_0000);
        let bias = self.bitcast(float, bias);
        let scaled = self.b.ins().fmul(as_float, bias);
        let scaled = self.bitcast(held, scaled);
        let infinite = self.int(held, 0x7bff);
        let special = self.b.ins().icmp(IntCC::SignedGreaterThan, magnitude, infinite);
        let exponent = self.int(held, 0x7f80_0000);
        let special_bits = self.b.ins().bor(placed, exponent);
        let value = self.blend(special, special_bits, scaled);
        let sign = self.int(held, 0x8000);
        let sign = self.b.ins().band(bits, sign);
        let sign = self.shift_by(sign, 16, true);
        let all = self.b.ins().bor(value, sign);
        self.bitcast(float, all)
    }

    /// `f32` to the nearest half float, ties to even, as bits in 32-bit lanes.
    fn narrow_to_half(&mut self, elem: Elem, x: Value) -> Value {
        let float = self.b.func.dfg.value_type(x);
        let held = float.as_int();
        let bits = self.bitcast(held, x);
        if elem == Elem::BF16 {
            return self.narrow_to_bf16(held, x, bits);
        }
        let sign_bit = self.int(held, 0x8000_0000u32 as i32 as i64);
        let sign = self.b.ins().band(bits, sign_bit);
        let magnitude = self.b.ins().bxor(bits, sign);
        // Normal results: rebias, round by adding half a unit less the parity.
        let odd = self.shift_by(magnitude, 13, false);
        let one = self.int(held, 1);
        let odd = self.b.ins().band(odd, one);
        let rebias = self.int(held, i64::from((15 - 127) << 23) + 0xfff);
        let normal = self.b.ins().iadd(magnitude, rebias);
        let normal = self.b.ins().iadd(normal, odd);
        let normal = self.shift_by(normal, 13, false);
        // Subnormal results: an addition whose last place is the result's lets the FPU round.
        let magic = self.int(held, 126 << 23);
        let magic_float = self.bitcast(float, magic);
        let as_float = self.bitcast(float, magnitude);
        let aligned = self.b.ins().fadd(as_float, magic_float);
        let aligned = self.bitcast(held, aligned);
        let subnormal = self.b.ins().isub(aligned, magic);
        let smallest_normal = self.int(held, 113 << 23);
        let is_small = self.b.ins().icmp(IntCC::SignedLessThan, magnitude, smallest_normal);
        let finite = self.blend(is_small, subnormal, normal);
        let too_large = self.int(held, (127 + 16) << 23);
        let overflows = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, magnitude, too_large);
        let (infinity, nan) = (self.int(held, 0x7c00), self.int(held, 0x7e00));
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        let special = self.blend(is_nan, nan, infinity);
        let value = self.blend(overflows, special, finite);
        let sign = self.shift_by(sign, 16, false);
        self.b.ins().bor(value, sign)
    }

    fn narrow_to_bf16(&mut self, held: Type, x: Value, bits: Value) -> Value {
        let one = self.int(held, 1);
        let odd = self.shift_by(bits, 16, false);
        let odd = self.b.ins().band(odd, one);
        let half = self.int(held, 0x7fff);
        let rounded = self.b.ins().iadd(bits, half);
        let rounded = self.b.ins().iadd(rounded, odd);
        let rounded = self.shift_by(rounded, 16, false);
        let nan = self.int(held, 0x7fc0);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        self.blend(is_nan, nan, rounded)
    }
}

fn float_of(held: Type) -> Type {
    if held.is_vector() {
        clif::F32X4
    } else {
        clif::F32
    }
}

fn unknown(from: Ty, to: Ty) -> TranslateError {
    TranslateError::Operation(format!("the conversion of {from} to {to}"))
}
