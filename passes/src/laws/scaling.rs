//! Factors through functions that are homogeneous: what lets a correction pass absolute values, roots, maxima and selections.
//!
//! Only for corrections, which are checked by multiplying back: the conditions on signs are left to that check.

use super::arithmetic::{common_factors, without_factor};
use super::{is_mul, nodes_of, product, Law};
use crate::lang::{Graph, Node, NodeOp};
use crate::term::TermOp;
use egg::Id;
use onefold_ir::{BinaryOp, UnaryOp};

/// The laws.
pub const LAWS: &[Law] = &[MULTIPLICATIVE, POWER, EXTREMUM, SELECT, WIDEN];

const MULTIPLICATIVE: Law = Law {
    name: "multiplicative",
    states: "|a * b| = |a| * |b|, sqrt(a * b) = sqrt a * sqrt b, and of reciprocals",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Unary(UnaryOp::Abs | UnaryOp::Sqrt), _)),
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        for inner in nodes_of(g, n.args[0], |op| is_mul(op) || matches!(op, NodeOp::Recip(_))) {
            let args = inner.args.iter().map(|a| g.add(Node::new(n.op.clone(), vec![*a]))).collect();
            out.push(if is_mul(&inner.op) { product(g, dtype, args) } else { g.add(Node::new(inner.op, args)) });
        }
        if g[n.args[0]].data.interval.is_nonnegative() && n.op == NodeOp::Prim(TermOp::Unary(UnaryOp::Abs), dtype) {
            out.push(n.args[0]);
        }
    },
};

const POWER: Law = Law {
    name: "power-of-product",
    states: "(a * b)^c = a^c * b^c, (1/a)^c = 1/a^c",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Binary(BinaryOp::Pow), _)),
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        for inner in nodes_of(g, n.args[0], |op| is_mul(op) || matches!(op, NodeOp::Recip(_))) {
            let args = inner.args.iter().map(|a| g.add(Node::new(n.op.clone(), vec![*a, n.args[1]]))).collect();
            out.push(if is_mul(&inner.op) { product(g, dtype, args) } else { g.add(Node::new(inner.op, args)) });
        }
    },
};

const EXTREMUM: Law = Law {
    name: "extremum-of-scaled",
    states: "max(f*a, f*b) = f * max(a, b), min likewise, if f >= 0",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Binary(BinaryOp::Max | BinaryOp::Min), _)),
    apply: |g, n, out| factor_out(g, n, 0, out),
};

const SELECT: Law = Law {
    name: "select-of-scaled",
    states: "select(c, f*a, f*b) = f * select(c, a, b)",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Select, _)),
    apply: |g, n, out| factor_out(g, n, 1, out),
};

const WIDEN: Law = Law {
    name: "widen",
    states: "cast(a * b) = cast a * cast b, of sums, reciprocals and exponentials likewise, for casts to a wider float",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Cast, to) if to.is_float()),
    apply: |g, n, out| {
        let NodeOp::Prim(_, to) = n.op else { return };
        if !to.widens(g[n.args[0]].data.dtype) {
            return;
        }
        let passes = |op: &NodeOp| match op {
            NodeOp::Add(_) | NodeOp::Mul(_) | NodeOp::Recip(_) => true,
            NodeOp::Prim(op, _) => matches!(op, TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2)),
            NodeOp::Opaque(..) => false,
        };
        for inner in nodes_of(g, n.args[0], passes) {
            let args = inner.args.iter().map(|a| g.add(Node::new(n.op.clone(), vec![*a]))).collect();
            let op = match inner.op {
                NodeOp::Add(_) => NodeOp::Add(to),
                NodeOp::Mul(_) => NodeOp::Mul(to),
                NodeOp::Prim(op, _) => NodeOp::Prim(op, to),
                _ => NodeOp::Recip(to),
            };
            out.push(g.add(Node::new(op, args)));
        }
    },
};

/// Take a common factor out of the operands from `first` on. Zero has every factor.
fn factor_out(egraph: &mut Graph, node: &Node, first: usize, out: &mut Vec<Id>) {
    let NodeOp::Prim(_, dtype) = node.op else { return };
    let is_zero = |g: &Graph, x: Id| g[x].data.constant.is_some_and(|c| c.as_f64() == 0.0);
    let scaled: Vec<Id> = node.args[first..].iter().copied().filter(|a| !is_zero(egraph, *a)).collect();
    for f in common_factors(egraph, &scaled) {
        if first == 0 && !egraph[f].data.interval.is_nonnegative() {
            continue;
        }
        let mut args = node.args[..first].to_vec();
        for arg in &node.args[first..] {
            args.push(if is_zero(egraph, *arg) {
                *arg
            } else {
                let rest = without_factor(egraph, *arg, f).unwrap_or_default();
                product(egraph, dtype, rest)
            });
        }
        let inner = egraph.add(Node::new(node.op.clone(), args));
        out.push(product(egraph, dtype, vec![f, inner]));
    }
}
