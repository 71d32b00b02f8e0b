//! From terms to e-nodes.

use crate::lang::{node_op, Graph, Node, NodeOp};
use crate::laws::negate;
use crate::term::{TermId, TermOp, Terms};
use egg::Id;
use onefold_ir::{BinaryOp, UnaryOp};

/// The class of a term whose operands have classes already.
pub fn insert(egraph: &mut Graph, terms: &Terms, id: TermId, args: Vec<Id>) -> Id {
    let term = terms.get(id);
    let dtype = term.dtype;
    if let Some(op) = node_op(&term.op, dtype) {
        return egraph.add(Node::new(op, args));
    }
    match term.op {
        TermOp::Binary(BinaryOp::Sub) => {
            let minus = negate(egraph, dtype, args[1]);
            egraph.add(Node::new(NodeOp::Add(dtype), vec![args[0], minus]))
        }
        TermOp::Binary(_) => {
            let recip = egraph.add(Node::new(NodeOp::Recip(dtype), vec![args[1]]));
            egraph.add(Node::new(NodeOp::Mul(dtype), vec![args[0], recip]))
        }
        TermOp::Unary(UnaryOp::Rsqrt) => {
            let root = egraph.add(Node::unary(UnaryOp::Sqrt, dtype, args[0]));
            egraph.add(Node::new(NodeOp::Recip(dtype), vec![root]))
        }
        _ => negate(egraph, dtype, args[0]),
    }
}
