//! Laws, by theme. Each has a name, the law that it states, and a condition in its code; each is true of the real numbers, and
//! where floats differ its comment says why it is kept.
//!
//! A law is a function from a matched e-node to new nodes for its class. Operands of sums and products are flat and sorted, so
//! patterns of fixed arity would not do.

pub mod arithmetic;
pub mod explog;
pub mod powers;
pub mod reductions;
pub mod scaling;
pub mod selection;
pub mod wide;

use crate::lang::{Graph, Node, NodeOp};
use egg::{Applier, Id, PatternAst, Rewrite, SearchMatches, Searcher, Subst, Symbol, Var};
use onefold_ir::DType;

/// A law: from a node of a class to ids equal to it.
#[derive(Clone, Copy)]
pub struct Law {
    /// Name, as `explain` shows it.
    pub name: &'static str,
    /// What it states.
    pub states: &'static str,
    /// Whether a node can match at all; looked at before anything is copied.
    pub on: fn(&NodeOp) -> bool,
    /// New terms equal to the node.
    pub apply: fn(&mut Graph, &Node, &mut Vec<Id>),
}

/// The laws as egg's rewrites.
pub fn rewrites(laws: &[&[Law]]) -> Vec<Rewrite<Node, crate::lang::Analyse>> {
    laws.iter()
        .flat_map(|theme| theme.iter())
        .filter_map(|law| Rewrite::new(law.name, Matcher(*law), Matcher(*law)).ok())
        .collect()
}

/// Laws that find and simplify kernels.
pub const KERNEL: &[&[Law]] = &[arithmetic::KERNEL, powers::LAWS, explog::KERNEL, reductions::LAWS, selection::LAWS];

/// Further laws for kernels in which exponentials are pairs.
pub const WIDE: &[&[Law]] = &[wide::LAWS];

/// Laws that find corrections: quotients and differences of one term at two anchors.
pub const CORRECTION: &[&[Law]] = &[arithmetic::CORRECTION, explog::CORRECTION, scaling::LAWS];

#[derive(Clone, Copy)]
struct Matcher(Law);

impl Searcher<Node, crate::lang::Analyse> for Matcher {
    fn search_eclass_with_limit(&self, egraph: &Graph, eclass: Id, _limit: usize) -> Option<SearchMatches<'_, Node>> {
        let found = egraph[eclass].nodes.iter().any(|n| (self.0.on)(&n.op));
        found.then(|| SearchMatches { eclass, substs: vec![Subst::default()], ast: None })
    }

    fn vars(&self) -> Vec<Var> {
        vec![]
    }
}

impl Applier<Node, crate::lang::Analyse> for Matcher {
    fn apply_one(
        &self,
        egraph: &mut Graph,
        eclass: Id,
        _subst: &Subst,
        _ast: Option<&PatternAst<Node>>,
        rule: Symbol,
    ) -> Vec<Id> {
        let nodes: Vec<Node> = egraph[eclass].nodes.iter().filter(|n| (self.0.on)(&n.op)).cloned().collect();
        let mut changed = vec![];
        for node in nodes {
            if egraph.total_number_of_nodes() > egraph.analysis.max_nodes {
                break;
            }
            let mut equal = vec![];
            (self.0.apply)(egraph, &node, &mut equal);
            for id in equal {
                let matched = egraph.add_uncanonical(node.clone());
                if egraph.find(matched) != egraph.find(id) {
                    egraph.union_trusted(matched, id, rule);
                    changed.push(id);
                }
            }
        }
        changed
    }
}

/// The sum of operands: the operand itself if it is one, 0 if there is none.
pub(crate) fn sum(egraph: &mut Graph, dtype: DType, args: Vec<Id>) -> Id {
    match args.as_slice() {
        [] => egraph.add(Node::float(0.0, dtype)),
        [one] => *one,
        _ => egraph.add(Node::new(NodeOp::Add(dtype), args)),
    }
}

/// The product of operands: the operand itself if it is one, 1 if there is none.
pub(crate) fn product(egraph: &mut Graph, dtype: DType, args: Vec<Id>) -> Id {
    match args.as_slice() {
        [] => egraph.add(Node::float(1.0, dtype)),
        [one] => *one,
        _ => egraph.add(Node::new(NodeOp::Mul(dtype), args)),
    }
}

/// The negation of a class.
pub(crate) fn negate(egraph: &mut Graph, dtype: DType, x: Id) -> Id {
    let minus = egraph.add(Node::float(-1.0, dtype));
    egraph.add(Node::new(NodeOp::Mul(dtype), vec![minus, x]))
}

/// The nodes of a class for which a test holds, copied since laws add to the graph.
pub(crate) fn nodes_of(egraph: &Graph, class: Id, test: impl Fn(&NodeOp) -> bool) -> Vec<Node> {
    egraph[class].nodes.iter().filter(|n| test(&n.op)).cloned().collect()
}

pub(crate) fn is_mul(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Mul(_))
}

pub(crate) fn is_add(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Add(_))
}
