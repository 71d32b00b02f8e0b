//! Passes: states are set up, axes streamed in tiles, and values that stand for degenerate ones put right at the end.

use super::anchor::AnchorState;
use super::emit::I64;
use super::place::StatePlace;
use super::plan::Plan;
use super::scope::Seen;
use super::state::{reduction, TileResults};
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Reg};
use onefold_ir::AxisId;
use onefold_passes::fold::{AnchorId, Carry, Item, Pass, StateId, StateOp};
use std::rc::Rc;

/// The part of the last streamed axis that is at hand.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    pub axis: AxisId,
    /// First position.
    pub lo: Reg,
    /// One past the last.
    pub hi: Reg,
    /// The most elements that a tile has.
    pub len: u64,
    /// Whether elements were seen before; `None` if that is not known from this axis alone.
    pub before: Option<Before>,
}

/// What came before a tile.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    /// Nothing: it is the only tile.
    Nothing,
    /// Other tiles, where that register is true.
    Some(Reg),
}

/// A pass being lowered.
#[derive(Debug)]
pub struct Running {
    pub states: Vec<(StateId, Rc<StatePlace>)>,
    pub anchors: Vec<AnchorState>,
    /// States whose values before the tile other states' carries read, with a register for those that are single values.
    pub before: Vec<(StateId, Option<Reg>)>,
}

impl Running {
    /// Where a state is.
    pub fn place(&self, id: StateId) -> Result<&StatePlace, LowerError> {
        let found = self.states.iter().find(|(s, _)| *s == id);
        found.map(|(_, place)| &**place).ok_or_else(|| LowerError::internal("a carry over states of another pass"))
    }
}

impl Lowering<'_> {
    /// Lower a pass; afterwards its states can be read in the current scope.
    pub fn pass(&mut self, pass: &Pass) -> Result<(), LowerError> {
        let tile = self.schedule.tiles.get(self.passes_done).copied().unwrap_or(64).max(1);
        self.passes_done += 1;
        let names: Vec<&str> = pass.axes.iter().map(|a| self.axis_name(*a)).collect();
        let remark = format!("stream {}", names.join(", "));
        self.emit.comment(remark);
        let mut running = self.set_up(pass)?;
        self.initial_anchors(pass, &running)?;
        let Some((last, outer)) = pass.axes.split_last() else {
            return Err(LowerError::internal("a pass over no axes"));
        };
        self.scalar_loops(outer, false, &mut |lower| lower.tiles(pass, *last, tile, &mut running))?;
        self.close(pass, &running)?;
        self.sort_lists(&running)?;
        self.free_buffers.append(&mut self.tile_buffers);
        self.here().states.extend(running.states.iter().cloned());
        Ok(())
    }

    /// States at their identities, anchors without values yet.
    fn set_up(&mut self, pass: &Pass) -> Result<Running, LowerError> {
        let read_by_others = self.read_by_others(pass);
        let mut running = Running { states: vec![], anchors: vec![], before: vec![] };
        for item in &pass.order {
            match item {
                Item::Anchor(id) => {
                    let anchor = self.declare_anchor(*id);
                    running.anchors.push(anchor);
                }
                Item::State(id) => {
                    let shared = read_by_others.contains(id);
                    let place = self.initial_state(*id, pass, shared)?;
                    if shared {
                        let reg = match &place {
                            StatePlace::Scalar(reg) => Some(self.emit.reg(self.emit.ty(*reg), "before")),
                            _ => None,
                        };
                        running.before.push((*id, reg));
                    }
                    running.states.push((*id, Rc::new(place)));
                }
            }
        }
        Ok(running)
    }

    /// States that the carries of other states read.
    fn read_by_others(&self, pass: &Pass) -> Vec<StateId> {
        let mut found = vec![];
        for item in &pass.order {
            let Item::State(id) = item else { continue };
            if let Carry::Linear(row) = &self.program.states[id.0 as usize].carry {
                found.extend(row.iter().map(|(_, from)| *from).filter(|from| from != id));
            }
        }
        found
    }

    /// The last streamed axis in tiles.
    fn tiles(&mut self, pass: &Pass, axis: AxisId, len: u32, running: &mut Running) -> Result<(), LowerError> {
        let size = self.size(axis)?;
        let zero = self.emit.int(0);
        if let Some(n) = self.extent(axis).fixed.filter(|n| *n <= u64::from(len)) {
            if n == 0 {
                return Ok(());
            }
            let scope = self.scope(None);
            let outside = self.enter(scope);
            let before = (pass.axes.len() == 1).then_some(Before::Nothing);
            self.tile(pass, Tile { axis, lo: zero, hi: size, len: n, before }, running)?;
            self.enter(outside);
            return Ok(());
        }
        let (block, outside) = self.open();
        let name = format!("{}_tile", self.axis_name(axis));
        let var = self.emit.reg(I64, &name);
        let step = self.emit.int(i64::from(len));
        let end = self.emit.add(var, step);
        let hi = self.emit.bin(BinOp::Min, end, size);
        let first = self.emit.int(0);
        let before = self.emit.cmp(Cmp::Gt, var, first);
        let before = (pass.axes.len() == 1).then_some(Before::Some(before));
        self.tile(pass, Tile { axis, lo: var, hi, len: u64::from(len), before }, running)?;
        self.enter(outside);
        self.emit.push_for(var, zero, size, u64::from(len), false, block);
        Ok(())
    }

    /// One tile: items in order. The current scope is the tile's own.
    fn tile(&mut self, pass: &Pass, tile: Tile, running: &mut Running) -> Result<(), LowerError> {
        let elements = self.elements_seen(pass, tile)?;
        let anchors = running.anchors.iter().map(|a| (a.id, a.regs())).collect();
        let here = self.here();
        here.states = running.states.clone();
        here.anchors = anchors;
        here.seen = elements.map(|elements| Seen { axes: pass.axes.clone(), elements });
        self.remember_before(running)?;
        let plan = Plan::of(self, pass, tile)?;
        let mut segments = plan.segments.iter();
        let mut run: Vec<StateId> = vec![];
        let mut results = TileResults::default();
        let items = pass.order.iter().map(Some).chain([None]);
        for item in items {
            match item {
                Some(Item::State(id)) => run.push(*id),
                other => {
                    if !run.is_empty() {
                        self.remark(&run);
                        let segment =
                            segments.next().ok_or_else(|| LowerError::internal("a run of states unplanned"))?;
                        self.segment(&std::mem::take(&mut run), segment, tile, &mut results, running)?;
                    }
                    if let Some(Item::Anchor(id)) = other {
                        self.update_anchor(*id, running)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Say which states the following statements are about.
    fn remark(&mut self, states: &[StateId]) {
        let program = self.program;
        let of = |id: &StateId| {
            let state = &program.states[id.0 as usize];
            let op = match state.op {
                StateOp::ArgMax => "argmax",
                StateOp::TopK { .. } => "topk",
                op => reduction(op).name(),
            };
            format!("{} = {op} of {}", state.name, program.show(state.body))
        };
        for id in states {
            self.emit.comment(of(id));
        }
    }

    /// The number of elements seen at the end of the tile, if an anchor asks for it.
    fn elements_seen(&mut self, pass: &Pass, tile: Tile) -> Result<Option<Reg>, LowerError> {
        if !self.counts_elements(pass) {
            return Ok(None);
        }
        let mut rows = self.emit.int(0);
        for axis in &pass.axes[..pass.axes.len() - 1] {
            let (size, position) = (self.size(*axis)?, self.position(*axis)?);
            rows = self.emit.mul(rows, size);
            rows = self.emit.add(rows, position);
        }
        let size = self.size(tile.axis)?;
        let before = self.emit.mul(rows, size);
        Ok(Some(self.emit.add(before, tile.hi)))
    }

    fn counts_elements(&self, pass: &Pass) -> bool {
        pass.order.iter().any(|item| match item {
            Item::Anchor(id) => self.leaves[self.program.anchors[id.0 as usize].value.0 as usize].seen,
            Item::State(_) => false,
        })
    }

    /// Anchors before the first tile: what follows from the states' identities.
    fn initial_anchors(&mut self, pass: &Pass, running: &Running) -> Result<(), LowerError> {
        let zero = self.emit.int(0);
        let scope = self.scope(None);
        let outside = self.enter(scope);
        self.here().states = running.states.clone();
        self.here().seen = Some(Seen { axes: pass.axes.clone(), elements: zero });
        for anchor in &running.anchors {
            self.start_anchor(anchor)?;
            let pin = (anchor.id, anchor.regs());
            self.here().anchors.push(pin);
        }
        self.enter(outside);
        Ok(())
    }

    /// Whether a pass has such an anchor.
    pub fn anchor_of(running: &Running, id: AnchorId) -> Option<&AnchorState> {
        running.anchors.iter().find(|a| a.id == id)
    }
}
