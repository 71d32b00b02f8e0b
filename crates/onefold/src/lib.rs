//! A compiler for attention graphs: formulas in, derived single-pass kernels out.

mod array;
mod check;
mod compiler;
mod element;
mod error;
pub mod inspect;
mod kernel;
mod memory;
mod reference;
mod signature;
mod view;
mod work;

pub use array::{Array, ArrayError};
pub use compiler::{choose, Backend, Compiler};
pub use element::Element;
pub use error::{CallError, Error};
pub use kernel::Kernel;
pub use onefold_ir::{parse, verify, DType, Diagnostics, Func, Module};
pub use onefold_loops::lower::Schedule;
pub use onefold_passes::saturate::Limits;
pub use onefold_passes::Form;
pub use reference::evaluate;
pub use signature::{Argument, Axis, AxisSize, Signature};
pub use view::{ArrayView, ArrayViewMut};
pub use work::Work;
