//! Reductions inside bodies, for a whole tile: the scores of some keys.

use super::blocked::Blocked;
use super::pass::Tile;
use super::place::Place;
use super::vector::Width;
use super::{LowerError, Lowering};
use crate::{Reg, Stmt};
use onefold_ir::AxisId;
use onefold_passes::term::{TermId, TermOp};

impl Lowering<'_> {
    /// Fill a tile buffer with a reduction's values.
    pub fn contract(&mut self, id: TermId, tile: Tile) -> Result<Place, LowerError> {
        let program = self.program;
        let term = program.terms.get(id);
        let TermOp::Reduce(op, axes) = term.op else { return Err(LowerError::internal("not a reduction")) };
        let body = term.args[0];
        let buf = self.tile_buffer(id, tile);
        let reduced: Vec<AxisId> = axes.iter().collect();
        let mut candidates = reduced.clone();
        candidates.push(tile.axis);
        let inner = self.best_axis(&[body], &candidates).filter(|a| *a != tile.axis);
        let zero = self.emit.int(0);
        let mut ranges = vec![];
        for axis in reduced.iter().filter(|a| Some(**a) != inner).chain(&inner) {
            ranges.push((*axis, zero, self.size(*axis)?));
        }
        let (inner_width, outer_width) = match inner {
            Some(axis) => (self.width(&[body], axis), Width::SCALAR),
            None => (Width::SCALAR, self.width(&[body], tile.axis)),
        };
        let work = Blocked {
            op,
            dtype: term.dtype,
            body,
            reduced: ranges,
            inner: inner_width,
            across: tile.axis,
            outer: outer_width,
            hides: axes,
        };
        let side = self.schedule.side as usize;
        let count = if outer_width.lanes > 1 { side / 2 } else { side };
        self.blocked(&work, (tile.lo, tile.hi), count.max(1), &mut |lower, result: Reg| {
            let offset = lower.place_offset(Place { buf, axis: tile.axis, base: tile.lo })?;
            lower.emit.push(Stmt::Store { buf, offset, value: result, tail: None, stream: false });
            Ok(())
        })?;
        Ok(Place { buf, axis: tile.axis, base: tile.lo })
    }
}
