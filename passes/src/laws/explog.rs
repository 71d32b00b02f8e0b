//! Exponentials and logarithms.

use super::{is_add, is_mul, negate, nodes_of, product, sum, Law};
use crate::lang::{Graph, Node, NodeOp};
use crate::term::{TermOp, WideOp};
use egg::Id;
use onefold_ir::UnaryOp;

/// For kernels: logarithms come apart, which is more accurate (`log(exp(a) / b)` underflows where `a - log b` does not).
pub const KERNEL: &[Law] = &[LOG_PRODUCT, INVERSE];

/// For corrections. Exponentials come apart and together again: neither direction is allowed in kernels, where `exp(a) * exp(b)` overflows
/// and `exp(a + b)` does not.
pub const CORRECTION: &[Law] = &[LOG_PRODUCT_CHECKED, INVERSE, EXP_SUM, EXP_MERGE, RECIP_EXP];

const LOG_PRODUCT: Law = Law {
    name: "log-of-product",
    states: "log(a * b) = log a + log b, log(1/a) = -log a, if a, b >= 0",
    on: is_log,
    apply: |g, n, out| log_product(g, n, out, |g, x| g[x].data.interval.is_nonnegative()),
};

/// Without the condition: the correction found is checked by multiplying back.
const LOG_PRODUCT_CHECKED: Law = Law {
    name: "log-of-product",
    states: "log(a * b) = log a + log b, log(1/a) = -log a",
    on: is_log,
    apply: |g, n, out| log_product(g, n, out, |_, _| true),
};

const INVERSE: Law = Law {
    name: "log-of-exp",
    states: "log(exp a) = a, log2(exp2 a) = a",
    on: is_log,
    apply: |g, n, out| {
        let NodeOp::Prim(TermOp::Unary(log), _) = n.op else { return };
        let exp = if log == UnaryOp::Log { UnaryOp::Exp } else { UnaryOp::Exp2 };
        let inner = nodes_of(g, n.args[0], |op| matches!(op, NodeOp::Prim(TermOp::Unary(u), _) if *u == exp));
        out.extend(inner.iter().map(|e| e.args[0]));
    },
};

pub(super) const EXP_SUM: Law = Law {
    name: "exp-of-sum",
    states: "exp(a + b) = exp a * exp b",
    on: is_exp,
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        for inner in nodes_of(g, n.args[0], is_add) {
            let factors = inner.args.iter().map(|a| g.add(Node::new(n.op.clone(), vec![*a]))).collect();
            out.push(product(g, dtype, factors));
        }
    },
};

const EXP_MERGE: Law =
    Law { name: "product-of-exps", states: "exp a * exp b = exp(a + b)", on: is_mul, apply: merge_exps };

const RECIP_EXP: Law = Law {
    name: "reciprocal-of-exp",
    states: "1 / exp a = exp(-a)",
    on: |op| matches!(op, NodeOp::Recip(_)),
    apply: |g, n, out| {
        let NodeOp::Recip(dtype) = n.op else { return };
        for exp in nodes_of(g, n.args[0], is_exp) {
            let minus = negate(g, dtype, exp.args[0]);
            out.push(g.add(Node::new(exp.op, vec![minus])));
        }
    },
};

fn is_log(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Prim(TermOp::Unary(UnaryOp::Log | UnaryOp::Log2), _))
}

fn is_exp(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Prim(TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2) | TermOp::Wide(WideOp::Power), _))
}

fn log_product(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>, allowed: impl Fn(&Graph, Id) -> bool) {
    let NodeOp::Prim(_, dtype) = node.op else { return };
    let inner = nodes_of(egraph, node.args[0], |op| is_mul(op) || matches!(op, NodeOp::Recip(_)));
    for inner in inner {
        if !inner.args.iter().all(|a| allowed(egraph, *a)) {
            continue;
        }
        let logs: Vec<Id> = inner.args.iter().map(|a| egraph.add(Node::new(node.op.clone(), vec![*a]))).collect();
        out.push(match inner.op {
            NodeOp::Recip(_) => negate(egraph, dtype, logs[0]),
            _ => sum(egraph, dtype, logs),
        });
    }
}

fn merge_exps(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let NodeOp::Mul(dtype) = node.op else { return };
    for base in [TermOp::Unary(UnaryOp::Exp), TermOp::Unary(UnaryOp::Exp2), TermOp::Wide(WideOp::Power)] {
        let op = NodeOp::Prim(base, dtype);
        let (mut exponents, mut rest) = (vec![], vec![]);
        for arg in &node.args {
            match nodes_of(egraph, *arg, |o| *o == op).first() {
                Some(exp) => exponents.push(exp.args[0]),
                None => rest.push(*arg),
            }
        }
        if exponents.len() < 2 {
            continue;
        }
        let exponent = sum(egraph, dtype, exponents);
        rest.push(egraph.add(Node::new(op, vec![exponent])));
        out.push(product(egraph, dtype, rest));
    }
}
