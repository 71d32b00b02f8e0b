//! Which terms of a pass are kept in tile buffers, and in which segment they are made.
//!
//! A segment is a run of states between anchors. Kept are: reductions inside bodies (the scores of a tile); terms that an
//! array state uses without varying along the array (the weights); and costly terms that more than one loop uses.

use super::number::reg_elem;
use super::pass::Tile;
use super::reduce::Accum;
use super::state::reduction;
use super::{LowerError, Lowering};
use crate::{BufId, BufferKind, Count, Elem};
use onefold_ir::{AxisId, AxisSet, DType, ReduceOp};
use onefold_passes::fold::{Carry, Item, Pass, StateId, StateOp};
use onefold_passes::term::{TermId, TermOp};
use std::collections::{BTreeMap, BTreeSet};

/// What the vector loop of a segment does with an element.
#[derive(Clone, Debug)]
pub enum Work {
    /// Puts a term in a tile buffer.
    Store { term: TermId, buf: BufId },
    /// Accumulates a body.
    Fold { op: ReduceOp, dtype: DType, body: TermId },
}

impl Work {
    /// Accumulators for what is folded.
    pub fn accum(&self, lower: &mut Lowering<'_>, lanes: u16, copies: usize) -> Option<Accum> {
        match self {
            Work::Fold { op, dtype, .. } => Some(Accum::new(lower, *op, *dtype, lanes, copies)),
            Work::Store { .. } => None,
        }
    }

    /// Whether rounding adds up.
    pub fn is_float_sum(&self) -> bool {
        matches!(self, Work::Fold { op: ReduceOp::Sum, dtype, .. } if dtype.is_float())
    }

    /// The term that is evaluated.
    pub fn body(&self) -> TermId {
        match self {
            Work::Store { term, .. } => *term,
            Work::Fold { body, .. } => *body,
        }
    }
}

/// A run of states between anchors.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Reductions inside terms, operands first; each has a loop of its own.
    pub contractions: Vec<TermId>,
    /// Selections that look at every element as it comes by, each in a loop of its own.
    pub streamed: Vec<StateId>,
    /// The common vector loop.
    pub works: Vec<Work>,
}

/// All segments of a pass.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub segments: Vec<Segment>,
}

/// A loop that evaluates terms: the segment's common one, or that of one state (or of one reduction), in order of time.
type Loop = (usize, u32);

/// The common loop of a segment.
const COMMON: u32 = 0;

impl Plan {
    /// The plan of a pass in a tile.
    pub fn of(lower: &mut Lowering<'_>, pass: &Pass, tile: Tile) -> Result<Plan, LowerError> {
        let runs = runs(pass);
        let mut plan = Plan { segments: vec![Segment::default(); runs.len()] };
        let mut uses: BTreeMap<TermId, BTreeSet<Loop>> = BTreeMap::new();
        let mut wanted: BTreeSet<TermId> = BTreeSet::new();
        for (segment, states) in runs.iter().enumerate() {
            for id in states {
                let state = &lower.program.states[id.0 as usize];
                if state.axes.is_empty() {
                    uses.entry(state.body).or_default().insert((segment, COMMON));
                }
                if !state.axes.is_empty() || matches!(state.op, StateOp::TopK { .. } | StateOp::ArgMax) {
                    uses.entry(state.body).or_default().insert((segment, 1 + id.0));
                }
                lower.want_weights(state.body, &state.axes, tile, &mut wanted);
            }
        }
        // Users have higher numbers than what they use.
        let mut kept: Vec<(TermId, usize)> = vec![];
        while let Some((id, loops)) = uses.pop_last() {
            let term = lower.program.terms.get(id);
            let first = loops.first().map_or(0, |l| l.0);
            let mut below = loops.clone();
            let reduces = matches!(term.op, TermOp::Reduce(..));
            let costly = loops.len() > 1 && lower.is_expensive(id);
            if (reduces || costly || wanted.contains(&id)) && lower.can_keep(id, tile) {
                kept.push((id, first));
                // A reduction is a loop of its own, before the segment's common one.
                below = BTreeSet::from([(first, if reduces { u32::MAX - id.0 } else { COMMON })]);
            }
            for arg in &term.args {
                if lower.program.terms.get(*arg).axes.contains(tile.axis) {
                    uses.entry(*arg).or_default().extend(&below);
                }
            }
        }
        kept.sort_unstable();
        for (id, segment) in kept {
            let term = lower.program.terms.get(id);
            if matches!(term.op, TermOp::Reduce(..)) {
                plan.segments[segment].contractions.push(id);
            } else {
                let buf = lower.tile_buffer(id, tile);
                plan.segments[segment].works.push(Work::Store { term: id, buf });
            }
        }
        // Selections over what is known from the start come first: their loops find the maximum on the way.
        for id in runs.iter().flatten().filter(|id| lower.is_streamed(**id, &wanted)) {
            plan.segments[0].streamed.push(*id);
        }
        for (segment, states) in runs.iter().enumerate() {
            for id in states {
                let state = &lower.program.states[id.0 as usize];
                let op = reduction(state.op);
                let streamed =
                    |id: &StateId| op == ReduceOp::Max && lower.program.states[id.0 as usize].body == state.body;
                if plan.segments[0].streamed.iter().any(streamed) {
                    continue;
                }
                // What a tile's earlier segment found still holds: an anchor that the body mentions stood before both.
                let known = |w: &Work| matches!(w, Work::Fold { op: o, body, .. } if *o == op && *body == state.body);
                let mut works = plan.segments[..=segment].iter().flat_map(|s| &s.works);
                let single = state.axes.is_empty() && !lower.is_repeated(op, state.body, state.dtype, tile);
                if single && !works.any(known) {
                    let fold = Work::Fold { op, dtype: state.dtype, body: state.body };
                    plan.segments[segment].works.push(fold);
                }
            }
        }
        Ok(plan)
    }
}

/// The states between anchors.
fn runs(pass: &Pass) -> Vec<Vec<StateId>> {
    let mut runs: Vec<Vec<StateId>> = vec![];
    let mut fresh = true;
    for item in &pass.order {
        match item {
            Item::Anchor(_) => fresh = true,
            Item::State(id) => {
                if std::mem::take(&mut fresh) {
                    runs.push(vec![]);
                }
                if let Some(run) = runs.last_mut() {
                    run.push(*id);
                }
            }
        }
    }
    runs
}

impl Lowering<'_> {
    /// Largest terms of an array state's body that vary along the tile but not along the array.
    fn want_weights(&self, body: TermId, kept: &[AxisId], tile: Tile, wanted: &mut BTreeSet<TermId>) {
        if kept.is_empty() {
            return;
        }
        let kept: AxisSet = kept.iter().copied().collect();
        let mut seen = BTreeSet::new();
        let mut stack = vec![body];
        while let Some(id) = stack.pop() {
            let term = self.program.terms.get(id);
            if !term.axes.contains(tile.axis) || !seen.insert(id) {
                continue;
            }
            if !term.axes.intersect(kept).is_empty() {
                // Axes of a reduction inside are not those of the array, even if they have the same name.
                if !matches!(term.op, TermOp::Reduce(..)) {
                    stack.extend(&term.args);
                }
                continue;
            }
            let plain = matches!(term.op, TermOp::Load { .. }) && super::cost::weight(self.program, id) == 1;
            if !plain && !matches!(term.op, TermOp::Index(_)) {
                wanted.insert(id);
            }
        }
    }

    /// Whether a list can look at elements before anything else is done with a tile: they depend on no anchor, and cost
    /// so little that looking again is cheaper than keeping them.
    fn is_streamed(&self, id: StateId, wanted: &BTreeSet<TermId>) -> bool {
        let state = &self.program.states[id.0 as usize];
        let body = self.program.terms.reachable(&[state.body]);
        matches!(state.op, StateOp::TopK { .. })
            && state.carry == Carry::Keep
            && self.leaves[state.body.0 as usize].anchors.is_empty()
            && body.iter().all(|t| !self.is_expensive(*t) && !wanted.contains(t))
    }

    /// Whether a term can stand in a tile buffer: it varies along the tile and otherwise only along loops around it.
    fn can_keep(&self, id: TermId, tile: Tile) -> bool {
        let term = self.program.terms.get(id);
        term.axes.contains(tile.axis)
            && reg_elem(term.dtype) != Elem::I64
            && term.axes.without(tile.axis).iter().all(|a| self.binding(a).is_some())
    }

    /// A buffer for a term's values in a tile, of whole vectors.
    pub fn tile_buffer(&mut self, id: TermId, tile: Tile) -> BufId {
        let term = self.program.terms.get(id);
        let len = Count::Const(tile.len.next_multiple_of(64));
        let name = match term.op {
            TermOp::Reduce(..) => "reduced",
            _ => "kept",
        };
        // A pass that is over needs its buffers no more.
        let elem = reg_elem(term.dtype);
        let free = |b: &BufId| {
            let buffer = &self.emit.buffers[b.0 as usize];
            buffer.elem == elem && buffer.len == len && !self.tile_buffers.contains(b)
        };
        let buf = self.free_buffers.iter().copied().find(free);
        let buf = buf.unwrap_or_else(|| self.emit.buffer(name, elem, BufferKind::Stack, len));
        self.tile_buffers.push(buf);
        buf
    }
}
