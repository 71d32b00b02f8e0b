//! What can go wrong between a text and a kernel, and between a kernel and its results.

use crate::array::ArrayError;
use onefold_ir::{DType, Diagnostics, SizeError};
use onefold_loops::lower::LowerError;
use onefold_loops::BackendError;
use onefold_passes::PassError;

/// Why there is no kernel.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Error {
    /// The text is at fault.
    #[error(transparent)]
    Text(#[from] Diagnostics),
    /// There is no function of that name.
    #[error("no function @{name}; there is {}", list(available))]
    NoFunction {
        /// The name asked for.
        name: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// Which function is meant is not said.
    #[error("several functions: say which one of {}", list(available))]
    WhichFunction {
        /// The names there are.
        available: Vec<String>,
    },
    /// The module has no function.
    #[error("there is no function to compile")]
    Empty,
    /// No fold program.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// No loops.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// No machine code.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A constant of the module could not be laid out.
    #[error("constant {name}: {error}")]
    Constant {
        /// Its name.
        name: String,
        /// Why.
        error: ArrayError,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|n| format!("@{n}")).collect::<Vec<_>>().join(", ")
}

/// Why a call gave no results. Outputs are then undefined.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum CallError {
    /// Too few or too many arrays.
    #[error("@{func} takes {expected} {what}, but {found} were given")]
    Count {
        /// The function.
        func: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// Elements of another type.
    #[error("{name} is {expected}, but the array given is {found}")]
    DType {
        /// The input or output.
        name: String,
        /// Its dtype.
        expected: DType,
        /// The array's.
        found: DType,
    },
    /// Inputs whose sizes do not fit the function, or not each other; `topk` of more than there is.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// An output of another shape.
    #[error("output {name} has shape {expected:?} for these inputs, but the array given has {found:?}")]
    OutputShape {
        /// The output.
        name: String,
        /// Its shape.
        expected: Vec<usize>,
        /// The array's.
        found: Vec<usize>,
    },
    /// `argmax` of nothing.
    #[error("argmax along axis {axis}, which is empty")]
    EmptyArgMax {
        /// The axis.
        axis: String,
    },
    /// Results would overwrite what they are computed from, or each other.
    #[error("output {output} overlaps {other}")]
    Overlap {
        /// The output.
        output: String,
        /// The other array.
        other: String,
    },
    /// More elements or memory than there can be.
    #[error("{name}: {error}")]
    Array {
        /// The array.
        name: String,
        /// Why.
        error: ArrayError,
    },
    /// An index of a gather.
    #[error("an index of gather lies outside its axis")]
    OutOfRange,
    /// A scale of a quantization.
    #[error("a quantization scale is not finite and positive")]
    BadScale,
    /// The reference interpreter gave up.
    #[error("{0}")]
    Interpreter(String),
    /// A bug of ours.
    #[error("internal error, this is a bug in onefold: {0}")]
    Internal(String),
}
