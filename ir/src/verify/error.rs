//! What can be wrong with a module.

use crate::types::TypeError;
use crate::{DType, NodeId, MAX_AXES};
use std::fmt;
use thiserror::Error;

/// One thing that is wrong with a module.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyError {
    /// The function, if it is in one.
    pub func: Option<String>,
    /// The node, if it is at one, and its name in the text.
    pub node: Option<(NodeId, Option<String>)>,
    /// What is wrong.
    pub kind: VerifyErrorKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum VerifyErrorKind {
    /// The primitive cannot be applied to these operands.
    #[error("{0}")]
    Type(#[from] TypeError),
    /// The node's type is not what its primitive gives.
    #[error("`{op}` gives {expected}, but the node says {got}")]
    WrongType {
        /// Name of the primitive.
        op: &'static str,
        /// What it gives.
        expected: String,
        /// What the node says.
        got: String,
    },
    /// An operand that stands later, or nowhere.
    #[error("operand {} is not defined before its use", .0 .0)]
    UseBeforeDefinition(NodeId),
    /// A parameter or constant that does not exist.
    #[error("there is no {what} {index}")]
    OutOfRange {
        /// `parameter` or `constant`.
        what: &'static str,
        /// The index.
        index: usize,
    },
    /// A parameter without exactly one node.
    #[error("parameter `%{0}` must have exactly one node")]
    ParamNodes(String),
    /// One half of a `topk` or `sort` without the other next to it.
    #[error("the values and the indices of `{0}` must stand next to each other")]
    Unpaired(&'static str),
    /// A name that cannot be spelled.
    #[error("`{0}` is not a name")]
    BadName(String),
    /// A name given twice.
    #[error("the name `{0}` is given twice")]
    DuplicateName(String),
    /// Two axes that agree in name and extent.
    #[error("axis `{0}` is declared twice with one extent")]
    DuplicateAxis(String),
    /// More than 64 axes.
    #[error("a function has at most {MAX_AXES} axes, not {0}")]
    TooManyAxes(usize),
    /// An axis whose size nothing gives.
    #[error("axis `{0}` is symbolic, but no parameter has it")]
    Unbound(String),
    /// A derived extent that refers to what is not an earlier fixed or symbolic axis.
    #[error("the extent of axis `{0}` must refer to earlier axes that are fixed or symbolic")]
    BadExtent(String),
    /// A function without results.
    #[error("the function has no results")]
    NoResults,
    /// A result that leaves out an axis of its value.
    #[error("result `{result}` leaves out axis `{axis}` of its value")]
    ResultAxes {
        /// The result.
        result: String,
        /// The axis.
        axis: String,
    },
    /// A result with another name than its value gives it.
    #[error("result `{got}` must be called `{expected}`")]
    ResultName {
        /// What it is called.
        got: String,
        /// What it must be called.
        expected: String,
    },
    /// A constant with more or fewer elements than its shape.
    #[error("constant `%{name}` has {got} elements, but its shape has {expected}")]
    ConstantLength {
        /// The constant.
        name: String,
        /// Elements it has.
        got: usize,
        /// Elements of its shape.
        expected: String,
    },
    /// A constant with an element that its dtype cannot have.
    #[error("constant `%{name}`: {value} is not a value of {dtype}")]
    ConstantValue {
        /// The constant.
        name: String,
        /// The element.
        value: f64,
        /// The dtype.
        dtype: DType,
    },
}

/// Everything that is wrong with a module.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct VerifyErrors(pub Vec<VerifyError>);

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(VerifyError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for VerifyError {}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(func) = &self.func {
            write!(f, "@{func}: ")?;
        }
        match &self.node {
            Some((_, Some(name))) => write!(f, "%{name}: ")?,
            Some((id, None)) => write!(f, "node {}: ", id.0)?,
            None => {}
        }
        write!(f, "{}", self.kind)
    }
}
