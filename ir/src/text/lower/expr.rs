//! Expressions to nodes.

use super::func::{Lowered, Lowerer};
use super::known::join;
use super::scope::{Bound, Scope};
use crate::text::ast::{Expr, ExprKind};
use crate::text::parse::Reported;
use crate::text::suggest::did_you_mean;
use crate::{DType, Literal, NodeId, Op, Span, UnaryOp};

/// Levels of recursion over all expansions.
const MAX_LEVELS: u32 = 256;

/// Steps of evaluation in one function.
const MAX_STEPS: u32 = 2_000_000;

impl<'a> Lowerer<'a, '_> {
    /// One level down; refused when expansions nest too deep or never seem to end.
    pub(super) fn descend(&mut self, span: Span) -> Lowered<()> {
        self.steps += 1;
        if self.depth >= MAX_LEVELS || self.steps > MAX_STEPS {
            self.error(span, "the expansion is too large", "too much nesting or repetition")
                .help("name a part: `%part = …`");
            return Err(Reported);
        }
        self.depth += 1;
        Ok(())
    }

    /// The value of an expression. `want` is the dtype that the context asks of literals, positions and sizes.
    pub(super) fn value(&mut self, expr: &'a Expr, scope: &Scope<'a>, want: Option<DType>) -> Lowered<NodeId> {
        let nodes = self.values(expr, scope, want)?;
        match nodes.first() {
            Some(node) => Ok(*node),
            None => {
                self.error(expr.span, "this yields no value", "expected a value");
                Err(Reported)
            }
        }
    }

    /// The values of an expression: one, but for `topk`, `sort` and macros that return several.
    pub(super) fn values(&mut self, expr: &'a Expr, scope: &Scope<'a>, want: Option<DType>) -> Lowered<Vec<NodeId>> {
        self.descend(expr.span)?;
        let before = self.b.span();
        if self.sites.is_empty() {
            self.b.at(expr.span);
        }
        let values = self.values_here(expr, scope, want);
        self.b.at(before);
        self.depth -= 1;
        values
    }

    fn values_here(&mut self, expr: &'a Expr, scope: &Scope<'a>, want: Option<DType>) -> Lowered<Vec<NodeId>> {
        let span = expr.span;
        let node = match &expr.kind {
            ExprKind::Value(name) => return self.named(name, span, scope, want).map(|n| vec![n]),
            ExprKind::Int(value) => self.literal(Literal::Int(*value), want.unwrap_or(DType::I64), span)?,
            ExprKind::Float(value) => self.literal(Literal::Float(*value), want.unwrap_or(DType::F32), span)?,
            ExprKind::Bool(value) => self.literal(Literal::Bool(*value), DType::Bool, span)?,
            ExprKind::None => {
                self.error(span, "`none` is not a value", "expected a value")
                    .help("`none` stands for an optional argument of a macro that is not given");
                return Err(Reported);
            }
            ExprKind::Neg(x) => self.unary(UnaryOp::Neg, x, span, scope, want)?,
            ExprKind::Not(x) => self.unary(UnaryOp::Not, x, span, scope, want)?,
            ExprKind::Binary(op, a, b) => {
                let (x, y) = self.pair(a, b, scope, want)?;
                let made = self.b.binary(*op, x, y);
                self.checked(made, span, &[(a.span, x), (b.span, y)])?
            }
            ExprKind::Compare(op, a, b) => {
                let (x, y) = self.pair(a, b, scope, None)?;
                let made = self.b.compare(*op, x, y);
                self.checked(made, span, &[(a.span, x), (b.span, y)])?
            }
            ExprKind::If(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let branch = if self.condition(condition, scope)? { then } else { otherwise };
                return self.values(branch, scope, want);
            }
            ExprKind::Call(call) => return self.call(call, scope, want),
        };
        Ok(vec![node])
    }

    fn named(&mut self, name: &'a str, span: Span, scope: &Scope<'a>, want: Option<DType>) -> Lowered<NodeId> {
        match scope.get(name) {
            Some(Bound::Node(node)) => return Ok(*node),
            Some(Bound::Open(open)) => {
                let open = open.clone();
                return self.value(open.expr, &Scope::of(open.frame.clone()), want);
            }
            Some(Bound::Absent) => {
                self.error(span, format!("`%{name}` is not given"), "expected a value")
                    .help(format!("ask first: `if given(%{name}) {{ … }} else {{ … }}`"));
                return Err(Reported);
            }
            None => {}
        }
        if scope.poisoned.contains(name) || self.globals.poisoned.contains(name) {
            return Err(Reported);
        }
        if let Some(index) = self.globals.consts.get(name).copied().filter(|_| !scope.frame.prelude) {
            let made = self.b.constant(index, &self.globals.constants[index]);
            return self.checked(made, span, &[]);
        }
        let known = scope.values.keys().chain(scope.frame.params.keys()).chain(self.globals.consts.keys());
        let help = did_you_mean(name, known.copied(), "%");
        self.error(span, format!("unknown value `%{name}`"), "not defined before this point").maybe_help(help);
        Err(Reported)
    }

    /// A literal in the dtype that was asked for.
    fn literal(&mut self, literal: Literal, dtype: DType, span: Span) -> Lowered<NodeId> {
        let literal = match literal {
            Literal::Int(value) if dtype.is_float() => Literal::Float(value as f64),
            // `-0` as a float; an integer has only one zero.
            Literal::Float(value) if dtype.is_int() && value == 0.0 && value.is_sign_negative() => Literal::Int(0),
            other => other,
        };
        let made = self.b.node(Op::Literal(literal), &[], dtype);
        if made.is_err() {
            let shown = match literal {
                Literal::Float(v) => format!("{v:?}"),
                Literal::Int(v) => v.to_string(),
                Literal::Bool(v) => v.to_string(),
            };
            self.error(span, format!("{shown} is not a value of {dtype}"), format!("expected a value of {dtype}"));
            return Err(Reported);
        }
        self.checked(made, span, &[])
    }

    pub(super) fn unary(
        &mut self,
        op: UnaryOp,
        x: &'a Expr,
        span: Span,
        scope: &Scope<'a>,
        want: Option<DType>,
    ) -> Lowered<NodeId> {
        // By itself an open operand of a float function is f32, although it may be an integer.
        let open = self.open(x, scope);
        let by_itself = open.filter(|_| super::call::is_float_function(op)).map(|_| DType::F32);
        let operand = self.value(x, scope, want.or(by_itself))?;
        let made = self.b.unary(op, operand);
        self.checked(made, span, &[(x.span, operand)])
    }

    /// Two operands of one dtype: an open one takes the other's.
    pub(super) fn pair(
        &mut self,
        a: &'a Expr,
        b: &'a Expr,
        scope: &Scope<'a>,
        want: Option<DType>,
    ) -> Lowered<(NodeId, NodeId)> {
        let (x, y) = match (self.open(a, scope), self.open(b, scope)) {
            (Some(p), Some(q)) => {
                let dtype = Some(want.unwrap_or(join(p, q)));
                (self.value(a, scope, dtype), self.value(b, scope, dtype))
            }
            (Some(_), None) => {
                let y = self.value(b, scope, None);
                let dtype = y.as_ref().ok().map(|n| self.b.func.node(*n).ty.dtype);
                // Without its partner's dtype, an open operand cannot be judged.
                let x = if dtype.is_some() { self.value(a, scope, dtype) } else { Err(Reported) };
                (x, y)
            }
            (None, Some(_)) => {
                let x = self.value(a, scope, None);
                let dtype = x.as_ref().ok().map(|n| self.b.func.node(*n).ty.dtype);
                let y = if dtype.is_some() { self.value(b, scope, dtype) } else { Err(Reported) };
                (x, y)
            }
            (None, None) => (self.value(a, scope, None), self.value(b, scope, None)),
        };
        Ok((x?, y?))
    }
}
