//! The one interface that every backend stands behind: loop IR in, callable code out.

use crate::Kernel;

/// What a backend generates code for. Schedules are chosen from it, so the same target gives the same loop IR everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Width of a vector register in bytes, a power of two.
    pub vector_bytes: u32,
    /// Number of vector registers.
    pub vector_registers: u32,
    /// Whether fused multiply-add is one instruction; without it lowering multiplies and adds.
    pub fma: bool,
}

impl Target {
    /// 128-bit vectors with FMA: what snapshots are made for, on every machine.
    pub const BASELINE: Target = Target { vector_bytes: 16, vector_registers: 16, fma: true };
}

/// What one call passes: the kernel's sizes in order, pointers to its inputs and outputs in order, and scratch memory.
///
/// The pointers of inputs are cast to `*mut`; kernels do not write through them.
#[derive(Clone, Copy, Debug)]
pub struct CallArgs<'a> {
    /// Value of each [`Kernel::sizes`].
    pub sizes: &'a [i64],
    /// Pointer for each input and output buffer.
    pub buffers: &'a [*mut u8],
    /// 64-byte aligned, as large as [`crate::scratch_bytes`] says; may dangle if that is 0.
    pub scratch: *mut u8,
    /// First iteration of the split loop.
    pub begin: i64,
    /// One past the last.
    pub end: i64,
}

/// Native code of one kernel.
pub trait Code: Send + Sync {
    /// Run. Returns 0, or the status of the [`crate::Stmt::Fail`] that stopped it.
    ///
    /// # Safety
    /// Sizes, pointers, alignment and lengths are as the kernel's buffers declare; outputs do not overlap anything else; the
    /// iterations `begin..end` of different threads are disjoint. And the kernel itself stays inside its buffers, which
    /// [`crate::verify`] does not show: it bounds the stack frame and checks types and assignments, not offsets. That rests on
    /// [`crate::lower::lower`], which makes each offset from positions below the sizes of the buffer's axes, masks what lies beyond the
    /// last vector, and refuses schedules out of range; and it is tested, by the interpreter of loop IR, which checks every access of
    /// every kernel of the tests, and by native kernels between guard pages.
    unsafe fn call(&self, args: &CallArgs<'_>) -> i32;

    /// Whether calls with disjoint iterations may run at the same time.
    fn is_concurrent(&self) -> bool {
        true
    }

    /// Bytes of machine code.
    fn size(&self) -> usize;
}

/// A text that a backend can show of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// The backend's own IR (CLIF, LLVM IR).
    Ir,
    /// Assembly.
    Asm,
}

/// A code generator.
pub trait Backend: Send + Sync {
    /// `cranelift`, `llvm`.
    fn name(&self) -> &'static str;

    /// What it generates code for.
    fn target(&self) -> Target;

    /// Generate code that can be called in this process.
    ///
    /// # Errors
    /// The kernel does not verify or uses what the backend lacks.
    fn compile(&self, kernel: &Kernel) -> Result<Box<dyn Code>, BackendError>;

    /// Show its work.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    fn listing(&self, kernel: &Kernel, what: Listing) -> Result<String, BackendError>;
}

/// Why no code came out.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BackendError {
    /// The CPU or the build lacks something.
    #[error("the {backend} backend cannot run here: {why}")]
    Unavailable {
        /// Which one.
        backend: &'static str,
        /// What is missing.
        why: String,
    },
    /// A bug of ours.
    #[error("internal error in the {backend} backend, this is a bug in onefold: {why}")]
    Internal {
        /// Which one.
        backend: &'static str,
        /// What went wrong.
        why: String,
    },
}
