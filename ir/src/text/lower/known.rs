//! What is known of an expression before it becomes nodes: whether its dtype is open, and its value if a condition of `if` asks.

use super::call::{is_float_function, Form};
use super::func::{Lowered, Lowerer};
use super::scope::{Bound, Scope};
use crate::text::ast::{Call, Expr, ExprKind};
use crate::text::parse::Reported;
use crate::{BinaryOp, CmpOp, DType};

/// A value that is known while the text is read.
enum Known {
    Bool(bool),
    Number(f64),
    Absent,
}

impl<'a> Lowerer<'a, '_> {
    /// The dtype an expression has by itself if its context may give it another: literals, positions, sizes, and what is computed from them alone.
    pub(super) fn open(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Option<DType> {
        match &expr.kind {
            ExprKind::Int(_) => Some(DType::I64),
            ExprKind::Float(_) => Some(DType::F32),
            ExprKind::Bool(_) => Some(DType::Bool),
            ExprKind::None => None,
            ExprKind::Value(name) => match scope.get(name) {
                Some(Bound::Open(open)) => Some(open.dtype),
                _ => None,
            },
            ExprKind::Neg(x) | ExprKind::Not(x) => self.open(x, scope),
            ExprKind::Binary(_, a, b) => self.both_open(a, b, scope),
            ExprKind::Compare(..) => None,
            ExprKind::If(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                // A wrong condition is reported when the expression is evaluated.
                let branch = if self.quietly(condition, scope)? { then } else { otherwise };
                self.open(branch, scope)
            }
            ExprKind::Call(call) => self.open_call(call, scope),
        }
    }

    fn open_call(&mut self, call: &'a Call, scope: &Scope<'a>) -> Option<DType> {
        let args = &call.args;
        let bracketed = call.bracket.is_some();
        match (Form::of(&call.name.text, bracketed), args.len()) {
            (Form::Index | Form::Size, _) => Some(DType::I64),
            (Form::Unary(op), 1) => {
                let inner = self.open(&args[0].value, scope)?;
                Some(if is_float_function(op) { DType::F32 } else { inner })
            }
            (Form::Binary(BinaryOp::Pow), 2) => {
                self.both_open(&args[0].value, &args[1].value, scope).map(|_| DType::F32)
            }
            (Form::Binary(_), 2) => self.both_open(&args[0].value, &args[1].value, scope),
            (Form::Reduce(_), 1) => self.open(&args[0].value, scope),
            (Form::Select, 3) => self.both_open(&args[1].value, &args[2].value, scope),
            (Form::Other, n) if n > 0 && self.macro_named(&call.name.text, scope).is_some() => {
                let mut all = None;
                for arg in args.iter().filter(|a| !matches!(a.value.kind, ExprKind::None)) {
                    let dtype = self.open(&arg.value, scope)?;
                    all = Some(all.map_or(dtype, |before| join(before, dtype)));
                }
                all.filter(|d| *d != DType::Bool)
            }
            _ => None,
        }
    }

    fn both_open(&mut self, a: &'a Expr, b: &'a Expr, scope: &Scope<'a>) -> Option<DType> {
        Some(join(self.open(a, scope)?, self.open(b, scope)?))
    }

    /// The condition of an `if`; an error if it is not known now.
    pub(super) fn condition(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Lowered<bool> {
        match self.quietly(expr, scope) {
            Some(value) => Ok(value),
            None => {
                let label = "expected `given(%x)`, `boolean(%x)` or a comparison of literals";
                self.error(expr.span, "the condition of `if` must be known when the text is read", label)
                    .help("where it depends on values, use `select(condition, a, b)`");
                Err(Reported)
            }
        }
    }

    fn quietly(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Option<bool> {
        match self.known(expr, scope)? {
            Known::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn known(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Option<Known> {
        Some(match &expr.kind {
            ExprKind::Int(v) => Known::Number(*v as f64),
            ExprKind::Float(v) => Known::Number(*v),
            ExprKind::Bool(v) => Known::Bool(*v),
            ExprKind::None => Known::Absent,
            ExprKind::Value(name) => match scope.get(name)? {
                Bound::Absent => Known::Absent,
                Bound::Node(_) => return None,
                Bound::Open(open) => {
                    let open = open.clone();
                    self.descend(open.expr.span).ok()?;
                    let known = self.known(open.expr, &Scope::of(open.frame.clone()));
                    self.depth -= 1;
                    return known;
                }
            },
            ExprKind::Neg(x) => match self.known(x, scope)? {
                Known::Number(v) => Known::Number(-v),
                _ => return None,
            },
            ExprKind::Not(x) => Known::Bool(!self.quietly(x, scope)?),
            ExprKind::Binary(BinaryOp::And, a, b) => Known::Bool(self.quietly(a, scope)? && self.quietly(b, scope)?),
            ExprKind::Binary(BinaryOp::Or, a, b) => Known::Bool(self.quietly(a, scope)? || self.quietly(b, scope)?),
            ExprKind::Compare(op, a, b) => {
                let (a, b) = (self.known(a, scope)?, self.known(b, scope)?);
                Known::Bool(compare(*op, &a, &b)?)
            }
            ExprKind::Call(call) => match (call.name.text.as_str(), call.args.as_slice()) {
                ("given", [arg]) => Known::Bool(!matches!(self.known(&arg.value, scope), Some(Known::Absent))),
                ("boolean", [arg]) => Known::Bool(self.is_bool(&arg.value, scope)?),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn is_bool(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Option<bool> {
        if let ExprKind::Value(name) = &expr.kind {
            if let Some(Bound::Node(node)) = scope.get(name) {
                return Some(self.b.func.node(*node).ty.dtype == DType::Bool);
            }
        }
        self.open(expr, scope).map(|d| d == DType::Bool)
    }
}

/// The dtype of two open operands together.
pub(super) fn join(a: DType, b: DType) -> DType {
    if a == DType::F32 || b == DType::F32 {
        DType::F32
    } else {
        a
    }
}

/// While a text is read, `==` asks whether two literals are the same, so that `nan` can be asked for.
fn compare(op: CmpOp, a: &Known, b: &Known) -> Option<bool> {
    let same = match (a, b) {
        (Known::Number(x), Known::Number(y)) => x == y || (x.is_nan() && y.is_nan()),
        (Known::Bool(x), Known::Bool(y)) => x == y,
        (Known::Absent, Known::Absent) => true,
        _ => false,
    };
    match (op, a, b) {
        (CmpOp::Eq, ..) => Some(same),
        (CmpOp::Ne, ..) => Some(!same),
        (CmpOp::Lt, Known::Number(x), Known::Number(y)) => Some(x < y),
        (CmpOp::Le, Known::Number(x), Known::Number(y)) => Some(x <= y),
        (CmpOp::Gt, Known::Number(x), Known::Number(y)) => Some(x > y),
        (CmpOp::Ge, Known::Number(x), Known::Number(y)) => Some(x >= y),
        _ => None,
    }
}
