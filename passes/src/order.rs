//! Order facts: which classes of the e-graph never exceed which others, whatever the inputs are.
//!
//! `x <= max_j(x)` holds for every row, and a prefix of a row is a row: what is shown here also holds of a running maximum and the
//! elements that it has seen. Like intervals, a fact speaks of values that are not NaN.

use crate::interval::Interval;
use crate::lang::{Facts, Graph, Node, NodeOp};
use crate::term::TermOp;
use egg::Id;
use onefold_ir::{BinaryOp, ReduceOp, UnaryOp};

/// The most classes that are remembered on one side of a class.
const MAX_FACTS: usize = 8;

/// Classes between which a value lies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Classes that it is never below, ascending.
    at_least: Vec<Id>,
    /// Classes that it never exceeds, ascending.
    at_most: Vec<Id>,
}

impl Order {
    /// What is known of a node from its operands: a maximum is at least what it is taken over, and so is what that is at least.
    pub fn of(op: &NodeOp, args: &[(Id, &Facts)]) -> Order {
        let mut order = Order::default();
        match op {
            NodeOp::Prim(TermOp::Reduce(ReduceOp::Max, _) | TermOp::Binary(BinaryOp::Max), _) => {
                for (id, facts) in args {
                    insert(&mut order.at_least, facts.order.at_least.iter().copied().chain([*id]));
                }
            }
            NodeOp::Prim(TermOp::Reduce(ReduceOp::Min, _) | TermOp::Binary(BinaryOp::Min), _) => {
                for (id, facts) in args {
                    insert(&mut order.at_most, facts.order.at_most.iter().copied().chain([*id]));
                }
            }
            _ => {}
        }
        order
    }

    /// Both are known.
    pub fn merge(&mut self, other: Order) {
        insert(&mut self.at_least, other.at_least);
        insert(&mut self.at_most, other.at_most);
    }
}

fn insert(known: &mut Vec<Id>, new: impl IntoIterator<Item = Id>) {
    known.extend(new);
    known.sort_unstable();
    known.dedup();
    known.truncate(MAX_FACTS);
}

/// Whether a class never exceeds another.
pub fn at_most(egraph: &Graph, x: Id, bound: Id) -> bool {
    let (x, bound) = (egraph.find(x), egraph.find(bound));
    let (below, above) = (&egraph[x].data, &egraph[bound].data);
    let has = |list: &[Id], id: Id| list.iter().any(|i| egraph.find(*i) == id);
    x == bound
        || below.interval.hi <= above.interval.lo
        || has(&above.order.at_least, x)
        || has(&below.order.at_most, bound)
}

/// Bounds on a node that follow from the order of its operands: of a sum, where something and the negation of what it never exceeds (or
/// never is below) are among the operands; of a quotient by what the magnitude of the dividend never exceeds.
pub fn bounds(egraph: &Graph, node: &Node) -> Interval {
    match &node.op {
        NodeOp::Add(_) => of_sum(egraph, node),
        NodeOp::Mul(_) => of_share(egraph, node),
        _ => Interval::ANY,
    }
}

fn of_sum(egraph: &Graph, node: &Node) -> Interval {
    let mut rest: Vec<Id> = node.args.clone();
    let mut total = Interval::point(0.0);
    let mut paired = false;
    while let Some((i, k, bounds)) = pair(egraph, &rest) {
        paired = true;
        total = total.plus(bounds);
        rest.remove(i.max(k));
        rest.remove(i.min(k));
    }
    if !paired {
        return Interval::ANY;
    }
    rest.iter().fold(total, |sum, id| sum.plus(egraph[*id].data.interval))
}

/// Two operands `x` and `-b` of which it is known which of `x` and `b` is larger, by their places.
fn pair(egraph: &Graph, operands: &[Id]) -> Option<(usize, usize, Interval)> {
    for (k, minus) in operands.iter().enumerate() {
        for b in negated(egraph, *minus) {
            for (i, x) in operands.iter().enumerate().filter(|(i, _)| *i != k) {
                if at_most(egraph, *x, b) {
                    return Some((i, k, Interval::new(f64::NEG_INFINITY, 0.0)));
                }
                if at_most(egraph, b, *x) {
                    return Some((i, k, Interval::NONNEGATIVE));
                }
            }
        }
    }
    None
}

/// Classes whose negation a class is. Numbers are left to their intervals.
fn negated(egraph: &Graph, class: Id) -> Vec<Id> {
    let is_minus_one = |id: Id| egraph[id].data.constant.is_some_and(|c| c.as_f64() == -1.0);
    let of_node = |node: &Node| match (&node.op, &node.args[..]) {
        (NodeOp::Mul(_), [a, b]) if is_minus_one(*a) => Some(*b),
        (NodeOp::Mul(_), [a, b]) if is_minus_one(*b) => Some(*a),
        _ => None,
    };
    let found = egraph[class].nodes.iter().filter_map(of_node);
    found.filter(|id| egraph[*id].data.constant.is_none()).collect()
}

/// Of `x * (1 / m)`, where `|x| <= m`.
fn of_share(egraph: &Graph, node: &Node) -> Interval {
    let (NodeOp::Mul(dtype), [a, b]) = (&node.op, &node.args[..]) else { return Interval::ANY };
    let is_share = |x: Id, recip: Id| {
        let magnitude = egraph.lookup(Node::unary(UnaryOp::Abs, *dtype, x));
        let of_recip = |n: &&Node| matches!(n.op, NodeOp::Recip(_));
        magnitude.is_some_and(|m| egraph[recip].nodes.iter().filter(of_recip).any(|n| at_most(egraph, m, n.args[0])))
    };
    if is_share(*a, *b) || is_share(*b, *a) {
        Interval::new(-1.0, 1.0)
    } else {
        Interval::ANY
    }
}
