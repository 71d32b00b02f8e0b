//! What operations are called in the text of loop IR: one table for printing and parsing.

use crate::{BinOp, BufferKind, Cmp, Elem, Fold, UnOp};

/// Name of an operation of one operand.
pub(crate) fn unary_name(op: UnOp) -> &'static str {
    match op {
        UnOp::Neg => "neg",
        UnOp::Abs => "abs",
        UnOp::Sqrt => "sqrt",
        UnOp::Floor => "floor",
        UnOp::Nearest => "nearest",
        UnOp::Not => "not",
    }
}

/// Name of an operation of two operands.
pub(crate) fn binary_name(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::Div => "div",
        BinOp::Rem => "rem",
        BinOp::Min => "min",
        BinOp::Max => "max",
        BinOp::And => "and",
        BinOp::Or => "or",
        BinOp::Xor => "xor",
        BinOp::Shl => "shl",
        BinOp::Shr => "shr",
        BinOp::Ushr => "ushr",
    }
}

/// Name of a comparison.
pub(crate) fn compare_name(op: Cmp) -> &'static str {
    match op {
        Cmp::Lt => "lt",
        Cmp::Le => "le",
        Cmp::Gt => "gt",
        Cmp::Ge => "ge",
        Cmp::Eq => "eq",
        Cmp::Ne => "ne",
        Cmp::Uno => "uno",
    }
}

/// Name of a reduction over lanes.
pub(crate) fn fold_name(op: Fold) -> &'static str {
    match op {
        Fold::Add => "add",
        Fold::Mul => "mul",
        Fold::Min => "min",
        Fold::Max => "max",
        Fold::Any => "any",
        Fold::All => "all",
        Fold::Count => "count",
        Fold::First => "first",
    }
}

/// Name of a kind of buffer.
pub(crate) fn kind_name(kind: BufferKind) -> &'static str {
    match kind {
        BufferKind::Input => "input",
        BufferKind::Output => "output",
        BufferKind::Scratch => "scratch",
        BufferKind::Stack => "stack",
    }
}

/// All kinds of buffers.
pub(crate) const KINDS: [BufferKind; 4] =
    [BufferKind::Input, BufferKind::Output, BufferKind::Scratch, BufferKind::Stack];
/// All operations of one operand.
pub(crate) const UNARY: [UnOp; 6] = [UnOp::Neg, UnOp::Abs, UnOp::Sqrt, UnOp::Floor, UnOp::Nearest, UnOp::Not];
/// All operations of two operands.
pub(crate) const BINARY: [BinOp; 13] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
    BinOp::Min,
    BinOp::Max,
    BinOp::And,
    BinOp::Or,
    BinOp::Xor,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Ushr,
];
/// All comparisons.
pub(crate) const COMPARE: [Cmp; 7] = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne, Cmp::Uno];
/// All reductions over lanes.
pub(crate) const FOLDS: [Fold; 8] =
    [Fold::Add, Fold::Mul, Fold::Min, Fold::Max, Fold::Any, Fold::All, Fold::Count, Fold::First];

/// The element of that name.
pub(crate) fn elem_named(name: &str) -> Option<Elem> {
    const ALL: [Elem; 9] =
        [Elem::F32, Elem::F64, Elem::F16, Elem::BF16, Elem::I8, Elem::U8, Elem::I32, Elem::I64, Elem::Bool];
    ALL.into_iter().find(|e| e.name() == name)
}
