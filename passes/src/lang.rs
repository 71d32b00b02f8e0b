//! The e-graph's language: terms in which sums and products are flat and sorted, quotients are products with reciprocals, and
//! differences are sums with negated operands.
//!
//! General laws of commutativity and associativity make an e-graph explode; normal forms need neither. Only floats are treated
//! so: integer arithmetic wraps and keeps its form.

use crate::interval::Interval;
use crate::order::{self, Order};
use crate::term::TermOp;
use egg::{Analysis, DidMerge, EGraph, Id, Language};
use onefold_ir::{AxisSet, BinaryOp, DType, Literal, UnaryOp};
use std::fmt;

/// What an e-node computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeOp {
    /// Sum of floats: operands sorted.
    Add(DType),
    /// Product of floats: operands sorted.
    Mul(DType),
    /// `1 / x` of floats.
    Recip(DType),
    /// Anything else, of that dtype.
    Prim(TermOp, DType),
    /// A term whose inside is of no interest: it is known by number, dtype and free axes. Only in searches for corrections.
    Opaque(u32, DType, AxisSet),
}

/// An e-node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// What it computes.
    pub op: NodeOp,
    /// From which classes.
    pub args: Vec<Id>,
}

/// What is known of all terms of an e-class.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Element type.
    pub dtype: DType,
    /// The smallest known set of free axes.
    pub axes: AxisSet,
    /// The value, if it is one number.
    pub constant: Option<Literal>,
    /// Bounds on the value if it is not NaN.
    pub interval: Interval,
    /// Whether the value is a finite number whatever the inputs are.
    pub finite: bool,
    /// Classes between which the value lies.
    pub order: Order,
}

/// Whether two descriptions can be of one value: dtypes and constants are the same, bounds overlap. The cheapest detector of a wrong
/// law; constants and bounds may differ by the rounding of different ways to them.
fn agree(a: &Facts, b: &Facts) -> bool {
    let near = |x: f64, y: f64| x == y || (x - y).abs() <= 1e-6 * x.abs().max(y.abs()) + 1e-9;
    let constants = match (a.constant, b.constant) {
        (Some(x), Some(y)) => near(x.as_f64(), y.as_f64()),
        _ => true,
    };
    let both = a.interval.intersect(b.interval);
    a.dtype == b.dtype && constants && (both.lo <= both.hi || near(both.lo, both.hi))
}

/// The e-class analysis.
#[derive(Clone, Debug)]
pub struct Analyse {
    /// No law adds to an e-graph that is larger: egg counts nodes between rounds only, and a round must not run away either.
    pub max_nodes: usize,
    /// Whether every law used is sound, so that merged facts must agree. Searches for corrections cancel what may be zero (that is why
    /// what they find is checked), and a zero among the operands makes 0 and 1 one there.
    pub sound: bool,
}

impl Default for Analyse {
    fn default() -> Analyse {
        Analyse { max_nodes: 20_000, sound: true }
    }
}

/// The e-graph.
pub type Graph = EGraph<Node, Analyse>;

impl Node {
    /// A node; operands of sums and products are sorted.
    pub fn new(op: NodeOp, mut args: Vec<Id>) -> Node {
        if matches!(op, NodeOp::Add(_) | NodeOp::Mul(_)) {
            args.sort_unstable();
        }
        Node { op, args }
    }

    /// A float literal.
    pub fn float(value: f64, dtype: DType) -> Node {
        Node { op: NodeOp::Prim(TermOp::Literal(Literal::Float(value)), dtype), args: vec![] }
    }

    /// A unary primitive.
    pub fn unary(op: UnaryOp, dtype: DType, x: Id) -> Node {
        Node { op: NodeOp::Prim(TermOp::Unary(op), dtype), args: vec![x] }
    }
}

impl Language for Node {
    type Discriminant = NodeOp;

    fn discriminant(&self) -> NodeOp {
        self.op.clone()
    }

    fn matches(&self, other: &Node) -> bool {
        self.op == other.op && self.args.len() == other.args.len()
    }

    fn children(&self) -> &[Id] {
        &self.args
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.args
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            NodeOp::Add(_) => f.write_str("+"),
            NodeOp::Mul(_) => f.write_str("*"),
            NodeOp::Recip(_) => f.write_str("recip"),
            NodeOp::Opaque(n, _, _) => write!(f, "?{n}"),
            NodeOp::Prim(op, _) => crate::print::write_op(f, op),
        }
    }
}

/// Facts of a node from those of its operands.
pub fn facts_of(op: &NodeOp, args: &[&Facts]) -> Facts {
    let of_args = args.iter().fold(AxisSet::EMPTY, |set, a| set.union(a.axes));
    let (dtype, axes) = match op {
        NodeOp::Add(dtype) | NodeOp::Mul(dtype) | NodeOp::Recip(dtype) => (*dtype, of_args),
        NodeOp::Opaque(_, dtype, axes) => (*dtype, *axes),
        NodeOp::Prim(op, dtype) => {
            let axes = match op {
                TermOp::Index(axis) => AxisSet::one(*axis),
                TermOp::Reduce(_, axes) => of_args.minus(*axes),
                TermOp::ArgMax(axis) => of_args.without(*axis),
                TermOp::TopK { axis, to, .. } => of_args.without(*axis).with(*to),
                _ => of_args,
            };
            (*dtype, axes)
        }
    };
    let interval = crate::interval::of(op, args);
    let constant = constant_of(op, args).filter(|_| dtype.is_float());
    let axes = if constant.is_some() { AxisSet::EMPTY } else { axes };
    let interval = match constant {
        Some(value) => Interval::point(value.as_f64()),
        None => interval,
    };
    let finite = crate::finite::of(op, dtype, args, interval);
    Facts { dtype, axes, constant, interval, finite, order: Order::default() }
}

/// Folding of float constants, for the operations whose result in f64, rounded once, is the operation's own.
fn constant_of(op: &NodeOp, args: &[&Facts]) -> Option<Literal> {
    if let NodeOp::Prim(TermOp::Literal(value), _) = op {
        return Some(*value);
    }
    if !matches!(
        op,
        NodeOp::Add(_)
            | NodeOp::Mul(_)
            | NodeOp::Recip(_)
            | NodeOp::Prim(TermOp::Unary(_) | TermOp::Binary(_) | TermOp::Cast, _)
    ) {
        return None;
    }
    let values: Vec<f64> = args.iter().map(|a| a.constant.map(Literal::as_f64)).collect::<Option<_>>()?;
    let value = match op {
        NodeOp::Add(_) => values.iter().copied().fold(0.0, crate::interval::exact_sum),
        NodeOp::Mul(_) => values.iter().product(),
        NodeOp::Recip(_) => 1.0 / values[0],
        NodeOp::Prim(TermOp::Cast, to) if to.widens(args[0].dtype) => values[0],
        NodeOp::Prim(TermOp::Unary(op), _) => crate::eval::unary(*op, values[0])?,
        NodeOp::Prim(TermOp::Binary(op), _) => crate::eval::binary(*op, values[0], values[1])?,
        _ => return None,
    };
    value.is_finite().then_some(Literal::Float(value))
}

impl Analysis<Node> for Analyse {
    type Data = Facts;

    fn make(egraph: &mut Graph, node: &Node, _id: Id) -> Facts {
        let args: Vec<&Facts> = node.args.iter().map(|a| &egraph[*a].data).collect();
        let mut facts = facts_of(&node.op, &args);
        facts.interval = facts.interval.intersect(order::bounds(egraph, node));
        let args: Vec<(Id, &Facts)> = node.args.iter().map(|a| (egraph.find(*a), &egraph[*a].data)).collect();
        facts.order = Order::of(&node.op, &args);
        facts
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        debug_assert!(!self.sound || agree(a, &b), "a law made two values one: {a:?} and {b:?}");
        let before = a.clone();
        a.axes = a.axes.intersect(b.axes);
        a.constant = a.constant.or(b.constant);
        a.interval = a.interval.intersect(b.interval);
        a.finite |= b.finite;
        a.order.merge(b.order.clone());
        DidMerge(*a != before, *a != b)
    }

    fn modify(egraph: &mut Graph, id: Id) {
        let facts = &egraph[id].data;
        let Some(Literal::Float(value)) = facts.constant else { return };
        let literal = Node::float(value, facts.dtype);
        let literal = egraph.add(literal);
        if egraph.find(literal) != egraph.find(id) {
            egraph.union_trusted(id, literal, "fold-constants");
        }
    }
}

/// How a term's operator stands in the language; differences and quotients of floats need more than one node and are `None`.
pub fn node_op(op: &TermOp, dtype: DType) -> Option<NodeOp> {
    if dtype.is_float() {
        match op {
            TermOp::Binary(BinaryOp::Add) => return Some(NodeOp::Add(dtype)),
            TermOp::Binary(BinaryOp::Mul) => return Some(NodeOp::Mul(dtype)),
            TermOp::Binary(BinaryOp::Sub | BinaryOp::Div) | TermOp::Unary(UnaryOp::Neg | UnaryOp::Rsqrt) => {
                return None
            }
            _ => {}
        }
    }
    Some(NodeOp::Prim(op.clone(), dtype))
}
