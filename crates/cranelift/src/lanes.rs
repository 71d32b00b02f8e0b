//! Constants and single lanes of registers.

use crate::translate::{TranslateError, Translator};
use crate::types;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types as clif, ConstantData, InstBuilder, Type, Value};
use half::{bf16, f16};
use onefold_loops::{Elem, Number, Ty};

impl Translator<'_> {
    /// A constant in every lane.
    pub fn constant(&mut self, ty: Ty, number: Number) -> Value {
        let bits = bits_of(number, ty.elem);
        let Some(held) = types::of(ty) else { return self.b.ins().iconst(clif::I64, 0) };
        if ty.lanes == 1 {
            return match ty.elem {
                Elem::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
                Elem::F64 => self.b.ins().f64const(f64::from_bits(bits)),
                Elem::I64 => self.b.ins().iconst(clif::I64, bits as i64),
                Elem::Bool => self.b.ins().iconst(clif::I8, i64::from(bits != 0)),
                _ => self.b.ins().iconst(clif::I32, i64::from(bits as u32)),
            };
        }
        let width = held.lane_bits() as usize / 8;
        let bits = if ty.elem == Elem::Bool && bits != 0 { u64::MAX } else { bits };
        let mut bytes = vec![];
        for _ in 0..held.lane_count() {
            bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
        }
        self.vector(held, bytes)
    }

    fn vector(&mut self, held: Type, bytes: Vec<u8>) -> Value {
        let handle = self.b.func.dfg.constants.insert(ConstantData::from(bytes));
        self.b.ins().vconst(held, handle)
    }

    pub fn iota(&mut self, ty: Ty) -> Result<Value, TranslateError> {
        let held = types::of(ty).ok_or(TranslateError::Type(ty))?;
        if ty.lanes == 1 {
            return Ok(self.constant(ty, Number::Int(0)));
        }
        let width = held.lane_bits() as usize / 8;
        let mut bytes = vec![];
        for lane in 0..held.lane_count() {
            let bits = bits_of(Number::Int(i64::from(lane)), ty.elem);
            bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
        }
        Ok(self.vector(held, bytes))
    }

    /// An integer constant in every lane of a held type.
    pub fn int(&mut self, held: Type, value: i64) -> Value {
        if !held.is_vector() {
            return self.b.ins().iconst(held, value & mask_of(held.bits()));
        }
        let width = held.lane_bits() as usize / 8;
        let lanes = held.lane_count() as usize;
        self.vector(held, value.to_le_bytes()[..width].repeat(lanes))
    }

    pub fn splat(&mut self, from: Ty, to: Ty, x: Value) -> Result<Value, TranslateError> {
        let held = types::of(to).ok_or(TranslateError::Type(to))?;
        if to.lanes == 1 {
            return Ok(x);
        }
        if from.elem == Elem::Bool {
            let lane = held.lane_type();
            let wide = if lane == clif::I8 { x } else { self.b.ins().uextend(lane, x) };
            let mask = self.b.ins().ineg(wide);
            return Ok(self.b.ins().splat(held, mask));
        }
        let x = self.resize(x, held.lane_type(), from.elem);
        Ok(self.b.ins().splat(held, x))
    }

    /// An integer in another width; floats stay.
    fn resize(&mut self, x: Value, to: Type, elem: Elem) -> Value {
        let from = self.b.func.dfg.value_type(x);
        if from == to || to.is_float() {
            x
        } else if to.bits() < from.bits() {
            self.b.ins().ireduce(to, x)
        } else if matches!(elem, Elem::U8 | Elem::F16 | Elem::BF16) {
            self.b.ins().uextend(to, x)
        } else {
            self.b.ins().sextend(to, x)
        }
    }

    /// One lane as a scalar register.
    pub fn extract(&mut self, from: Ty, x: Value, lane: u16) -> Value {
        if from.lanes == 1 {
            return x;
        }
        let element = self.b.ins().extractlane(x, lane as u8);
        if from.elem == Elem::Bool {
            let zero = self.int(self.b.func.dfg.value_type(element), 0);
            return self.b.ins().icmp(IntCC::NotEqual, element, zero);
        }
        let scalar = types::of(Ty::scalar(from.elem)).unwrap_or(clif::I32);
        self.resize(element, scalar, from.elem)
    }

    /// A scalar register into one lane.
    pub fn insert(&mut self, into: Ty, x: Value, scalar: Value, lane: u16) -> Value {
        let held = self.b.func.dfg.value_type(x);
        let scalar = if into.elem == Elem::Bool {
            let lane_type = held.lane_type();
            let wide = if lane_type == clif::I8 { scalar } else { self.b.ins().uextend(lane_type, scalar) };
            self.b.ins().ineg(wide)
        } else {
            self.resize(scalar, held.lane_type(), into.elem)
        };
        self.b.ins().insertlane(x, scalar, lane as u8)
    }

    /// Apply a scalar function to each lane.
    pub fn lanes(
        &mut self,
        from: Ty,
        to: Ty,
        operands: &[Value],
        f: impl Fn(&mut Self, &[Value]) -> Result<Value, TranslateError>,
    ) -> Result<Value, TranslateError> {
        if from.lanes == 1 {
            return f(self, operands);
        }
        let mut result = self.constant(to, Number::Int(0));
        for lane in 0..from.lanes {
            let scalars: Vec<Value> = operands.iter().map(|x| self.extract(from, *x, lane)).collect();
            let value = f(self, &scalars)?;
            result = self.insert(to, result, value, lane);
        }
        Ok(result)
    }
}

/// A constant as registers hold it: bytes extended as their type says, half floats as zero-extended bits.
fn bits_of(number: Number, elem: Elem) -> u64 {
    let float = match number {
        Number::Float(v) => v,
        Number::Int(v) => v as f64,
    };
    match (number, elem) {
        (Number::Float(v), Elem::F32) => u64::from((v as f32).to_bits()),
        (Number::Int(v), Elem::F32) => u64::from((v as f32).to_bits()),
        (_, Elem::F64) => float.to_bits(),
        (_, Elem::F16) => u64::from(f16::from_f32(float as f32).to_bits()),
        (_, Elem::BF16) => u64::from(bf16::from_f32(float as f32).to_bits()),
        // Not verified: integers have integer constants.
        (Number::Float(v), _) => v as i64 as u64,
        (Number::Int(v), Elem::I8) => i64::from(v as i8) as u64,
        (Number::Int(v), Elem::U8) => u64::from(v as u8),
        (Number::Int(v), Elem::Bool) => v as u64 & 1,
        (Number::Int(v), _) => v as u64,
    }
}

fn mask_of(bits: u32) -> i64 {
    if bits >= 64 {
        -1
    } else {
        (1i64 << bits) - 1
    }
}
