//! Sums along axes: what does not vary moves out, sums of sums exchange, branches move out.

use super::{is_add, is_mul, nodes_of, product, sum, Law};
use crate::lang::{Graph, Node, NodeOp};
use crate::term::TermOp;
use egg::Id;
use onefold_ir::{AxisSet, DType, ReduceOp};

/// The laws.
pub const LAWS: &[Law] = &[HOIST, LINEAR, DISTRIBUTE, EXCHANGE, SELECT_OUT];

const HOIST: Law = Law {
    name: "hoist-factor",
    states: "sum_j(a * b) = a * sum_j(b) if j is not free in a; sum_j(a) = size(j) * a",
    on: is_sum,
    apply: |g, n, out| hoist(g, n, out, true),
};

/// [`HOIST`] without its guard: for wide exponents, where what is left inside cannot overflow.
pub(super) const HOIST_FREELY: Law =
    Law { name: "hoist-wide-factor", states: HOIST.states, on: is_sum, apply: |g, n, out| hoist(g, n, out, false) };

/// Only where every operand varies along j, since splitting `x - mean` would turn a difference of near values into a difference of
/// large sums; and for the same reason not for differences.
const LINEAR: Law = Law {
    name: "sum-of-sums",
    states: "sum_j(a + b) = sum_j(a) + sum_j(b) if j is free in both",
    on: is_sum,
    apply: |g, n, out| {
        let Some((axes, dtype)) = parts(&n.op) else { return };
        for body in nodes_of(g, n.args[0], is_add) {
            let no_difference = body.args.iter().all(|a| !is_negated(g, *a));
            if body.args.len() <= 4 && no_difference && all_vary(g, &body.args, axes) {
                let sums = body.args.iter().map(|a| g.add(Node::new(n.op.clone(), vec![*a]))).collect();
                out.push(sum(g, dtype, sums));
            }
        }
    },
};

/// Where every operand varies along j and some operand then sheds a factor that does not. A difference stays whole, as in [`LINEAR`],
/// unless all of its operands shed one: `x / a - y / b`, shares of different wholes, are rounded each before they meet, so that sums
/// of either lose no more. Of `y - b * x`, in which data meet their prediction, nothing would be left.
const DISTRIBUTE: Law = Law {
    name: "distribute-in-sum",
    states: "sum_j((a + b) * c) = sum_j(a * c) + sum_j(b * c) if j is free in a and b, and a or b has a factor in which it is not",
    on: is_sum,
    apply: distribute,
};

const EXCHANGE: Law = Law {
    name: "exchange-sums",
    states: "sum_j(c_j * sum_e(a_e * b_je)) = sum_e(a_e * sum_j(b_je * c_j))",
    on: is_sum,
    apply: exchange,
};

const SELECT_OUT: Law = Law {
    name: "hoist-select",
    states: "sum_j(select(c, a, b) * x) = select(c, sum_j(a * x), sum_j(b * x)) if j is not free in c",
    on: is_sum,
    apply: select_out,
};

pub(super) fn is_sum(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Prim(TermOp::Reduce(ReduceOp::Sum, _), dtype) if dtype.is_float())
}

pub(super) fn parts(op: &NodeOp) -> Option<(AxisSet, DType)> {
    match op {
        NodeOp::Prim(TermOp::Reduce(_, axes), dtype) => Some((*axes, *dtype)),
        _ => None,
    }
}

pub(super) fn varies(egraph: &Graph, class: Id, axes: AxisSet) -> bool {
    !egraph[class].data.axes.intersect(axes).is_empty()
}

fn all_vary(egraph: &Graph, classes: &[Id], axes: AxisSet) -> bool {
    classes.iter().all(|c| varies(egraph, *c, axes))
}

pub(super) fn sum_over(egraph: &mut Graph, axes: AxisSet, dtype: DType, body: Id) -> Id {
    egraph.add(Node::new(NodeOp::Prim(TermOp::Reduce(ReduceOp::Sum, axes), dtype), vec![body]))
}

/// The operands of the products in a class; a class without one is a product of one.
pub(super) fn products(egraph: &Graph, class: Id) -> Vec<Vec<Id>> {
    let mut found: Vec<Vec<Id>> = nodes_of(egraph, class, is_mul).into_iter().map(|n| n.args).collect();
    if found.is_empty() {
        found.push(vec![class]);
    }
    found
}

fn hoist(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>, guarded: bool) {
    let Some((axes, dtype)) = parts(&node.op) else { return };
    for factors in products(egraph, node.args[0]) {
        let (inside, mut outside): (Vec<Id>, Vec<Id>) = factors.into_iter().partition(|f| varies(egraph, *f, axes));
        if guarded && unbounds(egraph, node.args[0], &inside) {
            continue;
        }
        let covered = inside.iter().fold(AxisSet::EMPTY, |set, f| set.union(egraph[*f].data.axes)).intersect(axes);
        if outside.is_empty() && covered == axes {
            continue;
        }
        for axis in axes.minus(covered).iter() {
            outside.push(egraph.add(Node::new(NodeOp::Prim(TermOp::Size(axis), dtype), vec![])));
        }
        if !covered.is_empty() {
            let body = product(egraph, dtype, inside);
            outside.push(sum_over(egraph, covered, dtype, body));
        }
        out.push(product(egraph, dtype, outside));
    }
}

/// **No new overflow.** Whether a body is bounded but what is left of it inside is not: dividing by a maximum keeps the squares of a norm
/// in range, and a division after the sum comes too late.
fn unbounds(egraph: &Graph, body: Id, inside: &[Id]) -> bool {
    let is_bounded = |i: crate::interval::Interval| i.lo > -1e30 && i.hi < 1e30;
    let rest =
        inside.iter().map(|f| egraph[*f].data.interval).fold(crate::interval::Interval::point(1.0), |a, b| a.times(b));
    is_bounded(egraph[body].data.interval) && !is_bounded(rest)
}

/// Whether a class is a negation.
fn is_negated(egraph: &Graph, class: Id) -> bool {
    egraph[class]
        .nodes
        .iter()
        .any(|n| is_mul(&n.op) && n.args.iter().any(|a| egraph[*a].data.constant.is_some_and(|c| c.as_f64() < 0.0)))
}

/// Whether a class is a product with a factor, other than a number, that does not vary along some axes.
fn sheds_factor(egraph: &Graph, class: Id, axes: AxisSet) -> bool {
    egraph[class].nodes.iter().any(|n| {
        is_mul(&n.op) && n.args.iter().any(|a| egraph[*a].data.constant.is_none() && !varies(egraph, *a, axes))
    })
}

fn distribute(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let Some((axes, dtype)) = parts(&node.op) else { return };
    for factors in nodes_of(egraph, node.args[0], is_mul) {
        for (i, factor) in factors.args.iter().enumerate() {
            for terms in nodes_of(egraph, *factor, is_add) {
                let once = factors.args.iter().filter(|f| egraph.find(**f) == egraph.find(*factor)).count() == 1;
                let shedding = terms.args.iter().filter(|t| sheds_factor(egraph, **t, axes)).count();
                let is_difference = terms.args.iter().any(|t| is_negated(egraph, *t));
                let sheds = shedding == terms.args.len() || (shedding > 0 && !is_difference);
                if terms.args.len() > 3 || !once || !sheds || !all_vary(egraph, &terms.args, axes) {
                    continue;
                }
                let mut sums = vec![];
                for term in terms.args {
                    let mut args = factors.args.clone();
                    args[i] = term;
                    let body = product(egraph, dtype, args);
                    sums.push(sum_over(egraph, axes, dtype, body));
                }
                out.push(sum(egraph, dtype, sums));
            }
        }
    }
}

/// Reassociation: it pays when the inner product has a factor that the outer sum does not see.
fn exchange(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let Some((axes, dtype)) = parts(&node.op) else { return };
    for factors in products(egraph, node.args[0]) {
        for (i, factor) in factors.iter().enumerate() {
            for inner in nodes_of(egraph, *factor, is_sum) {
                let Some((inner_axes, _)) = parts(&inner.op) else { continue };
                for inner_factors in products(egraph, inner.args[0]) {
                    let rest: Vec<Id> = (0..factors.len()).filter(|k| *k != i).map(|k| factors[k]).collect();
                    let captured = rest.iter().any(|r| varies(egraph, *r, inner_axes));
                    if captured || all_vary(egraph, &inner_factors, axes) {
                        continue;
                    }
                    let body = product(egraph, dtype, [inner_factors, rest].concat());
                    let summed = sum_over(egraph, axes, dtype, body);
                    out.push(sum_over(egraph, inner_axes, dtype, summed));
                }
            }
        }
    }
}

fn select_out(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let Some((axes, dtype)) = parts(&node.op) else { return };
    let is_select = |op: &NodeOp| matches!(op, NodeOp::Prim(TermOp::Select, _));
    for factors in products(egraph, node.args[0]) {
        for (i, factor) in factors.iter().enumerate() {
            for select in nodes_of(egraph, *factor, is_select) {
                if varies(egraph, select.args[0], axes) {
                    continue;
                }
                let mut branch = |x: Id| {
                    let mut args = factors.clone();
                    args[i] = x;
                    let body = product(egraph, dtype, args);
                    sum_over(egraph, axes, dtype, body)
                };
                let (a, b) = (branch(select.args[1]), branch(select.args[2]));
                out.push(egraph.add(Node::new(select.op.clone(), vec![select.args[0], a, b])));
            }
        }
    }
}
