//! Why the kernel computes the user's formula: the chain of named laws between the two, and the laws by which passes were joined.

use crate::convert::{convert, Graph as Source};
use crate::cost::CostModel;
use crate::derive::Correction;
use crate::emit::emit;
use crate::error::PassError;
use crate::extract::extract;
use crate::fold::FoldProgram;
use crate::insert::{insert, Sink};
use crate::lang::{Graph, Node, NodeOp};
use crate::laws::{self, Law};
use crate::pipeline::{Form, Options};
use crate::print::Names;
use crate::saturate::saturate;
use crate::schedule::schedule;
use crate::streams::Streams;
use crate::term::{TermId, Terms};
use egg::{FlatTerm, Id, Language, RecExpr, Runner, SimpleScheduler};
use onefold_ir::{Func, Module};
use std::collections::HashMap;
use std::fmt;

/// The whole story of one function.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// For each result, its steps.
    pub results: Vec<Chain>,
    /// Reductions that run beside others.
    pub corrections: Vec<Corrected>,
    /// What came of it.
    pub program: FoldProgram,
}

/// From the user's term to the extracted one.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Name of the result.
    pub name: String,
    /// The user's term.
    pub start: String,
    /// The law used and the term after it.
    pub steps: Vec<Step>,
}

/// One application of a law.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub law: String,
    /// What it states.
    pub states: &'static str,
    /// Whether it was used from right to left.
    pub backward: bool,
    /// The whole term afterwards.
    pub term: String,
}

/// A law of correction.
#[derive(Clone, Debug)]
pub struct Corrected {
    /// The reduction's body, over anchors.
    pub body: String,
    /// Equations: the body at new anchors in terms of bodies at old ones.
    pub law: Vec<String>,
    /// What each anchor stands for.
    pub anchors: Vec<String>,
}

/// Explain a function.
///
/// # Errors
/// As [`crate::derive()`].
pub fn explain(module: &Module, func: &Func, options: &Options) -> Result<Explanation, PassError> {
    let source = convert(module, func)?;
    let saturated = saturate(&source, &options.limits, options.form == Form::Wide, true);
    let mut streams = Streams::new(true);
    let mut model = CostModel::new(&source.axes);
    model.prefer_wide = options.form == Form::Wide;
    let mut terms = Terms::default();
    let roots = extract(&saturated, &mut terms, &mut streams, &mut model)
        .ok_or_else(|| PassError::internal("a result has no term"))?;
    let mut egraph = saturated.egraph;
    let mut results = vec![];
    for (i, root) in roots.iter().enumerate() {
        let name = source.decl(i).name.clone();
        results.push(chain(&source, &mut egraph, &terms, source.roots[i], *root, name));
    }
    let corrections = corrections(&source, &mut terms, &mut streams, &roots);
    let program = schedule(&source, terms, &mut streams, &roots)?;
    Ok(Explanation { results, corrections, program })
}

/// An expression beside the e-graph that it is added to: sums and products have their operands in the e-graph's order, or the
/// expression would not be found in it.
struct Expression<'a> {
    egraph: &'a mut Graph,
    nodes: RecExpr<Node>,
}

impl Sink for Expression<'_> {
    /// The class, and the place in the expression.
    type Ref = (Id, Id);

    fn node(&mut self, op: NodeOp, mut args: Vec<(Id, Id)>) -> (Id, Id) {
        if matches!(op, NodeOp::Add(_) | NodeOp::Mul(_)) {
            args.sort_unstable();
        }
        let (classes, places): (Vec<Id>, Vec<Id>) = args.into_iter().unzip();
        let class = self.egraph.add(Node { op: op.clone(), args: classes });
        (class, self.nodes.add(Node { op, args: places }))
    }
}

/// A term as an expression of the e-graph's language, and its class.
fn expression(egraph: &mut Graph, terms: &Terms, root: TermId) -> (RecExpr<Node>, Id) {
    let mut sink = Expression { egraph, nodes: RecExpr::default() };
    let mut made: HashMap<TermId, (Id, Id)> = HashMap::new();
    for id in terms.reachable(&[root]) {
        let args = terms.get(id).args.iter().map(|a| made[a]).collect();
        made.insert(id, insert(&mut sink, terms, id, args));
    }
    let (class, place) = made[&root];
    // An expression's root is its last node.
    let whole = sink.nodes[place].build_recexpr(|id| sink.nodes[id].clone());
    (whole, class)
}

fn chain(source: &Source, egraph: &mut Graph, terms: &Terms, from: TermId, to: TermId, name: String) -> Chain {
    let names = Names::of(&source.axes, &source.inputs);
    let start = names.term(&source.terms, from);
    let (left, a) = expression(egraph, &source.terms, from);
    let (right, b) = expression(egraph, terms, to);
    egraph.rebuild();
    if egraph.find(a) != egraph.find(b) {
        // Products that were flat in the e-graph are nested in a term: a few rounds flatten them.
        let runner = Runner::default()
            .with_explanations_enabled()
            .with_egraph(std::mem::take(egraph))
            .with_iter_limit(4)
            .with_node_limit(20_000)
            .with_scheduler(SimpleScheduler)
            .run(&laws::rewrites(laws::KERNEL));
        *egraph = runner.egraph;
    }
    let mut steps = vec![];
    if egraph.find(a) == egraph.find(b) {
        let mut explanation = egraph.explain_equivalence(&left, &right);
        for flat in explanation.make_flat_explanation() {
            if let Some((law, backward)) = rule_in(flat) {
                let term = show(source, flat);
                let states = all_laws().find(|l| l.name == law).map_or("", |l| l.states);
                steps.push(Step { law, states, backward, term });
            }
        }
    }
    Chain { name, start, steps }
}

fn all_laws() -> impl Iterator<Item = &'static Law> {
    laws::KERNEL.iter().chain(laws::CORRECTION).flat_map(|theme| theme.iter())
}

fn rule_in(flat: &FlatTerm<Node>) -> Option<(String, bool)> {
    if let Some(rule) = flat.forward_rule {
        return Some((rule.to_string(), false));
    }
    if let Some(rule) = flat.backward_rule {
        return Some((rule.to_string(), true));
    }
    flat.children.iter().find_map(rule_in)
}

fn show(source: &Source, flat: &FlatTerm<Node>) -> String {
    fn build(terms: &mut Terms, flat: &FlatTerm<Node>) -> TermId {
        let args: Vec<TermId> = flat.children.iter().map(|c| build(terms, c)).collect();
        emit(terms, &flat.node.op, &args)
    }
    let mut terms = Terms::default();
    let root = build(&mut terms, flat);
    let names = Names::of(&source.axes, &source.inputs);
    names.term(&terms, root)
}

fn corrections(source: &Source, terms: &mut Terms, streams: &mut Streams, roots: &[TermId]) -> Vec<Corrected> {
    let mut found = vec![];
    for id in terms.reachable(roots) {
        let Some(corrected) = streams.corrected(terms, id) else { continue };
        let anchors = streams.named_anchors(terms);
        let names = Names { anchors: &anchors, ..Names::of(&source.axes, &source.inputs) };
        let law = match &corrected.correction {
            Correction::Linear { bodies, rows } => rows
                .iter()
                .zip(bodies)
                .map(|(row, body)| {
                    let sum: Vec<String> =
                        row.iter().map(|(c, at)| format!("({}) * t{at}(old)", names.term(terms, *c))).collect();
                    let at = bodies.iter().position(|b| b == body).unwrap_or(0);
                    format!("t{at} = {}; t{at}(new) = {}", names.term(terms, *body), sum.join(" + "))
                })
                .collect(),
            Correction::Shift(c) => vec![format!("t(new) = t(old) + {}", names.term(terms, *c))],
            Correction::Scale(c) => vec![format!("t(new) = t(old) * {}", names.term(terms, *c))],
        };
        let anchors = corrected
            .anchors
            .iter()
            .map(|a| format!("a{} = {}", a.0, names.term(terms, streams.anchors[a.0 as usize])))
            .collect();
        found.push(Corrected { body: names.term(terms, corrected.body), law, anchors });
    }
    found
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chain in &self.results {
            writeln!(f, "{} = {}", chain.name, chain.start)?;
            for step in &chain.steps {
                let direction = if step.backward { " (right to left)" } else { "" };
                writeln!(f, "  by {}{direction}: {}", step.law, step.states)?;
                writeln!(f, "    = {}", step.term)?;
            }
            writeln!(f)?;
        }
        for corrected in &self.corrections {
            writeln!(f, "{} runs in the pass of what it depends on:", corrected.body)?;
            for anchor in &corrected.anchors {
                writeln!(f, "  where {anchor}")?;
            }
            for law in &corrected.law {
                writeln!(f, "  {law}")?;
            }
            writeln!(f)?;
        }
        write!(f, "{}", self.program)
    }
}
