//! Why a primitive cannot be applied.

use crate::{AxisId, DType};
use thiserror::Error;

/// Why a primitive cannot be applied to its operands.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TypeError {
    /// Too many or too few operands.
    #[error("`{op}` takes {expected} operands, not {got}")]
    Arity {
        /// Name of the primitive.
        op: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// An operand of the wrong kind of dtype.
    #[error("`{op}` needs {expected}, but its operand is {got}")]
    Dtype {
        /// Name of the primitive.
        op: &'static str,
        /// What it needs.
        expected: String,
        /// What it was given.
        got: DType,
    },
    /// Operands of two dtypes.
    #[error("operands of `{op}` must have one dtype, but they are {left} and {right}")]
    Mismatch {
        /// Name of the primitive.
        op: &'static str,
        /// Of the first operand.
        left: DType,
        /// Of the second.
        right: DType,
    },
    /// Two axes of one name that differ in extent, in one value.
    #[error("axis `{axis}` has two extents here: {left} and {right}")]
    TwoExtents {
        /// Name of both.
        axis: String,
        /// Extent of one.
        left: String,
        /// Extent of the other.
        right: String,
    },
    /// An axis that the operand does not have.
    #[error("the operand of `{op}` has no axis `{axis}`; it has {has}")]
    NoSuchAxis {
        /// Name of the primitive.
        op: &'static str,
        /// The axis asked for.
        axis: String,
        /// The axes there are.
        has: String,
    },
    /// A new axis whose name the operand has already.
    #[error("the operand of `{op}` has an axis `{axis}` already")]
    AxisTaken {
        /// Name of the primitive.
        op: &'static str,
        /// The axis.
        axis: String,
    },
    /// An axis id that is not declared.
    #[error("there is no axis {0}")]
    UnknownAxis(AxisId),
    /// An axis named twice where it may stand once.
    #[error("axis `{axis}` stands twice in `{op}`")]
    Twice {
        /// Name of the primitive.
        op: &'static str,
        /// The axis.
        axis: String,
    },
    /// A primitive without any of the axes it works along.
    #[error("`{0}` needs at least one axis")]
    NoAxes(&'static str),
    /// A literal that its dtype cannot hold.
    #[error("{literal} is not a value of {dtype}")]
    Literal {
        /// As text.
        literal: String,
        /// What was asked for.
        dtype: DType,
    },
    /// More elements asked for than there are.
    #[error("topk keeps {k} elements (axis `{to}`), but axis `{axis}` has {n}")]
    TopK {
        /// Elements kept.
        k: u64,
        /// The new axis.
        to: String,
        /// The axis searched.
        axis: String,
        /// Its size.
        n: u64,
    },
    /// Two axes that must be of one length.
    #[error("`{op}`: axis `{to}` has extent {got}, but {expected} is needed")]
    Extent {
        /// Name of the primitive.
        op: &'static str,
        /// The new axis.
        to: String,
        /// Its extent.
        got: String,
        /// What the operands yield.
        expected: String,
    },
    /// An axis that cannot be cut into the parts asked for.
    #[error("axis `{axis}` of size {size} does not divide into {parts}")]
    NotDivisible {
        /// The axis.
        axis: String,
        /// Its size.
        size: String,
        /// The parts: names and sizes.
        parts: String,
    },
    /// A slice beyond the end of its axis.
    #[error("the slice reaches position {last} of axis `{axis}`, which has size {size}")]
    SliceEnd {
        /// The axis.
        axis: String,
        /// Last position.
        last: u64,
        /// Size of the axis.
        size: u64,
    },
    /// A start below 0 or a step below 1.
    #[error("a slice starts at 0 or later and steps by 1 or more, not {start} and {step}")]
    SliceStep {
        /// First position.
        start: i64,
        /// Distance.
        step: i64,
    },
    /// A scalar was needed.
    #[error("the {what} must be a scalar, but it varies along {axes}")]
    NotScalar {
        /// Which operand.
        what: &'static str,
        /// Its axes.
        axes: String,
    },
    /// A scale known to be unusable.
    #[error("a quantization scale must be finite and positive, not {0}")]
    Scale(f64),
    /// A size that is negative or too large to be one.
    #[error("the size of axis `{axis}` is out of range: {size}")]
    Size {
        /// The axis.
        axis: String,
        /// Its size.
        size: String,
    },
    /// Elements or bytes of a value overflow.
    #[error("a value over {axes} has more bytes than memory can hold")]
    TooLarge {
        /// Its axes.
        axes: String,
    },
}
