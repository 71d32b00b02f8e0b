//! One instruction at a time, on scalars and vectors alike.

use crate::level::Level;
use crate::translate::TranslateError;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::LLVMBuildFreeze;
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{
    AsValueRef, BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, IntValue, PointerValue, ValueKind, VectorValue,
};
use inkwell::{FloatPredicate, IntPredicate};

pub use inkwell::values::InstructionOpcode as Op;

/// What a register holds.
pub type Value<'c> = BasicValueEnum<'c>;

/// Or why it cannot.
pub type Result<T> = std::result::Result<T, TranslateError>;

/// Where instructions go.
pub struct Emit<'m, 'c> {
    /// Owns types and constants.
    pub context: &'c Context,
    /// The module under construction.
    pub module: &'m Module<'c>,
    /// Appends to the current block.
    pub b: Builder<'c>,
    /// What may be used.
    pub level: Level,
}

/// A register of a kind that the operation is not defined on.
pub fn kind(what: &str) -> TranslateError {
    TranslateError::Operation(what.to_owned())
}

/// A scalar integer.
pub fn int_value(x: Value<'_>) -> Result<IntValue<'_>> {
    match x {
        Value::IntValue(x) => Ok(x),
        _ => Err(kind("a scalar integer")),
    }
}

/// A vector.
pub fn vector_value(x: Value<'_>) -> Result<VectorValue<'_>> {
    match x {
        Value::VectorValue(x) => Ok(x),
        _ => Err(kind("a vector")),
    }
}

impl<'c> Emit<'_, 'c> {
    /// An integer constant in every lane of an integer type.
    pub fn int(&self, ty: BasicTypeEnum<'c>, value: i64) -> Result<Value<'c>> {
        match ty {
            BasicTypeEnum::IntType(t) => Ok(t.const_int(value as u64, true).into()),
            BasicTypeEnum::VectorType(t) => {
                let lane = self.int(t.get_element_type(), value)?;
                self.repeat(lane, t.get_size())
            }
            _ => Err(kind("an integer constant")),
        }
    }

    /// A float constant in every lane of a float type.
    pub fn float(&self, ty: BasicTypeEnum<'c>, value: f64) -> Result<Value<'c>> {
        match ty {
            BasicTypeEnum::FloatType(t) => Ok(t.const_float(value).into()),
            BasicTypeEnum::VectorType(t) => {
                let lane = self.float(t.get_element_type(), value)?;
                self.repeat(lane, t.get_size())
            }
            _ => Err(kind("a float constant")),
        }
    }

    fn repeat(&self, lane: Value<'c>, lanes: u32) -> Result<Value<'c>> {
        self.constants(&vec![lane; lanes as usize])
    }

    /// A vector of constants.
    pub fn constants(&self, lanes: &[Value<'c>]) -> Result<Value<'c>> {
        Ok(inkwell::types::VectorType::const_vector(lanes).into())
    }

    /// An `i64`.
    pub fn i64(&self, value: i64) -> IntValue<'c> {
        self.context.i64_type().const_int(value as u64, true)
    }

    /// Two operands, lane by lane.
    pub fn op(&self, op: Op, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(self.b.build_binop(op, x, y, "")?)
    }

    /// A conversion, lane by lane, to a type of as many lanes.
    pub fn cast(&self, op: Op, x: Value<'c>, to: BasicTypeEnum<'c>) -> Result<Value<'c>> {
        Ok(self.b.build_cast(op, x, to, "")?)
    }

    /// The same bits.
    pub fn bitcast(&self, x: Value<'c>, to: BasicTypeEnum<'c>) -> Result<Value<'c>> {
        if x.get_type() == to {
            return Ok(x);
        }
        self.cast(Op::BitCast, x, to)
    }

    /// A comparison of integers.
    pub fn icmp(&self, predicate: IntPredicate, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        match (x, y) {
            (Value::IntValue(x), Value::IntValue(y)) => Ok(self.b.build_int_compare(predicate, x, y, "")?.into()),
            (Value::VectorValue(x), Value::VectorValue(y)) => Ok(self.b.build_int_compare(predicate, x, y, "")?.into()),
            _ => Err(kind("a comparison of integers")),
        }
    }

    /// A comparison of floats.
    pub fn fcmp(&self, predicate: FloatPredicate, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        match (x, y) {
            (Value::FloatValue(x), Value::FloatValue(y)) => Ok(self.b.build_float_compare(predicate, x, y, "")?.into()),
            (Value::VectorValue(x), Value::VectorValue(y)) => {
                Ok(self.b.build_float_compare(predicate, x, y, "")?.into())
            }
            _ => Err(kind("a comparison of floats")),
        }
    }

    /// `mask ? x : y`.
    pub fn select(&self, mask: Value<'c>, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        match mask {
            Value::IntValue(mask) => Ok(self.b.build_select(mask, x, y, "")?),
            Value::VectorValue(mask) => Ok(self.b.build_select(mask, x, y, "")?),
            _ => Err(kind("a selection")),
        }
    }

    /// Some lanes of a vector, by number.
    pub fn shuffle(&self, x: VectorValue<'c>, order: impl Iterator<Item = u32>) -> Result<VectorValue<'c>> {
        let int = self.context.i32_type();
        let order: Vec<IntValue<'c>> = order.map(|lane| int.const_int(u64::from(lane), false)).collect();
        let order = inkwell::types::VectorType::const_vector(&order);
        Ok(self.b.build_shuffle_vector(x, x.get_type().get_poison(), order, "")?)
    }

    /// A scalar in every lane of a type.
    pub fn splat(&self, x: Value<'c>, to: BasicTypeEnum<'c>) -> Result<Value<'c>> {
        let BasicTypeEnum::VectorType(to) = to else { return Ok(x) };
        let first = self.insert(to.get_poison(), x, 0)?;
        Ok(self.shuffle(first, std::iter::repeat_n(0, to.get_size() as usize))?.into())
    }

    /// One lane of a vector; a scalar is its own.
    pub fn extract(&self, x: Value<'c>, lane: u32) -> Result<Value<'c>> {
        let Value::VectorValue(x) = x else { return Ok(x) };
        let lane = self.context.i32_type().const_int(u64::from(lane), false);
        Ok(self.b.build_extract_element(x, lane, "")?)
    }

    /// A vector with one lane replaced.
    pub fn insert(&self, x: VectorValue<'c>, scalar: Value<'c>, lane: u32) -> Result<VectorValue<'c>> {
        let lane = self.context.i32_type().const_int(u64::from(lane), false);
        Ok(self.b.build_insert_element(x, scalar, lane, "")?)
    }

    /// A call of an intrinsic, overloaded by types.
    pub fn call(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        operands: &[Value<'c>],
    ) -> Result<(CallSiteValue<'c>, Option<Value<'c>>)> {
        let missing = || TranslateError::Intrinsic(name.to_owned());
        let intrinsic = Intrinsic::find(name).ok_or_else(missing)?;
        let function = intrinsic.get_declaration(self.module, types).ok_or_else(missing)?;
        let operands: Vec<BasicMetadataValueEnum<'c>> = operands.iter().map(|x| (*x).into()).collect();
        let call = self.b.build_call(function, &operands, "")?;
        let value = match call.try_as_basic_value() {
            ValueKind::Basic(value) => Some(value),
            ValueKind::Instruction(_) => None,
        };
        Ok((call, value))
    }

    /// An intrinsic whose result and operands have one type.
    pub fn function(&self, name: &str, operands: &[Value<'c>]) -> Result<Value<'c>> {
        let types: Vec<BasicTypeEnum<'c>> = operands.iter().take(1).map(Value::get_type).collect();
        self.call(name, &types, operands)?.1.ok_or_else(|| TranslateError::Intrinsic(name.to_owned()))
    }

    /// Poison becomes some value, the same for every use.
    pub fn freeze(&self, x: Value<'c>) -> Value<'c> {
        // SAFETY: the builder stands at the end of a block of the function that `x` belongs to, as for every other
        // instruction; the wrapper merely lacks this one. The result has the type of `x`.
        unsafe { Value::new(LLVMBuildFreeze(self.b.as_mut_ptr(), x.as_value_ref(), c"".as_ptr())) }
    }

    /// The address of an element. `inside` says that it lies in the array or right behind its end.
    pub fn element<T: BasicType<'c>>(
        &self,
        ty: T,
        base: PointerValue<'c>,
        offset: IntValue<'c>,
        inside: bool,
    ) -> Result<PointerValue<'c>> {
        // SAFETY: one index into an array of `ty`: no type is walked into, which is all that could go wrong here. Whether the
        // address is good when the code runs is the contract of loop IR.
        Ok(unsafe {
            if inside {
                self.b.build_in_bounds_gep(ty, base, &[offset], "")?
            } else {
                self.b.build_gep(ty, base, &[offset], "")?
            }
        })
    }
}
