//! Sums, products and quotients.

use super::{is_add, is_mul, nodes_of, product, sum, Law};
use crate::interval::exact_sum;
use crate::lang::{Graph, Node, NodeOp};
use egg::Id;
use onefold_ir::{DType, Literal};

/// The longest sum or product that flattening makes: a bound on growth.
const MAX_OPERANDS: usize = 8;

/// For kernels. Sums are not flattened here: `(x - m) - log d` and `x - (m + log d)` differ in the last digits of a large `m`,
/// and the user's order is the accurate one.
pub const KERNEL: &[Law] = &[FLATTEN_PRODUCT, UNITS, CANCEL_POSITIVE, CANCEL_FINITE, ANNIHILATE, MAGNITUDE];

/// For corrections.
pub const CORRECTION: &[Law] =
    &[FLATTEN_PRODUCT, FLATTEN_SUM, UNITS, CANCEL, CANCEL_SUM, RECIP_PRODUCT, DISTRIBUTE_SCALAR, FACTOR];

const FLATTEN_PRODUCT: Law =
    Law { name: "flatten-product", states: "(a * b) * c = a * b * c", on: is_mul, apply: flatten };

const FLATTEN_SUM: Law = Law { name: "flatten-sum", states: "(a + b) + c = a + b + c", on: is_add, apply: flatten };

const UNITS: Law = Law {
    name: "units",
    states: "1 * x = x, 0 + x = x, constants among the operands are one constant",
    on: |op| is_mul(op) || is_add(op),
    apply: units,
};

/// Legal in kernels only where x is positive for every input (an exponential): the quotient is then 1 in the reals, and a float
/// quotient that is not comes from an overflow which the cancelled form avoids.
const CANCEL_POSITIVE: Law = Law {
    name: "cancel-positive",
    states: "x * (1 / x) = 1 if x > 0",
    on: is_mul,
    apply: |g, n, out| cancel(g, n, out, is_positive),
};

/// Legal in kernels only for finite x: of an infinity or a NaN the difference is NaN.
const CANCEL_FINITE: Law = Law {
    name: "cancel-finite",
    states: "x - x = 0 if x is finite",
    on: is_add,
    apply: |g, n, out| cancel_sum(g, n, out, |g, x| g[x].data.finite),
};

/// As [`CANCEL_FINITE`]: zero times an infinity or a NaN is NaN.
const ANNIHILATE: Law = Law {
    name: "annihilate",
    states: "0 * x = 0 if x is finite",
    on: is_mul,
    apply: |g, n, out| {
        let is_zero = |id: Id| g[id].data.constant.is_some_and(|c| c.as_f64() == 0.0);
        if n.args.iter().any(|a| is_zero(*a)) && n.args.iter().all(|a| g[*a].data.finite) {
            out.push(g.add(Node::float(0.0, dtype_of(&n.op))));
        }
    },
};

const MAGNITUDE: Law = Law {
    name: "magnitude",
    states: "|x| = x if x >= 0, -x if x <= 0",
    on: |op| matches!(op, NodeOp::Prim(crate::term::TermOp::Unary(onefold_ir::UnaryOp::Abs), d) if d.is_float()),
    apply: |g, n, out| {
        let interval = g[n.args[0]].data.interval;
        if interval.is_nonnegative() {
            out.push(n.args[0]);
        } else if interval.is_nonpositive() {
            let dtype = dtype_of(&n.op);
            out.push(super::negate(g, dtype, n.args[0]));
        }
    },
};

/// Only for corrections, which are checked by multiplying back.
const CANCEL: Law =
    Law { name: "cancel", states: "x * (1 / x) = 1", on: is_mul, apply: |g, n, out| cancel(g, n, out, |_, _| true) };

const CANCEL_SUM: Law =
    Law { name: "cancel-sum", states: "x - x = 0", on: is_add, apply: |g, n, out| cancel_sum(g, n, out, |_, _| true) };

pub(super) const RECIP_PRODUCT: Law = Law {
    name: "reciprocal-of-product",
    states: "1 / (a * b) = 1/a * 1/b, 1 / (1/a) = a",
    on: |op| matches!(op, NodeOp::Recip(_)),
    apply: recip_product,
};

const DISTRIBUTE_SCALAR: Law = Law {
    name: "distribute-scalar",
    states: "c * (a + b) = c*a + c*b if c lacks an axis that the sum has",
    on: is_mul,
    apply: distribute_scalar,
};

const FACTOR: Law = Law { name: "factor", states: "f*a + f*b = f * (a + b)", on: is_add, apply: factor };

/// Positive in the reals: bounded away from zero, or made by an exponential, a root or a reciprocal of such.
pub(super) fn is_positive(egraph: &Graph, class: Id) -> bool {
    use crate::term::{TermOp, WideOp};
    use onefold_ir::UnaryOp;
    let class = &egraph[class];
    class.data.interval.is_positive()
        || class.nodes.iter().any(|n| match &n.op {
            NodeOp::Prim(TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2) | TermOp::Wide(WideOp::Power), _) => true,
            NodeOp::Recip(_) => egraph[n.args[0]].data.interval.is_nonnegative(),
            _ => false,
        })
}

fn dtype_of(op: &NodeOp) -> DType {
    match op {
        NodeOp::Add(d) | NodeOp::Mul(d) | NodeOp::Recip(d) | NodeOp::Prim(_, d) | NodeOp::Opaque(_, d, _) => *d,
    }
}

fn flatten(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    for (i, arg) in node.args.iter().enumerate() {
        // A class that is a number (x * 1/x, say) has no end of products.
        if egraph[*arg].data.constant.is_some() {
            continue;
        }
        for inner in nodes_of(egraph, *arg, |op| *op == node.op) {
            if inner.args.contains(arg) || node.args.len() + inner.args.len() > MAX_OPERANDS + 1 {
                continue;
            }
            let mut args = node.args.clone();
            args.remove(i);
            args.extend(inner.args);
            out.push(egraph.add(Node::new(node.op.clone(), args)));
        }
    }
}

fn units(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let constants: Vec<(usize, f64)> = (0..node.args.len())
        .filter_map(|i| Some((i, egraph[node.args[i]].data.constant.map(Literal::as_f64)?)))
        .collect();
    let dtype = dtype_of(&node.op);
    let multiply = is_mul(&node.op);
    let unit = if multiply { 1.0 } else { 0.0 };
    let total = constants.iter().fold(unit, |t, (_, c)| if multiply { t * c } else { exact_sum(t, *c) });
    if constants.is_empty() || (constants.len() == 1 && total != unit) || !total.is_finite() {
        return;
    }
    let mut args: Vec<Id> = node.args.clone();
    for (i, _) in constants.iter().rev() {
        args.remove(*i);
    }
    if total != unit {
        args.push(egraph.add(Node::float(total, dtype)));
    }
    out.push(if multiply { product(egraph, dtype, args) } else { sum(egraph, dtype, args) });
}

fn cancel(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>, allowed: impl Fn(&Graph, Id) -> bool) {
    for (i, arg) in node.args.iter().enumerate() {
        for recip in nodes_of(egraph, *arg, |op| matches!(op, NodeOp::Recip(_))) {
            let x = egraph.find(recip.args[0]);
            let Some(k) = (0..node.args.len()).find(|k| *k != i && egraph.find(node.args[*k]) == x) else { continue };
            if !allowed(egraph, x) {
                continue;
            }
            let rest = (0..node.args.len()).filter(|n| *n != i && *n != k).map(|n| node.args[n]).collect();
            out.push(product(egraph, dtype_of(&node.op), rest));
        }
    }
}

fn cancel_sum(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>, allowed: impl Fn(&Graph, Id) -> bool) {
    let dtype = dtype_of(&node.op);
    let Some(minus) = egraph.lookup(Node::float(-1.0, dtype)) else { return };
    for (i, arg) in node.args.iter().enumerate() {
        let Some(negative) = egraph.lookup(Node::new(NodeOp::Mul(dtype), vec![minus, egraph.find(*arg)])) else {
            continue;
        };
        let Some(k) = (0..node.args.len()).find(|k| *k != i && egraph.find(node.args[*k]) == negative) else {
            continue;
        };
        if !allowed(egraph, *arg) {
            continue;
        }
        let rest = (0..node.args.len()).filter(|n| *n != i && *n != k).map(|n| node.args[n]).collect();
        out.push(sum(egraph, dtype, rest));
    }
}

fn recip_product(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let dtype = dtype_of(&node.op);
    for inner in nodes_of(egraph, node.args[0], |op| is_mul(op) || matches!(op, NodeOp::Recip(_))) {
        if !is_mul(&inner.op) {
            out.push(inner.args[0]);
            continue;
        }
        let args = inner.args.iter().map(|a| egraph.add(Node::new(NodeOp::Recip(dtype), vec![*a]))).collect();
        out.push(product(egraph, dtype, args));
    }
}

fn distribute_scalar(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let dtype = dtype_of(&node.op);
    for (i, arg) in node.args.iter().enumerate() {
        let mut rest = node.args.clone();
        rest.remove(i);
        let axes = egraph[*arg].data.axes;
        let scalar = rest.iter().all(|r| egraph[*r].data.axes.is_subset(axes) && egraph[*r].data.axes != axes);
        if !scalar {
            continue;
        }
        for inner in nodes_of(egraph, *arg, is_add) {
            if inner.args.len() > 4 {
                continue;
            }
            let mut terms = vec![];
            for x in inner.args {
                let mut factors = rest.clone();
                factors.push(x);
                terms.push(product(egraph, dtype, factors));
            }
            out.push(sum(egraph, dtype, terms));
        }
    }
}

/// Ways to write a class as a product: the operands of its product nodes, and itself alone.
fn factorings(egraph: &Graph, class: Id) -> Vec<Vec<Id>> {
    let mut ways: Vec<Vec<Id>> = nodes_of(egraph, class, is_mul).into_iter().map(|n| n.args).collect();
    ways.push(vec![egraph.find(class)]);
    ways
}

/// What is left of a class when a factor is taken out.
pub(super) fn without_factor(egraph: &Graph, class: Id, factor: Id) -> Option<Vec<Id>> {
    factorings(egraph, class).into_iter().find_map(|mut way| {
        let at = way.iter().position(|f| egraph.find(*f) == egraph.find(factor))?;
        way.remove(at);
        Some(way)
    })
}

/// Factors, other than constants, that several classes share.
pub(super) fn common_factors(egraph: &Graph, classes: &[Id]) -> Vec<Id> {
    let Some((first, others)) = classes.split_first() else { return vec![] };
    let mut found: Vec<Id> = factorings(egraph, *first).into_iter().flatten().map(|f| egraph.find(f)).collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|f| {
        egraph[*f].data.constant.is_none() && others.iter().all(|o| without_factor(egraph, *o, *f).is_some())
    });
    found
}

fn factor(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let dtype = dtype_of(&node.op);
    for f in common_factors(egraph, &node.args) {
        let mut terms = vec![];
        for arg in &node.args {
            let rest = without_factor(egraph, *arg, f).unwrap_or_default();
            terms.push(product(egraph, dtype, rest));
        }
        let inner = sum(egraph, dtype, terms);
        out.push(product(egraph, dtype, vec![f, inner]));
    }
}
