//! What a kernel takes and gives.

use onefold_ir::size::show_extent;
use onefold_ir::{AxisId, DType, Extent, Func};
use std::fmt;

/// Names, dtypes and axes of a kernel's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The function's name.
    pub name: String,
    /// Inputs in the order of the call.
    pub inputs: Vec<Argument>,
    /// Outputs in the order of the call.
    pub outputs: Vec<Argument>,
}

/// One input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Axes, outermost first.
    pub axes: Vec<Axis>,
}

/// An axis of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its length.
    pub size: AxisSize,
}

/// How long an axis is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSize {
    /// As the function says.
    Fixed(u64),
    /// As the arrays of a call say.
    Symbolic,
    /// As follows from other axes, by this expression.
    Derived(String),
}

impl Signature {
    pub(crate) fn of(func: &Func) -> Signature {
        let argument = |name: &str, dtype, axes: &[AxisId]| Argument {
            name: name.to_owned(),
            dtype,
            axes: axes.iter().map(|a| Axis::of(func, *a)).collect(),
        };
        Signature {
            name: func.name.clone(),
            inputs: func.params.iter().map(|p| argument(&p.name, p.dtype, &p.axes)).collect(),
            outputs: func.results.iter().map(|r| argument(&r.name, func.node(r.node).ty.dtype, &r.axes)).collect(),
        }
    }
}

impl Axis {
    fn of(func: &Func, id: AxisId) -> Axis {
        let decl = func.axis(id);
        let size = match &decl.extent {
            Extent::Fixed(n) => AxisSize::Fixed(*n),
            Extent::Symbolic => AxisSize::Symbolic,
            Extent::Derived(_) => AxisSize::Derived(show_extent(id, &func.axes)),
        };
        Axis { name: decl.name.clone(), size }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.size {
            AxisSize::Fixed(n) => write!(f, "{}={n}", self.name),
            AxisSize::Symbolic => f.write_str(&self.name),
            AxisSize::Derived(size) => write!(f, "{}={size}", self.name),
        }
    }
}

impl Argument {
    /// Its axes as text: `b, j, e=64`.
    pub fn show_axes(&self) -> String {
        self.axes.iter().map(Axis::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}[{}]", self.name, self.dtype, self.show_axes())
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |args: &[Argument]| args.iter().map(Argument::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "@{}({}) -> ({})", self.name, list(&self.inputs), list(&self.outputs))
    }
}
