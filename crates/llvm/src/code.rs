//! Executable memory, by LLVM's ORC: objects in, addresses out. With the wrapper's gaps in `emit.rs` the only unsafe code of this crate.

use crate::internal;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetMainJITDylib,
    LLVMOrcLLJITLookup, LLVMOrcLLJITRef,
};
use inkwell::memory_buffer::MemoryBuffer;
use onefold_loops::{BackendError, CallArgs, Code};
use std::ffi::{CStr, CString};
use std::mem::ManuallyDrop;
use std::ptr;

type Entry = unsafe extern "C" fn(*const i64, *const *mut u8, *mut u8, i64, i64) -> i32;

/// Owns what ORC has linked.
struct Jit(LLVMOrcLLJITRef);

// SAFETY: after linking, the engine only owns memory; it is used once more, to free it. ORC's own state is behind locks anyway.
unsafe impl Send for Jit {}
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for Jit {}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: created in `JitCode::link`, disposed of here only. No code of it is running: calls borrow the owner.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.0) };
        // There is nobody to tell, and nothing to be done.
        drop(check(error));
    }
}

/// Machine code of one kernel. Memory is writable or executable, never both; it is freed on drop.
pub struct JitCode {
    entry: Entry,
    size: usize,
    /// Owns the memory that `entry` points to.
    _jit: Jit,
}

impl JitCode {
    /// Link an object whose function `symbol` has the kernel signature. Its code takes `size` bytes.
    pub fn link(object: MemoryBuffer<'static>, symbol: &str, size: usize) -> Result<JitCode, BackendError> {
        let symbol = CString::new(symbol).map_err(internal)?;
        let mut jit = ptr::null_mut();
        // SAFETY: a null builder asks for the defaults; `jit` receives the engine unless there is an error.
        check(unsafe { LLVMOrcCreateLLJIT(&mut jit, ptr::null_mut()) })?;
        let jit = Jit(jit);
        let object = ManuallyDrop::new(object);
        // SAFETY: the engine is alive, its main library belongs to it, and it takes over the buffer, which is not dropped here.
        check(unsafe { LLVMOrcLLJITAddObjectFile(jit.0, LLVMOrcLLJITGetMainJITDylib(jit.0), object.as_mut_ptr()) })?;
        let mut address = 0;
        // SAFETY: the engine is alive and the symbol ends with a zero.
        check(unsafe { LLVMOrcLLJITLookup(jit.0, &mut address, symbol.as_ptr()) })?;
        let address = usize::try_from(address).map_err(internal)? as *const u8;
        if address.is_null() {
            return Err(internal("the entry has no address"));
        }
        // SAFETY: `entry::entry` defines the symbol with exactly this signature, and its code lives as long as the engine, which is
        // kept beside it.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        Ok(JitCode { entry, size, _jit: jit })
    }
}

/// An error of ORC's, with its message.
fn check(error: LLVMErrorRef) -> Result<(), BackendError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: asking for the message consumes the error; the message is a string of LLVM's until it is disposed of.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(internal(text))
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
