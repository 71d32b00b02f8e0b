//! Which CPU code is for, and the code generators for it.

use crate::compiler::Backend;
use crate::error::Error;
use onefold_cranelift::Cranelift;
use onefold_loops::interp::InterpBackend;
use onefold_loops::{Backend as CodeGenerator, BackendError};

/// The CPU that code is for. Cranelift knows the first two; the others are levels of the LLVM backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cpu {
    /// This machine's, with all that it has.
    Native,
    /// x86-64 with FMA: the same code on every machine, to be shown rather than run.
    Baseline,
    /// Every x86-64: vectors of 128 bits, no fused multiply-add.
    Sse2,
    /// x86-64-v3: vectors of 256 bits.
    Avx2,
    /// x86-64-v4: vectors of 512 bits.
    Avx512,
    /// Every AArch64: vectors of 128 bits.
    Neon,
}

impl Cpu {
    /// All of them.
    pub const ALL: [Cpu; 6] = [Cpu::Native, Cpu::Baseline, Cpu::Sse2, Cpu::Avx2, Cpu::Avx512, Cpu::Neon];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Cpu::Native => "native",
            Cpu::Baseline => "baseline",
            Cpu::Sse2 => "sse2",
            Cpu::Avx2 => "avx2",
            Cpu::Avx512 => "avx512",
            Cpu::Neon => "neon",
        }
    }
}

/// The code generator of a backend; `None` for the interpreter of tensor IR, which has no use for one.
///
/// # Errors
/// The build lacks the backend, or the backend knows no such CPU.
pub(crate) fn generator(backend: Backend, cpu: Cpu) -> Result<Option<Box<dyn CodeGenerator>>, Error> {
    Ok(match (backend, cpu) {
        (Backend::Cranelift, Cpu::Native) => Some(Box::new(Cranelift::host()?)),
        (Backend::Cranelift, Cpu::Baseline) => Some(Box::new(Cranelift::reference()?)),
        (Backend::Cranelift, cpu) => {
            let why = format!("{} is a level of the LLVM backend (--backend llvm)", cpu.name());
            return Err(BackendError::Unavailable { backend: "cranelift", why }.into());
        }
        (Backend::Llvm, cpu) => Some(llvm(cpu)?),
        (Backend::Loops, _) => Some(Box::new(InterpBackend)),
        (Backend::Interp, _) => None,
    })
}

#[cfg(feature = "llvm")]
fn llvm(cpu: Cpu) -> Result<Box<dyn CodeGenerator>, Error> {
    use onefold_llvm::{Level, Llvm};
    Ok(Box::new(match cpu {
        Cpu::Native => Llvm::host()?,
        Cpu::Baseline => Llvm::reference(),
        Cpu::Sse2 => Llvm::with_level(Level::Sse2),
        Cpu::Avx2 => Llvm::with_level(Level::Avx2),
        Cpu::Avx512 => Llvm::with_level(Level::Avx512),
        Cpu::Neon => Llvm::with_level(Level::Neon),
    }))
}

/// This build has none.
#[cfg(not(feature = "llvm"))]
fn llvm(_: Cpu) -> Result<Box<dyn CodeGenerator>, Error> {
    let why = "onefold was built without the feature `llvm`".to_owned();
    Err(BackendError::Unavailable { backend: "llvm", why }.into())
}
