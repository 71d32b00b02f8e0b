//! Operations on one lane, as raw bits. Integers are kept as their low bits, without sign extension beyond their width.

use crate::{BinOp, Cmp, Elem, Fold, UnOp};
use half::{bf16, f16};

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn of_f32(v: f32) -> u64 {
    u64::from(v.to_bits())
}

/// A signed value (of `u8` and `bool` the unsigned one).
pub fn int(elem: Elem, bits: u64) -> i64 {
    match elem {
        Elem::I8 => i64::from(bits as u8 as i8),
        Elem::U8 | Elem::Bool => i64::from(bits as u8),
        Elem::I32 => i64::from(bits as u32 as i32),
        _ => bits as i64,
    }
}

/// An integer's bits in some element; of floats the nearest number.
pub fn from_i64(elem: Elem, v: i64) -> u64 {
    match elem {
        Elem::I8 | Elem::U8 => u64::from(v as u8),
        Elem::I32 => u64::from(v as u32),
        Elem::I64 => v as u64,
        Elem::Bool => u64::from(v & 1 == 1),
        Elem::F32 => of_f32(v as f32),
        Elem::F64 => (v as f64).to_bits(),
        Elem::F16 | Elem::BF16 => from_f64(elem, v as f64),
    }
}

/// A number's bits in some element.
pub fn from_f64(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F32 => of_f32(v as f32),
        Elem::F64 => v.to_bits(),
        Elem::F16 => u64::from(f16::from_f32(v as f32).to_bits()),
        Elem::BF16 => u64::from(bf16::from_f32(v as f32).to_bits()),
        _ => from_i64(elem, v as i64),
    }
}

/// One operand.
pub fn unary(op: UnOp, elem: Elem, x: u64) -> u64 {
    match elem {
        Elem::F32 => {
            let v = f32_of(x);
            of_f32(match op {
                UnOp::Neg => -v,
                UnOp::Abs => v.abs(),
                UnOp::Sqrt => v.sqrt(),
                UnOp::Floor => v.floor(),
                UnOp::Nearest => v.round_ties_even(),
                UnOp::Not => v,
            })
        }
        Elem::F64 => {
            let v = f64::from_bits(x);
            match op {
                UnOp::Neg => -v,
                UnOp::Abs => v.abs(),
                UnOp::Sqrt => v.sqrt(),
                UnOp::Floor => v.floor(),
                UnOp::Nearest => v.round_ties_even(),
                UnOp::Not => v,
            }
            .to_bits()
        }
        Elem::Bool => x ^ 1,
        _ => {
            let v = int(elem, x);
            from_i64(
                elem,
                match op {
                    UnOp::Neg => v.wrapping_neg(),
                    UnOp::Abs => v.wrapping_abs(),
                    UnOp::Not => !v,
                    _ => v,
                },
            )
        }
    }
}

/// Two operands.
pub fn binary(op: BinOp, elem: Elem, x: u64, y: u64) -> u64 {
    match elem {
        Elem::F32 => {
            let (a, b) = (f32_of(x), f32_of(y));
            of_f32(match op {
                BinOp::Add => a + b,
                BinOp::Sub => a - b,
                BinOp::Mul => a * b,
                BinOp::Div => a / b,
                BinOp::Min if a < b => a,
                BinOp::Max if a > b => a,
                _ => b,
            })
        }
        Elem::F64 => {
            let (a, b) = (f64::from_bits(x), f64::from_bits(y));
            match op {
                BinOp::Add => a + b,
                BinOp::Sub => a - b,
                BinOp::Mul => a * b,
                BinOp::Div => a / b,
                BinOp::Min if a < b => a,
                BinOp::Max if a > b => a,
                _ => b,
            }
            .to_bits()
        }
        _ => from_i64(elem, integer(op, elem, int(elem, x), int(elem, y))),
    }
}

fn integer(op: BinOp, elem: Elem, a: i64, b: i64) -> i64 {
    let width = elem.bytes() * 8;
    // Amounts are below the width; anything else is reduced as hardware reduces it.
    let amount = (b as u32) & (width - 1);
    match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div => a.checked_div(b).unwrap_or(if b == 0 { 0 } else { a.wrapping_neg() }),
        BinOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a.wrapping_shl(amount),
        BinOp::Shr => a.wrapping_shr(amount),
        BinOp::Ushr => {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            ((a as u64 & mask) >> amount) as i64
        }
    }
}

/// `x * y + z`, rounded once.
pub fn fma(elem: Elem, x: u64, y: u64, z: u64) -> u64 {
    if elem == Elem::F64 {
        f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(z)).to_bits()
    } else {
        of_f32(f32_of(x).mul_add(f32_of(y), f32_of(z)))
    }
}

/// A comparison.
pub fn compare(op: Cmp, elem: Elem, x: u64, y: u64) -> bool {
    let order = match elem {
        Elem::F32 => f32_of(x).partial_cmp(&f32_of(y)),
        Elem::F64 => f64::from_bits(x).partial_cmp(&f64::from_bits(y)),
        _ => Some(int(elem, x).cmp(&int(elem, y))),
    };
    match op {
        Cmp::Lt => order.is_some_and(|o| o.is_lt()),
        Cmp::Le => order.is_some_and(|o| o.is_le()),
        Cmp::Gt => order.is_some_and(|o| o.is_gt()),
        Cmp::Ge => order.is_some_and(|o| o.is_ge()),
        Cmp::Eq => order.is_some_and(|o| o.is_eq()),
        Cmp::Ne => !order.is_some_and(|o| o.is_eq()),
        Cmp::Uno => order.is_none(),
    }
}

/// Conversion between elements.
pub fn convert(from: Elem, to: Elem, x: u64) -> u64 {
    let narrow = match from {
        Elem::F32 => Some(f32_of(x)),
        Elem::F16 => Some(f16::from_bits(x as u16).to_f32()),
        Elem::BF16 => Some(bf16::from_bits(x as u16).to_f32()),
        _ => None,
    };
    match (narrow, from, to) {
        _ if from == to => x,
        (Some(v), _, Elem::F32) => of_f32(v),
        (Some(v), _, Elem::F64) => f64::from(v).to_bits(),
        (Some(v), _, Elem::F16) => u64::from(f16::from_f32(v).to_bits()),
        (Some(v), _, Elem::BF16) => u64::from(bf16::from_f32(v).to_bits()),
        (Some(v), _, Elem::I64) => v as i64 as u64,
        (Some(v), _, _) => from_i64(to, i64::from(v as i32)),
        (None, Elem::F64, Elem::F16 | Elem::BF16) => convert(Elem::F32, to, of_f32(f64::from_bits(x) as f32)),
        (None, Elem::F64, Elem::F32) => of_f32(f64::from_bits(x) as f32),
        (None, Elem::F64, Elem::I64) => f64::from_bits(x) as i64 as u64,
        (None, Elem::F64, _) => from_i64(to, i64::from(f64::from_bits(x) as i32)),
        (None, _, Elem::F16 | Elem::BF16) => convert(Elem::F32, to, of_f32(int(from, x) as f32)),
        (None, _, _) => from_i64(to, int(from, x)),
    }
}

/// All lanes into one: lane i with lane i + n/2, and so on.
pub fn reduce(fold: Fold, elem: Elem, lanes: &[u64]) -> u64 {
    match fold {
        Fold::Any => return u64::from(lanes.iter().any(|l| l & 1 == 1)),
        Fold::All => return u64::from(lanes.iter().all(|l| l & 1 == 1)),
        Fold::Count => return lanes.iter().filter(|l| **l & 1 == 1).count() as u64,
        Fold::First => return lanes.iter().position(|l| l & 1 == 1).unwrap_or(lanes.len()) as u64,
        _ => {}
    }
    let op = match fold {
        Fold::Add => BinOp::Add,
        Fold::Mul => BinOp::Mul,
        Fold::Min => BinOp::Min,
        _ => BinOp::Max,
    };
    let mut lanes = lanes.to_vec();
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        for (low, high) in lanes.iter_mut().zip(upper) {
            *low = binary(op, elem, *low, high);
        }
    }
    lanes[0]
}
