//! How messages call primitives and axes.

use crate::{AxisDecl, AxisId, AxisSet, BinaryOp, Op};

/// The name by which messages and the printer call a primitive.
pub fn op_name(op: &Op) -> &'static str {
    match op {
        Op::Param(_) => "param",
        Op::Constant(_) => "const",
        Op::Literal(_) => "literal",
        Op::Index(_) => "index",
        Op::Size(_) => "size",
        Op::Unary(u) => u.name(),
        Op::Binary(b) => match b {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            b => b.name(),
        },
        Op::Compare(c) => c.symbol(),
        Op::Select => "select",
        Op::Cast => "cast",
        Op::Reduce(r, _) => r.name(),
        Op::ArgMax(_) => "argmax",
        Op::TopK { .. } => "topk",
        Op::Sort { .. } => "sort",
        Op::CumSum(_) => "cumsum",
        Op::Gather(_) => "gather",
        Op::Rename { .. } => "rename",
        Op::Split { .. } => "split",
        Op::Merge { .. } => "merge",
        Op::Slice { .. } => "slice",
        Op::Concat { .. } => "concat",
        Op::Shift { .. } => "shift",
        Op::Quantize => "quantize",
        Op::Dequantize => "dequantize",
    }
}

/// The axes of a set by name, for messages.
pub(crate) fn show_axes(set: AxisSet, axes: &[AxisDecl]) -> String {
    let names: Vec<&str> = set.iter().filter_map(|a| axes.get(usize::from(a.0))).map(|d| d.name.as_str()).collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(", ")
    }
}

pub(super) fn axis_name(axis: AxisId, axes: &[AxisDecl]) -> String {
    axes.get(usize::from(axis.0)).map_or_else(|| axis.to_string(), |d| d.name.clone())
}
