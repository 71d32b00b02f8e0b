//! Tensor IR: the language in which attention graphs are written, with named axes.
//!
//! An axis has a name and an extent; a value has a dtype and a set of axes. There is no broadcasting: an operand that lacks
//! an axis is constant along it. The order of axes matters only where arrays meet memory, at the function's boundary.

mod axis;
pub mod bind;
pub mod builder;
mod dtype;
pub mod filetest;
mod func;
pub mod interp;
mod op;
pub mod print;
pub mod size;
pub mod text;
pub mod types;
pub mod verify;

pub use axis::{AxisDecl, AxisId, AxisSet, Extent, SizeExpr, MAX_AXES};
pub use bind::{bind_sizes, eval_size, SizeError, SizeValueError};
pub use builder::{BuildError, FuncBuilder};
pub use dtype::DType;
pub use func::{Constant, Func, Module, Node, NodeId, Param, ResultDecl, Span, Type};
pub use op::{BinaryOp, CmpOp, Literal, Op, Part, ReduceOp, UnaryOp};
pub use print::{print, print_func};
pub use text::{parse, Diagnostic, Diagnostics, MacroArg};
pub use types::TypeError;
pub use verify::{verify, VerifyError, VerifyErrorKind, VerifyErrors};
