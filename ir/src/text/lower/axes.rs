//! Axes by name: those of operands, and new ones.

use super::func::{Lowered, Lowerer};
use super::scope::{AxisArg, Frame, Scope};
use crate::builder::BuildError;
use crate::size::show_extent;
use crate::text::ast::{AxisRef, AxisSize, Call, Expr, ExprKind, Name};
use crate::text::parse::Reported;
use crate::text::suggest::did_you_mean;
use crate::types::TypeError;
use crate::{AxisId, BinaryOp, Extent, NodeId, SizeExpr, Span, Type};

impl<'a> Lowerer<'a, '_> {
    /// The axes of the function that a name of this body stands for.
    pub(super) fn axis_args(&mut self, name: &Name, frame: &Frame<'a>) -> Lowered<Vec<AxisArg>> {
        if let Some(args) = frame.axes.borrow().get(&name.text) {
            return Ok(args.clone());
        }
        match frame.expands {
            // In a macro, names of the caller's axes mean nothing: it is told its axes.
            Some(definition) if !self.globals.axes.contains_key(name.text.as_str()) => {
                let known: Vec<String> = frame.axes.borrow().keys().cloned().collect();
                let help = did_you_mean(&name.text, known.iter().map(String::as_str), "");
                let message = format!("`{}` is not an axis parameter of macro `{}`", name.text, definition.name.text);
                self.error(name.span, message, "unknown axis").maybe_help(help);
                Err(Reported)
            }
            _ => Ok(vec![AxisArg { name: name.text.clone(), size: None }]),
        }
    }

    /// The axes of an operand that a name stands for.
    pub(super) fn axes_of(&mut self, axis: &AxisRef, ty: Type, op: &Name, frame: &Frame<'a>) -> Lowered<Vec<AxisId>> {
        let mut found = vec![];
        for arg in self.axis_args(&axis.name, frame)? {
            let id = ty.axes.iter().find(|a| self.b.func.axis(*a).name == arg.name);
            let Some(id) = id else {
                let has: Vec<String> = ty.axes.iter().map(|a| self.b.func.axis(a).name.clone()).collect();
                let list = if has.is_empty() { "none".to_string() } else { has.join(", ") };
                let message = format!("the operand of `{}` has no axis `{}`", op.text, arg.name);
                let help = did_you_mean(&arg.name, has.iter().map(String::as_str), "");
                self.error(axis.name.span, message, format!("expected one of its axes: {list}")).maybe_help(help);
                return Err(Reported);
            };
            if let Some(AxisSize::Fixed(n)) = axis.size {
                if self.b.func.axis(id).extent != Extent::Fixed(n) {
                    let extent = show_extent(id, &self.b.func.axes);
                    let message = format!("axis `{}` of the operand has extent {extent}, not {n}", arg.name);
                    self.error(axis.name.span, message, format!("expected {extent}"));
                    return Err(Reported);
                }
            }
            found.push(id);
        }
        Ok(found)
    }

    /// The one axis of an operand that a name stands for.
    pub(super) fn axis_of(&mut self, axis: &AxisRef, ty: Type, op: &Name, frame: &Frame<'a>) -> Lowered<AxisId> {
        match self.axes_of(axis, ty, op, frame)?.as_slice() {
            [one] => Ok(*one),
            _ => {
                let message =
                    format!("`{}` works along one axis, but `{}` stands for several here", op.text, axis.name.text);
                self.error(axis.name.span, message, "expected one axis");
                Err(Reported)
            }
        }
    }

    /// The axis that `index(j)` or `size(j)` speaks of: with an operand its axis, else the first of that name.
    pub(super) fn named_axes(&mut self, call: &'a Call, scope: &Scope<'a>) -> Lowered<Vec<AxisId>> {
        let Some(axis) = call.bracket.as_ref().and_then(|b| b.axes.first()) else {
            self.error(call.span, format!("`{}` needs an axis", call.name.text), "expected an axis in brackets");
            return Err(Reported);
        };
        if let Some(operand) = call.args.first() {
            let node = self.value(&operand.value, scope, None)?;
            let ty = self.b.func.node(node).ty;
            return self.axes_of(axis, ty, &call.name, &scope.frame);
        }
        let mut ids = vec![];
        for arg in self.axis_args(&axis.name, &scope.frame)? {
            let size = match &axis.size {
                Some(AxisSize::Fixed(n)) => Some(*n),
                _ => arg.size,
            };
            let first = self.b.axes_named(&arg.name).first().copied();
            let declared = || self.declared.get(&arg.name).or(self.globals.axes.get(arg.name.as_str())).copied();
            let id = match (size, first) {
                _ if matches!(axis.size, Some(AxisSize::Symbolic)) => self.b.symbolic(&arg.name),
                _ if matches!(axis.size, Some(AxisSize::Expr(_))) => {
                    let Some(AxisSize::Expr(expr)) = &axis.size else { return Err(Reported) };
                    let size = self.size_expr(expr, &scope.frame)?;
                    self.b.derived(&arg.name, &size)
                }
                (Some(n), _) => self.b.fixed(&arg.name, n),
                (None, Some(id)) => Ok(id),
                (None, None) => match declared() {
                    Some(n) => self.b.fixed(&arg.name, n),
                    None => {
                        let known: Vec<String> = self.b.func.axes.iter().map(|a| a.name.clone()).collect();
                        self.unknown_axis(&axis.name, known.iter().map(String::as_str).collect());
                        return Err(Reported);
                    }
                },
            };
            ids.push(self.checked(id, axis.name.span, &[])?);
        }
        Ok(ids)
    }

    pub(super) fn unknown_axis(&mut self, name: &Name, known: Vec<&str>) {
        let help = did_you_mean(&name.text, known.iter().copied(), "");
        let list = if known.is_empty() {
            "there are none".to_string()
        } else {
            format!("expected one of: {}", known.join(", "))
        };
        self.error(name.span, format!("unknown axis `{}`", name.text), list).maybe_help(help);
    }

    /// A new axis of a value. Its size is written with it, or declared, or that of a parameter's axis of the name, or what `derive` says.
    pub(super) fn new_axis(
        &mut self,
        axis: &AxisRef,
        frame: &Frame<'a>,
        derive: impl FnOnce(&mut Self, &str) -> Option<Result<AxisId, BuildError>>,
    ) -> Lowered<AxisId> {
        let span = axis.name.span;
        let arg = self.new_axis_name(&axis.name, frame)?;
        let name = arg.name.as_str();
        let made = match &axis.size {
            Some(AxisSize::Fixed(n)) => self.b.fixed(name, *n),
            Some(AxisSize::Symbolic) => self.b.symbolic(name),
            Some(AxisSize::Expr(expr)) => {
                let size = self.size_expr(expr, frame)?;
                self.b.derived(name, &size)
            }
            Some(AxisSize::Named(other)) => {
                self.error(other.span, "expected a size", format!("write `{name}=size({})`", other.text));
                return Err(Reported);
            }
            None => {
                let declared = self.declared.get(name).or(self.globals.axes.get(name)).copied();
                let of_params = self.param_axes.iter().copied().find(|a| self.b.func.axis(*a).name == name);
                match (arg.size.or(declared), of_params) {
                    (Some(n), _) => self.b.fixed(name, n),
                    (None, Some(id)) => Ok(id),
                    (None, None) => match derive(self, name) {
                        Some(made) => made,
                        None => match self.b.axes_named(name).as_slice() {
                            [only] => Ok(*only),
                            _ => {
                                let entry = self.error(
                                    span,
                                    format!("the size of axis `{name}` is not known"),
                                    "how long is it?",
                                );
                                entry.help(format!("write `{name}=N` here, or `axis {name} = N` above the function"));
                                return Err(Reported);
                            }
                        },
                    },
                }
            }
        };
        self.checked(made, span, &[])
    }

    /// The name of a new axis: in a macro one that the caller does not have, unless it is a parameter.
    fn new_axis_name(&mut self, name: &Name, frame: &Frame<'a>) -> Lowered<AxisArg> {
        if let Some(args) = frame.axes.borrow().get(&name.text) {
            if let [one] = args.as_slice() {
                return Ok(one.clone());
            }
        }
        if frame.expands.is_none() || self.globals.axes.contains_key(name.text.as_str()) {
            return Ok(AxisArg { name: name.text.clone(), size: None });
        }
        if frame.axes.borrow().contains_key(&name.text) {
            self.error(name.span, format!("`{}` stands for several axes here", name.text), "expected one");
            return Err(Reported);
        }
        let taken = |n: &String| !self.b.axes_named(n).is_empty() || self.declared.contains_key(n);
        let numbered = (1..).map(|n| format!("{}_{n}", name.text));
        let fresh = std::iter::once(name.text.clone()).chain(numbered).find(|n| !taken(n)).unwrap_or_default();
        let arg = AxisArg { name: fresh, size: None };
        frame.axes.borrow_mut().insert(name.text.clone(), vec![arg.clone()]);
        Ok(arg)
    }

    /// An expression over sizes: numbers, `size(j)`, `+ - *`, exact `/`, `ceil(a / b)`.
    pub(super) fn size_expr(&mut self, expr: &Expr, frame: &Frame<'a>) -> Lowered<SizeExpr> {
        match &expr.kind {
            ExprKind::Int(value) => Ok(SizeExpr::Const(*value)),
            ExprKind::Binary(op, a, b) => {
                let make = match op {
                    BinaryOp::Add => SizeExpr::Add,
                    BinaryOp::Sub => SizeExpr::Sub,
                    BinaryOp::Mul => SizeExpr::Mul,
                    BinaryOp::Div => SizeExpr::DivExact,
                    _ => return self.not_a_size(expr.span),
                };
                let (a, b) = (self.size_expr(a, frame)?, self.size_expr(b, frame)?);
                Ok(make(Box::new(a), Box::new(b)))
            }
            ExprKind::Value(name) => {
                let bound = frame.params.get(name.as_str()).cloned();
                match bound {
                    Some(super::scope::Bound::Open(open)) => self.size_expr(open.expr, &open.frame.clone()),
                    _ => self.not_a_size(expr.span),
                }
            }
            ExprKind::Call(call) => match (call.name.text.as_str(), call.bracket.as_ref(), call.args.as_slice()) {
                ("size", Some(bracket), []) if bracket.axes.len() == 1 => {
                    let axis = &bracket.axes[0];
                    let mut product = SizeExpr::Const(1);
                    for arg in self.axis_args(&axis.name, frame)? {
                        let named = self.b.axes_named(&arg.name);
                        let symbolic = named.iter().find(|a| self.b.func.axis(**a).extent == Extent::Symbolic);
                        let Some(id) = symbolic.or(named.first()) else {
                            let known: Vec<String> = self.b.func.axes.iter().map(|a| a.name.clone()).collect();
                            self.unknown_axis(&axis.name, known.iter().map(String::as_str).collect());
                            return Err(Reported);
                        };
                        product = SizeExpr::Mul(Box::new(product), Box::new(SizeExpr::Axis(*id)));
                    }
                    Ok(product)
                }
                ("ceil", None, [arg]) => match &arg.value.kind {
                    ExprKind::Binary(BinaryOp::Div, a, b) => {
                        let (a, b) = (self.size_expr(a, frame)?, self.size_expr(b, frame)?);
                        Ok(SizeExpr::DivCeil(Box::new(a), Box::new(b)))
                    }
                    _ => self.not_a_size(expr.span),
                },
                _ => self.not_a_size(expr.span),
            },
            _ => self.not_a_size(expr.span),
        }
    }

    fn not_a_size<T>(&mut self, span: Span) -> Lowered<T> {
        let label = "expected numbers, `size(axis)`, `+ - * /` or `ceil(a / b)`";
        self.error(span, "this is not an expression over sizes", label);
        Err(Reported)
    }

    /// The outcome of a call of the builder, reported with the types of the operands if it failed.
    pub(super) fn checked<T>(
        &mut self,
        made: Result<T, BuildError>,
        span: Span,
        operands: &[(Span, NodeId)],
    ) -> Lowered<T> {
        let error = match made {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let notes: Vec<(Span, String)> = operands
            .iter()
            // Places in the prelude mean nothing to the reader.
            .filter(|(at, _)| *at != span && !self.in_prelude())
            .map(|(at, node)| (*at, format!("this is {}", self.show_type(self.b.func.node(*node).ty))))
            .collect();
        let help = match &error {
            BuildError::Type(TypeError::Mismatch { left, .. }) => {
                Some(format!("convert one of them: `cast<{left}>(…)`"))
            }
            BuildError::Type(TypeError::TwoExtents { axis, .. }) => {
                Some(format!("give one of them another name: `rename[{axis} -> …](…)`"))
            }
            _ => None,
        };
        let label = match &error {
            BuildError::Type(TypeError::Dtype { expected, .. }) => format!("expected {expected}"),
            BuildError::Type(TypeError::Mismatch { .. }) => "expected operands of one dtype".to_string(),
            BuildError::Type(TypeError::TwoExtents { axis, .. }) => format!("expected one extent of `{axis}`"),
            _ => "here".to_string(),
        };
        let mut entry = self.error(span, error.to_string(), label);
        for (at, note) in notes {
            entry = entry.related(at, note);
        }
        entry.maybe_help(help);
        Err(Reported)
    }

    /// A type as the text format writes it.
    pub(super) fn show_type(&self, ty: Type) -> String {
        let axes: Vec<String> = ty
            .axes
            .iter()
            .map(|a| match &self.b.func.axis(a).extent {
                Extent::Symbolic => self.b.func.axis(a).name.clone(),
                _ => format!("{}={}", self.b.func.axis(a).name, show_extent(a, &self.b.func.axes)),
            })
            .collect();
        if axes.is_empty() {
            ty.dtype.to_string()
        } else {
            format!("{}[{}]", ty.dtype, axes.join(", "))
        }
    }
}
