//! Powers with a constant for exponent or base.

use super::{product, Law};
use crate::lang::{Node, NodeOp};
use crate::term::TermOp;
use onefold_ir::{BinaryOp, Literal, UnaryOp};

/// The laws.
pub const LAWS: &[Law] = &[WHOLE_EXPONENT, BASE_TWO];

/// As accurate as the power itself for these few factors, and of the same class for every x: products of infinities and zeros are powers of
/// them.
const WHOLE_EXPONENT: Law = Law {
    name: "power-as-product",
    states: "x^n = x * .. * x for n = 1 to 4, 1 / x^-n for n = -1 and -2",
    on: is_power,
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        let Some(exponent) = g[n.args[1]].data.constant.map(Literal::as_f64) else { return };
        if ![1.0, 2.0, 3.0, 4.0, -1.0, -2.0].contains(&exponent) {
            return;
        }
        let power = product(g, dtype, vec![n.args[0]; exponent.abs() as usize]);
        out.push(if exponent > 0.0 { power } else { g.add(Node::new(NodeOp::Recip(dtype), vec![power])) });
    },
};

const BASE_TWO: Law = Law {
    name: "power-of-two",
    states: "2^x = exp2(x)",
    on: is_power,
    apply: |g, n, out| {
        let NodeOp::Prim(_, dtype) = n.op else { return };
        if g[n.args[0]].data.constant.is_some_and(|c| c.as_f64() == 2.0) {
            let exponential = Node::unary(UnaryOp::Exp2, dtype, n.args[1]);
            out.push(g.add(exponential));
        }
    },
};

fn is_power(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Prim(TermOp::Binary(BinaryOp::Pow), dtype) if dtype.is_float())
}
