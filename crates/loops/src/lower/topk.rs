//! The greatest elements: vectors in which none beats the worst of them are passed over, others go in one by one: into a sorted
//! list, or into a heap ([`super::heap`]) if it is long.

use super::carry::Move;
use super::emit::{BOOL, I64};
use super::heap::Entry;
use super::number::mem_elem;
use super::pass::{Running, Tile};
use super::place::StatePlace;
use super::reduce::{identity, Accum};
use super::scope::Bind;
use super::vector::Width;
use super::{LowerError, Lowering};
use crate::{BinOp, BufId, BufferKind, Cmp, Count, Elem, Expr, Fold, Number, Reg, Ty};
use onefold_ir::{AxisId, CmpOp, DType, ReduceOp};
use onefold_passes::fold::{Pass, StateId};
use onefold_passes::term::TermId;
use std::cell::RefCell;

/// Lists of up to so many elements are on the stack.
const STACK_ENTRIES: u64 = 1 << 10;

/// Registers and buffers of a list.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Elements, in descending order unless it is a heap.
    pub values: BufId,
    /// Their positions.
    pub at: BufId,
    /// The axis of the result.
    pub to: AxisId,
    /// The number of entries so far.
    pub filled: Reg,
    /// The worst entry of a full list; before, NaN or the least value.
    pub last: Reg,
    /// Of a heap, the number of its levels.
    pub levels: Option<Reg>,
}

/// Vectors that are compared before there is a branch.
const GROUP: usize = 4;

/// A list, and what is offered to it.
#[derive(Clone, Copy)]
pub struct Search {
    body: TermId,
    dtype: DType,
    axis: AxisId,
    /// The list.
    pub list: List,
    /// The number of entries that it may have.
    pub size: Reg,
}

impl Lowering<'_> {
    /// An empty list.
    pub fn initial_top(&mut self, id: StateId, to: AxisId, pass: &Pass) -> Result<StatePlace, LowerError> {
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
        let unbeaten = if elem.is_float() { Number::Float(f64::NAN) } else { nothing };
        let last = self.emit.let_(ty, &format!("{name}_last"), Expr::Const(ty, unbeaten));
        // Entries that are never filled (the caller sees to it that there are none) read as the least value.
        let (zero, size) = (self.emit.int(0), self.size(to)?);
        let (block, outside) = self.open();
        let entry = self.emit.reg(I64, "entry");
        let least = self.emit.constant(ty, nothing);
        self.emit.store(values, entry, least);
        let first = self.emit.int(0);
        self.emit.store(at, entry, first);
        self.enter(outside);
        self.emit.push_for(entry, zero, size, 1, false, block);
        let levels = self.is_heap(id, pass).then(|| self.heap_levels(size));
        Ok(StatePlace::Top(List { values, at, to, filled, last, levels }))
    }

    fn list(&self, id: StateId, running: &Running) -> Result<List, LowerError> {
        match running.place(id)? {
            StatePlace::Top(list) => Ok(*list),
            _ => Err(LowerError::internal("not a list")),
        }
    }

    /// Bring the lists of a pass that is over into order.
    pub fn sort_lists(&mut self, running: &Running) -> Result<(), LowerError> {
        for (_, place) in &running.states {
            if let StatePlace::Top(list @ List { levels: Some(levels), .. }) = &**place {
                self.sort_heap(*list, *levels)?;
            }
        }
        Ok(())
    }

    /// Move the values of a list.
    pub fn move_top(&mut self, id: StateId, step: &Move, running: &Running) -> Result<(), LowerError> {
        let list = self.list(id, running)?;
        let zero = self.emit.int(0);
        let (block, outside) = self.open();
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
    pub fn take_top(&mut self, id: StateId, greatest: Reg, tile: Tile, running: &Running) -> Result<(), LowerError> {
        let step = self.coefficients(id, true, running)?;
        if !matches!(step, Move::Keep) {
            self.move_top(id, &step, running)?;
        }
        let search = self.search(id, tile, running)?;
        let within = self.compare(CmpOp::Le, search.dtype, greatest, search.list.last);
        self.where_some_beats(&search, within, &mut |lower| lower.offer(&search, tile, None))
    }

    /// Take a tile into a list; returns its greatest element. For bodies that cost no more than a look.
    pub fn stream_top(&mut self, id: StateId, tile: Tile, running: &Running) -> Result<Reg, LowerError> {
        let search = self.search(id, tile, running)?;
        let width = self.width(&[search.body], tile.axis);
        let greatest = Accum::new(self, ReduceOp::Max, search.dtype, width.lanes, 1);
        self.offer(&search, tile, Some(&greatest))?;
        Ok(greatest.finish(self))
    }

    fn search(&mut self, id: StateId, tile: Tile, running: &Running) -> Result<Search, LowerError> {
        let body = self.program.states[id.0 as usize].body;
        let list = self.list(id, running)?;
        let dtype = self.program.terms.get(body).dtype;
        Ok(Search { body, dtype, axis: tile.axis, list, size: self.size(list.to)? })
    }

    /// Offer a tile's elements to a list: groups of vectors that have something to offer are gone through one by one.
    fn offer(&mut self, search: &Search, tile: Tile, greatest: Option<&Accum>) -> Result<(), LowerError> {
        let width = self.width(&[search.body], tile.axis);
        let group = RefCell::new(vec![]);
        self.vector_loop(tile.axis, (tile.lo, tile.hi), width, GROUP, &mut |lower, nth| {
            let group = &mut *group.borrow_mut();
            group.push(match greatest {
                Some(_) => lower.lanes(search.body, width.lanes)?,
                None => lower.none_beats(search, width)?,
            });
            if nth.at + 1 < nth.of {
                return Ok(());
            }
            let members: Vec<Reg> = std::mem::take(group);
            let within = match greatest {
                Some(greatest) => {
                    let live = lower.live_here(search.axis);
                    let (most, nan) = greatest.take_group(lower, &members, live);
                    let last = lower.emit.splat(width.lanes, search.list.last);
                    let within = lower.compare(CmpOp::Le, search.dtype, most, last);
                    match nan {
                        Some(nan) => {
                            let number = lower.emit.not(nan);
                            lower.emit.bin(BinOp::And, within, number)
                        }
                        None => within,
                    }
                }
                None => {
                    let all = members.iter().copied().reduce(|a, b| lower.emit.bin(BinOp::And, a, b));
                    all.ok_or_else(|| LowerError::internal("a group of no vectors"))?
                }
            };
            lower.where_some_beats(search, within, &mut |lower| {
                if nth.of == 1 {
                    return lower.insert_lanes(search);
                }
                let end = lower.position(search.axis)?;
                if width.lanes == 1 {
                    let one = lower.emit.int(1);
                    let end = lower.emit.add(end, one);
                    let all = lower.emit.int(nth.of as i64);
                    let start = lower.emit.sub(end, all);
                    return lower.insert_range(search, start, end);
                }
                for (n, member) in members.iter().enumerate() {
                    let back = lower.emit.int(i64::from(width.lanes) * (nth.of - 1 - n) as i64);
                    let start = lower.emit.sub(end, back);
                    lower.insert_candidates(search, *member, start)?;
                }
                Ok(())
            })
        })
    }

    /// Offer the elements at some positions.
    fn insert_range(&mut self, search: &Search, start: Reg, end: Reg) -> Result<(), LowerError> {
        self.scalar_range(search.axis, (start, end), false, &mut |lower| {
            let position = lower.position(search.axis)?;
            let x = lower.value(search.body)?;
            lower.insert(x, position, search)
        })
    }

    /// Offer those lanes of a vector that beat the worst of the list, the first one first. The vector holds the elements, or
    /// tells which do not beat it.
    fn insert_candidates(&mut self, search: &Search, member: Reg, start: Reg) -> Result<(), LowerError> {
        let ty = self.emit.ty(member);
        let within = match ty.elem {
            Elem::Bool => member,
            _ => {
                let last = self.emit.splat(ty.lanes, search.list.last);
                self.compare(CmpOp::Le, search.dtype, member, last)
            }
        };
        let mut beats = self.emit.not(within);
        if !search.dtype.is_float() {
            let open = self.emit.cmp(Cmp::Lt, search.list.filled, search.size);
            let open = self.emit.splat(ty.lanes, open);
            beats = self.emit.bin(BinOp::Or, beats, open);
        }
        let left = self.emit.let_(ty.with(Elem::Bool), "candidates", Expr::Copy(beats));
        let (zero, count) = (self.emit.int(0), self.emit.lanes_of_mask(Fold::Count, left));
        let (block, outside) = self.open();
        let turn = self.emit.reg(I64, "turn");
        let lane = self.emit.lanes_of_mask(Fold::First, left);
        let position = self.emit.add(start, lane);
        self.here().binds.push((search.axis, Bind::Scalar(position)));
        let x = self.value(search.body)?;
        self.insert(x, position, search)?;
        let done = self.emit.convert(Elem::I32, lane);
        let done = self.emit.splat(ty.lanes, done);
        let lanes =
            self.emit.let_(Ty::vector(Elem::I32, ty.lanes), "iota", Expr::Iota(Ty::vector(Elem::I32, ty.lanes)));
        let behind = self.emit.cmp(Cmp::Gt, lanes, done);
        self.emit.assign(left, Expr::Binary(BinOp::And, left, behind));
        self.enter(outside);
        self.emit.push_for(turn, zero, count, 1, false, block);
        Ok(())
    }

    /// In which lanes the element does not beat the worst of a list; dead lanes do not.
    fn none_beats(&mut self, search: &Search, width: Width) -> Result<Reg, LowerError> {
        let x = self.lanes(search.body, width.lanes)?;
        let last = self.emit.splat(width.lanes, search.list.last);
        let within = self.compare(CmpOp::Le, search.dtype, x, last);
        Ok(match self.live_here(search.axis) {
            Some(live) => {
                let dead = self.emit.not(live);
                self.emit.bin(BinOp::Or, within, dead)
            }
            None => within,
        })
    }

    /// A branch taken if the list is not full or some lane beats its worst.
    fn where_some_beats(
        &mut self,
        search: &Search,
        within: Reg,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let mut passed_over = self.emit.fold_lanes(Fold::All, within);
        // The worst of a list that is not full is NaN, which nothing is within; other types have no such value.
        if !search.dtype.is_float() {
            let full = self.emit.cmp(Cmp::Ge, search.list.filled, search.size);
            passed_over = self.emit.bin(BinOp::And, full, passed_over);
        }
        let (block, outside) = self.open();
        body(self)?;
        self.enter(outside);
        self.emit.push_unless(passed_over, block);
        Ok(())
    }

    /// Whether an element may enter a full list whose worst is `last`: it is not lower or equal (NaN is neither).
    fn beats(&mut self, dtype: DType, x: Reg, last: Reg) -> Reg {
        let not = self.compare(CmpOp::Le, dtype, x, last);
        self.emit.not(not)
    }

    /// Offer each of the current lanes to the list.
    fn insert_lanes(&mut self, search: &Search) -> Result<(), LowerError> {
        let Some(lanes) = self.lanes_of(search.axis) else {
            let position = self.position(search.axis)?;
            let x = self.value(search.body)?;
            return self.insert(x, position, search);
        };
        let lo = self.emit.int(0);
        let hi = lanes.tail.unwrap_or_else(|| self.emit.int(i64::from(lanes.lanes)));
        let (block, outside) = self.open();
        let lane = self.emit.reg(I64, "lane");
        let position = self.emit.add(lanes.base, lane);
        self.here().binds.push((search.axis, Bind::Scalar(position)));
        let x = self.value(search.body)?;
        self.insert(x, position, search)?;
        self.enter(outside);
        self.emit.push_for(lane, lo, hi, 1, false, block);
        Ok(())
    }

    /// Put an element where it belongs, if it belongs in the list: those behind move on by one, and a full list loses its last.
    fn insert(&mut self, x: Reg, position: Reg, search: &Search) -> Result<(), LowerError> {
        let Search { dtype, list, size, .. } = *search;
        let ty = self.emit.ty(x);
        let open = self.emit.cmp(Cmp::Lt, list.filled, size);
        let beats = self.beats(dtype, x, list.last);
        let enters = self.emit.bin(BinOp::Or, open, beats);
        let (block, outside) = self.open();
        if let Some(levels) = list.levels {
            self.heap_insert(Entry::new(x, position), search, levels)?;
            self.enter(outside);
            self.emit.push_if(enters, block);
            return Ok(());
        }
        let (value, at) = (self.emit.reg(ty, "moving"), self.emit.reg(I64, "moving_at"));
        self.emit.copy(value, x);
        self.emit.copy(at, position);
        let placed = self.emit.let_(BOOL, "placed", Expr::Const(BOOL, Number::Int(0)));
        let zero = self.emit.int(0);
        let (inner, middle) = self.open();
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
        let (block, outside) = self.open();
        self.emit.store(list.values, list.filled, value);
        self.emit.store(list.at, list.filled, at);
        let one = self.emit.int(1);
        self.emit.assign(list.filled, Expr::Binary(BinOp::Add, list.filled, one));
        self.enter(outside);
        self.emit.push_if(open, block);
        self.remember_worst(list, size, |lower| {
            let one = lower.emit.int(1);
            lower.emit.sub(list.filled, one)
        });
        Ok(())
    }

    /// Once a list is full, newcomers have to beat its worst entry, which is at a place known then.
    pub fn remember_worst(&mut self, list: List, size: Reg, place: impl FnOnce(&mut Self) -> Reg) {
        let full = self.emit.cmp(Cmp::Ge, list.filled, size);
        let zero = self.emit.int(0);
        let some = self.emit.cmp(Cmp::Gt, list.filled, zero);
        let known = self.emit.bin(BinOp::And, full, some);
        let (block, outside) = self.open();
        let place = place(self);
        let last = self.emit.load(1, list.values, place, "last");
        self.emit.copy(list.last, last);
        self.enter(outside);
        self.emit.push_if(known, block);
    }
}
