//! How many times a fold program streams each input from memory.

use super::is_load;
use crate::fold::{Carry, FoldProgram, Item, Pass, Step};
use crate::term::{ArrayId, TermId, TermOp};
use onefold_ir::{AxisId, AxisSet};
use std::collections::{BTreeMap, BTreeSet};

/// For each input, in order, the number of streams: passes over one of its axes, and loops along one of its axes that only store.
/// An input without such an axis (a query's row beside a stream of keys, a value per row) counts once altogether; elements
/// picked by data (gathers) are no stream.
pub fn reads(program: &FoldProgram) -> Vec<u32> {
    let mut streams: BTreeMap<usize, u32> = BTreeMap::new();
    let mut touched: BTreeSet<usize> = BTreeSet::new();
    count(program, &program.body, AxisSet::EMPTY, &mut streams, &mut touched);
    (0..program.inputs.len()).map(|i| streams.get(&i).copied().unwrap_or(u32::from(touched.contains(&i)))).collect()
}

fn count(
    program: &FoldProgram,
    steps: &[Step],
    inner: AxisSet,
    streams: &mut BTreeMap<usize, u32>,
    touched: &mut BTreeSet<usize>,
) {
    let stores: Vec<TermId> = steps
        .iter()
        .filter_map(|s| match s {
            Step::Store { value, .. } => Some(*value),
            _ => None,
        })
        .collect();
    note(program, &stores, inner, streams, touched);
    for step in steps {
        match step {
            Step::Loop { axes, body } => {
                let has_pass = body.iter().any(|s| matches!(s, Step::Pass(_)));
                // Axes of loops around a pass are one position each as far as the pass is concerned.
                let inner = if has_pass { AxisSet::EMPTY } else { axes.iter().copied().collect() };
                count(program, body, inner, streams, touched);
            }
            Step::Pass(pass) => {
                let (roots, _) = pass_terms(program, pass);
                let axes = pass.axes.iter().copied().collect();
                note(program, &roots, axes, streams, touched);
            }
            Step::Scan { axis, value, .. } => note(program, &[*value], AxisSet::one(*axis), streams, touched),
            Step::Store { .. } => {}
        }
    }
}

/// Terms that a pass evaluates for each element, and the axes that it runs through: streamed, kept, and reduced on the spot.
pub fn pass_terms(program: &FoldProgram, pass: &Pass) -> (Vec<TermId>, AxisSet) {
    let mut roots = vec![];
    let mut axes: AxisSet = pass.axes.iter().copied().collect();
    for item in &pass.order {
        match item {
            Item::Anchor(id) => roots.push(program.anchors[id.0 as usize].value),
            Item::State(id) => {
                let state = &program.states[id.0 as usize];
                axes = axes.union(state.axes.iter().copied().collect());
                roots.push(state.body);
                match &state.carry {
                    Carry::Keep => {}
                    Carry::Linear(row) => roots.extend(row.iter().map(|(c, _)| *c)),
                    Carry::Shift(c) | Carry::Scale(c) => roots.push(*c),
                }
            }
        }
    }
    for id in program.terms.reachable(&roots) {
        if let TermOp::Reduce(_, reduced) = program.terms.get(id).op {
            axes = axes.union(reduced);
        }
    }
    (roots, axes)
}

fn note(
    program: &FoldProgram,
    roots: &[TermId],
    inner: AxisSet,
    streams: &mut BTreeMap<usize, u32>,
    touched: &mut BTreeSet<usize>,
) {
    let mut here = BTreeSet::new();
    for id in program.terms.reachable(roots) {
        let term = program.terms.get(id);
        let TermOp::Load { array: ArrayId::Input(input), checked } = term.op else { continue };
        touched.insert(input);
        if !checked && !term.axes.intersect(inner).is_empty() {
            here.insert(input);
        }
    }
    for input in here {
        *streams.entry(input).or_default() += 1;
    }
}

/// Names of the inputs that some terms read, in order.
pub fn inputs_of(program: &FoldProgram, roots: &[TermId]) -> Vec<String> {
    let found: BTreeSet<usize> = program
        .terms
        .reachable(roots)
        .into_iter()
        .filter(|t| is_load(&program.terms.get(*t).op))
        .filter_map(|t| match program.terms.get(t).op {
            TermOp::Load { array: ArrayId::Input(i), .. } => Some(i),
            _ => None,
        })
        .collect();
    found.into_iter().map(|i| program.inputs[i].name.clone()).collect()
}

/// Names of axes.
pub fn axis_names(program: &FoldProgram, axes: impl IntoIterator<Item = AxisId>) -> Vec<String> {
    axes.into_iter().map(|a| program.axes[a.0 as usize].name.clone()).collect()
}
