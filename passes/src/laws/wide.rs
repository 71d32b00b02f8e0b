//! Exponentials as pairs: sums that cannot overflow, so that no maximum of the data is needed.
//!
//! `exp(x - c) = exp(x) * exp(-c)` leaves the range of floats, so these laws are for e-graphs whose extraction refuses plain
//! exponentials of unbounded arguments; what it takes instead is `mantissa(x) * 2^exponent(x)`, with the power of two
//! relative to the largest. The range reduction loses accuracy where |x| is beyond some 1e5, therefore these laws are used only when
//! asked for.

use super::reductions::{is_sum, parts, products, sum_over, varies, HOIST_FREELY};
use super::{arithmetic, explog, is_mul, negate, product, sum, Law};
use crate::lang::{Graph, Node, NodeOp};
use crate::term::{TermOp, WideOp};
use egg::Id;
use onefold_ir::{ReduceOp, UnaryOp};

/// The laws.
pub const LAWS: &[Law] = &[SPLIT, arithmetic::RECIP_PRODUCT, HOIST_FREELY, PAIR, LARGEST_POWER, MERGE_POWERS];

/// Powers of two stay together: they are relative to the largest, and small.
const SPLIT: Law = Law {
    name: "exp-of-shifted",
    states: explog::EXP_SUM.states,
    on: |op| matches!(op, NodeOp::Prim(TermOp::Unary(UnaryOp::Exp), _)),
    apply: explog::EXP_SUM.apply,
};

const PAIR: Law = Law {
    name: "exp-as-pair",
    states: "exp x = mantissa(x) * 2^exponent(x)",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Unary(UnaryOp::Exp), _)),
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        // Only data: the factors that do not vary cancel.
        let is_shift =
            |op: &NodeOp| matches!(op, NodeOp::Add(_) | NodeOp::Mul(_) | NodeOp::Prim(TermOp::Reduce(..), _));
        if g[n.args[0]].nodes.iter().any(|inner| is_shift(&inner.op)) {
            return;
        }
        let mut wide = |op: WideOp, x: Id| g.add(Node::new(NodeOp::Prim(TermOp::Wide(op), dtype), vec![x]));
        let mantissa = wide(WideOp::Mantissa, n.args[0]);
        let exponent = wide(WideOp::Exponent, n.args[0]);
        let power = wide(WideOp::Power, exponent);
        out.push(product(g, dtype, vec![mantissa, power]));
    },
};

const LARGEST_POWER: Law = Law {
    name: "relative-to-largest-power",
    states: "sum_j(2^n * a) = 2^N * sum_j(2^(n - N) * a), N = max_j(n)",
    on: is_sum,
    apply: |g, n, out| {
        let Some((axes, dtype)) = parts(&n.op) else { return };
        let power = NodeOp::Prim(TermOp::Wide(WideOp::Power), dtype);
        for factors in products(g, n.args[0]) {
            for (i, factor) in factors.iter().enumerate() {
                let powers: Vec<Id> = g[*factor].nodes.iter().filter(|p| p.op == power).map(|p| p.args[0]).collect();
                for exponent in powers {
                    // Relative exponents are not made relative again.
                    if !varies(g, exponent, axes) || g[exponent].data.interval.is_nonpositive() {
                        continue;
                    }
                    let largest = NodeOp::Prim(TermOp::Reduce(ReduceOp::Max, axes), dtype);
                    let largest = g.add(Node::new(largest, vec![exponent]));
                    let minus = negate(g, dtype, largest);
                    let relative = sum(g, dtype, vec![exponent, minus]);
                    let mut args = factors.clone();
                    args[i] = g.add(Node::new(power.clone(), vec![relative]));
                    let body = product(g, dtype, args);
                    let summed = sum_over(g, axes, dtype, body);
                    let scale = g.add(Node::new(power.clone(), vec![largest]));
                    out.push(product(g, dtype, vec![scale, summed]));
                }
            }
        }
    },
};

const MERGE_POWERS: Law = Law {
    name: "quotient-of-powers",
    states: "2^a * (1 / 2^b) = 2^(a - b)",
    on: is_mul,
    apply: |g, n, out| {
        let NodeOp::Mul(dtype) = n.op else { return };
        let power = NodeOp::Prim(TermOp::Wide(WideOp::Power), dtype);
        let powers =
            |g: &Graph, id: Id| -> Option<Id> { g[id].nodes.iter().find(|p| p.op == power).map(|p| p.args[0]) };
        for (i, below) in n.args.iter().enumerate() {
            let recips: Vec<Id> =
                g[*below].nodes.iter().filter(|r| matches!(r.op, NodeOp::Recip(_))).map(|r| r.args[0]).collect();
            let exponents: Vec<Id> = recips.into_iter().filter_map(|r| powers(g, r)).collect();
            for b in exponents {
                for (k, above) in n.args.iter().enumerate() {
                    let (true, Some(a)) = (i != k, powers(g, *above)) else { continue };
                    let minus = negate(g, dtype, b);
                    let exponent = sum(g, dtype, vec![a, minus]);
                    let mut args: Vec<Id> =
                        (0..n.args.len()).filter(|x| *x != i && *x != k).map(|x| n.args[x]).collect();
                    args.push(g.add(Node::new(power.clone(), vec![exponent])));
                    out.push(product(g, dtype, args));
                }
            }
        }
    },
};
