//! Expressions with as few parentheses and dtypes as the parser needs.

use super::axes::{name, product};
use super::{show_float, Printer};
use crate::size::Poly;
use crate::types::op_name;
use crate::{AxisId, AxisSet, BinaryOp, DType, Literal, Node, NodeId, Op, UnaryOp};

/// Binding of prefix `-`, of `not`, of comparisons, and of what needs no parentheses anywhere.
const PREFIX: u8 = 9;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const ATOM: u8 = 10;

impl Printer<'_> {
    fn node(&self, id: NodeId) -> Option<&Node> {
        self.func.nodes.get(id.0 as usize)
    }

    /// What stands right of `=` on a node's line.
    pub(super) fn line(&self, id: NodeId) -> String {
        self.node(id).map_or_else(String::new, |node| self.in_context(node, 0, None))
    }

    /// A node where it is used: its name if it has a line of its own. `want` is the dtype that the context asks of literals.
    pub(super) fn operand(&self, id: NodeId, least: u8, want: Option<DType>) -> String {
        if let Some(name) = self.names.get(id.0 as usize).and_then(Option::as_ref) {
            return format!("%{name}");
        }
        self.node(id).map_or_else(|| "%?".to_string(), |node| self.in_context(node, least, want))
    }

    /// A node in place, with its dtype where the context would give it another.
    fn in_context(&self, node: &Node, least: u8, want: Option<DType>) -> String {
        let dtype = node.ty.dtype;
        match self.open_node(node) {
            Some(by_itself) if want.unwrap_or(by_itself) != dtype => {
                format!("{dtype}({})", self.expr(node, Some(dtype)).0)
            }
            _ => {
                let (text, level) = self.expr(node, want);
                if level < least {
                    format!("({text})")
                } else {
                    text
                }
            }
        }
    }

    /// The dtype that the text of an operand has by itself, if its context may give it another; as the parser sees it.
    fn open(&self, id: NodeId) -> Option<DType> {
        if self.names.get(id.0 as usize)?.is_some() {
            return None;
        }
        self.open_node(self.node(id)?)
    }

    fn open_node(&self, node: &Node) -> Option<DType> {
        let both = |a: usize, b: usize| {
            let (a, b) = (self.open(*node.args.get(a)?)?, self.open(*node.args.get(b)?)?);
            Some(if a == DType::F32 || b == DType::F32 { DType::F32 } else { a })
        };
        match &node.op {
            Op::Literal(Literal::Float(v)) => {
                let text = show_float(*v);
                let integer = text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) && text != "-0";
                Some(if integer { DType::I64 } else { DType::F32 })
            }
            Op::Literal(Literal::Int(_)) | Op::Index(_) | Op::Size(_) => Some(DType::I64),
            Op::Literal(Literal::Bool(_)) => Some(DType::Bool),
            Op::Unary(op) => {
                let inner = self.open(*node.args.first()?)?;
                let of_floats = op.accepts(DType::F32) && !op.accepts(DType::I64);
                Some(if of_floats { DType::F32 } else { inner })
            }
            Op::Binary(BinaryOp::Pow) => both(0, 1).map(|_| DType::F32),
            Op::Binary(_) => both(0, 1),
            Op::Select => both(1, 2),
            Op::Reduce(..) => self.open(*node.args.first()?),
            _ => None,
        }
    }

    /// The text of a node and how tightly it binds.
    fn expr(&self, node: &Node, want: Option<DType>) -> (String, u8) {
        let func = self.func;
        let arg = |n: usize| node.args.get(n).copied().unwrap_or(NodeId(u32::MAX));
        let dtype = node.ty.dtype;
        let atom = |text: String| (text, ATOM);
        // Operands that are open are so only if the node is: then they take its dtype.
        let plain = |n: usize| self.operand(arg(n), 0, None);
        let name_of = |axis: AxisId| name(func, axis);
        match &node.op {
            Op::Param(_) => atom("%?".to_string()),
            Op::Constant(n) => atom(format!("%{}", self.module.constants.get(*n).map_or("?", |c| c.name.as_str()))),
            Op::Literal(literal) => {
                let text = match literal {
                    Literal::Float(v) => show_float(*v),
                    Literal::Int(v) => v.to_string(),
                    Literal::Bool(v) => v.to_string(),
                };
                let level = if text.starts_with('-') { PREFIX } else { ATOM };
                (text, level)
            }
            Op::Index(axis) => atom(format!("index({})", self.axes.reference(func, *axis))),
            Op::Size(axis) => atom(format!("size({})", self.axes.reference(func, *axis))),
            Op::Unary(UnaryOp::Neg) if !self.is_literal(arg(0)) => {
                (format!("-{}", self.operand(arg(0), ATOM, Some(dtype))), PREFIX)
            }
            Op::Unary(UnaryOp::Not) => (format!("not {}", self.operand(arg(0), NOT, Some(dtype))), NOT),
            Op::Unary(op) => atom(format!("{}({})", op.name(), self.operand(arg(0), 0, Some(dtype)))),
            Op::Binary(op) => match level(*op) {
                Some(level) => {
                    let (a, b) = self.pair(arg(0), arg(1), (level, level + 1), want);
                    (format!("{a} {} {b}", op_name(&node.op)), level)
                }
                None => {
                    let (a, b) = self.pair(arg(0), arg(1), (0, 0), want);
                    atom(format!("{}({a}, {b})", op.name()))
                }
            },
            Op::Compare(op) => {
                let (a, b) = self.pair(arg(0), arg(1), (COMPARISON + 1, COMPARISON + 1), None);
                (format!("{a} {} {b}", op.symbol()), COMPARISON)
            }
            Op::Select => {
                let (a, b) = self.pair(arg(1), arg(2), (0, 0), want);
                atom(format!("select({}, {a}, {b})", plain(0)))
            }
            Op::Cast => atom(format!("cast<{dtype}>({})", plain(0))),
            Op::Reduce(op, axes) => {
                atom(format!("{}[{}]({})", op.name(), self.names_of(*axes), self.operand(arg(0), 0, want)))
            }
            Op::ArgMax(axis) => atom(format!("argmax[{}]({})", name_of(*axis), plain(0))),
            Op::TopK { axis, to, .. } => {
                let to = self.axes.introduced(func, *to, None);
                atom(format!("topk[{} -> {to}]({})", name_of(*axis), plain(0)))
            }
            Op::Sort { axis, .. } => atom(format!("sort[{}]({})", name_of(*axis), plain(0))),
            Op::CumSum(axis) => atom(format!("cumsum[{}]({})", name_of(*axis), plain(0))),
            Op::Gather(axis) => atom(format!("gather[{}]({}, {})", name_of(*axis), plain(0), plain(1))),
            Op::Rename { from, to } => {
                let to = self.axes.introduced(func, *to, product(func, &[*from]));
                atom(format!("rename[{} -> {to}]({})", name_of(*from), plain(0)))
            }
            Op::Split { from, to } => {
                atom(format!("split[{} -> ({})]({})", name_of(*from), self.split_parts(*from, to), plain(0)))
            }
            Op::Merge { from, to } => {
                let to = self.axes.introduced(func, *to, product(func, from));
                let from: Vec<&str> = from.iter().map(|a| name_of(*a)).collect();
                atom(format!("merge[({}) -> {to}]({})", from.join(", "), plain(0)))
            }
            Op::Slice { from, to, start, step } => {
                atom(format!("slice[{}]({})", self.slice_range(*from, *to, *start, *step), plain(0)))
            }
            Op::Concat { from, to } => atom(self.concat(node, from, *to)),
            Op::Shift { axis, by } => {
                let fill = self.operand(arg(1), 0, Some(dtype));
                atom(format!("shift[{}, {by}]({}, {fill})", name_of(*axis), plain(0)))
            }
            Op::Quantize => {
                let x = self.node(arg(0)).map(|n| n.ty.dtype);
                let (scale, zero) = (self.operand(arg(1), 0, x), self.operand(arg(2), 0, Some(dtype)));
                atom(format!("quantize<{dtype}>({}, {scale}, {zero})", plain(0)))
            }
            Op::Dequantize => {
                let q = self.node(arg(0)).map(|n| n.ty.dtype);
                let scale = self.operand(arg(1), 0, self.open(arg(1)).map(|_| DType::F32));
                let mut text = format!("dequantize({}, {scale}, {}", plain(0), self.operand(arg(2), 0, q));
                let zero = Op::Literal(Literal::Float(0.0));
                let unsaid = self.names.get(arg(3).0 as usize).is_some_and(Option::is_none)
                    && self.node(arg(3)).is_some_and(|n| n.op == zero);
                if !unsaid {
                    text.push_str(&format!(", offset = {}", self.operand(arg(3), 0, Some(dtype))));
                }
                atom(text + ")")
            }
        }
    }

    /// Two operands of one dtype, as the parser's rule for open ones wants them.
    fn pair(&self, a: NodeId, b: NodeId, least: (u8, u8), want: Option<DType>) -> (String, String) {
        let dtype = self.node(a).map(|n| n.ty.dtype);
        match (self.open(a), self.open(b)) {
            (Some(p), Some(q)) => {
                let together = if p == DType::F32 || q == DType::F32 { DType::F32 } else { p };
                if Some(want.unwrap_or(together)) == dtype {
                    (self.operand(a, least.0, dtype), self.operand(b, least.1, dtype))
                } else {
                    // One that says its dtype is enough for both.
                    let a = dtype.map(|d| format!("{d}({})", self.operand(a, 0, dtype)));
                    (a.unwrap_or_default(), self.operand(b, least.1, dtype))
                }
            }
            (Some(_), None) => (self.operand(a, least.0, dtype), self.operand(b, least.1, None)),
            (None, Some(_)) => (self.operand(a, least.0, None), self.operand(b, least.1, dtype)),
            (None, None) => (self.operand(a, least.0, None), self.operand(b, least.1, None)),
        }
    }

    fn is_literal(&self, id: NodeId) -> bool {
        let in_place = self.names.get(id.0 as usize).is_some_and(Option::is_none);
        in_place && self.node(id).is_some_and(|n| matches!(n.op, Op::Literal(_)))
    }

    fn names_of(&self, axes: AxisSet) -> String {
        let mut axes: Vec<AxisId> = axes.iter().collect();
        axes.sort_by_key(|a| self.axes.rank(self.func, *a));
        let names: Vec<&str> = axes.iter().map(|a| name(self.func, *a)).collect();
        names.join(", ")
    }

    /// The new axes of a split, each with its size unless the name says it or it follows from the others.
    fn split_parts(&self, from: AxisId, to: &[AxisId]) -> String {
        let func = self.func;
        let is_fixed = |a: AxisId| product(func, &[a]).is_some_and(|p| p.as_constant().is_some());
        let open = to.iter().rposition(|a| !is_fixed(*a) && !self.axes.is_plain(func, *a));
        let parts = to.iter().enumerate().map(|(n, axis)| {
            let others: Vec<AxisId> = to.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, a)| *a).collect();
            let rest = || product(func, &[from])?.div_exact(&product(func, &others)?);
            self.axes.introduced(func, *axis, if open == Some(n) { rest() } else { None })
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// `j, start..stop..step`
    fn slice_range(&self, from: AxisId, to: AxisId, start: i64, step: i64) -> String {
        let (func, axes) = (self.func, &self.func.axes);
        let count = Poly::of_axis(to, axes).unwrap_or_default();
        let stop = match count.as_constant() {
            Some(0) => Some(Poly::constant(start)),
            // The last position kept, and one more.
            Some(n) => (n - 1).checked_mul(step).and_then(|d| d.checked_add(start)?.checked_add(1)).map(Poly::constant),
            None => {
                let whole = Poly::of_axis(from, axes).unwrap_or_default();
                let to_end = whole.sub(&Poly::constant(start)).and_then(|n| n.div_ceil(&Poly::constant(step)));
                if to_end.as_ref() == Some(&count) && step != 1 {
                    Some(whole)
                } else if to_end.as_ref() == Some(&count) {
                    None
                } else {
                    let last = count.sub(&Poly::constant(1)).and_then(|n| n.mul(&Poly::constant(step)));
                    last.and_then(|n| n.add(&Poly::constant(start + 1)))
                }
            }
        };
        let stop = stop.map_or_else(String::new, |p| self.axes.show(&p));
        let step = if step == 1 { String::new() } else { format!("..{step}") };
        let same_name = name(func, from) == name(func, to);
        let arrow = if same_name { String::new() } else { format!(" -> {}", self.axes.introduced(func, to, None)) };
        format!("{}{arrow}, {start}..{stop}{step}", name(func, from))
    }

    fn concat(&self, node: &Node, from: &[AxisId], to: AxisId) -> String {
        let func = self.func;
        let names: Vec<&str> = from.iter().map(|a| name(func, *a)).collect();
        let sum = from.iter().try_fold(Poly::default(), |sum, a| sum.add(&Poly::of_axis(*a, &func.axes)?));
        let same = names.windows(2).all(|w| w[0] == w[1]);
        let axes = if same { names.first().copied().unwrap_or("?").to_string() } else { names.join(", ") };
        let follows = sum.is_some() && Poly::of_axis(to, &func.axes) == sum;
        let arrow = match names.first() {
            Some(first) if *first == name(func, to) && follows => String::new(),
            _ => format!(" -> {}", self.axes.introduced(func, to, sum)),
        };
        let fixed = node.args.iter().find(|a| self.open(**a).is_none());
        let dtype = fixed.and_then(|a| self.node(*a)).map(|n| n.ty.dtype);
        let args: Vec<String> = node.args.iter().map(|a| self.operand(*a, 0, dtype)).collect();
        format!("concat[{axes}{arrow}]({})", args.join(", "))
    }
}

/// How tightly an infix operator binds; `None` for those written as functions.
fn level(op: BinaryOp) -> Option<u8> {
    Some(match op {
        BinaryOp::Or => 1,
        BinaryOp::Xor => 2,
        BinaryOp::And => 3,
        BinaryOp::Shl | BinaryOp::Shr => 6,
        BinaryOp::Add | BinaryOp::Sub => 7,
        BinaryOp::Mul | BinaryOp::Div => 8,
        BinaryOp::Rem | BinaryOp::Min | BinaryOp::Max | BinaryOp::Pow => return None,
    })
}
