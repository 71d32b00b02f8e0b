//! Executable memory: the only place of this crate with unsafe code.

use crate::internal;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::Context;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{default_libcall_names, Linkage, Module};
use onefold_loops::{BackendError, CallArgs, Code};

type Entry = unsafe extern "C" fn(*const i64, *const *mut u8, *mut u8, i64, i64) -> i32;

/// Machine code of one kernel. Memory is writable or executable, never both; it is freed on drop.
pub struct JitCode {
    module: Option<JITModule>,
    entry: Entry,
    size: usize,
}

// SAFETY: after `finalize_definitions` the module is only kept to own the code; nothing of it is used again before `drop`,
// and the code itself is immutable.
unsafe impl Send for JitCode {}
// SAFETY: as above; calling the code through `&self` from several threads touches no state of the module.
unsafe impl Sync for JitCode {}

impl JitCode {
    /// Compile a function of the kernel signature.
    pub fn new(function: Function, isa: OwnedTargetIsa) -> Result<JitCode, BackendError> {
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let id = module.declare_function("kernel", Linkage::Export, &function.signature).map_err(internal)?;
        let mut context = Context::for_function(function);
        module.define_function(id, &mut context).map_err(|e| internal(format!("{e:?}")))?;
        let size = context.compiled_code().map_or(0, |c| c.code_info().total_size as usize);
        module.finalize_definitions().map_err(internal)?;
        let address = module.get_finalized_function(id);
        // SAFETY: the function was declared with exactly this signature (`translate::signature`), and its code lives as long
        // as `module`, which is kept beside it.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        Ok(JitCode { module: Some(module), entry, size })
    }
}

impl Code for JitCode {
    unsafe fn call(&self, args: &CallArgs<'_>) -> i32 {
        // SAFETY: the caller promises sizes, pointers and lengths as the kernel declares them.
        unsafe { (self.entry)(args.sizes.as_ptr(), args.buffers.as_ptr(), args.scratch, args.begin, args.end) }
    }

    fn size(&self) -> usize {
        self.size
    }
}

impl Drop for JitCode {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: `entry` is private to this value and cannot be called any more; calls borrow `self`, so none is running.
            unsafe { module.free_memory() };
        }
    }
}
