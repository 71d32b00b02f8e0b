//! The greatest elements: vectors in which none beats the worst of them are passed over, others go in one by one.

use super::carry::Move;
use super::emit::{BOOL, I64};
use super::number::mem_elem;
use super::pass::{Running, Tile};
use super::place::StatePlace;
use super::reduce::identity;
use super::scope::Bind;
use super::{LowerError, Lowering};
use crate::{BinOp, BufferKind, Cmp, Count, Elem, Expr, Fold, Number, Reg, Ty};
use onefold_ir::{AxisId, DType, ReduceOp};
use onefold_passes::fold::StateId;
use onefold_passes::term::TermId;

/// Lists of up to so many elements are on the stack.
const STACK_ENTRIES: u64 = 1 << 10;

/// Registers and buffers of a list.
#[derive(Clone, Copy)]
struct List {
    values: crate::BufId,
    at: crate::BufId,
    to: AxisId,
    filled: Reg,
    last: Reg,
}

impl Lowering<'_> {
    /// An empty list.
    pub fn initial_top(&mut self, id: StateId, to: AxisId) -> Result<StatePlace, LowerError> {
        let state = &self.program.states[id.0 as usize];
        if !state.axes.is_empty() {
            return Err(LowerError::unsupported("greatest elements along kept axes"));
        }
        let (name, dtype) = (state.name.clone(), state.dtype);
        let elem = self.value_elem(id);
        mem_elem(dtype)?;
        let len = self.extent(to).count.clone();
        let kind = match len {
            Count::Const(n) if n <= STACK_ENTRIES => BufferKind::Stack,
            _ => BufferKind::Scratch,
        };
        let values = self.emit.buffer(&name, elem, kind, len.clone());
        let at = self.emit.buffer(&format!("{name}_at"), Elem::I64, kind, len);
        let filled = self.emit.let_(I64, &format!("{name}_filled"), Expr::Const(I64, Number::Int(0)));
        let ty = Ty::scalar(elem);
        let nothing = identity(ReduceOp::Max, dtype);
        let last = self.emit.let_(ty, &format!("{name}_last"), Expr::Const(ty, nothing));
        // Entries that are never filled (the caller sees to it that there are none) read as the least value.
        let (zero, size) = (self.emit.int(0), self.size(to)?);
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let entry = self.emit.reg(I64, "entry");
        let least = self.emit.constant(ty, nothing);
        self.emit.store(values, entry, least);
        let first = self.emit.int(0);
        self.emit.store(at, entry, first);
        self.enter(outside);
        self.emit.push_for(entry, zero, size, 1, false, block);
        Ok(StatePlace::Top { values, at, to, filled, last })
    }

    fn list(&self, id: StateId, running: &Running) -> Result<List, LowerError> {
        match running.place(id)? {
            StatePlace::Top { values, at, to, filled, last } => {
                Ok(List { values: *values, at: *at, to: *to, filled: *filled, last: *last })
            }
            _ => Err(LowerError::internal("not a list")),
        }
    }

    /// Move the values of a list.
    pub fn move_top(&mut self, id: StateId, step: &Move, running: &Running) -> Result<(), LowerError> {
        let list = self.list(id, running)?;
        let zero = self.emit.int(0);
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let entry = self.emit.reg(I64, "entry");
        let value = self.emit.load(1, list.values, entry, "v");
        let moved = self.moved(value, step, &|_| None)?;
        self.emit.store(list.values, entry, moved);
        self.enter(outside);
        self.emit.push_for(entry, zero, list.filled, 1, false, block);
        let last = self.moved(list.last, step, &|_| None)?;
        self.emit.copy(list.last, last);
        Ok(())
    }

    /// Take a tile into a list; its greatest element is known.
    pub fn take_top(
        &mut self,
        id: StateId,
        greatest: Reg,
        tile: Tile,
        running: &Running,
    ) -> Result<(), LowerError> {
        let state = &self.program.states[id.0 as usize];
        let (body, dtype) = (state.body, self.program.terms.get(state.body).dtype);
        let step = self.coefficients(id, true, running)?;
        if !matches!(step, Move::Keep) {
            self.move_top(id, &step, running)?;
        }
        let list = self.list(id, running)?;
        let size = self.size(list.to)?;
        let (worth, block, outside) = {
            let open = self.emit.cmp(Cmp::Lt, list.filled, size);
            let beats = self.beats(dtype, greatest, list.last);
            let worth = self.emit.bin(BinOp::Or, open, beats);
            let block = self.emit.block();
            let scope = self.scope(Some(block));
            (worth, block, self.enter(scope))
        };
        let width = self.width(&[body], tile.axis);
        self.vector_loop(tile.axis, (tile.lo, tile.hi), width, 1, &mut |lower, _| {
            let x = lower.lanes(body, width.lanes)?;
            let last = lower.emit.splat(width.lanes, list.last);
            let mut hit = lower.beats(dtype, x, last);
            if let Some(live) = lower.live_here(tile.axis) {
                hit = lower.emit.bin(BinOp::And, hit, live);
            }
            let hit = lower.emit.fold_lanes(Fold::Any, hit);
            let open = lower.emit.cmp(Cmp::Lt, list.filled, size);
            let worth = lower.emit.bin(BinOp::Or, open, hit);
            let block = lower.emit.block();
            let scope = lower.scope(Some(block));
            let outside = lower.enter(scope);
            lower.insert_lanes(body, tile.axis, dtype, list, size)?;
            lower.enter(outside);
            lower.emit.push_if(worth, block);
            Ok(())
        })?;
        self.enter(outside);
        self.emit.push_if(worth, block);
        Ok(())
    }

    /// Whether an element may enter a full list whose worst is `last`: it is not lower or equal (NaN is neither).
    fn beats(&mut self, dtype: DType, x: Reg, last: Reg) -> Reg {
        let not = self.compare(onefold_ir::CmpOp::Le, dtype, x, last);
        self.emit.not(not)
    }

    /// Offer each of the current lanes to the list.
    fn insert_lanes(
        &mut self,
        body: TermId,
        axis: AxisId,
        dtype: DType,
        list: List,
        size: Reg,
    ) -> Result<(), LowerError> {
        let Some(lanes) = self.lanes_of(axis) else {
            let position = self.position(axis)?;
            let x = self.value(body)?;
            return self.insert(x, position, dtype, list, size);
        };
        let lo = self.emit.int(0);
        let hi = lanes.tail.unwrap_or_else(|| self.emit.int(i64::from(lanes.lanes)));
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let lane = self.emit.reg(I64, "lane");
        let position = self.emit.add(lanes.base, lane);
        self.here().binds.push((axis, Bind::Scalar(position)));
        let x = self.value(body)?;
        self.insert(x, position, dtype, list, size)?;
        self.enter(outside);
        self.emit.push_for(lane, lo, hi, 1, false, block);
        Ok(())
    }

    /// Put an element where it belongs, if it belongs in the list: those behind move on by one, and a full list loses its last.
    fn insert(&mut self, x: Reg, position: Reg, dtype: DType, list: List, size: Reg) -> Result<(), LowerError> {
        let ty = self.emit.ty(x);
        let open = self.emit.cmp(Cmp::Lt, list.filled, size);
        let beats = self.beats(dtype, x, list.last);
        let enters = self.emit.bin(BinOp::Or, open, beats);
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let (value, at) = (self.emit.reg(ty, "moving"), self.emit.reg(I64, "moving_at"));
        self.emit.copy(value, x);
        self.emit.copy(at, position);
        let placed = self.emit.let_(BOOL, "placed", Expr::Const(BOOL, Number::Int(0)));
        let zero = self.emit.int(0);
        let inner = self.emit.block();
        let inner_scope = self.scope(Some(inner));
        let middle = self.enter(inner_scope);
        let entry = self.emit.reg(I64, "entry");
        let there = self.emit.load(1, list.values, entry, "v");
        let there_at = self.emit.load(1, list.at, entry, "at");
        let first = self.comes_first(value, there);
        self.emit.assign(placed, Expr::Binary(BinOp::Or, placed, first));
        let put = self.pick(placed, value, there);
        let put_at = self.emit.select(placed, at, there_at);
        let on = self.pick(placed, there, value);
        let on_at = self.emit.select(placed, there_at, at);
        self.emit.store(list.values, entry, put);
        self.emit.store(list.at, entry, put_at);
        self.emit.copy(value, on);
        self.emit.copy(at, on_at);
        self.enter(middle);
        self.emit.push_for(entry, zero, list.filled, 1, false, inner);
        self.append(value, at, list, size)?;
        self.enter(outside);
        self.emit.push_if(enters, block);
        Ok(())
    }

    /// Where there is room, the element left over is the new last; once there is none, the last one is remembered.
    fn append(&mut self, value: Reg, at: Reg, list: List, size: Reg) -> Result<(), LowerError> {
        let open = self.emit.cmp(Cmp::Lt, list.filled, size);
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        self.emit.store(list.values, list.filled, value);
        self.emit.store(list.at, list.filled, at);
        let one = self.emit.int(1);
        self.emit.assign(list.filled, Expr::Binary(BinOp::Add, list.filled, one));
        self.enter(outside);
        self.emit.push_if(open, block);
        let zero = self.emit.int(0);
        let some = self.emit.cmp(Cmp::Gt, list.filled, zero);
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let one = self.emit.int(1);
        let end = self.emit.sub(list.filled, one);
        let last = self.emit.load(1, list.values, end, "last");
        self.emit.copy(list.last, last);
        self.enter(outside);
        self.emit.push_if(some, block);
        Ok(())
    }
}
