//! Maxima, positions and the k largest commute with increasing functions.
//!
//! In floats an increasing function may map neighbours to one value (an exponential underflows): the order found before the
//! function is then the finer one, and it is the one kept.

use super::arithmetic::is_positive;
use super::{is_add, is_mul, product, Law};
use crate::lang::{Graph, Node, NodeOp};
use crate::term::TermOp;
use egg::Id;
use onefold_ir::{AxisSet, Part, ReduceOp, UnaryOp};

/// The laws.
pub const LAWS: &[Law] = &[EXTREMUM, TOPK, ARGMAX];

const EXTREMUM: Law = Law {
    name: "extremum-of-monotone",
    states: "max_j(f(x)) = f(max_j(x)) for f increasing, f(min_j(x)) for f decreasing",
    on: |op| matches!(op, NodeOp::Prim(TermOp::Reduce(ReduceOp::Max | ReduceOp::Min, _), d) if d.is_float()),
    apply: extremum,
};

const TOPK: Law = Law {
    name: "topk-of-monotone",
    states: "topk_j(f(x)) = f(topk_j(x)), positions unchanged, for f strictly increasing along j",
    on: |op| matches!(op, NodeOp::Prim(TermOp::TopK { .. }, _)),
    apply: topk,
};

const ARGMAX: Law = Law {
    name: "argmax-of-monotone",
    states: "argmax_j(f(x)) = argmax_j(x) for f strictly increasing along j",
    on: |op| matches!(op, NodeOp::Prim(TermOp::ArgMax(_), _)),
    apply: |g, n, out| {
        let NodeOp::Prim(TermOp::ArgMax(axis), _) = n.op else { return };
        for path in increasing_paths(g, n.args[0], AxisSet::one(axis)) {
            out.push(g.add(Node::new(n.op.clone(), vec![path.base])));
        }
    },
};

/// One monotone step: a node, which of its operands varies, and whether the node increases with it.
struct Step {
    node: Node,
    operand: usize,
    increasing: bool,
}

/// Steps from a class down to what varies along the axes.
struct Path {
    steps: Vec<Step>,
    base: Id,
}

/// The strictly monotone functions that the nodes of a class are along some axes.
fn steps(egraph: &mut Graph, class: Id, axes: AxisSet) -> Vec<Step> {
    let nodes = egraph[class].nodes.clone();
    nodes.iter().filter_map(|node| step(egraph, node, axes)).collect()
}

fn step(egraph: &mut Graph, node: &Node, axes: AxisSet) -> Option<Step> {
    let varies = |g: &Graph, id: Id| !g[id].data.axes.intersect(axes).is_empty();
    let (varying, others): (Vec<Id>, Vec<Id>) = node.args.iter().partition(|a| varies(egraph, **a));
    let is_nonnegative = |g: &Graph, id: Id| g[id].data.interval.is_nonnegative();
    let increasing = match &node.op {
        NodeOp::Prim(TermOp::Unary(op), _) => match op {
            UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Tanh | UnaryOp::Erf => true,
            UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Sqrt if is_nonnegative(egraph, node.args[0]) => true,
            _ => return None,
        },
        NodeOp::Prim(TermOp::Cast, to) if to.widens(egraph[node.args[0]].data.dtype) => true,
        NodeOp::Recip(_) if is_nonnegative(egraph, node.args[0]) => false,
        op if is_add(op) => true,
        op if is_mul(op) && others.iter().all(|o| is_positive(egraph, *o)) => true,
        op if is_mul(op) && others.len() == 1 && egraph[others[0]].data.interval.hi < 0.0 => false,
        _ => return None,
    };
    match (&node.op, &varying[..]) {
        (_, [one]) => {
            let operand = node.args.iter().position(|a| a == one)?;
            Some(Step { node: node.clone(), operand, increasing })
        }
        // Factors that vary are one operand together.
        (NodeOp::Mul(dtype), [_, _, ..]) if !others.is_empty() => {
            let together = product(egraph, *dtype, varying);
            let node = Node::new(node.op.clone(), [others, vec![together]].concat());
            let operand = node.args.iter().position(|a| *a == together)?;
            Some(Step { node, operand, increasing })
        }
        _ => None,
    }
}

/// Shortest increasing chains: one increasing step, or two decreasing ones with increasing ones between.
fn increasing_paths(egraph: &mut Graph, class: Id, axes: AxisSet) -> Vec<Path> {
    const MAX_STEPS: usize = 5;
    let mut found = vec![];
    let mut open = vec![(Path { steps: vec![], base: class }, true)];
    while let Some((path, increasing)) = open.pop() {
        if !path.steps.is_empty() && increasing {
            found.push(path);
            continue;
        }
        if path.steps.len() == MAX_STEPS {
            continue;
        }
        for step in steps(egraph, path.base, axes) {
            let base = step.node.args[step.operand];
            let increasing = increasing == step.increasing;
            let mut steps: Vec<Step> = path.steps.iter().map(Step::copy).collect();
            steps.push(step);
            open.push((Path { steps, base }, increasing));
        }
    }
    found
}

impl Step {
    fn copy(&self) -> Step {
        Step { node: self.node.clone(), operand: self.operand, increasing: self.increasing }
    }

    /// The node with another operand in place of the varying one.
    fn apply(&self, egraph: &mut Graph, x: Id) -> Id {
        let mut args = self.node.args.clone();
        args[self.operand] = x;
        egraph.add(Node::new(self.node.op.clone(), args))
    }
}

fn extremum(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let NodeOp::Prim(TermOp::Reduce(op, axes), _) = node.op else { return };
    for step in steps(egraph, node.args[0], axes) {
        let other = if op == ReduceOp::Max { ReduceOp::Min } else { ReduceOp::Max };
        let op = if step.increasing { op } else { other };
        let x = step.node.args[step.operand];
        let dtype = egraph[x].data.dtype;
        let inner = egraph.add(Node::new(NodeOp::Prim(TermOp::Reduce(op, axes), dtype), vec![x]));
        out.push(step.apply(egraph, inner));
    }
}

fn topk(egraph: &mut Graph, node: &Node, out: &mut Vec<Id>) {
    let NodeOp::Prim(TermOp::TopK { axis, to, part }, dtype) = node.op else { return };
    for path in increasing_paths(egraph, node.args[0], AxisSet::one(axis)) {
        let dtype = if part == Part::Values { egraph[path.base].data.dtype } else { dtype };
        let mut id = egraph.add(Node::new(NodeOp::Prim(TermOp::TopK { axis, to, part }, dtype), vec![path.base]));
        if part == Part::Values {
            for step in path.steps.iter().rev() {
                id = step.apply(egraph, id);
            }
        }
        out.push(id);
    }
}
