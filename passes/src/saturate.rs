//! Equality saturation of a whole function, bounded by counts so that the outcome is the same on every machine.

use crate::convert::Graph as Source;
use crate::insert::insert;
use crate::lang::{Analyse, Graph, Node};
use crate::laws;
use crate::term::TermId;
use egg::{Id, Runner, SimpleScheduler, StopReason};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Bounds on saturation. Time is only an emergency brake: when it is hit the result may differ between machines, and a warning says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Rounds of all laws.
    pub iterations: usize,
    /// Nodes of the e-graph.
    pub nodes: usize,
    /// Emergency brake.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { iterations: 12, nodes: 10_000, time: Duration::from_secs(30) }
    }
}

/// A saturated e-graph.
pub struct Saturated {
    /// The e-graph.
    pub egraph: Graph,
    /// A class for each result of the function.
    pub roots: Vec<Id>,
    /// The nodes that the user wrote, canonical.
    pub original: HashSet<Node>,
    /// A class for each of the user's terms.
    pub classes: HashMap<TermId, Id>,
    /// What was hit, if a bound was.
    pub warning: Option<String>,
    /// Rounds made.
    pub iterations: usize,
}

/// Saturate the terms of a function under the laws for kernels.
pub fn saturate(source: &Source, limits: &Limits, wide: bool, explain: bool) -> Saturated {
    let mut egraph = Graph::new(Analyse::default());
    if explain {
        egraph = egraph.with_explanations_enabled();
    }
    let mut classes: HashMap<TermId, Id> = HashMap::new();
    for id in source.terms.reachable(&source.roots) {
        let args = source.terms.get(id).args.iter().map(|a| classes[a]).collect();
        let class = insert(&mut egraph, &source.terms, id, args);
        classes.insert(id, class);
    }
    egraph.rebuild();
    let original: Vec<Node> = egraph.classes().flat_map(|c| c.nodes.clone()).collect();
    let mut rules = laws::rewrites(laws::KERNEL);
    if wide {
        rules.extend(laws::rewrites(laws::WIDE));
    }
    let runner = Runner::default()
        .with_egraph(egraph)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(limits.time)
        .with_scheduler(SimpleScheduler)
        .run(&rules);
    let iterations = runner.iterations.len();
    let warning = match &runner.stop_reason {
        Some(StopReason::Saturated) | None => None,
        Some(StopReason::IterationLimit(n)) => Some(format!("saturation stopped after {n} rounds")),
        Some(StopReason::NodeLimit(n)) => Some(format!("saturation stopped at {n} nodes")),
        Some(StopReason::TimeLimit(s)) => {
            Some(format!("saturation stopped after {s:.1} s: the kernel may differ from one machine to another"))
        }
        Some(StopReason::Other(why)) => Some(format!("saturation stopped: {why}")),
    };
    let egraph = runner.egraph;
    let original = original
        .into_iter()
        .map(|mut n| {
            n.args.iter_mut().for_each(|a| *a = egraph.find(*a));
            n
        })
        .collect();
    let roots = source.roots.iter().map(|r| egraph.find(classes[r])).collect();
    Saturated { egraph, roots, original, classes, warning, iterations }
}
