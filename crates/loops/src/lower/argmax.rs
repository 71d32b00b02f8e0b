//! The position of the greatest element: a tile is searched only if its greatest beats the best so far.

use super::carry::Move;
use super::number::reg_elem;
use super::pass::{Running, Tile};
use super::reduce::Accum;
use super::vector::{Nth, Width};
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Elem, Reg, Ty};
use onefold_ir::{DType, ReduceOp};
use onefold_passes::fold::StateId;

impl Lowering<'_> {
    /// Take a tile into the best element and its position.
    pub fn take_best(
        &mut self,
        id: StateId,
        (value, at): (Reg, Reg),
        greatest: Reg,
        tile: Tile,
        running: &Running,
    ) -> Result<(), LowerError> {
        let state = &self.program.states[id.0 as usize];
        let step = self.coefficients(id, true, running)?;
        if !matches!(step, Move::Keep) {
            let moved = self.moved(value, &step, &|_| None)?;
            self.emit.copy(value, moved);
        }
        let beats = self.comes_first(greatest, value);
        let (block, outside) = self.open();
        self.emit.copy(value, greatest);
        let width = self.width(&[state.body], tile.axis);
        // Distance from the start of the tile: the least among the elements that equal the greatest.
        let (dtype, elem) = match width {
            Width { wide: true, .. } => (DType::F64, Elem::F64),
            Width { lanes: 1, .. } => (DType::I64, Elem::I64),
            _ => (DType::I32, Elem::I32),
        };
        let accum = Accum::new(self, ReduceOp::Min, dtype, width.lanes, 1);
        let body = state.body;
        self.vector_loop(tile.axis, (tile.lo, tile.hi), width, 1, &mut |lower, _| {
            let x = lower.lanes(body, width.lanes)?;
            let best = lower.emit.splat(width.lanes, greatest);
            let mut hit = lower.compare(onefold_ir::CmpOp::Eq, lower.program.terms.get(body).dtype, x, best);
            if lower.emit.ty(x).elem.is_float() {
                let both = {
                    let a = lower.emit.cmp(Cmp::Uno, x, x);
                    let b = lower.emit.cmp(Cmp::Uno, best, best);
                    lower.emit.bin(BinOp::And, a, b)
                };
                hit = lower.emit.bin(BinOp::Or, hit, both);
            }
            let position = lower.position(tile.axis)?;
            let distance = lower.emit.sub(position, tile.lo);
            let distances = match lower.lanes_of(tile.axis) {
                Some(lanes) => {
                    let base = lower.wide_int(lanes, distance);
                    let iota = lower.iota(lanes);
                    lower.emit.add(base, iota)
                }
                None => distance,
            };
            if let Some(live) = lower.live_here(tile.axis) {
                hit = lower.emit.bin(BinOp::And, hit, live);
            }
            accum.take(lower, Nth::ONLY, distances, Some(hit));
            Ok(())
        })?;
        let nearest = accum.finish(self);
        debug_assert_eq!(self.emit.ty(nearest), Ty::scalar(elem));
        let nearest = self.emit.convert(Elem::I64, nearest);
        let found = self.emit.add(tile.lo, nearest);
        self.emit.copy(at, found);
        self.enter(outside);
        self.emit.push_if(beats, block);
        Ok(())
    }

    /// Whether `a` stands strictly before `b` in descending order with NaN first.
    pub fn comes_first(&mut self, a: Reg, b: Reg) -> Reg {
        let ty = self.emit.ty(a);
        if ty.elem == Elem::Bool {
            let not = self.emit.not(b);
            return self.emit.bin(BinOp::And, a, not);
        }
        let greater = self.emit.cmp(Cmp::Gt, a, b);
        if !ty.elem.is_float() {
            return greater;
        }
        let a_nan = self.emit.cmp(Cmp::Uno, a, a);
        let b_number = self.emit.cmp(Cmp::Eq, b, b);
        let first = self.emit.bin(BinOp::And, a_nan, b_number);
        self.emit.bin(BinOp::Or, greater, first)
    }

    /// The element type that a state's values have in registers.
    pub fn value_elem(&self, id: StateId) -> Elem {
        reg_elem(self.program.states[id.0 as usize].dtype)
    }
}
