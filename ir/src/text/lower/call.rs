//! Calls of primitives.

use super::func::{Lowered, Lowerer};
use super::scope::Scope;
use crate::text::ast::{Bracket, Call, Expr};
use crate::text::parse::Reported;
use crate::text::suggest::did_you_mean;
use crate::{AxisId, BinaryOp, DType, NodeId, ReduceOp, UnaryOp};

/// What a name with or without brackets is a call of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Index,
    Size,
    Unary(UnaryOp),
    Binary(BinaryOp),
    Reduce(ReduceOp),
    Select,
    /// `f32(1.5)`: an open expression in that dtype.
    Ascribe(DType),
    Cast,
    Quantize,
    Dequantize,
    ArgMax,
    TopK,
    Sort,
    CumSum,
    Gather,
    Rename,
    Split,
    Merge,
    Slice,
    Concat,
    Shift,
    /// A macro, or nothing.
    Other,
}

const UNARY: [UnaryOp; 13] = [
    UnaryOp::Neg,
    UnaryOp::Exp,
    UnaryOp::Log,
    UnaryOp::Exp2,
    UnaryOp::Log2,
    UnaryOp::Tanh,
    UnaryOp::Erf,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Abs,
    UnaryOp::Floor,
    UnaryOp::Round,
    UnaryOp::Not,
];

const BINARY: [BinaryOp; 4] = [BinaryOp::Min, BinaryOp::Max, BinaryOp::Pow, BinaryOp::Rem];

const REDUCE: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];

const OTHERS: [(&str, Form); 17] = [
    ("index", Form::Index),
    ("size", Form::Size),
    ("select", Form::Select),
    ("cast", Form::Cast),
    ("quantize", Form::Quantize),
    ("dequantize", Form::Dequantize),
    ("argmax", Form::ArgMax),
    ("topk", Form::TopK),
    ("sort", Form::Sort),
    ("cumsum", Form::CumSum),
    ("gather", Form::Gather),
    ("rename", Form::Rename),
    ("split", Form::Split),
    ("merge", Form::Merge),
    ("slice", Form::Slice),
    ("concat", Form::Concat),
    ("shift", Form::Shift),
];

impl Form {
    /// `min` and `max` are reductions where axes stand in brackets, functions of two operands elsewhere.
    pub(super) fn of(name: &str, bracketed: bool) -> Form {
        if bracketed {
            if let Some(op) = REDUCE.into_iter().find(|op| op.name() == name) {
                return Form::Reduce(op);
            }
        }
        if let Some(op) = BINARY.into_iter().find(|op| op.name() == name) {
            return Form::Binary(op);
        }
        if let Some(op) = REDUCE.into_iter().find(|op| op.name() == name) {
            return Form::Reduce(op);
        }
        if let Some(op) = UNARY.into_iter().find(|op| op.name() == name) {
            return Form::Unary(op);
        }
        if let Some(dtype) = DType::from_name(name) {
            return Form::Ascribe(dtype);
        }
        OTHERS.iter().find(|(n, _)| *n == name).map_or(Form::Other, |(_, form)| *form)
    }
}

/// Whether the function is one of floats only, so that an integer literal in it is a float.
pub(super) fn is_float_function(op: UnaryOp) -> bool {
    !op.accepts(DType::I64) && op.accepts(DType::F32)
}

/// Whether a macro may not have that name.
pub(super) fn is_primitive(name: &str) -> bool {
    Form::of(name, true) != Form::Other || matches!(name, "given" | "boolean" | "ceil")
}

impl<'a> Lowerer<'a, '_> {
    pub(super) fn call(&mut self, call: &'a Call, scope: &Scope<'a>, want: Option<DType>) -> Lowered<Vec<NodeId>> {
        let form = Form::of(&call.name.text, call.bracket.is_some());
        if form == Form::Other {
            return self.expand(call, scope, want);
        }
        self.check_shape(call, form)?;
        let arg = |n: usize| &call.args[n].value;
        let span = call.span;
        let node = match form {
            Form::Index | Form::Size => self.positions(call, form, scope, want)?,
            Form::Unary(op) => self.unary(op, arg(0), span, scope, want)?,
            Form::Binary(op) => {
                // By themselves two integers are floats in a function of floats.
                let floats = op == BinaryOp::Pow && self.open(arg(0), scope).and(self.open(arg(1), scope)).is_some();
                let want = want.or(floats.then_some(DType::F32));
                let (x, y) = self.pair(arg(0), arg(1), scope, want)?;
                let made = self.b.binary(op, x, y);
                self.checked(made, span, &[(arg(0).span, x), (arg(1).span, y)])?
            }
            Form::Select => {
                let condition = self.value(arg(0), scope, None);
                let (x, y) = self.pair(arg(1), arg(2), scope, want)?;
                let condition = condition?;
                let made = self.b.select(condition, x, y);
                self.checked(made, span, &[(arg(0).span, condition), (arg(1).span, x), (arg(2).span, y)])?
            }
            Form::Ascribe(dtype) => {
                if self.open(arg(0), scope).is_none() {
                    self.error(
                        arg(0).span,
                        format!("`{dtype}(…)` gives literals, positions and sizes a dtype"),
                        "this has one already",
                    )
                    .help(format!("convert it: `cast<{dtype}>(…)`"));
                    return Err(Reported);
                }
                self.value(arg(0), scope, Some(dtype))?
            }
            Form::Cast => {
                let x = self.value(arg(0), scope, None)?;
                let made = self.b.cast(call.dtype.unwrap_or(DType::F32), x);
                self.checked(made, span, &[(arg(0).span, x)])?
            }
            Form::Quantize | Form::Dequantize => self.quantization(call, form, scope)?,
            Form::Gather => self.gather(call, scope)?,
            Form::Concat => self.concat(call, scope)?,
            _ => {
                let open = if matches!(form, Form::Reduce(_)) { want } else { None };
                let x = self.value(arg(0), scope, open)?;
                return self.along(call, form, x, scope);
            }
        };
        Ok(vec![node])
    }

    /// Brackets where there must be some, and as many operands as needed.
    fn check_shape(&mut self, call: &'a Call, form: Form) -> Lowered<()> {
        let (bracket, dtype, operands): (bool, bool, &[usize]) = match form {
            Form::Index | Form::Size => (true, false, &[0, 1]),
            Form::Unary(_) | Form::Ascribe(_) => (false, false, &[1]),
            Form::Binary(_) => (false, false, &[2]),
            Form::Select => (false, false, &[3]),
            Form::Cast => (false, true, &[1]),
            Form::Quantize => (false, true, &[3]),
            Form::Dequantize => (false, false, &[3, 4]),
            Form::Gather | Form::Shift => (true, false, &[2]),
            Form::Concat => (true, false, &[]),
            _ => (true, false, &[1]),
        };
        let name = call.name.text.as_str();
        if bracket && call.bracket.as_ref().is_none_or(|b| b.axes.is_empty()) {
            self.error(
                call.name.span,
                format!("`{name}` needs an axis"),
                format!("expected axes in brackets: `{name}[…](…)`"),
            );
            return Err(Reported);
        }
        if let Some(extra) = call.bracket.as_ref().filter(|_| !bracket) {
            self.error(extra.span, format!("`{name}` has no axes"), "expected `(`");
            return Err(Reported);
        }
        if dtype && call.dtype.is_none() {
            self.error(call.name.span, format!("`{name}` needs a dtype"), format!("expected `{name}<…>(…)`"));
            return Err(Reported);
        }
        let offset_named = |n: usize, name: &str| form == Form::Dequantize && n == 3 && name == "offset";
        for (n, arg) in call.args.iter().enumerate() {
            if let Some(word) = arg.name.as_ref().filter(|w| !offset_named(n, &w.text)) {
                self.error(
                    word.span,
                    format!("`{name}` has no argument `{}`", word.text),
                    "expected an operand without a name",
                );
                return Err(Reported);
            }
        }
        if !operands.is_empty() && !operands.contains(&call.args.len()) {
            let list: Vec<String> = operands.iter().map(usize::to_string).collect();
            let message = format!("`{name}` takes {} operands, not {}", list.join(" or "), call.args.len());
            self.error(call.span, message, format!("expected {}", list.join(" or ")));
            return Err(Reported);
        }
        Ok(())
    }

    /// `index(j)` and `size(j)`; the size of several axes is their product.
    fn positions(&mut self, call: &'a Call, form: Form, scope: &Scope<'a>, want: Option<DType>) -> Lowered<NodeId> {
        let axes = self.named_axes(call, scope)?;
        let dtype = want.unwrap_or(DType::I64);
        if let (Form::Index, [_, _, ..]) = (form, axes.as_slice()) {
            self.error(call.span, "there is no position along several axes", "expected one axis");
            return Err(Reported);
        }
        let mut product: Option<NodeId> = None;
        for axis in axes {
            let made = if form == Form::Index { self.b.index(dtype, axis) } else { self.b.size(dtype, axis) };
            let node = self.checked(made, call.span, &[])?;
            product = Some(match product {
                None => node,
                Some(before) => {
                    let made = self.b.mul(before, node);
                    self.checked(made, call.span, &[])?
                }
            });
        }
        product.ok_or(Reported)
    }

    fn quantization(&mut self, call: &'a Call, form: Form, scope: &Scope<'a>) -> Lowered<NodeId> {
        let arg = |n: usize| &call.args[n].value;
        let x = self.value(arg(0), scope, None)?;
        let dtype = self.b.func.node(x).ty.dtype;
        if form == Form::Quantize {
            let scale = self.value(arg(1), scope, Some(dtype).filter(|d| d.is_float()))?;
            let zero = self.value(arg(2), scope, call.dtype)?;
            let made = self.b.quantize(call.dtype.unwrap_or(DType::I8), x, scale, zero);
            return self.checked(made, call.span, &[(arg(0).span, x), (arg(1).span, scale), (arg(2).span, zero)]);
        }
        // The scale decides the dtype of the result: a literal by itself is f32, also when it looks like an integer.
        let open = self.open(arg(1), scope).map(|_| DType::F32);
        let scale = self.value(arg(1), scope, open)?;
        let float = self.b.func.node(scale).ty.dtype;
        let zero = self.value(arg(2), scope, Some(dtype))?;
        let mut operands = vec![(arg(0).span, x), (arg(1).span, scale), (arg(2).span, zero)];
        let offset = match call.args.get(3) {
            Some(given) => {
                let offset = self.value(&given.value, scope, Some(float))?;
                operands.push((given.value.span, offset));
                offset
            }
            None => {
                let made = self.b.float(if float.is_float() { float } else { DType::F32 }, 0.0);
                self.checked(made, call.span, &[])?
            }
        };
        let made = self.b.dequantize(x, scale, zero, offset);
        self.checked(made, call.span, &operands)
    }

    /// The only axis of a call's brackets.
    pub(super) fn only_axis(
        &mut self,
        call: &'a Call,
        bracket: &Bracket,
        x: NodeId,
        scope: &Scope<'a>,
    ) -> Lowered<AxisId> {
        if let Some(second) = bracket.axes.get(1) {
            self.error(second.name.span, format!("`{}` works along one axis", call.name.text), "expected `]`");
            return Err(Reported);
        }
        let ty = self.b.func.node(x).ty;
        match bracket.axes.first() {
            Some(axis) => self.axis_of(axis, ty, &call.name, &scope.frame),
            None => Err(Reported),
        }
    }

    fn gather(&mut self, call: &'a Call, scope: &Scope<'a>) -> Lowered<NodeId> {
        let (table, ids) = (&call.args[0].value, &call.args[1].value);
        let x = self.value(table, scope, None)?;
        let at = self.value(ids, scope, None)?;
        let bracket = call.bracket.as_ref().ok_or(Reported)?;
        let axis = self.only_axis(call, bracket, x, scope)?;
        let made = self.b.gather(x, at, axis);
        self.checked(made, call.span, &[(table.span, x), (ids.span, at)])
    }

    /// Reports a call of something that does not exist.
    pub(super) fn unknown_call<T>(&mut self, call: &Call, macros: &[&str]) -> Lowered<T> {
        let name = call.name.text.as_str();
        let primitives =
            OTHERS.iter().map(|(n, _)| *n).chain(UNARY.map(UnaryOp::name)).chain(BINARY.map(BinaryOp::name));
        let known = primitives.chain(REDUCE.map(ReduceOp::name)).chain(macros.iter().copied());
        let help = did_you_mean(name, known, "");
        let message = match name {
            "given" | "boolean" => format!("`{name}` may stand in the condition of an `if` only"),
            "ceil" => "`ceil(a / b)` may stand in sizes only".to_string(),
            _ => format!("unknown function `{name}`"),
        };
        self.error(call.name.span, message, "expected a primitive or a macro").maybe_help(help);
        Err(Reported)
    }

    /// An expression's span, for messages about operands.
    pub(super) fn operands(args: &[(&Expr, NodeId)]) -> Vec<(crate::Span, NodeId)> {
        args.iter().map(|(e, n)| (e.span, *n)).collect()
    }
}
