//! Conversions between element types.

use crate::emit::{Op, Result, Value};
use crate::level::Level;
use crate::translate::Translator;
use crate::types;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::{FloatPredicate, IntPredicate};
use onefold_loops::{Elem, Ty};

impl<'c> Translator<'_, '_, 'c> {
    /// A register's value as another element type.
    pub fn convert(&self, from: Ty, to: Ty, x: Value<'c>) -> Result<Value<'c>> {
        if from.elem == to.elem {
            return Ok(x);
        }
        let held = types::of(self.e.context, to)?;
        let single = from.with(Elem::F32);
        match (from.elem, to.elem) {
            (Elem::F16 | Elem::BF16, _) => {
                let float = if from.elem == Elem::F16 { self.widen_f16(from, x)? } else { self.widen_bf16(from, x)? };
                self.convert(single, to, float)
            }
            // By way of f32, as the interpreter goes.
            (_, Elem::F16) => self.narrow_to_f16(single, self.convert(from, single, x)?),
            (_, Elem::BF16) => self.narrow_to_bf16(single, self.convert(from, single, x)?),
            (Elem::F32, Elem::F64) => self.e.cast(Op::FPExt, x, held),
            (Elem::F64, Elem::F32) => self.e.cast(Op::FPTrunc, x, held),
            (Elem::F32 | Elem::F64, Elem::I64 | Elem::I32) => {
                // Out of range gives poison, on which LLVM may build; frozen it is what the instruction leaves.
                Ok(self.e.freeze(self.e.cast(Op::FPToSI, x, held)?))
            }
            (Elem::F32 | Elem::F64, _) => {
                let word = from.with(Elem::I32);
                self.convert(word, to, self.convert(from, word, x)?)
            }
            (Elem::U8 | Elem::Bool, Elem::F32 | Elem::F64) => self.e.cast(Op::UIToFP, x, held),
            (_, Elem::F32 | Elem::F64) => self.e.cast(Op::SIToFP, x, held),
            (Elem::I8, Elem::U8) | (Elem::U8, Elem::I8) => Ok(x),
            (_, Elem::Bool) => self.e.cast(Op::Trunc, x, held),
            (Elem::U8 | Elem::Bool, _) => self.e.cast(Op::ZExt, x, held),
            _ if from.elem.bytes() > to.elem.bytes() => self.e.cast(Op::Trunc, x, held),
            _ => self.e.cast(Op::SExt, x, held),
        }
    }

    /// A constant in every lane of 32-bit integers.
    fn word(&self, ty: Ty, value: u32) -> Result<Value<'c>> {
        self.e.int(types::of(self.e.context, ty.with(Elem::I32))?, i64::from(value))
    }

    fn words(&self, ty: Ty, half: Value<'c>) -> Result<Value<'c>> {
        self.e.cast(Op::ZExt, half, types::of(self.e.context, ty.with(Elem::I32))?)
    }

    fn halves(&self, ty: Ty, words: Value<'c>) -> Result<Value<'c>> {
        self.e.cast(Op::Trunc, words, types::of(self.e.context, ty.with(Elem::F16))?)
    }

    fn widen_bf16(&self, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        let bits = self.e.op(Op::Shl, self.words(ty, x)?, self.word(ty, 16)?)?;
        self.e.bitcast(bits, types::of(self.e.context, ty.with(Elem::F32))?)
    }

    /// To the nearest, ties to even: half a unit less the parity is added. Instructions of AVX-512 for it flush subnormals, so they
    /// are not used. NaN stays one: its quiet bit is set, lest the bits that are cut were all that made it NaN.
    fn narrow_to_bf16(&self, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        let bits = self.e.bitcast(x, types::of(self.e.context, ty.with(Elem::I32))?)?;
        let up = self.e.op(Op::LShr, bits, self.word(ty, 16)?)?;
        let odd = self.e.op(Op::And, up, self.word(ty, 1)?)?;
        let sum = self.e.op(Op::Add, bits, self.word(ty, 0x7fff)?)?;
        let sum = self.e.op(Op::Add, sum, odd)?;
        let rounded = self.e.op(Op::LShr, sum, self.word(ty, 16)?)?;
        let nan = self.e.op(Op::Or, up, self.word(ty, 0x40)?)?;
        let is_nan = self.e.fcmp(FloatPredicate::UNO, x, x)?;
        self.halves(ty, self.e.select(is_nan, nan, rounded)?)
    }

    /// Whether half floats convert in one instruction; without it LLVM calls a library that need not be there.
    fn has_f16(&self) -> bool {
        self.e.level != Level::Sse2
    }

    fn half(&self, ty: Ty) -> Result<BasicTypeEnum<'c>> {
        types::lanes(self.e.context.f16_type().as_basic_type_enum(), ty)
    }

    fn widen_f16(&self, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        let float = types::of(self.e.context, ty.with(Elem::F32))?;
        if self.has_f16() {
            return self.e.cast(Op::FPExt, self.e.bitcast(x, self.half(ty)?)?, float);
        }
        // Exponent and fraction in place, then the exponent's bias by a multiplication that also normalises subnormals.
        let bits = self.words(ty, x)?;
        let magnitude = self.e.op(Op::And, bits, self.word(ty, 0x7fff)?)?;
        let placed = self.e.op(Op::Shl, magnitude, self.word(ty, 13)?)?;
        let bias = self.e.bitcast(self.word(ty, 0x7780_0000)?, float)?;
        let scaled = self.e.op(Op::FMul, self.e.bitcast(placed, float)?, bias)?;
        let scaled = self.e.bitcast(scaled, bits.get_type())?;
        let special = self.e.icmp(IntPredicate::UGT, magnitude, self.word(ty, 0x7bff)?)?;
        let special_bits = self.e.op(Op::Or, placed, self.word(ty, 0x7f80_0000)?)?;
        let value = self.e.select(special, special_bits, scaled)?;
        let sign = self.e.op(Op::And, bits, self.word(ty, 0x8000)?)?;
        let sign = self.e.op(Op::Shl, sign, self.word(ty, 16)?)?;
        self.e.bitcast(self.e.op(Op::Or, value, sign)?, float)
    }

    fn narrow_to_f16(&self, ty: Ty, x: Value<'c>) -> Result<Value<'c>> {
        if self.has_f16() {
            let half = self.e.cast(Op::FPTrunc, x, self.half(ty)?)?;
            return self.e.bitcast(half, types::of(self.e.context, ty.with(Elem::F16))?);
        }
        let bits = self.e.bitcast(x, types::of(self.e.context, ty.with(Elem::I32))?)?;
        let sign = self.e.op(Op::And, bits, self.word(ty, 0x8000_0000)?)?;
        let magnitude = self.e.op(Op::Xor, bits, sign)?;
        // Normal results: rebias, round by adding half a unit less the parity.
        let odd = self.e.op(Op::LShr, magnitude, self.word(ty, 13)?)?;
        let odd = self.e.op(Op::And, odd, self.word(ty, 1)?)?;
        let rebias = ((15i32 - 127) << 23) + 0xfff;
        let normal = self.e.op(Op::Add, magnitude, self.word(ty, rebias as u32)?)?;
        let normal = self.e.op(Op::Add, normal, odd)?;
        let normal = self.e.op(Op::LShr, normal, self.word(ty, 13)?)?;
        // Subnormal results: an addition whose last place is the result's lets the FPU round.
        let magic = self.word(ty, 126 << 23)?;
        let aligned = self.e.bitcast(magnitude, x.get_type())?;
        let aligned = self.e.op(Op::FAdd, aligned, self.e.bitcast(magic, x.get_type())?)?;
        let aligned = self.e.bitcast(aligned, bits.get_type())?;
        let subnormal = self.e.op(Op::Sub, aligned, magic)?;
        let is_small = self.e.icmp(IntPredicate::ULT, magnitude, self.word(ty, 113 << 23)?)?;
        let finite = self.e.select(is_small, subnormal, normal)?;
        let overflows = self.e.icmp(IntPredicate::UGE, magnitude, self.word(ty, (127 + 16) << 23)?)?;
        let is_nan = self.e.fcmp(FloatPredicate::UNO, x, x)?;
        let special = self.e.select(is_nan, self.word(ty, 0x7e00)?, self.word(ty, 0x7c00)?)?;
        let value = self.e.select(overflows, special, finite)?;
        let sign = self.e.op(Op::LShr, sign, self.word(ty, 16)?)?;
        self.halves(ty, self.e.op(Op::Or, value, sign)?)
    }
}
