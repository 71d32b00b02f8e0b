//! Building functions by calls, with the power of the text format: types are inferred and checked at each call.
//!
//! ```
//! use onefold_ir::{DType, FuncBuilder};
//! let mut f = FuncBuilder::new("row_max");
//! let (i, j) = (f.symbolic("i")?, f.symbolic("j")?);
//! let x = f.param("x", DType::F32, &[i, j])?;
//! let m = f.max(x, &[j])?;
//! f.result(m, &[i])?;
//! let func = f.finish()?;
//! assert_eq!(func.results[0].name, "out0");
//! # Ok::<(), onefold_ir::BuildError>(())
//! ```

mod axes;
mod ops;

use crate::types::{Rules, TypeError};
use crate::{AxisId, AxisSet, Func, Literal, Node, NodeId, Op, Param, ResultDecl, Span, Type};
use crate::{Constant, DType};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// More nodes than this in one function are refused: a runaway macro, not a graph.
pub const MAX_NODES: usize = 200_000;

/// Why a call of the builder failed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BuildError {
    /// The primitive cannot be applied to these operands.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A name that is in use.
    #[error("`{0}` is already defined")]
    DuplicateName(String),
    /// A name that the text format could not spell.
    #[error("`{0}` is not a name: letters, digits and `_`, for axes and functions not beginning with a digit")]
    BadName(String),
    /// A node of another function.
    #[error("there is no node {}", .0 .0)]
    UnknownNode(NodeId),
    /// More than 64 axes.
    #[error("a function has at most {} axes", crate::MAX_AXES)]
    TooManyAxes,
    /// A function beyond any sensible size.
    #[error("the function has more than {MAX_NODES} nodes")]
    TooLarge,
    /// A symbolic axis that no parameter has.
    #[error("nothing gives the size of axis `{0}`: no parameter has it")]
    Unbound(String),
    /// A function that returns nothing.
    #[error("the function has no results")]
    NoResults,
    /// A parameter declared after the first other node.
    #[error("parameters must be declared before other nodes")]
    LateParam,
    /// A result whose order of axes leaves one out.
    #[error("the result varies along `{0}`, which its order of axes leaves out")]
    ResultAxes(String),
    /// A macro that could not be expanded.
    #[error("{0}")]
    Macro(String),
}

/// A function being built.
#[derive(Clone, Debug)]
pub struct FuncBuilder {
    pub(crate) func: Func,
    names: BTreeSet<String>,
    hints: BTreeMap<NodeId, String>,
    span: Span,
}

/// Whether the text format can spell an axis, a function or a macro so.
pub(crate) fn is_identifier(name: &str) -> bool {
    is_value_name(name) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether the text format can spell a value so.
pub(crate) fn is_value_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether it is a name the printer makes up, such as `%0`: such values are anonymous.
pub(crate) fn is_anonymous(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_digit())
}

impl FuncBuilder {
    /// A function without parameters or nodes.
    pub fn new(name: &str) -> FuncBuilder {
        let func = Func { name: name.to_string(), axes: vec![], params: vec![], nodes: vec![], results: vec![] };
        FuncBuilder { func, names: BTreeSet::new(), hints: BTreeMap::new(), span: Span::default() }
    }

    /// The source range that nodes made from now on carry.
    pub fn at(&mut self, span: Span) {
        self.span = span;
    }

    /// The source range that nodes carry now.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The type of a node.
    pub fn ty(&self, node: NodeId) -> Result<Type, BuildError> {
        self.func.nodes.get(node.0 as usize).map(|n| n.ty).ok_or(BuildError::UnknownNode(node))
    }

    /// Declares the next parameter, its axes outermost first. Parameters come before other nodes.
    pub fn param(&mut self, name: &str, dtype: DType, axes: &[AxisId]) -> Result<NodeId, BuildError> {
        if self.func.nodes.len() != self.func.params.len() {
            return Err(BuildError::LateParam);
        }
        let set = self.axis_list(axes)?;
        let op = Op::Param(self.func.params.len());
        let node = self.push(op, vec![], Type { dtype, axes: set })?;
        self.name(node, name)?;
        self.func.params.push(Param { name: name.to_string(), dtype, axes: axes.to_vec() });
        Ok(node)
    }

    /// A constant tensor of the module, which stands at `index` of [`crate::Module::constants`].
    pub fn constant(&mut self, index: usize, constant: &Constant) -> Result<NodeId, BuildError> {
        let mut axes = vec![];
        for (name, size) in &constant.axes {
            axes.push(self.fixed(name, *size)?);
        }
        let axes = self.axis_list(&axes)?;
        self.push(Op::Constant(index), vec![], Type { dtype: constant.dtype, axes })
    }

    /// Names a value. A value keeps its first name; names made of digits alone are taken as no name.
    pub fn name(&mut self, node: NodeId, name: &str) -> Result<(), BuildError> {
        if !is_value_name(name) {
            return Err(BuildError::BadName(name.to_string()));
        }
        self.ty(node)?;
        let slot = &mut self.func.nodes[node.0 as usize].name;
        if slot.is_some() || is_anonymous(name) {
            return Ok(());
        }
        if !self.names.insert(name.to_string()) {
            return Err(BuildError::DuplicateName(name.to_string()));
        }
        *slot = Some(name.to_string());
        Ok(())
    }

    /// Keeps a name from being given to a value: that of a constant tensor of the module.
    pub fn reserve(&mut self, name: &str) {
        self.names.insert(name.to_string());
    }

    /// Suggests a name for a value that is used more than once; if something else has it, with a number.
    pub fn hint(&mut self, node: NodeId, name: &str) {
        if is_value_name(name) && !is_anonymous(name) {
            self.hints.entry(node).or_insert_with(|| name.to_string());
        }
    }

    /// Adds a result, with the order of its axes in memory, outermost first.
    pub fn result(&mut self, node: NodeId, axes: &[AxisId]) -> Result<(), BuildError> {
        let ty = self.ty(node)?;
        let set = self.axis_list(axes)?;
        if let Some(missing) = ty.axes.minus(set).iter().next() {
            return Err(BuildError::ResultAxes(self.func.axis(missing).name.clone()));
        }
        self.func.results.push(ResultDecl { name: String::new(), node, axes: axes.to_vec() });
        Ok(())
    }

    /// The function, with all names settled.
    pub fn finish(mut self) -> Result<Func, BuildError> {
        if !is_identifier(&self.func.name) {
            return Err(BuildError::BadName(self.func.name));
        }
        if self.func.results.is_empty() {
            return Err(BuildError::NoResults);
        }
        let bound: AxisSet = self.func.params.iter().flat_map(|p| p.axes.iter().copied()).collect();
        for (n, decl) in self.func.axes.iter().enumerate() {
            if decl.extent == crate::Extent::Symbolic && !bound.contains(AxisId(n as u8)) {
                return Err(BuildError::Unbound(decl.name.clone()));
            }
        }
        let mut uses = vec![0u32; self.func.nodes.len()];
        let used = self.func.nodes.iter().flat_map(|n| &n.args).chain(self.func.results.iter().map(|r| &r.node));
        used.for_each(|node| uses[node.0 as usize] += 1);
        for (node, hint) in std::mem::take(&mut self.hints) {
            let leaf = self.func.node(node).args.is_empty();
            if leaf || uses[node.0 as usize] < 2 || self.func.node(node).name.is_some() {
                continue;
            }
            let name = self.free_name(&hint);
            self.name(node, &name)?;
        }
        let mut taken = BTreeSet::new();
        for (position, result) in self.func.results.iter_mut().enumerate() {
            result.name = result_name(&self.func.nodes[result.node.0 as usize], position, &taken);
            taken.insert(result.name.clone());
        }
        Ok(self.func)
    }

    fn free_name(&self, hint: &str) -> String {
        let numbered = (1..).map(|n| format!("{hint}_{n}"));
        std::iter::once(hint.to_string()).chain(numbered).find(|n| !self.names.contains(n)).unwrap_or_default()
    }

    /// Adds a node after checking it; `dtype` is what the primitive leaves open.
    pub fn node(&mut self, op: Op, args: &[NodeId], dtype: DType) -> Result<NodeId, BuildError> {
        let types = args.iter().map(|a| self.ty(*a)).collect::<Result<Vec<_>, _>>()?;
        let rules = Rules { axes: &self.func.axes };
        let ty = rules.result(&op, &types, dtype)?;
        rules.check_bytes(ty)?;
        self.check_scale(&op, args)?;
        self.push(op, args.to_vec(), ty)
    }

    fn check_scale(&self, op: &Op, args: &[NodeId]) -> Result<(), BuildError> {
        if let (Op::Quantize | Op::Dequantize, Some(scale)) = (op, args.get(1)) {
            if let Op::Literal(Literal::Float(v)) = self.func.node(*scale).op {
                if !(v.is_finite() && v > 0.0) {
                    return Err(TypeError::Scale(v).into());
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, op: Op, args: Vec<NodeId>, ty: Type) -> Result<NodeId, BuildError> {
        if self.func.nodes.len() >= MAX_NODES {
            return Err(BuildError::TooLarge);
        }
        Rules { axes: &self.func.axes }.check_bytes(ty)?;
        let id = NodeId(self.func.nodes.len() as u32);
        self.func.nodes.push(Node { op, args, ty, name: None, span: self.span });
        Ok(id)
    }

    /// A list of axes as a set: all known, none twice, no two of one name.
    fn axis_list(&self, axes: &[AxisId]) -> Result<AxisSet, BuildError> {
        let rules = Rules { axes: &self.func.axes };
        let mut set = AxisSet::EMPTY;
        for axis in axes {
            let decl = self.func.axes.get(usize::from(axis.0)).ok_or(TypeError::UnknownAxis(*axis))?;
            if set.contains(*axis) {
                return Err(TypeError::Twice { op: "type", axis: decl.name.clone() }.into());
            }
            set = rules.join(set, AxisSet::one(*axis))?;
        }
        Ok(set)
    }
}

/// What a result is called: as its value, or by its position. Never as another result.
pub(crate) fn result_name(node: &Node, position: usize, taken: &BTreeSet<String>) -> String {
    let mut name = match &node.name {
        Some(name) if !taken.contains(name) => name.clone(),
        _ => format!("out{position}"),
    };
    while taken.contains(&name) {
        name.push('_');
    }
    name
}
