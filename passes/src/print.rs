//! Terms as people write them.

use crate::fold::{Anchor, ArrayDecl, State};
use crate::term::{ArrayId, TermId, TermOp, Terms};
use onefold_ir::{AxisDecl, AxisId, AxisSet, BinaryOp, Literal, Part};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

/// Names for what terms refer to. States and anchors are empty before there are any.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Axes of the function.
    pub axes: &'a [AxisDecl],
    /// Inputs.
    pub inputs: &'a [ArrayDecl],
    /// Intermediates.
    pub intermediates: &'a [ArrayDecl],
    /// States.
    pub states: &'a [State],
    /// Anchors.
    pub anchors: &'a [Anchor],
    /// Terms that are printed by name, because they were defined before.
    pub shared: Option<&'a BTreeMap<TermId, String>>,
    /// Whether a law of correction is printed: anchors are then called `old` and `new`, and every operation is in parentheses.
    pub law: bool,
}

/// The most nodes of a term that are written out.
const MAX_NODES: u32 = 2000;

/// Binding strengths: sum, product, prefix, atom.
const SUM: u8 = 3;
const PRODUCT: u8 = 4;
const PREFIX: u8 = 5;
const ATOM: u8 = 6;

impl<'a> Names<'a> {
    /// Names of axes and inputs alone.
    pub fn of(axes: &'a [AxisDecl], inputs: &'a [ArrayDecl]) -> Names<'a> {
        Names { axes, inputs, intermediates: &[], states: &[], anchors: &[], shared: None, law: false }
    }

    /// The name of an axis.
    pub fn axis(&self, axis: AxisId) -> &str {
        self.axes.get(axis.0 as usize).map_or("?", |a| &a.name)
    }

    /// Names of axes, separated by commas.
    pub fn axis_list(&self, axes: impl IntoIterator<Item = AxisId>) -> String {
        axes.into_iter().map(|a| self.axis(a)).collect::<Vec<_>>().join(", ")
    }

    /// A term in infix form.
    pub fn term(&self, terms: &Terms, id: TermId) -> String {
        self.at(terms, id, 0, 1, &Cell::new(MAX_NODES))
    }

    /// A term's definition: in infix form even if it has a name.
    pub fn definition(&self, terms: &Terms, id: TermId) -> String {
        self.at(terms, id, 0, 0, &Cell::new(MAX_NODES))
    }

    fn at(&self, terms: &Terms, id: TermId, outer: u8, depth: usize, left: &Cell<u32>) -> String {
        // Shared terms are written out wherever they occur, which may be without end in a deep graph.
        if depth > 200 || left.get() == 0 {
            return "...".to_owned();
        }
        left.set(left.get() - 1);
        if let (Some(name), true) = (self.shared.and_then(|s| s.get(&id)), depth > 0) {
            return name.clone();
        }
        let term = terms.get(id);
        let arg = |i: usize, level: u8| self.at(terms, term.args[i], level, depth + 1, left);
        let list = || term.args.iter().map(|a| self.at(terms, *a, 0, depth + 1, left)).collect::<Vec<_>>().join(", ");
        let (text, level) = match &term.op {
            TermOp::Literal(value) => (literal(*value), if value.as_f64() < 0.0 { PREFIX } else { ATOM }),
            TermOp::Index(axis) => (format!("index({})", self.axis(*axis)), ATOM),
            TermOp::Size(axis) => (format!("size({})", self.axis(*axis)), ATOM),
            TermOp::Seen(axis) => (format!("seen({})", self.axis(*axis)), ATOM),
            TermOp::Load { array, .. } => (self.load(terms, *array, &term.args, depth, left), ATOM),
            TermOp::Unary(op) => match op {
                onefold_ir::UnaryOp::Neg => (format!("-{}", arg(0, PREFIX)), PREFIX),
                _ => (format!("{}({})", op.name(), list()), ATOM),
            },
            TermOp::Wide(op) => (format!("{}({})", op.name(), list()), ATOM),
            TermOp::Binary(op) => match op {
                BinaryOp::Add => (format!("{} + {}", arg(0, SUM), arg(1, PRODUCT)), SUM),
                BinaryOp::Sub => (format!("{} - {}", arg(0, SUM), arg(1, PRODUCT)), SUM),
                BinaryOp::Mul => (format!("{} * {}", arg(0, PRODUCT), arg(1, PREFIX)), PRODUCT),
                BinaryOp::Div => (format!("{} / {}", arg(0, PRODUCT), arg(1, PREFIX)), PRODUCT),
                _ => (format!("{}({})", op.name(), list()), ATOM),
            },
            TermOp::Compare(op) => (format!("{} {} {}", arg(0, SUM), op.symbol(), arg(1, SUM)), 2),
            TermOp::Select => (format!("select({})", list()), ATOM),
            TermOp::Cast => (format!("cast<{}>({})", term.dtype, list()), ATOM),
            TermOp::Reduce(op, axes) => {
                (format!("{}[{}]({})", op.name(), self.axis_list(axes.iter()), arg(0, 0)), ATOM)
            }
            TermOp::ArgMax(axis) => (format!("argmax[{}]({})", self.axis(*axis), arg(0, 0)), ATOM),
            TermOp::TopK { axis, to, part } => {
                (format!("topk[{} -> {}]({}){}", self.axis(*axis), self.axis(*to), arg(0, 0), suffix(*part)), ATOM)
            }
            TermOp::State { state, part } => {
                let name = self.states.get(state.0 as usize).map_or("?", |s| &s.name);
                (format!("{name}{}", suffix(*part)), ATOM)
            }
            TermOp::Anchor(a) => (self.anchor(*a, ""), ATOM),
            TermOp::AnchorOld(a) => (self.anchor(*a, "'"), ATOM),
        };
        if level < outer || (self.law && level < ATOM && depth > 0) {
            format!("({text})")
        } else {
            text
        }
    }

    fn anchor(&self, id: crate::fold::AnchorId, mark: &str) -> String {
        if self.law {
            let age = if mark.is_empty() { "new" } else { "old" };
            let name = self.anchors.get(id.0 as usize).map_or("?", |a| &a.name);
            return if self.anchors.len() == 1 { age.to_owned() } else { format!("{age}.{name}") };
        }
        format!("{}{mark}", self.anchors.get(id.0 as usize).map_or("?", |a| &a.name))
    }

    /// `x` where every operand is the array's own axis, else `x[i + 1, j]`.
    fn load(&self, terms: &Terms, array: ArrayId, args: &[TermId], depth: usize, left: &Cell<u32>) -> String {
        let decl = match array {
            ArrayId::Input(i) => self.inputs.get(i),
            ArrayId::Intermediate(i) => self.intermediates.get(i),
        };
        let Some(decl) = decl else { return "?".to_owned() };
        let plain = decl.axes.iter().zip(args).all(|(axis, arg)| terms.get(*arg).op == TermOp::Index(*axis));
        if plain {
            return decl.name.clone();
        }
        let at: Vec<String> = args
            .iter()
            .map(|a| match terms.get(*a).op {
                TermOp::Index(axis) => self.axis(axis).to_owned(),
                _ => self.at(terms, *a, 0, depth + 1, left),
            })
            .collect();
        format!("{}[{}]", decl.name, at.join(", "))
    }
}

/// A number, as short as it reads back.
pub fn literal(value: Literal) -> String {
    match value {
        Literal::Float(v) => format!("{v}"),
        Literal::Int(v) => format!("{v}"),
        Literal::Bool(v) => format!("{v}"),
    }
}

fn suffix(part: Part) -> &'static str {
    match part {
        Part::Values => "",
        Part::Indices => ".at",
    }
}

/// An operator alone, axes by number: what e-graph dumps show.
pub fn write_op(f: &mut fmt::Formatter<'_>, op: &TermOp) -> fmt::Result {
    let axes = |set: AxisSet| set.iter().map(|a| a.to_string()).collect::<Vec<_>>().join(",");
    match op {
        TermOp::Literal(value) => f.write_str(&literal(*value)),
        TermOp::Index(a) => write!(f, "index({a})"),
        TermOp::Size(a) => write!(f, "size({a})"),
        TermOp::Seen(a) => write!(f, "seen({a})"),
        TermOp::Load { array: ArrayId::Input(n), .. } => write!(f, "in{n}"),
        TermOp::Load { array: ArrayId::Intermediate(n), .. } => write!(f, "tmp{n}"),
        TermOp::Unary(op) => f.write_str(op.name()),
        TermOp::Wide(op) => f.write_str(op.name()),
        TermOp::Binary(op) => f.write_str(op.name()),
        TermOp::Compare(op) => f.write_str(op.symbol()),
        TermOp::Select => f.write_str("select"),
        TermOp::Cast => f.write_str("cast"),
        TermOp::Reduce(op, set) => write!(f, "{}[{}]", op.name(), axes(*set)),
        TermOp::ArgMax(a) => write!(f, "argmax[{a}]"),
        TermOp::TopK { axis, to, part } => write!(f, "topk[{axis}->{to}]{}", suffix(*part)),
        TermOp::State { state, part } => write!(f, "state{}{}", state.0, suffix(*part)),
        TermOp::Anchor(a) => write!(f, "new{}", a.0),
        TermOp::AnchorOld(a) => write!(f, "old{}", a.0),
    }
}
