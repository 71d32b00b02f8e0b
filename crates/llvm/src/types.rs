//! How registers of loop IR are held: as LLVM's own types, half floats as bits in 16-bit integers, truth values as `i1`.

use crate::translate::TranslateError;
use inkwell::context::Context;
use inkwell::types::{BasicTypeEnum, VectorType};
use onefold_loops::{Elem, Ty};

/// The most lanes: twice as many bytes as the widest registers hold. Compile time grows with the square, and LLVM aborts the process
/// over many thousands.
const MAX_LANES: u16 = 128;

/// The type of one element in a register.
pub fn scalar(context: &Context, elem: Elem) -> BasicTypeEnum<'_> {
    match elem {
        Elem::F32 => context.f32_type().into(),
        Elem::F64 => context.f64_type().into(),
        Elem::F16 | Elem::BF16 => context.i16_type().into(),
        Elem::I8 | Elem::U8 => context.i8_type().into(),
        Elem::I32 => context.i32_type().into(),
        Elem::I64 => context.i64_type().into(),
        Elem::Bool => context.bool_type().into(),
    }
}

/// The type of one element in memory.
pub fn memory(context: &Context, elem: Elem) -> BasicTypeEnum<'_> {
    match elem {
        Elem::Bool => context.i8_type().into(),
        _ => scalar(context, elem),
    }
}

/// As many lanes of an element's type as a register has.
pub fn lanes(element: BasicTypeEnum<'_>, ty: Ty) -> Result<BasicTypeEnum<'_>, TranslateError> {
    if ty.lanes == 1 {
        return Ok(element);
    }
    vector(element, ty.lanes).map(BasicTypeEnum::VectorType).ok_or(TranslateError::Type(ty))
}

/// A vector of an element's type.
pub fn vector(element: BasicTypeEnum<'_>, lanes: u16) -> Option<VectorType<'_>> {
    match element {
        _ if lanes > MAX_LANES => None,
        BasicTypeEnum::IntType(t) => Some(t.vec_type(u32::from(lanes))),
        BasicTypeEnum::FloatType(t) => Some(t.vec_type(u32::from(lanes))),
        _ => None,
    }
}

/// The type of a register.
pub fn of(context: &Context, ty: Ty) -> Result<BasicTypeEnum<'_>, TranslateError> {
    lanes(scalar(context, ty.elem), ty)
}

/// Integers as wide as an element in memory, as many as lanes.
pub fn bits(context: &Context, ty: Ty) -> Result<BasicTypeEnum<'_>, TranslateError> {
    let element = match ty.elem.bytes() {
        1 => context.i8_type(),
        2 => context.i16_type(),
        4 => context.i32_type(),
        _ => context.i64_type(),
    };
    lanes(element.into(), ty)
}
