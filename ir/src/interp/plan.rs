//! Which values are kept in memory, and for how long.
//!
//! An elementwise node with one use, over the same axes as its user, is evaluated inside that: so the product in
//! `sum[e](q * k)` never exists as a whole.

use crate::{AxisSet, Func, NodeId, Op};
use std::collections::BTreeSet;

/// What is kept.
pub(super) struct Plan {
    pub(super) stored: Vec<bool>,
    /// For each stored value, how many stored nodes still need it (results count too).
    needed: Vec<u32>,
}

/// Whether a node is computed element by element from its operands.
pub(super) fn is_elementwise(op: &Op) -> bool {
    matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Cast | Op::Quantize | Op::Dequantize)
}

/// Whether a node is computed from the position alone.
pub(super) fn is_leaf(op: &Op) -> bool {
    matches!(op, Op::Literal(_) | Op::Index(_) | Op::Size(_))
}

impl Plan {
    pub(super) fn new(func: &Func) -> Plan {
        let count = func.nodes.len();
        let (mut live, mut uses, mut stored) = (vec![false; count], vec![0u32; count], vec![false; count]);
        for result in &func.results {
            live[result.node.0 as usize] = true;
            stored[result.node.0 as usize] = true;
        }
        for id in (0..count).rev().filter(|id| !func.nodes[*id].args.is_empty()).collect::<Vec<_>>() {
            if !live[id] {
                continue;
            }
            let node = &func.nodes[id];
            // The axes over which operands are evaluated in place, if they are.
            let over: Option<AxisSet> = match &node.op {
                Op::Reduce(..) => node.args.first().map(|a| func.node(*a).ty.axes),
                op if is_elementwise(op) => Some(node.ty.axes),
                _ => None,
            };
            for arg in &node.args {
                let arg = arg.0 as usize;
                live[arg] = true;
                uses[arg] += 1;
                let in_place =
                    is_elementwise(&func.nodes[arg].op) && over == Some(func.nodes[arg].ty.axes) && uses[arg] == 1;
                let free = is_leaf(&func.nodes[arg].op) && over.is_some();
                stored[arg] |= !(in_place || free);
            }
        }
        for (slot, live) in stored.iter_mut().zip(&live) {
            *slot &= live;
        }
        let mut plan = Plan { stored, needed: vec![0; count] };
        for id in 0..count {
            if plan.stored[id] {
                for source in plan.sources(func, NodeId(id as u32)) {
                    plan.needed[source.0 as usize] += 1;
                }
            }
        }
        func.results.iter().for_each(|r| plan.needed[r.node.0 as usize] += 1);
        plan
    }

    /// The nodes evaluated in place of one, and their operands that are not, in order; the node itself is left out.
    pub(super) fn tree(&self, func: &Func, root: NodeId) -> BTreeSet<NodeId> {
        let mut tree = BTreeSet::new();
        let mut open = func.node(root).args.clone();
        while let Some(id) = open.pop() {
            if tree.insert(id) && !self.stored[id.0 as usize] {
                open.extend(&func.node(id).args);
            }
        }
        tree
    }

    fn sources(&self, func: &Func, root: NodeId) -> Vec<NodeId> {
        self.tree(func, root).into_iter().filter(|id| self.stored[id.0 as usize]).collect()
    }

    /// The values that nothing needs any more once a node is evaluated.
    pub(super) fn finished_by(&mut self, func: &Func, id: NodeId) -> Vec<NodeId> {
        let mut done = vec![];
        for source in self.sources(func, id) {
            let needed = &mut self.needed[source.0 as usize];
            *needed = needed.saturating_sub(1);
            if *needed == 0 {
                done.push(source);
            }
        }
        done
    }
}
