//! LLVM backend: loop IR to native code for the widest vectors that a CPU has.
//!
//! It lowers loop IR and nothing higher. Loop IR arrives hoisted, unrolled and in vectors, so that few of LLVM's passes have anything
//! left to do: see [`Effort`]. Results are those of the loop interpreter, bit for bit, so there are no fast-math flags, and a
//! multiply-add is fused only where loop IR says so.

mod code;
mod convert;
mod emit;
mod entry;
mod expr;
mod level;
mod machine;
mod memory;
mod translate;
mod types;

pub use level::{Level, UnknownLevel};
pub use machine::Effort;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use onefold_loops::{verify, Backend, BackendError, Code, Kernel, Listing, Target};

/// The backend.
#[derive(Clone, Debug)]
pub struct Llvm {
    level: Level,
    effort: Effort,
    /// Whether listings are for a fixed system instead of this one.
    fixed: bool,
}

impl Llvm {
    /// For this machine, at the highest level that its CPU has.
    ///
    /// # Errors
    /// The machine is neither x86-64 nor AArch64.
    pub fn host() -> Result<Llvm, BackendError> {
        let why = || "there is no CPU level for this architecture".to_owned();
        let level = Level::detect().ok_or_else(|| BackendError::Unavailable { backend: "llvm", why: why() })?;
        Ok(Llvm::with_level(level))
    }

    /// For CPUs of a level. Where this machine has less, code can be shown but not called.
    pub fn with_level(level: Level) -> Llvm {
        Llvm { level, effort: Effort::default(), fixed: false }
    }

    /// For x86-64 with FMA, whatever this machine is: listings are then the same everywhere.
    pub fn reference() -> Llvm {
        Llvm { level: Level::Avx2, effort: Effort::default(), fixed: true }
    }

    /// How much LLVM is to optimise.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Llvm {
        self.effort = effort;
        self
    }

    /// What code is generated for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The name of a kernel's entry in its object.
    pub fn symbol(kernel: &Kernel) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = kernel.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        format!("onefold_{name}")
    }

    /// A relocatable object that defines the kernel's entry, [`Llvm::symbol`]:
    /// `int32_t symbol(const int64_t *sizes, void *const *buffers, void *scratch, int64_t begin, int64_t end)`.
    ///
    /// # Errors
    /// The kernel does not verify or uses what the backend lacks.
    pub fn object(&self, kernel: &Kernel) -> Result<Vec<u8>, BackendError> {
        self.with_module(kernel, false, |module, machine| Ok(machine::object(module, machine)?.as_slice().to_vec()))
    }

    /// Translate a kernel and hand on the module, optimised.
    fn with_module<T>(
        &self,
        kernel: &Kernel,
        named: bool,
        then: impl FnOnce(&Module<'_>, &TargetMachine) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        verify(kernel).map_err(internal)?;
        let machine = machine::machine(self.level, self.fixed)?;
        // Each compilation has a context of its own: contexts are all that threads must not share.
        let context = Context::create();
        let module = context.create_module("");
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        let body = translate::body(kernel, &context, &module, self.level, named).map_err(internal)?;
        entry::entry(kernel, &body, &context, &module, self.level, &Llvm::symbol(kernel)).map_err(internal)?;
        machine::optimize(&module, &machine, self.effort)?;
        then(&module, &machine)
    }
}

/// A bug of ours, with what is known of it.
fn internal(why: impl ToString) -> BackendError {
    BackendError::Internal { backend: "llvm", why: why.to_string() }
}

impl Backend for Llvm {
    fn name(&self) -> &'static str {
        "llvm"
    }

    fn target(&self) -> Target {
        self.level.target()
    }

    fn compile(&self, kernel: &Kernel) -> Result<Box<dyn Code>, BackendError> {
        if !self.level.is_available() {
            let why = format!("this CPU has not what level {} needs", self.level);
            return Err(BackendError::Unavailable { backend: "llvm", why });
        }
        let object = self.with_module(kernel, false, machine::object)?;
        let size = machine::code_bytes(&object);
        Ok(Box::new(code::JitCode::link(object, &Llvm::symbol(kernel), size)?))
    }

    fn listing(&self, kernel: &Kernel, what: Listing) -> Result<String, BackendError> {
        self.with_module(kernel, true, |module, machine| match what {
            Listing::Ir => Ok(machine::ir(module)),
            Listing::Asm => machine::assembly(module, machine),
        })
    }
}
