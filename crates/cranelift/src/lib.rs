//! Cranelift backend: loop IR to native code in milliseconds, in pure Rust.
//!
//! It lowers loop IR and nothing higher: one register becomes one Cranelift variable, one operation one or a few
//! instructions. Vectors are 128 bits wide. Optimisation is left off on purpose: loop IR arrives hoisted and unrolled, and moving constants out
//! of loops again only makes them spill.

mod code;
mod convert;
mod expr;
mod isa;
mod lanes;
mod memory;
mod order;
mod translate;
mod types;

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{ir, Context};
use onefold_loops::{verify, Backend, BackendError, Code, Kernel, Listing, Target};

/// The backend.
pub struct Cranelift {
    isa: OwnedTargetIsa,
    target: Target,
}

impl Cranelift {
    /// For this machine, with what its CPU has.
    ///
    /// # Errors
    /// Cranelift does not know the machine.
    pub fn host() -> Result<Cranelift, BackendError> {
        let isa = isa::host()?;
        let target = isa::target(&*isa);
        Ok(Cranelift { isa, target })
    }

    /// For x86-64 with FMA, whatever this machine is: listings are then the same everywhere. Its code is not to be called.
    ///
    /// # Errors
    /// This build of Cranelift lacks x86-64.
    pub fn reference() -> Result<Cranelift, BackendError> {
        let isa = isa::reference()?;
        let target = isa::target(&*isa);
        Ok(Cranelift { isa, target })
    }

    fn function(&self, kernel: &Kernel) -> Result<ir::Function, BackendError> {
        verify(kernel).map_err(internal)?;
        translate::function(&order::interleave(kernel), &*self.isa).map_err(internal)
    }
}

/// A bug of ours, with what is known of it.
fn internal(why: impl ToString) -> BackendError {
    BackendError::Internal { backend: "cranelift", why: why.to_string() }
}

impl Backend for Cranelift {
    fn name(&self) -> &'static str {
        "cranelift"
    }

    fn target(&self) -> Target {
        self.target.clone()
    }

    fn compile(&self, kernel: &Kernel) -> Result<Box<dyn Code>, BackendError> {
        let function = self.function(kernel)?;
        Ok(Box::new(code::JitCode::new(function, self.isa.clone())?))
    }

    fn listing(&self, kernel: &Kernel, what: Listing) -> Result<String, BackendError> {
        let function = self.function(kernel)?;
        if what == Listing::Ir {
            return Ok(function.display().to_string());
        }
        let mut context = Context::for_function(function);
        context.set_disasm(true);
        let compiled =
            context.compile(&*self.isa, &mut Default::default()).map_err(|e| internal(format!("{:?}", e.inner)))?;
        compiled.vcode.clone().ok_or_else(|| internal("no assembly text"))
    }
}
