//! What compiled kernels need when they run: aligned memory and threads.
//!
//! Both are small on purpose. Kernels are self-contained; nothing here is linked into ahead-of-time code.

mod buffer;
mod threads;

pub use buffer::{Buffer, OutOfMemory, Scratch, ALIGNMENT};
pub use threads::parallel_for;
