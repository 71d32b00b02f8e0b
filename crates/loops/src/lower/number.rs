//! Element types: what holds a dtype in memory and in registers, and conversions with the meaning that tensor IR gives them.
//!
//! In registers f16 and bf16 are f32, and integers of up to 32 bits are i32 that hold exactly the values of their type.

use super::emit::Emit;
use super::LowerError;
use crate::{BinOp, Cmp, Elem, Number, Reg, Ty, UnOp};
use onefold_ir::DType;

/// The element that holds a dtype in registers.
pub fn reg_elem(dtype: DType) -> Elem {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => Elem::F32,
        DType::F64 => Elem::F64,
        DType::I8 | DType::U8 | DType::I4 | DType::U4 | DType::I32 => Elem::I32,
        DType::I64 => Elem::I64,
        DType::Bool => Elem::Bool,
    }
}

/// The element of arrays of a dtype.
pub fn mem_elem(dtype: DType) -> Result<Elem, LowerError> {
    Ok(match dtype {
        DType::F32 => Elem::F32,
        DType::F16 => Elem::F16,
        DType::BF16 => Elem::BF16,
        DType::F64 => Elem::F64,
        DType::I8 => Elem::I8,
        DType::U8 => Elem::U8,
        DType::I32 => Elem::I32,
        DType::I64 => Elem::I64,
        DType::Bool => Elem::Bool,
        DType::I4 | DType::U4 => return Err(LowerError::unsupported("arrays of 4-bit integers")),
    })
}

/// 0 or false.
pub fn zero(elem: Elem) -> Number {
    if elem.is_float() {
        Number::Float(0.0)
    } else {
        Number::Int(0)
    }
}

/// Least and greatest value of an integer type.
pub fn int_range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I4 => (-8, 7),
        DType::U4 => (0, 15),
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::Bool => (0, 1),
        _ => (i64::MIN, i64::MAX),
    }
}

impl Emit {
    /// Bring an i32 back into the range of a narrower type, as arithmetic of that type wraps.
    pub fn wrap(&mut self, dtype: DType, x: Reg) -> Reg {
        let ty = self.ty(x);
        let shift = match dtype {
            DType::I8 => 24,
            DType::I4 => 28,
            DType::U8 | DType::U4 => {
                let mask = self.constant(ty, Number::Int(if dtype == DType::U8 { 255 } else { 15 }));
                return self.bin(BinOp::And, x, mask);
            }
            _ => return x,
        };
        let amount = self.constant(ty, Number::Int(shift));
        let up = self.bin(BinOp::Shl, x, amount);
        self.bin(BinOp::Shr, up, amount)
    }

    /// Conversion between dtypes of values in registers.
    pub fn cast(&mut self, from: DType, to: DType, x: Reg) -> Reg {
        if from == to {
            return x;
        }
        let (elem, ty) = (reg_elem(to), self.ty(x));
        if to == DType::Bool {
            let zero = self.constant(ty, zero(ty.elem));
            return self.cmp(Cmp::Ne, x, zero);
        }
        if from.is_float() && to.is_int() {
            return self.float_to_int(to, x);
        }
        match to {
            DType::F16 | DType::BF16 => {
                let narrow = if to == DType::F16 { Elem::F16 } else { Elem::BF16 };
                let exact = from == DType::Bool || from.bits() <= 8;
                let wide = if ty.elem == Elem::F64 { x } else { self.convert(Elem::F32, x) };
                if exact && to == DType::F16 {
                    return wide;
                }
                let rounded = self.convert(narrow, wide);
                self.convert(Elem::F32, rounded)
            }
            _ if to.is_int() => {
                let ((lo, hi), (least, most)) = (int_range(to), int_range(from));
                let mut x = x;
                if least < lo {
                    let bound = self.constant(ty, Number::Int(lo));
                    x = self.bin(BinOp::Max, x, bound);
                }
                if most > hi {
                    let bound = self.constant(ty, Number::Int(hi));
                    x = self.bin(BinOp::Min, x, bound);
                }
                self.convert(elem, x)
            }
            _ => self.convert(elem, x),
        }
    }

    /// Toward zero, saturating, NaN to 0.
    fn float_to_int(&mut self, to: DType, x: Reg) -> Reg {
        let ty = self.ty(x);
        let (lo, hi) = int_range(to);
        let is_nan = self.cmp(Cmp::Uno, x, x);
        let zero = self.float(ty, 0.0);
        let x = self.select(is_nan, zero, x);
        let low = self.float(ty, lo as f64);
        let x = self.bin(BinOp::Max, x, low);
        // The greatest float that is not above the type's greatest value; what lies beyond is patched.
        let exact = to.bits() <= 8 || to == DType::I32 && ty.elem == Elem::F64;
        let top = match (exact, to.bits(), ty.elem) {
            (true, ..) => hi as f64,
            (false, 32, _) => 2_147_483_520.0,
            (false, _, Elem::F32) => 9_223_371_487_098_961_920.0,
            (false, ..) => 9_223_372_036_854_774_784.0,
        };
        let top_reg = self.float(ty, top);
        let inside = self.bin(BinOp::Min, x, top_reg);
        let elem = reg_elem(to);
        let int = self.convert(elem, inside);
        if exact {
            return int;
        }
        let beyond = self.cmp(Cmp::Gt, x, top_reg);
        let most = self.constant(Ty { elem, ..ty }, Number::Int(hi));
        self.select(beyond, most, int)
    }

    /// A value as loaded, in the form of registers.
    pub fn widen(&mut self, dtype: DType, x: Reg) -> Reg {
        self.convert(reg_elem(dtype), x)
    }

    /// A value in the form of memory.
    pub fn narrow(&mut self, dtype: DType, x: Reg) -> Result<Reg, LowerError> {
        let elem = mem_elem(dtype)?;
        Ok(self.convert(elem, x))
    }

    /// Maximum or minimum that is NaN if either operand is.
    pub fn extreme(&mut self, greatest: bool, a: Reg, b: Reg) -> Reg {
        let ty = self.ty(a);
        if ty.elem == Elem::Bool {
            return self.bin(if greatest { BinOp::Or } else { BinOp::And }, a, b);
        }
        let picked = self.bin(if greatest { BinOp::Max } else { BinOp::Min }, a, b);
        if !ty.elem.is_float() {
            return picked;
        }
        // Where they are unordered the instruction gives `b`: right unless it is `a` that is NaN.
        let is_nan = self.cmp(Cmp::Uno, a, a);
        self.select(is_nan, a, picked)
    }

    /// Complement of a mask.
    pub fn not(&mut self, a: Reg) -> Reg {
        self.un(UnOp::Not, a)
    }
}
