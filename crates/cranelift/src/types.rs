//! How registers of loop IR are held.
//!
//! A vector fills 128 bits. Elements too narrow for that (bytes and half floats in four lanes) are held in wider integer lanes, extended as their
//! type says; half floats as zero-extended bits. Scalars narrower than 32 bits are held in 32, except `bool`, which is 8. Two lanes of 32 bits
//! stand in the lower half of a vector. A mask has as many lanes as what it masks, all ones or all zeros.

use cranelift_codegen::ir::{types, Type};
use onefold_loops::{Elem, Ty};

/// The Cranelift type of a register, or `None` if it does not fit 128 bits.
pub fn of(ty: Ty) -> Option<Type> {
    if ty.lanes == 1 {
        return Some(match ty.elem {
            Elem::F32 => types::F32,
            Elem::F64 => types::F64,
            Elem::I64 => types::I64,
            Elem::I32 | Elem::I8 | Elem::U8 | Elem::F16 | Elem::BF16 => types::I32,
            Elem::Bool => types::I8,
        });
    }
    match (ty.elem, ty.lanes) {
        (Elem::F32, 2 | 4) => Some(types::F32X4),
        (Elem::F64, 2) => Some(types::F64X2),
        (Elem::I32, 2 | 4) => Some(types::I32X4),
        (Elem::I64, 2) => Some(types::I64X2),
        (Elem::Bool | Elem::I8 | Elem::U8 | Elem::F16 | Elem::BF16, lanes) => match lanes {
            2 => Some(types::I64X2),
            4 => Some(types::I32X4),
            8 => Some(types::I16X8),
            16 if ty.elem.bytes() == 1 => Some(types::I8X16),
            _ => None,
        },
        _ => None,
    }
}
