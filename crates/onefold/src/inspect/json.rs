//! Fold programs as JSON: the facts that tests and scripts rely on.

use onefold_ir::AxisId;
use onefold_passes::fold::{FoldProgram, Item, Pass, StateOp, Step};
use onefold_passes::schedule::reads::{axis_names, inputs_of, pass_terms, reads};
use onefold_passes::term::{TermId, TermOp};
use serde_json::{json, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// `{"functions": […]}` on lines a person can read.
pub fn document(functions: &[Value]) -> String {
    let mut text = format!("{:#}", json!({ "functions": functions }));
    text.push('\n');
    text
}

/// One function.
pub fn function(program: &FoldProgram) -> Value {
    let mut streams = Map::new();
    for (input, count) in program.inputs.iter().zip(reads(program)) {
        streams.insert(input.name.clone(), json!(count));
    }
    let mut found = Found::default();
    walk(program, &program.body, &mut found);
    let mut passes = vec![];
    for (at, pass) in found.passes.iter().enumerate() {
        let (roots, _) = pass_terms(program, pass);
        let state: Vec<Value> = pass.order.iter().filter_map(|item| state(program, *item)).collect();
        let writes: Vec<&String> = found.writes.get(&at).into_iter().flatten().collect();
        passes.push(json!({
            "axes": axis_names(program, pass.axes.iter().copied()),
            "reads": inputs_of(program, &roots),
            "writes": writes,
            "state": state,
        }));
    }
    for (axes, store) in &found.maps {
        passes.push(json!({
            "axes": axis_names(program, axes.iter().copied()),
            "reads": inputs_of(program, &[store.1]),
            "writes": [store.0],
            "state": [],
        }));
    }
    let stored = |i: &onefold_passes::fold::ArrayDecl| json!({ "name": i.name, "dtype": i.dtype.name(), "axes": axis_names(program, i.axes.iter().copied()) });
    let intermediates: Vec<Value> = program.intermediates.iter().map(stored).collect();
    let refused: Vec<Value> =
        program.refused.iter().map(|r| json!({ "reduction": r.reduction, "why": r.why })).collect();
    let mut value = json!({ "name": program.name, "passes": passes, "reads": streams, "intermediates": intermediates });
    if !refused.is_empty() {
        value["refused"] = json!(refused);
    }
    value
}

/// What a walk through a program meets.
#[derive(Default)]
struct Found<'p> {
    passes: Vec<&'p Pass>,
    /// What is stored from the states of a pass, without another run through an input.
    writes: BTreeMap<usize, BTreeSet<String>>,
    /// Loops that read inputs to store something: a pass without state.
    maps: Vec<(Vec<AxisId>, (String, TermId))>,
    /// The pass of each state.
    homes: BTreeMap<u32, usize>,
    /// Axes of the loops around.
    bound: Vec<AxisId>,
}

fn walk<'p>(program: &'p FoldProgram, steps: &'p [Step], found: &mut Found<'p>) {
    for step in steps {
        match step {
            Step::Loop { axes, body } => {
                found.bound.extend(axes);
                walk(program, body, found);
                found.bound.truncate(found.bound.len() - axes.len());
            }
            Step::Pass(pass) => {
                for item in &pass.order {
                    if let Item::State(id) = item {
                        found.homes.insert(id.0, found.passes.len());
                    }
                }
                found.passes.push(pass);
            }
            Step::Store { target, value } => {
                let name = program.target(*target).name.clone();
                let terms = program.terms.reachable(&[*value]);
                let streams = terms.iter().any(|t| {
                    let term = program.terms.get(*t);
                    matches!(term.op, TermOp::Load { checked: false, .. }) && !term.axes.is_empty()
                });
                let homes: BTreeSet<usize> = terms
                    .iter()
                    .filter_map(|t| match program.terms.get(*t).op {
                        TermOp::State { state, .. } => found.homes.get(&state.0).copied(),
                        _ => None,
                    })
                    .collect();
                match homes.last() {
                    Some(last) if !streams || reads_only_outer(program, *last, &terms, found) => {
                        found.writes.entry(*last).or_default().insert(name);
                    }
                    _ => found.maps.push((found.bound.clone(), (name, *value))),
                }
            }
            Step::Scan { axis, target, value } => {
                let axes = found.bound.iter().copied().chain([*axis]).collect();
                found.maps.push((axes, (program.target(*target).name.clone(), *value)));
            }
        }
    }
}

/// Whether a store reads inputs only along axes that the pass does not stream: a value per row.
fn reads_only_outer(program: &FoldProgram, pass: usize, terms: &[TermId], found: &Found<'_>) -> bool {
    let streamed = &found.passes[pass].axes;
    terms.iter().all(|t| {
        let term = program.terms.get(*t);
        !matches!(term.op, TermOp::Load { .. }) || streamed.iter().all(|a| !term.axes.contains(*a))
    })
}

fn state(program: &FoldProgram, item: Item) -> Option<Value> {
    let Item::State(id) = item else { return None };
    let state = &program.states[id.0 as usize];
    let op = match state.op {
        StateOp::Sum => "sum".to_owned(),
        StateOp::Prod => "prod".to_owned(),
        StateOp::Max => "max".to_owned(),
        StateOp::Min => "min".to_owned(),
        StateOp::ArgMax => "argmax".to_owned(),
        StateOp::TopK { to } => format!("topk[{}]", axis_names(program, [to]).concat()),
    };
    let mut value = json!({ "name": state.name, "op": op });
    if !state.axes.is_empty() {
        value["axes"] = json!(axis_names(program, state.axes.iter().copied()));
    }
    if let Some(correction) = program.show_correction(id.0 as usize) {
        value["correction"] = json!(correction);
    }
    Some(value)
}
