//! The text as a tree, before names mean anything.

use crate::{BinaryOp, CmpOp, DType, Span};

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// `j`, `j=5` or `j=?`.
#[derive(Clone, Debug)]
pub(crate) struct AxisRef {
    pub(crate) name: Name,
    pub(crate) size: Option<AxisSize>,
}

/// What stands after an axis' `=`.
#[derive(Clone, Debug)]
pub(crate) enum AxisSize {
    /// `j=5`
    Fixed(u64),
    /// `i=size(j)`
    Expr(Box<Expr>),
    /// `j=?`: symbolic although another axis of the name is fixed.
    Symbolic,
    /// `e=d` in a macro call: the macro's axis `e` is the caller's `d`.
    Named(Name),
}

/// `f32[b, v]`
#[derive(Clone, Debug)]
pub(crate) struct TypeRef {
    pub(crate) dtype: DType,
    pub(crate) axes: Vec<AxisRef>,
    pub(crate) span: Span,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// Levels below this one: bounded, so that walks may recurse.
    pub(crate) depth: u32,
}

/// What kind of expression.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Value(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// `none`: an optional argument of a macro that is not given.
    None,
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Compare(CmpOp, Box<Expr>, Box<Expr>),
    Call(Box<Call>),
    /// Decided when macros are expanded.
    If(Box<[Expr; 3]>),
}

/// `name<dtype>[axes -> axes, range](args)`
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: Name,
    pub(crate) dtype: Option<DType>,
    pub(crate) bracket: Option<Bracket>,
    pub(crate) args: Vec<Arg>,
    pub(crate) span: Span,
}

/// What stands in the brackets of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bracket {
    pub(crate) axes: Vec<AxisRef>,
    pub(crate) arrow: Option<Vec<AxisRef>>,
    pub(crate) operand: Option<Operand>,
    pub(crate) span: Span,
}

/// What follows the axes of a bracket.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// The distance of a shift.
    Int(i64, Span),
    /// `start..stop..step`
    Range { start: i64, stop: Option<Box<Expr>>, step: i64, span: Span },
}

/// An argument, named or by position.
#[derive(Clone, Debug)]
pub(crate) struct Arg {
    pub(crate) name: Option<Name>,
    pub(crate) value: Expr,
}

/// `%a, %b = expr`
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// `None` for `_`.
    pub(crate) targets: Vec<Option<Name>>,
    pub(crate) value: Expr,
    pub(crate) span: Span,
}

/// Statements and what is returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) statements: Vec<Statement>,
    pub(crate) returned: Vec<Expr>,
    /// Of the `return`.
    pub(crate) span: Span,
    /// Names whose definition could not be read: their uses are not errors of their own.
    pub(crate) poisoned: Vec<String>,
    /// Whether part of it could not be read.
    pub(crate) broken: bool,
}

/// A function as written.
#[derive(Clone, Debug)]
pub(crate) struct FuncDef {
    pub(crate) name: Name,
    pub(crate) params: Vec<(Name, TypeRef)>,
    pub(crate) results: Option<Vec<TypeRef>>,
    pub(crate) body: Body,
}

/// A parameter of a macro.
#[derive(Clone, Debug)]
pub(crate) struct MacroParam {
    pub(crate) name: Name,
    pub(crate) default: Option<Expr>,
}

/// A macro as written.
#[derive(Clone, Debug)]
pub(crate) struct MacroDef {
    pub(crate) name: Name,
    /// Axis parameters, with the axis taken if none is given.
    pub(crate) axes: Vec<(Name, Option<Name>)>,
    pub(crate) params: Vec<MacroParam>,
    pub(crate) body: Body,
}

/// A constant tensor as written.
#[derive(Clone, Debug)]
pub(crate) struct ConstDef {
    pub(crate) name: Name,
    pub(crate) ty: TypeRef,
    pub(crate) data: Vec<f64>,
    pub(crate) span: Span,
}

/// A whole text.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) axes: Vec<(Name, u64)>,
    pub(crate) consts: Vec<ConstDef>,
    pub(crate) macros: Vec<MacroDef>,
    pub(crate) funcs: Vec<FuncDef>,
}
