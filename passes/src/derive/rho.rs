//! The search for one coefficient: a small e-graph over a quotient or a difference.

use crate::emit::emit;
use crate::insert::insert;
use crate::lang::{Analyse, Graph, Node, NodeOp};
use crate::laws::{self, negate};
use crate::term::{TermId, TermOp, Terms};
use egg::{Id, Runner};
use onefold_ir::{AxisSet, DType};
use std::collections::HashMap;

/// Bounds of one search. They are counts, not times, so that the outcome is the same everywhere.
const MAX_ITERATIONS: usize = 8;
const MAX_NODES: usize = 1500;
const ROUNDS_AFTER: usize = 2;

/// How two values of one term are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `t(x, new) / t(x, old)`
    Quotient,
    /// `t(x, new) - t(x, old)`
    Difference,
}

/// The relation between a term at new and at old anchors, if it does not depend on the streamed axes: the term of
/// least cost over anchors (new and old) and subterms without the axes. Not yet checked.
pub fn search(terms: &mut Terms, body: TermId, axes: AxisSet, relation: Relation) -> Option<TermId> {
    let dtype = terms.get(body).dtype;
    if !dtype.is_float() {
        return None;
    }
    let mut egraph = Graph::new(Analyse { max_nodes: MAX_NODES, sound: false });
    let new = build(&mut egraph, terms, body, false);
    let old = build(&mut egraph, terms, body, true);
    let root = match relation {
        Relation::Quotient => {
            let recip = egraph.add(Node::new(NodeOp::Recip(dtype), vec![old]));
            egraph.add(Node::new(NodeOp::Mul(dtype), vec![new, recip]))
        }
        Relation::Difference => {
            let minus = negate(&mut egraph, dtype, old);
            egraph.add(Node::new(NodeOp::Add(dtype), vec![new, minus]))
        }
    };
    egraph.rebuild();
    let rules = laws::rewrites(laws::CORRECTION);
    let mut runner = Runner::default()
        .with_egraph(egraph)
        .with_iter_limit(MAX_ITERATIONS)
        .with_node_limit(MAX_NODES)
        .with_time_limit(std::time::Duration::from_secs(600))
        .with_scheduler(egg::SimpleScheduler);
    // A few more rounds once something is found: exponentials that came apart on the way come together again.
    let mut rounds_since = 0;
    runner = runner.with_hook(move |r| {
        rounds_since += usize::from(r.egraph[root].data.axes.intersect(axes).is_empty());
        if rounds_since > ROUNDS_AFTER {
            return Err("found".to_owned());
        }
        Ok(())
    });
    let runner = runner.run(&rules);
    let egraph = runner.egraph;
    if !egraph[root].data.axes.intersect(axes).is_empty() {
        return None;
    }
    extract(&egraph, terms, root, axes)
}

/// The body in the e-graph, at old or new anchors. Subterms without anchors are opaque: what they are is of no interest, only on which axes they depend.
fn build(egraph: &mut Graph, terms: &Terms, body: TermId, old: bool) -> Id {
    let order = terms.reachable(&[body]);
    let mut varies: HashMap<TermId, bool> = HashMap::new();
    let mut classes: HashMap<TermId, Id> = HashMap::new();
    for id in order {
        let term = terms.get(id);
        let of_args = term.args.iter().any(|a| varies[a]);
        let is_anchor = matches!(term.op, TermOp::Anchor(_));
        varies.insert(id, of_args || is_anchor);
        let class = if let (TermOp::Anchor(a), true) = (&term.op, old) {
            egraph.add(Node::new(NodeOp::Prim(TermOp::AnchorOld(*a), term.dtype), vec![]))
        } else if is_anchor || matches!(term.op, TermOp::Literal(_)) {
            egraph.add(Node::new(NodeOp::Prim(term.op.clone(), term.dtype), vec![]))
        } else if of_args {
            let args = term.args.iter().map(|a| classes[a]).collect();
            insert(egraph, terms, id, args)
        } else {
            egraph.add(Node::new(NodeOp::Opaque(id.0, term.dtype, term.axes), vec![]))
        };
        classes.insert(id, class);
    }
    classes[&body]
}

/// Cheapest term of a class that mentions no streamed axis.
fn extract(egraph: &Graph, terms: &mut Terms, root: Id, axes: AxisSet) -> Option<TermId> {
    let mut best: HashMap<Id, (u64, Node)> = HashMap::new();
    let mut classes: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    classes.sort_unstable();
    loop {
        let mut changed = false;
        for class in &classes {
            for node in &egraph[*class].nodes {
                if matches!(&node.op, NodeOp::Opaque(_, _, a) if !a.intersect(axes).is_empty()) {
                    continue;
                }
                let Some(cost) =
                    node.args.iter().try_fold(weight(&node.op), |sum, a| Some(best.get(&egraph.find(*a))?.0 + sum))
                else {
                    continue;
                };
                if best.get(class).is_none_or(|(c, _)| cost < *c) {
                    best.insert(*class, (cost, node.clone()));
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut made = HashMap::new();
    term_of(egraph, terms, &best, egraph.find(root), &mut made)
}

fn term_of(
    egraph: &Graph,
    terms: &mut Terms,
    best: &HashMap<Id, (u64, Node)>,
    class: Id,
    made: &mut HashMap<Id, TermId>,
) -> Option<TermId> {
    if let Some(&id) = made.get(&class) {
        return Some(id);
    }
    let (_, node) = best.get(&class)?;
    let args =
        node.args.iter().map(|a| term_of(egraph, terms, best, egraph.find(*a), made)).collect::<Option<Vec<_>>>()?;
    let id = emit(terms, &node.op, &args);
    made.insert(class, id);
    Some(id)
}

fn weight(op: &NodeOp) -> u64 {
    match op {
        NodeOp::Opaque(..) | NodeOp::Prim(TermOp::Literal(_) | TermOp::Anchor(_) | TermOp::AnchorOld(_), _) => 1,
        NodeOp::Add(_) | NodeOp::Mul(_) => 2,
        NodeOp::Recip(_) => 8,
        NodeOp::Prim(TermOp::Unary(_), _) => 30,
        NodeOp::Prim(..) => 10,
    }
}

/// The constant 1 of a dtype: the basis element of what does not depend on the streamed axes.
pub fn one(terms: &mut Terms, dtype: DType) -> TermId {
    terms.float(1.0, dtype)
}
