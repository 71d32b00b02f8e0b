//! States that are single values: one vector loop over the tile for all of a segment, then one merge each.

use super::affine::{self, Access};
use super::number::reg_elem;
use super::pass::{Before, Running, Tile};
use super::place::{Place, StatePlace};
use super::plan::{Segment, Work};
use super::reduce::{combine, identity, Accum};
use super::vector::{Nth, Width};
use super::{carry, LowerError, Lowering};
use crate::{Elem, Expr, Reg, Ty};
use onefold_ir::{DType, ReduceOp};
use onefold_passes::fold::{Carry, Pass, StateId, StateOp};
use onefold_passes::term::{ArrayId, TermId, TermOp};

/// The reduction that a state is, or that finds candidates for it.
pub fn reduction(op: StateOp) -> ReduceOp {
    match op {
        StateOp::Sum => ReduceOp::Sum,
        StateOp::Prod => ReduceOp::Prod,
        StateOp::Max | StateOp::ArgMax | StateOp::TopK { .. } => ReduceOp::Max,
        StateOp::Min => ReduceOp::Min,
    }
}

/// The most elements of a lane that are added up one after the other.
const CHAIN: u64 = 128;
/// Tiles of at least so many elements are fetched ahead.
const PREFETCHED: u64 = 1024;
/// Bytes of a line of the cache.
const LINE: u32 = 64;

/// Results of a tile, each of a reduction over a body; and the selections that have taken it in already.
#[derive(Debug, Default)]
pub struct TileResults(Vec<(ReduceOp, TermId, Reg)>, Vec<StateId>);

impl TileResults {
    /// The result of a reduction over a body.
    pub fn get(&self, op: ReduceOp, body: TermId) -> Result<Reg, LowerError> {
        let found = self.0.iter().find(|(o, b, _)| *o == op && *b == body);
        found.map(|(.., reg)| *reg).ok_or_else(|| LowerError::internal("a state was left out of its tile"))
    }
}

impl Lowering<'_> {
    /// A state that has seen nothing.
    pub fn initial_state(&mut self, id: StateId, pass: &Pass, shared: bool) -> Result<StatePlace, LowerError> {
        let state = &self.program.states[id.0 as usize];
        let name = state.name.clone();
        let nothing = identity(reduction(state.op), state.dtype);
        match state.op {
            StateOp::TopK { to } => self.initial_top(id, to, pass),
            _ if !state.axes.is_empty() => Ok(StatePlace::Array(self.initial_array(id, pass, shared)?)),
            StateOp::ArgMax => {
                let ty = Ty::scalar(reg_elem(state.dtype));
                let value = self.emit.let_(ty, &name, Expr::Const(ty, nothing));
                let zero = crate::Number::Int(0);
                let at = self.emit.let_(super::emit::I64, &format!("{name}_at"), Expr::Const(super::emit::I64, zero));
                Ok(StatePlace::Best { value, at })
            }
            _ => {
                let ty = self.held_in(id);
                Ok(StatePlace::Scalar(self.emit.let_(ty, &name, Expr::Const(ty, nothing))))
            }
        }
    }

    /// A run of states between anchors: what they share is put in tile buffers, then each takes in the tile.
    pub fn segment(
        &mut self,
        states: &[StateId],
        segment: &Segment,
        tile: Tile,
        results: &mut TileResults,
        running: &Running,
    ) -> Result<(), LowerError> {
        for id in &segment.contractions {
            let place = self.contract(*id, tile)?;
            self.here().places.push((*id, place));
        }
        for id in &segment.streamed {
            let greatest = self.stream_top(*id, tile, running)?;
            results.0.push((ReduceOp::Max, self.program.states[id.0 as usize].body, greatest));
            results.1.push(*id);
        }
        for (width, works) in self.by_width(&segment.works, tile) {
            self.tile_loop(&works, width, tile, results)?;
        }
        let moved = self.carry_singles(states, tile, running)?;
        for id in states {
            let state = &self.program.states[id.0 as usize];
            match running.place(*id)? {
                StatePlace::Scalar(reg) => self.merge(*id, *reg, tile, results, (moved, running))?,
                StatePlace::Best { value, at } => {
                    let greatest = results.get(ReduceOp::Max, state.body)?;
                    self.take_best(*id, (*value, *at), greatest, tile, running)?;
                }
                StatePlace::Top(_) if results.1.contains(id) => {}
                StatePlace::Top(_) => {
                    let greatest = results.get(ReduceOp::Max, state.body)?;
                    self.take_top(*id, greatest, tile, running)?;
                }
                StatePlace::Array(array) => self.take_array(*id, &array.clone(), tile, running)?,
            }
        }
        Ok(())
    }

    fn by_width(&self, works: &[Work], tile: Tile) -> Vec<(Width, Vec<Work>)> {
        let mut groups: Vec<(Width, Vec<Work>)> = vec![];
        for work in works {
            let width = self.width(&[work.body()], tile.axis);
            match groups.iter_mut().find(|(w, _)| *w == width) {
                Some((_, group)) => group.push(work.clone()),
                None => groups.push((width, vec![work.clone()])),
            }
        }
        groups
    }

    /// One loop over the tile for everything of one width.
    fn tile_loop(
        &mut self,
        works: &[Work],
        width: Width,
        tile: Tile,
        results: &mut TileResults,
    ) -> Result<(), LowerError> {
        let bodies: Vec<TermId> = works.iter().map(Work::body).collect();
        let sums = works.iter().filter(|w| matches!(w, Work::Fold { .. })).count().max(1);
        let cheap = self.total_weight(&bodies, tile.axis) < 10;
        let wanted = if cheap { self.schedule.accumulators } else { self.schedule.unroll };
        let unroll = (wanted as usize).min((8 / sums).next_power_of_two()).max(1);
        // What is expensive needs its registers for itself.
        let sums = if cheap { unroll } else { 1 };
        let accums: Vec<Option<Accum>> = works.iter().map(|w| w.accum(self, width.lanes, sums)).collect();
        let range = (tile.lo, tile.hi);
        if tile.len <= CHAIN * u64::from(width.lanes) || !works.iter().any(Work::is_float_sum) {
            self.tile_range(works, &accums, width, tile, range, unroll)?;
        } else {
            self.chained(works, &accums, width, tile, (unroll, sums))?;
        }
        for (work, accum) in works.iter().zip(accums) {
            match (work, accum) {
                (Work::Store { term, buf }, _) => {
                    let place = Place { buf: *buf, axis: tile.axis, base: tile.lo };
                    self.here().places.push((*term, place));
                }
                (Work::Fold { op, body, .. }, Some(accum)) => {
                    let result = accum.finish(self);
                    results.0.push((*op, *body, result));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A tile in parts, so that no more than a part's elements are added up one after the other.
    fn chained(
        &mut self,
        works: &[Work],
        totals: &[Option<Accum>],
        width: Width,
        tile: Tile,
        (unroll, sums): (usize, usize),
    ) -> Result<(), LowerError> {
        let (block, outside) = self.open();
        let name = format!("{}_part", self.axis_name(tile.axis));
        let lo = self.emit.reg(super::emit::I64, &name);
        let chain = CHAIN * u64::from(width.lanes);
        let length = self.emit.int(chain as i64);
        let end = self.emit.add(lo, length);
        let hi = self.emit.bin(crate::BinOp::Min, end, tile.hi);
        let mut parts = vec![];
        for (work, total) in works.iter().zip(totals) {
            parts.push(if work.is_float_sum() { work.accum(self, width.lanes, sums) } else { total.clone() });
        }
        self.tile_range(works, &parts, width, tile, (lo, hi), unroll)?;
        for (work, (part, total)) in works.iter().zip(parts.iter().zip(totals)) {
            if let (true, Some(part), Some(total)) = (work.is_float_sum(), part, total) {
                let sum = part.finish_lanes(self);
                total.take(self, Nth::ONLY, sum, None);
            }
        }
        self.enter(outside);
        self.emit.push_for(lo, tile.lo, tile.hi, chain, false, block);
        Ok(())
    }

    /// Everything of one width for part of a tile.
    fn tile_range(
        &mut self,
        works: &[Work],
        accums: &[Option<Accum>],
        width: Width,
        tile: Tile,
        range: (Reg, Reg),
        unroll: usize,
    ) -> Result<(), LowerError> {
        let next = self.next_tile(works, width, tile);
        self.vector_loop(tile.axis, range, width, unroll, &mut |lower, copy| {
            let mask = lower.live_here(tile.axis);
            for (load, copies) in next.iter().filter(|_| mask.is_none()) {
                if copy.at % copies == 0 {
                    let (buf, offset) = lower.ahead(*load, tile.len)?;
                    lower.emit.prefetch(buf, offset);
                }
            }
            for (work, accum) in works.iter().zip(accums) {
                match (work, accum) {
                    (Work::Store { term, buf }, _) => {
                        let value = lower.lanes(*term, width.lanes)?;
                        let place = Place { buf: *buf, axis: tile.axis, base: tile.lo };
                        let offset = lower.place_offset(place)?;
                        lower.emit.store(*buf, offset, value);
                    }
                    (Work::Fold { body, .. }, Some(accum)) => accum.step(lower, copy, *body, mask)?,
                    _ => {}
                }
            }
            Ok(())
        })
    }

    /// Loads from the inputs that the next tile will repeat one tile further on, each with the number of copies of the
    /// body that a line of the cache serves. Loops with much to compute fetch these ahead: otherwise the first loop of a tile
    /// waits for memory, while memory waits for the last one.
    fn next_tile(&self, works: &[Work], width: Width, tile: Tile) -> Vec<(TermId, usize)> {
        let bodies: Vec<TermId> = works.iter().map(Work::body).collect();
        if tile.len < PREFETCHED || width.lanes == 1 || self.total_weight(&bodies, tile.axis) < 10 {
            return vec![];
        }
        let terms = &self.program.terms;
        let is_stream = |id: &TermId| {
            let term = terms.get(*id);
            matches!(term.op, TermOp::Load { array: ArrayId::Input(_), checked: false })
                && affine::access(self.program, term, tile.axis) == Access::Contiguous
        };
        let copies = |id: TermId| {
            let bytes = terms.get(id).dtype.bits() / 8 * u32::from(width.lanes);
            (LINE / bytes.max(1)).max(1) as usize
        };
        terms.reachable(&bodies).into_iter().filter(is_stream).map(|id| (id, copies(id))).collect()
    }

    /// Carry the states of a segment all at once where they are single values, behind one branch: the first tile finds them at
    /// their identities, which stay what they are. Returns whether that was done.
    fn carry_singles(&mut self, states: &[StateId], tile: Tile, running: &Running) -> Result<bool, LowerError> {
        let Some(before) = tile.before else { return Ok(false) };
        let moving: Vec<StateId> =
            states.iter().copied().filter(|s| self.program.states[s.0 as usize].carry != Carry::Keep).collect();
        let mut regs = vec![];
        for id in &moving {
            match running.place(*id)? {
                StatePlace::Scalar(reg) => regs.push(*reg),
                _ => return Ok(false),
            }
        }
        let Before::Some(any) = before else { return Ok(true) };
        if moving.is_empty() {
            return Ok(true);
        }
        let (block, outside) = self.open();
        // What depends on the anchors belongs behind the branch, too.
        let anchors = running.anchors.iter().map(|a| (a.id, a.regs())).collect();
        self.here().anchors = anchors;
        let mut moved = vec![];
        for (id, reg) in moving.iter().zip(&regs) {
            let step = self.coefficients(*id, true, running)?;
            moved.push(self.moved(*reg, &step, &|s| carry::old_scalar(running, s, *id))?);
        }
        for (reg, value) in regs.iter().zip(moved) {
            self.emit.copy(*reg, value);
        }
        self.enter(outside);
        self.emit.push_if(any, block);
        Ok(true)
    }

    /// Carry a single-valued state, unless that was done, and add the tile's result.
    fn merge(
        &mut self,
        id: StateId,
        reg: Reg,
        tile: Tile,
        results: &TileResults,
        (is_moved, running): (bool, &Running),
    ) -> Result<(), LowerError> {
        let state = &self.program.states[id.0 as usize];
        let op = reduction(state.op);
        let ty = self.emit.ty(reg);
        let old = if is_moved {
            reg
        } else {
            let step = self.coefficients(id, true, running)?;
            self.moved(reg, &step, &|s| carry::old_scalar(running, s, id))?
        };
        let new = if self.is_repeated(op, state.body, state.dtype, tile) {
            // The same element again and again.
            let value = self.value(state.body)?;
            let value = self.emit.convert(ty.elem, value);
            let count = self.emit.sub(tile.hi, tile.lo);
            let count = self.emit.convert(ty.elem, count);
            self.emit.mul(value, count)
        } else {
            let result = results.get(op, state.body)?;
            self.emit.convert(ty.elem, result)
        };
        let both = combine(self, op, new, old);
        let both = self.emit.wrap(state.dtype, both);
        self.emit.copy(reg, both);
        Ok(())
    }

    /// Whether a sum adds one element that does not vary along the tile.
    pub fn is_repeated(&self, op: ReduceOp, body: TermId, dtype: DType, tile: Tile) -> bool {
        let varies = self.program.terms.get(body).axes.contains(tile.axis);
        op == ReduceOp::Sum && !varies && matches!(reg_elem(dtype), Elem::F32 | Elem::F64)
    }
}
