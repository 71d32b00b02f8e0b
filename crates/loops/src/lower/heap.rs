//! Long lists of greatest elements: a heap while the stream runs, sorted at its end.
//!
//! Inserting into a sorted list takes as many steps as the list is long. Lists longer than [`LONGEST_SORTED`] are heaps whose
//! root is the worst entry: a newcomer that beats it takes its place and sinks, in as many steps as the heap is deep. Entries are ordered by
//! value and then by position, so that equal elements come out in the order of the stream.

use super::emit::{BOOL, I64};
use super::topk::{List, Search};
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Count, Expr, Number, Reg};
use onefold_passes::fold::{Carry, Item, Pass, StateId, StateOp};
use onefold_passes::term::TermOp;

/// The longest list that is kept sorted.
const LONGEST_SORTED: u64 = 64;

/// An entry in registers.
#[derive(Clone, Copy)]
pub struct Entry {
    value: Reg,
    at: Reg,
}

impl Entry {
    /// An element and its position.
    pub fn new(value: Reg, at: Reg) -> Entry {
        Entry { value, at }
    }
}

impl Lowering<'_> {
    /// Whether a list is kept as a heap: it is long, its values stay as they came (rounding could make equals of them, out of
    /// order), and no anchor reads it while the stream runs.
    pub fn is_heap(&self, id: StateId, pass: &Pass) -> bool {
        let state = &self.program.states[id.0 as usize];
        let StateOp::TopK { to } = state.op else { return false };
        let is_long = !matches!(self.extent(to).count, Count::Const(n) if n <= LONGEST_SORTED);
        let reads = |item: &Item| match item {
            Item::Anchor(anchor) => {
                let value = self.program.anchors[anchor.0 as usize].value;
                let terms = &self.program.terms;
                terms
                    .reachable(&[value])
                    .iter()
                    .any(|t| matches!(terms.get(*t).op, TermOp::State { state, .. } if state == id))
            }
            Item::State(_) => false,
        };
        is_long && state.carry == Carry::Keep && !pass.order.iter().any(reads)
    }

    /// The number of levels of a heap of so many entries, at least.
    pub fn heap_levels(&mut self, size: Reg) -> Reg {
        let levels = self.emit.let_(I64, "levels", Expr::Const(I64, Number::Int(0)));
        let rest = self.emit.let_(I64, "rest", Expr::Copy(size));
        let (zero, bits) = (self.emit.int(0), self.emit.int(64));
        let (block, outside) = self.open();
        let bit = self.emit.reg(I64, "bit");
        let one = self.emit.int(1);
        let zero_here = self.emit.int(0);
        let some = self.emit.cmp(Cmp::Gt, rest, zero_here);
        let more = self.emit.add(levels, one);
        let counted = self.emit.select(some, more, levels);
        self.emit.copy(levels, counted);
        self.emit.assign(rest, Expr::Binary(BinOp::Shr, rest, one));
        self.enter(outside);
        self.emit.push_for(bit, zero, bits, 1, false, block);
        levels
    }

    /// Put an element that belongs in the list into the heap.
    pub fn heap_insert(&mut self, entry: Entry, search: &Search, levels: Reg) -> Result<(), LowerError> {
        let list = search.list;
        let open = self.emit.cmp(Cmp::Lt, list.filled, search.size);
        let (block, outside) = self.open();
        self.rise(entry, list, levels)?;
        let one = self.emit.int(1);
        self.emit.assign(list.filled, Expr::Binary(BinOp::Add, list.filled, one));
        self.enter(outside);
        let (full, outside) = self.open();
        let zero = self.emit.int(0);
        let some = self.emit.cmp(Cmp::Gt, list.filled, zero);
        let (replace, middle) = self.open();
        self.sink(entry, list, list.filled, levels)?;
        self.enter(middle);
        self.emit.push_if(some, replace);
        self.enter(outside);
        self.emit.push_either(open, block, full);
        self.remember_worst(list, search.size, |lower| lower.emit.int(0));
        Ok(())
    }

    /// A new leaf, and up past those that it is worse than.
    fn rise(&mut self, entry: Entry, list: List, levels: Reg) -> Result<(), LowerError> {
        let hole = self.emit.let_(I64, "hole", Expr::Copy(list.filled));
        let going = self.emit.let_(BOOL, "going", Expr::Const(BOOL, Number::Int(1)));
        let zero = self.emit.int(0);
        let (level_loop, outside) = self.open();
        let level = self.emit.reg(I64, "level");
        let zero_here = self.emit.int(0);
        let below = self.emit.cmp(Cmp::Gt, hole, zero_here);
        let look = self.emit.bin(BinOp::And, below, going);
        let (step, middle) = self.open();
        let one = self.emit.int(1);
        let before = self.emit.sub(hole, one);
        let parent = self.emit.bin(BinOp::Shr, before, one);
        let there = self.entry(list, parent);
        let moves = self.precedes(there, entry);
        self.emit.copy(going, moves);
        self.move_hole(list, hole, (there, parent), moves);
        self.enter(middle);
        self.emit.push_if(look, step);
        self.enter(outside);
        self.emit.push_for(level, zero, levels, 1, false, level_loop);
        self.put(list, hole, entry);
        Ok(())
    }

    /// In place of the root, and down past those that are worse, in the first `end` entries.
    fn sink(&mut self, entry: Entry, list: List, end: Reg, levels: Reg) -> Result<(), LowerError> {
        let hole = self.emit.let_(I64, "hole", Expr::Const(I64, Number::Int(0)));
        let going = self.emit.let_(BOOL, "going", Expr::Const(BOOL, Number::Int(1)));
        let zero = self.emit.int(0);
        let (level_loop, outside) = self.open();
        let level = self.emit.reg(I64, "level");
        let one = self.emit.int(1);
        let twice = self.emit.add(hole, hole);
        let left = self.emit.add(twice, one);
        let inside = self.emit.cmp(Cmp::Lt, left, end);
        let look = self.emit.bin(BinOp::And, inside, going);
        let (step, middle) = self.open();
        let one = self.emit.int(1);
        let next = self.emit.add(left, one);
        let two = self.emit.cmp(Cmp::Lt, next, end);
        let right = self.emit.select(two, next, left);
        let (l, r) = (self.entry(list, left), self.entry(list, right));
        let right_is_worse = self.precedes(l, r);
        let worse = Entry {
            value: self.pick(right_is_worse, r.value, l.value),
            at: self.emit.select(right_is_worse, r.at, l.at),
        };
        let child = self.emit.select(right_is_worse, right, left);
        let moves = self.precedes(entry, worse);
        self.emit.copy(going, moves);
        self.move_hole(list, hole, (worse, child), moves);
        self.enter(middle);
        self.emit.push_if(look, step);
        self.enter(outside);
        self.emit.push_for(level, zero, levels, 1, false, level_loop);
        self.put(list, hole, entry);
        Ok(())
    }

    /// Where an entry is to move, it goes into the hole and leaves one at its place.
    fn move_hole(&mut self, list: List, hole: Reg, (entry, place): (Entry, Reg), moves: Reg) {
        let (block, outside) = self.open();
        self.put(list, hole, entry);
        self.emit.copy(hole, place);
        self.enter(outside);
        self.emit.push_if(moves, block);
    }

    /// Sort a heap: the worst entry to the end, again and again.
    pub fn sort_heap(&mut self, list: List, levels: Reg) -> Result<(), LowerError> {
        let zero = self.emit.int(0);
        let (block, outside) = self.open();
        let done = self.emit.reg(I64, "done");
        let one = self.emit.int(1);
        let left = self.emit.sub(list.filled, done);
        let end = self.emit.sub(left, one);
        let root = self.emit.int(0);
        let worst = self.entry(list, root);
        let leaf = self.entry(list, end);
        self.put(list, end, worst);
        let some = self.emit.cmp(Cmp::Gt, end, root);
        let (rest, middle) = self.open();
        self.sink(leaf, list, end, levels)?;
        self.enter(middle);
        self.emit.push_if(some, rest);
        self.enter(outside);
        self.emit.push_for(done, zero, list.filled, 1, false, block);
        Ok(())
    }

    fn entry(&mut self, list: List, place: Reg) -> Entry {
        Entry { value: self.emit.load(1, list.values, place, "v"), at: self.emit.load(1, list.at, place, "at") }
    }

    fn put(&mut self, list: List, place: Reg, entry: Entry) {
        self.emit.store(list.values, place, entry.value);
        self.emit.store(list.at, place, entry.at);
    }

    /// Whether one entry stands before another in the result.
    fn precedes(&mut self, a: Entry, b: Entry) -> Reg {
        let greater = self.comes_first(a.value, b.value);
        let less = self.comes_first(b.value, a.value);
        let not_less = self.emit.not(less);
        let sooner = self.emit.cmp(Cmp::Lt, a.at, b.at);
        let tie = self.emit.bin(BinOp::And, not_less, sooner);
        self.emit.bin(BinOp::Or, greater, tie)
    }
}
