//! Modules, functions and nodes: the tensor IR itself.

use crate::{AxisDecl, AxisId, AxisSet, DType, Op};

/// A compilation unit: functions and the constant tensors that they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// In the order of the text.
    pub funcs: Vec<Func>,
    /// Constant tensors, referred to by [`Op::Constant`].
    pub constants: Vec<Constant>,
}

/// A constant tensor of fixed shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name in the text, without `%`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Axis names and sizes, outermost first.
    pub axes: Vec<(String, u64)>,
    /// Row-major elements; exact for every dtype but `i64` beyond 2^53.
    pub data: Vec<f64>,
}

/// A function: nodes in order of definition, each used only after it is defined.
#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    /// Name without `@`.
    pub name: String,
    /// Every axis that occurs.
    pub axes: Vec<AxisDecl>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// The body.
    pub nodes: Vec<Node>,
    /// Results, in order.
    pub results: Vec<ResultDecl>,
}

/// A parameter: its array in memory is row-major in the order of `axes`, unless the caller's strides say otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name without `%`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Axes, outermost first.
    pub axes: Vec<AxisId>,
}

/// A result of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultDecl {
    /// The name of the value returned if it has one, else `outN`. Unique among the results.
    pub name: String,
    /// The node returned.
    pub node: NodeId,
    /// Axes in the order of the array in memory, outermost first. As a set they contain the node's axes; along others the result repeats.
    pub axes: Vec<AxisId>,
}

/// A node of one function: an index into [`Func::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A primitive applied to earlier nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The primitive.
    pub op: Op,
    /// Its operands.
    pub args: Vec<NodeId>,
    /// Dtype and axes of the result.
    pub ty: Type,
    /// Name in the text, without `%`, if it has one. Does not affect meaning.
    pub name: Option<String>,
    /// Where it stands in the source (byte range), for diagnostics.
    pub span: Span,
}

/// Dtype and axes of a value. The order of axes has no meaning inside a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Axes along which the value varies.
    pub axes: AxisSet,
}

/// A byte range of the source text; empty for nodes that were built by the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Func {
    /// The node of that id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The declaration of an axis.
    pub fn axis(&self, id: AxisId) -> &AxisDecl {
        &self.axes[id.0 as usize]
    }
}

impl Module {
    /// The function of that name.
    pub fn func(&self, name: &str) -> Option<&Func> {
        self.funcs.iter().find(|f| f.name == name)
    }
}
