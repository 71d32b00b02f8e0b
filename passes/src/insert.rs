//! From terms to e-nodes.

use crate::lang::{node_op, Graph, Node, NodeOp};
use crate::term::{TermId, TermOp, Terms};
use egg::Id;
use onefold_ir::{BinaryOp, DType, Literal, UnaryOp};

/// What nodes are added to.
pub trait Sink {
    /// How a node added is referred to.
    type Ref: Clone;
    /// Add a node; operands of sums and products come in any order.
    fn node(&mut self, op: NodeOp, args: Vec<Self::Ref>) -> Self::Ref;
}

impl Sink for Graph {
    type Ref = Id;

    fn node(&mut self, op: NodeOp, args: Vec<Id>) -> Id {
        self.add(Node::new(op, args))
    }
}

/// The class of a term whose operands have classes already.
pub fn insert<S: Sink>(sink: &mut S, terms: &Terms, id: TermId, args: Vec<S::Ref>) -> S::Ref {
    let term = terms.get(id);
    let dtype = term.dtype;
    if let Some(op) = node_op(&term.op, dtype) {
        return sink.node(op, args);
    }
    match term.op {
        TermOp::Binary(BinaryOp::Sub) => {
            let minus = negate(sink, dtype, args[1].clone());
            sink.node(NodeOp::Add(dtype), vec![args[0].clone(), minus])
        }
        TermOp::Binary(_) => {
            let recip = sink.node(NodeOp::Recip(dtype), vec![args[1].clone()]);
            sink.node(NodeOp::Mul(dtype), vec![args[0].clone(), recip])
        }
        TermOp::Unary(UnaryOp::Rsqrt) => {
            let root = sink.node(NodeOp::Prim(TermOp::Unary(UnaryOp::Sqrt), dtype), args);
            sink.node(NodeOp::Recip(dtype), vec![root])
        }
        _ => negate(sink, dtype, args[0].clone()),
    }
}

fn negate<S: Sink>(sink: &mut S, dtype: DType, x: S::Ref) -> S::Ref {
    let minus = sink.node(NodeOp::Prim(TermOp::Literal(Literal::Float(-1.0)), dtype), vec![]);
    sink.node(NodeOp::Mul(dtype), vec![minus, x])
}
