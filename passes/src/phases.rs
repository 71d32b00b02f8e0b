//! Phases: a fold program as several that run one after the other, each shared out over threads by itself.
//!
//! A kernel runs the iterations of one outermost loop in parallel. A program whose results are read in another loop (the
//! second stream of a normalised row, what follows a sort) has several such loops; between them everything must be in memory.
//! States that later phases read are stored in intermediates, which all phases share.

use crate::fold::{ArrayDecl, FoldProgram, Item, State, StateId, StateOp, Step, Target};
use crate::schedule::nest::{coefficients, find_leaf, parts_of, replace_in_step};
use crate::term::{ArrayId, TermId, TermOp};
use onefold_ir::{AxisId, AxisSet, DType, Extent, Part};
use std::collections::BTreeSet;

/// Loops over fewer elements are not worth a phase of their own.
const SHORT: u64 = 1 << 14;

/// The phases of a program, in order. Inputs, outputs and intermediates are the same in all of them; so are the states,
/// each of which one phase makes. A program that has only one outermost loop is its only phase.
pub fn phases(program: &FoldProgram) -> Vec<FoldProgram> {
    let mut whole = program.clone();
    let body = std::mem::take(&mut whole.body);
    let mut runs = runs(&whole, body);
    for at in 0..runs.len() {
        for state in states_of(&runs[at]) {
            store(&mut whole, &mut runs, at, state);
        }
    }
    runs.into_iter().map(|body| FoldProgram { body, ..whole.clone() }).collect()
}

/// Steps that make a phase: a loop whose iterations are worth sharing out, or whatever stands between two such.
fn runs(program: &FoldProgram, body: Vec<Step>) -> Vec<Vec<Step>> {
    let mut runs: Vec<Vec<Step>> = vec![];
    let mut open = false;
    for step in body {
        let shared = is_shared(program, &step);
        match runs.last_mut().filter(|_| open && !shared) {
            Some(run) => run.push(step),
            None => runs.push(vec![step]),
        }
        open = !shared;
    }
    runs
}

/// Whether a step is a loop that folds, or one that streams an array, and not known to be short.
fn is_shared(program: &FoldProgram, step: &Step) -> bool {
    let Step::Loop { axes, body } = step else { return false };
    if elements(program, step).is_some_and(|n| n < SHORT) {
        return false;
    }
    let mut values = vec![];
    for step in body {
        match step {
            Step::Store { value, .. } => values.push(*value),
            _ => return true,
        }
    }
    let along: AxisSet = axes.iter().copied().collect();
    let streams = |id: &TermId| {
        let term = program.terms.get(*id);
        matches!(term.op, TermOp::Load { .. }) && !term.axes.intersect(along).is_empty()
    };
    program.terms.reachable(&values).iter().any(streams)
}

/// How many positions a step runs through, if that is known.
fn elements(program: &FoldProgram, step: &Step) -> Option<u64> {
    let along = |axes: &[AxisId]| {
        axes.iter().try_fold(1u64, |product, axis| match program.axes[axis.0 as usize].extent {
            Extent::Fixed(n) => Some(product.saturating_mul(n)),
            _ => None,
        })
    };
    match step {
        Step::Loop { axes, body } => {
            let inside = body.iter().map(|step| elements(program, step)).sum::<Option<u64>>()?;
            Some(along(axes)?.saturating_mul(inside))
        }
        Step::Pass(pass) => along(&pass.axes),
        Step::Scan { axis, .. } => along(&[*axis]),
        Step::Store { .. } => Some(1),
    }
}

/// The states that later steps of any phase may read: those of passes outside all loops.
fn states_of(run: &[Step]) -> Vec<StateId> {
    run.iter()
        .filter_map(|step| match step {
            Step::Pass(pass) => Some(pass),
            _ => None,
        })
        .flat_map(|pass| &pass.order)
        .filter_map(|item| match item {
            Item::State(id) => Some(*id),
            Item::Anchor(_) => None,
        })
        .collect()
}

/// Store what later phases read of a state at the end of its own, and make them read that.
fn store(program: &mut FoldProgram, runs: &mut [Vec<Step>], home: usize, id: StateId) {
    let State { axes: kept, op, dtype, .. } = program.states[id.0 as usize].clone();
    let mut axes = kept;
    if let StateOp::TopK { to } = op {
        axes.push(to);
    }
    for part in parts_of(op) {
        let Some(leaf) = find_leaf(program, &TermOp::State { state: id, part: *part }) else { continue };
        if !runs[home + 1..].iter().flatten().any(|step| reads(program, step, leaf)) {
            continue;
        }
        let dtype = if *part == Part::Indices { DType::I64 } else { dtype };
        let load = array(program, &axes, dtype);
        for step in runs[home + 1..].iter_mut().flatten() {
            replace_in_step(program, step, leaf, load);
        }
        let store = Step::Store { target: Target::Intermediate(program.intermediates.len() - 1), value: leaf };
        let whole = axes.is_empty();
        runs[home].push(if whole { store } else { Step::Loop { axes: axes.clone(), body: vec![store] } });
    }
}

/// A new intermediate, and an element of it.
fn array(program: &mut FoldProgram, axes: &[AxisId], dtype: DType) -> TermId {
    let number = program.intermediates.len();
    program.intermediates.push(ArrayDecl { name: format!("t{number}"), dtype, axes: axes.to_vec() });
    let args = axes.iter().map(|a| program.terms.make(TermOp::Index(*a), DType::I64, vec![])).collect();
    program.terms.make(TermOp::Load { array: ArrayId::Intermediate(number), checked: false }, dtype, args)
}

/// Whether a step reads a leaf.
fn reads(program: &FoldProgram, step: &Step, leaf: TermId) -> bool {
    let mut roots = vec![];
    roots_of(program, step, &mut roots);
    program.terms.reachable(&roots).contains(&leaf)
}

fn roots_of(program: &FoldProgram, step: &Step, roots: &mut Vec<TermId>) {
    match step {
        Step::Loop { body, .. } => body.iter().for_each(|step| roots_of(program, step, roots)),
        Step::Pass(pass) => {
            for item in &pass.order {
                match item {
                    Item::State(id) => {
                        let state = &program.states[id.0 as usize];
                        roots.push(state.body);
                        roots.extend(coefficients(&state.carry));
                    }
                    Item::Anchor(id) => roots.push(program.anchors[id.0 as usize].value),
                }
            }
        }
        Step::Store { value, .. } | Step::Scan { value, .. } => roots.push(*value),
    }
}

/// The intermediates that some steps store.
pub fn stored(steps: &[Step]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for step in steps {
        match step {
            Step::Loop { body, .. } => found.extend(stored(body)),
            Step::Store { target: Target::Intermediate(n), .. }
            | Step::Scan { target: Target::Intermediate(n), .. } => {
                found.insert(*n);
            }
            Step::Store { .. } | Step::Scan { .. } | Step::Pass(_) => {}
        }
    }
    found
}

/// The number of passes in some steps.
pub fn passes(steps: &[Step]) -> usize {
    let of = |step: &Step| match step {
        Step::Loop { body, .. } => passes(body),
        Step::Pass(_) => 1,
        Step::Store { .. } | Step::Scan { .. } => 0,
    };
    steps.iter().map(of).sum()
}
