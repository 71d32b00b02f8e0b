//! Which reductions run in one pass.
//!
//! A reduction becomes a *state* of a pass unless it varies along the axes that its user streams: then it is computed on the
//! spot, element by element (the scores of a tile). States over the same axes share a pass where their loops fit: a
//! corrected state joins the pass of its anchors; independent ones join if they read a common input.

use crate::derive::Correction;
use crate::streams::{reduced, Corrected, Streams};
use crate::term::{ArrayId, TermId, TermOp, Terms};
use onefold_ir::AxisSet;
use std::collections::{BTreeMap, BTreeSet};

/// A reduction that is a state.
#[derive(Clone, Debug)]
pub struct Member {
    /// The term. The two halves of a `topk` are one member, known by the first.
    pub term: TermId,
    /// How it runs beside the states that it depends on.
    pub corrected: Option<Corrected>,
}

/// Reductions that share a pass.
#[derive(Clone, Debug)]
pub struct Group {
    /// Axes streamed.
    pub axes: AxisSet,
    /// Axes of the loops around the pass.
    pub parallel: AxisSet,
    /// In an order in which each stands after those that it depends on.
    pub members: Vec<Member>,
    /// Groups that must be complete before.
    pub after: BTreeSet<usize>,
    /// Inputs that it streams.
    pub inputs: BTreeSet<ArrayId>,
    /// Whether its states can be arrays: not with anchors or ordered selections.
    rigid: bool,
}

/// All passes of a program.
#[derive(Debug, Default)]
pub struct Groups {
    /// The passes; not yet in order of execution.
    pub groups: Vec<Group>,
    /// The pass that each state belongs to.
    pub of: BTreeMap<TermId, usize>,
}

/// The term that stands for a reduction: of the two halves of a `topk`, the values.
pub fn key(terms: &mut Terms, id: TermId) -> TermId {
    let term = terms.get(id).clone();
    match term.op {
        TermOp::TopK { axis, to, .. } => {
            let dtype = terms.get(term.args[0]).dtype;
            terms.make(TermOp::TopK { axis, to, part: onefold_ir::Part::Values }, dtype, term.args)
        }
        _ => id,
    }
}

/// The states that a term needs, given the reductions that are computed on the spot.
pub fn states_in(terms: &mut Terms, root: TermId, inline: &Inline) -> BTreeSet<TermId> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        if is_state(terms, id, inline) {
            found.insert(key(terms, id));
        } else {
            stack.extend(terms.get(id).args.iter().copied());
        }
    }
    found
}

/// Whether a term is a state rather than computed on the spot.
pub fn is_state(terms: &Terms, id: TermId, inline: &Inline) -> bool {
    reduced(&terms.get(id).op).is_some() && !inline.contains(&id)
}

/// Reductions in the body of one that are computed on the spot, for each element of the stream.
pub type Inline = BTreeSet<TermId>;

/// Which reductions in a body are computed on the spot: those that vary along the streamed axes, unless that would repeat them
/// along an independent axis (the sums `S[e, d]` of a reassociated product do not depend on the row i). Repeating is still
/// right beside a reduction over the same axes that does depend on that axis: the same data is run through anyhow.
pub fn inline_in(terms: &Terms, id: TermId) -> Inline {
    let term = terms.get(id);
    let Some(axes) = reduced(&term.op) else { return Inline::new() };
    let body = terms.reachable(&term.args);
    let inner: Vec<(TermId, AxisSet)> = body
        .iter()
        .filter(|t| !terms.get(**t).axes.intersect(axes).is_empty())
        .filter_map(|t| match terms.get(*t).op {
            TermOp::Reduce(_, reduced) => Some((*t, reduced)),
            _ => None,
        })
        .collect();
    let columns = columns(terms, &term.args, axes);
    let repeated = |t: TermId| term.axes.minus(terms.get(t).axes).minus(columns);
    inner
        .iter()
        .filter(|(t, over)| {
            let rows = repeated(*t);
            let along =
                |(u, others): &(TermId, AxisSet)| u != t && others == over && rows.is_subset(terms.get(*u).axes);
            rows.is_empty() || inner.iter().any(along)
        })
        .map(|(t, _)| *t)
        .collect()
}

/// Axes that are innermost in every array that a body reads along the streamed axes and that has them: states can be kept as arrays along these.
/// What a reduction inside the body binds does not count.
fn columns(terms: &Terms, body: &[TermId], axes: AxisSet) -> AxisSet {
    let (mut last, mut elsewhere) = (AxisSet::EMPTY, AxisSet::EMPTY);
    let mut seen = BTreeSet::new();
    let mut open: Vec<(TermId, AxisSet)> = body.iter().map(|t| (*t, AxisSet::EMPTY)).collect();
    while let Some((id, bound)) = open.pop() {
        if !seen.insert((id, bound)) {
            continue;
        }
        let term = terms.get(id);
        let inner = reduced(&term.op).map_or(bound, |axes| bound.union(axes));
        open.extend(term.args.iter().map(|a| (*a, inner)));
        if !matches!(term.op, TermOp::Load { .. }) || term.axes.intersect(axes).is_empty() {
            continue;
        }
        for (i, arg) in term.args.iter().enumerate() {
            let of_arg = terms.get(*arg).axes.minus(bound);
            if i + 1 == term.args.len() {
                last = last.union(of_arg);
            } else {
                elsewhere = elsewhere.union(of_arg);
            }
        }
    }
    last.minus(elsewhere)
}

/// The independent axes of a reduction: its free ones without those along which something computed on the spot would be repeated.
fn independent_axes(terms: &Terms, id: TermId, inline: &Inline) -> AxisSet {
    let free = free_axes(terms, id);
    let columns = columns(terms, &terms.get(id).args, reduced(&terms.get(id).op).unwrap_or(AxisSet::EMPTY));
    inline.iter().fold(free, |set, n| set.minus(free.minus(terms.get(*n).axes).intersect(columns)))
}

/// Free axes of a reduction without the new one of a `topk`.
fn free_axes(terms: &Terms, id: TermId) -> AxisSet {
    let term = terms.get(id);
    match term.op {
        TermOp::TopK { to, .. } => term.axes.without(to),
        _ => term.axes,
    }
}

/// Inputs that a body reads along the streamed axes.
fn streamed_inputs(terms: &Terms, body: TermId, axes: AxisSet) -> BTreeSet<ArrayId> {
    terms
        .reachable(&[body])
        .into_iter()
        .filter(|t| !terms.get(*t).axes.intersect(axes).is_empty())
        .filter_map(|t| match terms.get(t).op {
            TermOp::Load { array, .. } => Some(array),
            _ => None,
        })
        .collect()
}

impl Groups {
    /// Put every reduction that some roots need into a pass.
    pub fn form(terms: &mut Terms, streams: &mut Streams, roots: &[TermId]) -> Groups {
        let mut all = BTreeSet::new();
        let mut open: Vec<TermId> = vec![];
        for root in roots {
            open.extend(states_in(terms, *root, &Inline::new()));
        }
        while let Some(id) = open.pop() {
            if all.insert(id) {
                let inline = inline_in(terms, id);
                open.extend(states_in(terms, terms.get(id).args[0], &inline));
            }
        }
        let mut groups = Groups::default();
        // Operands have lower numbers than the terms that use them, but for the values of a `topk` of which only the indices are used.
        let mut waiting: Vec<TermId> = all.into_iter().collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|id| !groups.place(terms, streams, *id));
            debug_assert!(waiting.len() < before, "reductions depend on each other in a circle");
            if waiting.len() == before {
                break;
            }
        }
        groups.merge();
        groups
    }

    /// Put a reduction into a pass, unless one that it needs has none yet.
    fn place(&mut self, terms: &mut Terms, streams: &mut Streams, id: TermId) -> bool {
        let term = terms.get(id).clone();
        let axes = reduced(&term.op).unwrap_or(AxisSet::EMPTY);
        let body = term.args[0];
        let inline = inline_in(terms, id);
        let needs = states_in(terms, body, &inline);
        if !needs.iter().all(|n| self.of.contains_key(n)) {
            return false;
        }
        let rigid = !matches!(term.op, TermOp::Reduce(..));
        let free = free_axes(terms, id);
        let inputs = streamed_inputs(terms, body, axes);
        if let Some(corrected) = streams.corrected(terms, id) {
            if let Some(at) = self.home_of_corrected(terms, streams, &corrected, axes, free, rigid, &needs) {
                let after: BTreeSet<usize> = needs.iter().map(|n| self.of[n]).filter(|g| *g != at).collect();
                let group = &mut self.groups[at];
                group.rigid = true;
                group.after.extend(after);
                group.inputs.extend(inputs);
                group.members.push(Member { term: id, corrected: Some(corrected) });
                self.of.insert(id, at);
                return true;
            }
        }
        let after: BTreeSet<usize> = needs.iter().map(|n| self.of[n]).collect();
        let free = if rigid { free } else { independent_axes(terms, id, &inline) };
        let home = (0..self.groups.len()).find(|g| {
            let group = &self.groups[*g];
            group.axes == axes
                && !group.inputs.is_disjoint(&inputs)
                && self.independent(*g, &after)
                && fits(group, free, rigid)
        });
        let at = home.unwrap_or(self.groups.len());
        if home.is_none() {
            let members = vec![];
            let (after, inputs) = (BTreeSet::new(), BTreeSet::new());
            self.groups.push(Group { axes, parallel: free, members, after, inputs, rigid });
        }
        let group = &mut self.groups[at];
        group.parallel = group.parallel.intersect(free);
        group.rigid |= rigid;
        group.after.extend(after);
        group.inputs.extend(inputs);
        group.members.push(Member { term: id, corrected: None });
        self.of.insert(id, at);
        true
    }

    /// The pass of a corrected reduction's anchors, if it can join it.
    #[allow(clippy::too_many_arguments)]
    fn home_of_corrected(
        &mut self,
        terms: &mut Terms,
        streams: &Streams,
        corrected: &Corrected,
        axes: AxisSet,
        free: AxisSet,
        rigid: bool,
        needs: &BTreeSet<TermId>,
    ) -> Option<usize> {
        let mut homes = BTreeSet::new();
        for anchor in &corrected.anchors {
            let value = streams.anchors[anchor.0 as usize];
            for state in states_in(terms, value, &Inline::new()) {
                let home = self.of[&state];
                if self.groups[home].axes == axes {
                    homes.insert(home);
                }
            }
        }
        let at = *homes.first()?;
        self.unite(at, &mut homes);
        let group = &self.groups[at];
        let others: BTreeSet<usize> = needs.iter().map(|n| self.of[n]).filter(|g| *g != at).collect();
        let kept = free.minus(group.parallel);
        let scalar_anchors =
            corrected.anchors.iter().all(|a| terms.get(streams.anchors[a.0 as usize]).axes.is_subset(group.parallel));
        let scalar_members = group.members.iter().all(|m| {
            let is_anchor_state = corrected
                .anchors
                .iter()
                .any(|a| states_in(terms, streams.anchors[a.0 as usize], &Inline::new()).contains(&m.term));
            !is_anchor_state || terms.get(m.term).axes.is_subset(group.parallel)
        });
        let fits = homes.len() == 1
            && group.parallel.is_subset(free)
            && (!rigid || kept.is_empty())
            && scalar_anchors
            && scalar_members
            && self.independent(at, &others)
            && coefficients_fit(terms, &corrected.correction, group.parallel, kept, axes);
        fits.then_some(at)
    }

    /// Whether none of some groups needs a group.
    fn independent(&self, group: usize, others: &BTreeSet<usize>) -> bool {
        let mut open: Vec<usize> = others.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(g) = open.pop() {
            if g == group {
                return false;
            }
            if seen.insert(g) {
                open.extend(&self.groups[g].after);
            }
        }
        true
    }

    /// Anchors from several passes need one: join those that can be.
    fn unite(&mut self, at: usize, homes: &mut BTreeSet<usize>) {
        for other in homes.clone() {
            if other != at && self.can_join(at, other) {
                self.absorb(at, other);
                homes.remove(&other);
            }
        }
    }

    fn can_join(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.groups[a], &self.groups[b]);
        x.axes == y.axes
            && x.parallel == y.parallel
            && !x.members.is_empty()
            && !y.members.is_empty()
            && self.independent(a, &y.after)
            && self.independent(b, &x.after)
    }

    /// Passes over the same axes in the same loops that read a common input become one.
    fn merge(&mut self) {
        for a in 0..self.groups.len() {
            for b in a + 1..self.groups.len() {
                let common = !self.groups[a].inputs.is_disjoint(&self.groups[b].inputs);
                if common && self.can_join(a, b) {
                    self.absorb(a, b);
                }
            }
        }
    }

    fn absorb(&mut self, a: usize, b: usize) {
        let taken = std::mem::take(&mut self.groups[b].members);
        for member in &taken {
            self.of.insert(member.term, a);
        }
        let (after, inputs) = (self.groups[b].after.clone(), self.groups[b].inputs.clone());
        let rigid = self.groups[b].rigid;
        let group = &mut self.groups[a];
        group.members.extend(taken);
        group.after.extend(after);
        group.inputs.extend(inputs);
        group.rigid |= rigid;
        for other in &mut self.groups {
            if other.after.remove(&b) {
                other.after.insert(a);
            }
        }
    }

    /// Whether a group's states may be kept as arrays along axes that are parallel now.
    pub fn can_keep(&self, group: usize) -> bool {
        !self.groups[group].rigid
    }
}

/// Whether a state with some free axes can join a group that has no anchor for it.
fn fits(group: &Group, free: AxisSet, rigid: bool) -> bool {
    if group.rigid || rigid {
        return group.parallel.is_subset(free) && (!rigid || free == group.parallel);
    }
    free.is_subset(group.parallel) || group.parallel.is_subset(free)
}

/// Whether coefficients are one value for each iteration of the loops around the pass, and all bodies are kept along the same axes.
fn coefficients_fit(terms: &Terms, correction: &Correction, parallel: AxisSet, kept: AxisSet, axes: AxisSet) -> bool {
    let scalar = |t: &TermId| terms.get(*t).axes.is_subset(parallel);
    match correction {
        Correction::Shift(c) | Correction::Scale(c) => scalar(c),
        Correction::Linear { bodies, rows } => {
            rows.iter().flatten().all(|(c, _)| scalar(c))
                && bodies.iter().all(|b| terms.get(*b).axes.minus(axes).minus(parallel) == kept)
        }
    }
}
