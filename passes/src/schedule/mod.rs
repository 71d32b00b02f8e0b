//! From extracted terms to a fold program: group reductions into passes, assemble states, nest loops.

mod assemble;
mod group;
pub(crate) mod nest;
pub mod reads;

use crate::convert::Graph;
use crate::error::PassError;
use crate::fold::{ArrayDecl, FoldProgram, Refused, Step};
use crate::print::Names;
use crate::streams::Streams;
use crate::term::{ArrayId, TermId, TermOp, Terms};
use assemble::{Assembler, Made};
use group::{Group, Groups};
use nest::Unit;
use onefold_ir::{AxisDecl, AxisId, AxisSet, Extent};
use std::ops::Range;

/// States kept as arrays instead of in a loop of their own may have up to this many elements.
const MAX_KEPT: u64 = 1 << 14;

/// The fold program of a function whose results are some terms.
///
/// # Errors
/// Only on bugs.
pub fn schedule(
    source: &Graph,
    mut terms: Terms,
    streams: &mut Streams,
    roots: &[TermId],
) -> Result<FoldProgram, PassError> {
    let rank = axis_ranks(source);
    let rank = |a: AxisId| rank.iter().position(|x| *x == a).unwrap_or(usize::MAX);
    let refused = refused(source, &mut terms, streams, roots);
    let mut made = Made::default();
    let mut body = vec![];
    for stage in stages(&terms, source, roots) {
        let units = schedule_stage(source, &mut terms, streams, roots, stage, &rank, &mut made)?;
        body.extend(nest::nest(units, AxisSet::EMPTY, &rank));
    }
    let mut program = FoldProgram {
        name: source.name.clone(),
        axes: source.axes.clone(),
        inputs: source.inputs.clone(),
        outputs: source.outputs.clone(),
        intermediates: source.stored.iter().map(|s| s.decl.clone()).collect(),
        terms,
        states: made.states,
        anchors: made.anchors,
        body,
        refused,
    };
    nest::store_intermediates(&mut program, &rank);
    Ok(program)
}

/// Reductions of some results that need a stream of their own after those that they depend on, and why.
fn refused(source: &Graph, terms: &mut Terms, streams: &Streams, roots: &[TermId]) -> Vec<Refused> {
    let anchors = streams.named_anchors(terms);
    let names = Names { anchors: &anchors, ..Names::of(&source.axes, &source.inputs) };
    let mut found = vec![];
    for id in terms.reachable(roots) {
        if let Some(why) = streams.refused(id) {
            let why = why.over(terms, &streams.anchors).tell(&names, terms);
            found.push(Refused { reduction: names.term(terms, id), why });
        }
    }
    found
}

/// Runs of roots: each reads only what earlier runs have stored.
fn stages(terms: &Terms, source: &Graph, roots: &[TermId]) -> Vec<Range<usize>> {
    let mut stages = vec![];
    let mut start = 0;
    for (at, root) in roots.iter().enumerate() {
        let reads_stage = terms.reachable(&[*root]).into_iter().any(|id| match terms.get(id).op {
            TermOp::Load { array: ArrayId::Intermediate(n), .. } => n >= start && n < source.stored.len(),
            _ => false,
        });
        if reads_stage && at > start {
            stages.push(start..at);
            start = at;
        }
    }
    stages.push(start..roots.len());
    stages
}

/// Passes and stores of one stage, in order.
fn schedule_stage(
    source: &Graph,
    terms: &mut Terms,
    streams: &mut Streams,
    roots: &[TermId],
    stage: Range<usize>,
    rank: &dyn Fn(AxisId) -> usize,
    made: &mut Made,
) -> Result<Vec<Unit>, PassError> {
    let mut groups = Groups::form(terms, streams, &roots[stage.clone()]);
    for at in 0..groups.groups.len() {
        if groups.can_keep(at) {
            keep_axes(source, terms, &mut groups.groups[at]);
        }
    }
    let mut assembler = Assembler::new(terms, streams, rank, std::mem::take(made));
    let mut units: Vec<Unit> = vec![];
    let mut open: Vec<usize> = stage.collect();
    let mut done = vec![];
    store_ready(source, &mut assembler, &groups, &mut units, &mut open, &done, roots)?;
    while let Some(at) = next_group(&groups, &done) {
        let pass = assembler.pass(&groups, at)?;
        units.push(Unit { parallel: groups.groups[at].parallel, step: Step::Pass(pass) });
        done.push(at);
        store_ready(source, &mut assembler, &groups, &mut units, &mut open, &done, roots)?;
    }
    *made = assembler.made;
    match open.is_empty() {
        true => Ok(units),
        false => Err(PassError::internal("passes depend on each other in a circle")),
    }
}

/// The next pass whose predecessors are done.
fn next_group(groups: &Groups, done: &[usize]) -> Option<usize> {
    (0..groups.groups.len()).find(|g| {
        let group = &groups.groups[*g];
        !group.members.is_empty() && !done.contains(g) && group.after.iter().all(|a| done.contains(a))
    })
}

/// Store the roots that the passes done so far make known: narrow ones first, so that they stand in the outer loops.
fn store_ready(
    source: &Graph,
    assembler: &mut Assembler<'_>,
    groups: &Groups,
    units: &mut Vec<Unit>,
    open: &mut Vec<usize>,
    done: &[usize],
    roots: &[TermId],
) -> Result<(), PassError> {
    let is_ready =
        |assembler: &mut Assembler<'_>, r: usize| assembler.needs(groups, roots[r]).iter().all(|g| done.contains(g));
    let (mut ready, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|r| is_ready(assembler, **r));
    *open = rest;
    ready.sort_by_key(|r| (source.decl(*r).axes.len(), *r));
    for r in ready {
        let value = assembler.resolve(roots[r], None)?;
        let target = source.target(r);
        let axes: AxisSet = source.decl(r).axes.iter().copied().collect();
        let scan = source.stored.get(r).and_then(|s| s.scan);
        units.push(match scan {
            Some(axis) => Unit { parallel: axes.without(axis), step: Step::Scan { axis, target, value } },
            None => Unit { parallel: axes, step: Step::Store { target, value } },
        });
    }
    Ok(())
}

/// Axes in the order in which loops nest: as the results lie in memory, then as the inputs do.
fn axis_ranks(source: &Graph) -> Vec<AxisId> {
    let mut order: Vec<AxisId> = vec![];
    for array in source.outputs.iter().chain(&source.inputs) {
        for axis in &array.axes {
            if !order.contains(axis) {
                order.push(*axis);
            }
        }
    }
    order.extend((0..source.axes.len() as u8).map(AxisId).filter(|a| !order.contains(a)).collect::<Vec<_>>());
    order
}

/// Without anchors, states may be arrays along axes of fixed extent: then an input that lacks such an axis is streamed once
/// instead of once for each position. It pays where the axis is the innermost of the inputs that have it.
fn keep_axes(source: &Graph, terms: &Terms, group: &mut Group) {
    let mut kept = 1u64;
    for axis in group.parallel.iter().collect::<Vec<_>>() {
        let Extent::Fixed(size) = extent(&source.axes, axis) else { continue };
        let arrays: Vec<&ArrayDecl> = group
            .inputs
            .iter()
            .filter_map(|a| match a {
                ArrayId::Input(i) => source.inputs.get(*i),
                ArrayId::Intermediate(_) => None,
            })
            .collect();
        let some_lack = arrays.iter().any(|a| !a.axes.contains(&axis));
        let innermost = arrays.iter().all(|a| !a.axes.contains(&axis) || a.axes.last() == Some(&axis));
        let others_kept = group.members.iter().all(|m| {
            let beyond = terms.get(m.term).axes.minus(group.parallel);
            beyond.iter().all(|b| matches!(extent(&source.axes, b), Extent::Fixed(_)))
        });
        let widest = group
            .members
            .iter()
            .map(|m| {
                let beyond = terms.get(m.term).axes.minus(group.parallel);
                beyond
                    .iter()
                    .map(|b| match extent(&source.axes, b) {
                        Extent::Fixed(n) => n,
                        _ => u64::MAX,
                    })
                    .fold(1u64, u64::saturating_mul)
            })
            .max()
            .unwrap_or(1);
        if some_lack && innermost && others_kept && kept.saturating_mul(size).saturating_mul(widest) <= MAX_KEPT {
            kept *= size;
            group.parallel = group.parallel.without(axis);
        }
    }
}

fn extent(axes: &[AxisDecl], axis: AxisId) -> Extent {
    axes[axis.0 as usize].extent.clone()
}

/// Whether a term is a load.
pub(crate) fn is_load(op: &TermOp) -> bool {
    matches!(op, TermOp::Load { .. })
}
