//! Loop IR: explicit loops, vectors and tiles, between fold programs and native code.

mod backend;
pub mod interp;
mod ir;
pub mod lower;
pub mod math;
mod names;
mod parse;
mod print;
mod verify;

pub use parse::{parse, ParseError};
pub use print::print;
pub use verify::{verify, VerifyError};

pub use backend::{Backend, BackendError, CallArgs, Code, Listing, Target};
pub use ir::{
    BinOp, BufId, Buffer, BufferKind, Cmp, Count, Elem, Expr, Fold, Kernel, Number, Reg, RegDecl, SizeParam, Split,
    Stmt, Ty, UnOp,
};

/// Statuses that a kernel may return besides 0.
pub mod status {
    /// An index of a gather lies outside its axis.
    pub const GATHER_OUT_OF_RANGE: i32 = 1;
    /// A quantization scale is not finite and positive.
    pub const BAD_SCALE: i32 = 2;
}

/// The most bytes that the stack buffers of a kernel may have together: threads of hosts have 512 KiB on some systems.
pub const MAX_FRAME: u64 = 384 << 10;

/// Bytes of a kernel's buffers on the stack, each rounded up to its alignment, or `None` if one has no fixed length or that overflows.
pub fn frame_bytes(kernel: &Kernel) -> Option<u64> {
    let mut total = 0u64;
    for buffer in kernel.buffers.iter().filter(|b| b.kind == BufferKind::Stack) {
        let bytes = buffer.len.eval(&[])?.checked_mul(u64::from(buffer.elem.bytes()))?;
        total = total.checked_add(bytes.checked_next_multiple_of(64)?)?;
    }
    Some(total)
}

/// Bytes of scratch that one call needs, or `None` if that overflows.
pub fn scratch_bytes(kernel: &Kernel, sizes: &[i64]) -> Option<usize> {
    let mut total = 0usize;
    for buffer in kernel.buffers.iter().filter(|b| b.kind == BufferKind::Scratch) {
        let bytes = buffer.len.eval(sizes)?.checked_mul(u64::from(buffer.elem.bytes()))?;
        total = total.checked_add(usize::try_from(bytes).ok()?.checked_next_multiple_of(64)?)?;
    }
    Some(total)
}

impl Count {
    /// The number, given the kernel's sizes; `None` on overflow, a negative size or difference, or an impossible quotient.
    pub fn eval(&self, sizes: &[i64]) -> Option<u64> {
        match self {
            Count::Const(n) => Some(*n),
            Count::Size(i) => u64::try_from(*sizes.get(*i)?).ok(),
            Count::Mul(a, b) => a.eval(sizes)?.checked_mul(b.eval(sizes)?),
            Count::Add(a, b) => a.eval(sizes)?.checked_add(b.eval(sizes)?),
            Count::Sub(a, b) => a.eval(sizes)?.checked_sub(b.eval(sizes)?),
            Count::DivCeil(a, b) => {
                let (a, b) = (a.eval(sizes)?, b.eval(sizes)?);
                (b > 0).then(|| a.div_ceil(b))
            }
            Count::DivExact(a, b) => {
                let (a, b) = (a.eval(sizes)?, b.eval(sizes)?);
                (b > 0 && a % b == 0).then(|| a / b)
            }
        }
    }
}
