//! Extraction: the cheapest term of each class, streams before work, shared subterms counted once.
//!
//! **No new overflow.** A node whose exponential may overflow is taken only if the user wrote it: the smallest equal form of a
//! shifted ratio of exponentials is the one without the shift, and it is useless in floats.

use crate::cost::{Cost, CostModel};
use crate::emit::emit;
use crate::lang::{Graph, Node, NodeOp};
use crate::saturate::Saturated;
use crate::streams::Streams;
use crate::term::{TermId, TermOp, Terms, WideOp};
use egg::Id;
use onefold_ir::{DType, UnaryOp};
use std::collections::HashMap;

/// Rounds after which extraction takes what it has; each round can only improve it.
const MAX_ROUNDS: usize = 40;

/// The best term of each root.
pub fn extract(
    saturated: &Saturated,
    terms: &mut Terms,
    streams: &mut Streams,
    model: &mut CostModel,
) -> Option<Vec<TermId>> {
    let egraph = &saturated.egraph;
    let mut classes: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    classes.sort_unstable();
    let mut best: HashMap<Id, (Cost, TermId)> = HashMap::new();
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for class in &classes {
            for node in &egraph[*class].nodes {
                if overflows(egraph, node) && !saturated.original.contains(&canonical(egraph, node)) {
                    continue;
                }
                let Some(args) =
                    node.args.iter().map(|a| Some(best.get(&egraph.find(*a))?.1)).collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                let term = emit(terms, &node.op, &args);
                let interval = terms.interval(term).intersect(egraph[*class].data.interval);
                terms.set_interval(term, interval);
                if best.get(class).is_some_and(|(_, t)| *t == term) {
                    continue;
                }
                let cost = model.cost(terms, streams, term);
                if best.get(class).is_none_or(|(c, _)| cost < *c) {
                    best.insert(*class, (cost, term));
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    saturated.roots.iter().map(|r| Some(best.get(&egraph.find(*r))?.1)).collect()
}

fn canonical(egraph: &Graph, node: &Node) -> Node {
    let mut node = node.clone();
    node.args.iter_mut().for_each(|a| *a = egraph.find(*a));
    node
}

/// Whether a node is an exponential that may exceed its dtype's range.
fn overflows(egraph: &Graph, node: &Node) -> bool {
    // A power of two stands for one that is at most 1.
    if matches!(node.op, NodeOp::Prim(TermOp::Wide(WideOp::Power), _)) {
        return !egraph[node.args[0]].data.interval.is_nonpositive();
    }
    let NodeOp::Prim(TermOp::Unary(op), dtype) = &node.op else { return false };
    let largest = match dtype {
        DType::F64 => 709.0,
        DType::F16 => 11.0,
        _ => 88.0,
    };
    let scale = match op {
        UnaryOp::Exp => 1.0,
        UnaryOp::Exp2 => std::f64::consts::LN_2,
        _ => return false,
    };
    egraph[node.args[0]].data.interval.hi * scale > largest
}
