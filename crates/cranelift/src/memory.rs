//! Loads and stores. Tails and strides go lane by lane: nothing outside an array is touched.

use crate::translate::{trusted, TranslateError, Translator};
use crate::types;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types as clif, InstBuilder, Value};
use onefold_loops::{BufId, Elem, Number, Reg, Ty};

/// An address and a constant that the instruction adds.
#[derive(Clone, Copy)]
struct Address {
    base: Value,
    bytes: i32,
}

impl Translator<'_> {
    /// Load a register's worth.
    pub fn load(
        &mut self,
        ty: Ty,
        buf: BufId,
        offset: Reg,
        stride: Option<Reg>,
        tail: Option<(Reg, Reg)>,
    ) -> Result<Value, TranslateError> {
        types::of(ty).ok_or(TranslateError::Type(ty))?;
        let start = self.address(buf, ty.elem, offset);
        let step = match stride {
            Some(stride) => {
                let stride = self.get(stride);
                Some(self.b.ins().imul_imm_s(stride, i64::from(ty.elem.bytes())))
            }
            None => None,
        };
        let Some((count, fill)) = tail else {
            return Ok(if step.is_some() { self.load_lanes(ty, start, step) } else { self.load_whole(ty, start) });
        };
        let (count, fill) = (self.get(count), self.get(fill));
        let filled = self.fill(ty, fill);
        let held = self.b.func.dfg.value_type(filled);
        let [whole, part, after] = [(); 3].map(|()| self.b.create_block());
        let result = self.b.append_block_param(after, held);
        let full = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, count, i64::from(ty.lanes));
        self.b.ins().brif(full, whole, &[], part, &[]);
        self.b.switch_to_block(whole);
        let all = if step.is_some() { self.load_lanes(ty, start, step) } else { self.load_whole(ty, start) };
        self.b.ins().jump(after, &[all.into()]);
        self.b.switch_to_block(part);
        // Lanes in ascending order; the first that is not there ends it.
        let mut value = filled;
        let mut at = start;
        for lane in 0..ty.lanes.saturating_sub(1).max(1) {
            let next = self.b.create_block();
            let more = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, i64::from(lane));
            self.b.ins().brif(more, next, &[], after, &[value.into()]);
            self.b.switch_to_block(next);
            let element = self.load_scalar(ty.elem, at);
            value = if ty.lanes == 1 { element } else { self.insert(ty, value, element, lane) };
            at = self.advance(at, ty.elem, step);
        }
        self.b.ins().jump(after, &[value.into()]);
        self.b.switch_to_block(after);
        Ok(result)
    }

    /// Store a register, or its first lanes.
    pub fn store(&mut self, buf: BufId, offset: Reg, value: Reg, tail: Option<Reg>) -> Result<(), TranslateError> {
        let ty = self.kernel.ty(value);
        let start = self.address(buf, ty.elem, offset);
        let value = self.get(value);
        let Some(count) = tail else {
            self.store_whole(ty, start, value);
            return Ok(());
        };
        let count = self.get(count);
        let [whole, part, after] = [(); 3].map(|()| self.b.create_block());
        let full = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, count, i64::from(ty.lanes));
        self.b.ins().brif(full, whole, &[], part, &[]);
        self.b.switch_to_block(whole);
        self.store_whole(ty, start, value);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(part);
        let mut at = start;
        for lane in 0..ty.lanes.saturating_sub(1).max(1) {
            let next = self.b.create_block();
            let more = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, i64::from(lane));
            self.b.ins().brif(more, next, &[], after, &[]);
            self.b.switch_to_block(next);
            let element = self.extract(ty, value, lane);
            self.store_scalar(ty.elem, at, element);
            at = self.advance(at, ty.elem, None);
        }
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    fn fill(&mut self, ty: Ty, fill: Value) -> Value {
        if ty.lanes == 1 {
            return fill;
        }
        let mut value = self.constant(ty, Number::Int(0));
        let held = self.b.func.dfg.value_type(value);
        if ty.elem == Elem::F32 || ty.elem == Elem::F64 {
            return self.b.ins().splat(held, fill);
        }
        for lane in 0..ty.lanes {
            value = self.insert(ty, value, fill, lane);
        }
        value
    }

    fn address(&mut self, buf: BufId, elem: Elem, offset: Reg) -> Address {
        let base = self.base(buf);
        let bytes = elem.bytes();
        let (offset, elements) = self.displacement(offset);
        let (offset, displaced) = match i32::try_from(elements * i64::from(bytes)) {
            Ok(displaced) => (self.get(offset), displaced),
            Err(_) => {
                let near = self.get(offset);
                (self.b.ins().iadd_imm_s(near, elements), 0)
            }
        };
        if bytes == 1 {
            return Address { base: self.b.ins().iadd(base, offset), bytes: displaced };
        }
        let shift = self.b.ins().iconst(clif::I64, i64::from(bytes.trailing_zeros()));
        let scaled = self.b.ins().ishl(offset, shift);
        Address { base: self.b.ins().iadd(base, scaled), bytes: displaced }
    }

    fn advance(&mut self, at: Address, elem: Elem, step: Option<Value>) -> Address {
        match step {
            Some(step) => Address { base: self.b.ins().iadd(at.base, step), ..at },
            None => Address { bytes: at.bytes + elem.bytes() as i32, ..at },
        }
    }

    fn load_scalar(&mut self, elem: Elem, at: Address) -> Value {
        match elem {
            Elem::F32 => self.b.ins().load(clif::F32, trusted(), at.base, at.bytes),
            Elem::F64 => self.b.ins().load(clif::F64, trusted(), at.base, at.bytes),
            Elem::I32 => self.b.ins().load(clif::I32, trusted(), at.base, at.bytes),
            Elem::I64 => self.b.ins().load(clif::I64, trusted(), at.base, at.bytes),
            Elem::I8 => self.b.ins().sload8(clif::I32, trusted(), at.base, at.bytes),
            Elem::U8 => self.b.ins().uload8(clif::I32, trusted(), at.base, at.bytes),
            Elem::F16 | Elem::BF16 => self.b.ins().uload16(clif::I32, trusted(), at.base, at.bytes),
            Elem::Bool => {
                let byte = self.b.ins().load(clif::I8, trusted(), at.base, at.bytes);
                self.b.ins().icmp_imm_s(IntCC::NotEqual, byte, 0)
            }
        }
    }

    fn load_whole(&mut self, ty: Ty, at: Address) -> Value {
        if ty.lanes == 1 {
            return self.load_scalar(ty.elem, at);
        }
        match (ty.elem, ty.lanes) {
            (Elem::F32, 4) => self.b.ins().load(clif::F32X4, trusted(), at.base, at.bytes),
            (Elem::F64, 2) => self.b.ins().load(clif::F64X2, trusted(), at.base, at.bytes),
            (Elem::I32, 4) => self.b.ins().load(clif::I32X4, trusted(), at.base, at.bytes),
            (Elem::I64, 2) => self.b.ins().load(clif::I64X2, trusted(), at.base, at.bytes),
            (Elem::I8 | Elem::U8, 16) => self.b.ins().load(clif::I8X16, trusted(), at.base, at.bytes),
            (Elem::F16 | Elem::BF16, 4) => self.b.ins().uload16x4(trusted(), at.base, at.bytes),
            (Elem::I8 | Elem::U8, 4) => {
                let word = self.b.ins().load(clif::I32, trusted(), at.base, at.bytes);
                let vector = self.b.ins().scalar_to_vector(clif::I32X4, word);
                let bytes = self.bitcast(clif::I8X16, vector);
                if ty.elem == Elem::I8 {
                    let halves = self.b.ins().swiden_low(bytes);
                    self.b.ins().swiden_low(halves)
                } else {
                    let halves = self.b.ins().uwiden_low(bytes);
                    self.b.ins().uwiden_low(halves)
                }
            }
            _ => self.load_lanes(ty, at, None),
        }
    }

    fn load_lanes(&mut self, ty: Ty, start: Address, step: Option<Value>) -> Value {
        if ty.lanes == 1 {
            return self.load_scalar(ty.elem, start);
        }
        let mut value = self.constant(ty, Number::Int(0));
        let mut at = start;
        for lane in 0..ty.lanes {
            let element = self.load_scalar(ty.elem, at);
            value = self.insert(ty, value, element, lane);
            at = self.advance(at, ty.elem, step);
        }
        value
    }

    fn store_scalar(&mut self, elem: Elem, at: Address, value: Value) {
        match elem {
            Elem::I8 | Elem::U8 => self.b.ins().istore8(trusted(), value, at.base, at.bytes),
            Elem::F16 | Elem::BF16 => self.b.ins().istore16(trusted(), value, at.base, at.bytes),
            _ => self.b.ins().store(trusted(), value, at.base, at.bytes),
        };
    }

    fn store_whole(&mut self, ty: Ty, at: Address, value: Value) {
        let held = self.b.func.dfg.value_type(value);
        let is_natural =
            ty.lanes == 1 || held.lane_bits() == 8 * ty.elem.bytes() && held.lane_count() == u32::from(ty.lanes);
        if ty.lanes > 1 && is_natural && ty.elem != Elem::Bool {
            self.b.ins().store(trusted(), value, at.base, at.bytes);
            return;
        }
        let mut at = at;
        for lane in 0..ty.lanes {
            let element = self.extract(ty, value, lane);
            self.store_scalar(ty.elem, at, element);
            at = self.advance(at, ty.elem, None);
        }
    }
}
