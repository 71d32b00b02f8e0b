//! States that are arrays along kept axes: blocks of a row are summed over a whole tile in registers, then merged.

use super::blocked::Blocked;
use super::carry::Move;
use super::emit::I64;
use super::number::reg_elem;
use super::pass::{Running, Tile};
use super::place::ArrayPlace;
use super::reduce::{combine, identity};
use super::scope::Bind;
use super::state::reduction;
use super::vector::Width;
use super::{nest, LowerError, Lowering};
use crate::{BinOp, BufferKind, Cmp, Count, Reg, Ty};
use onefold_ir::{AxisId, AxisSet, ReduceOp};
use onefold_passes::fold::{Pass, StateId, StateOp};

/// Arrays of up to so many elements are on the stack.
const STACK_ELEMENTS: u64 = 1 << 12;

impl Lowering<'_> {
    /// An array at the state's identity.
    pub fn initial_array(&mut self, id: StateId, pass: &Pass, shared: bool) -> Result<ArrayPlace, LowerError> {
        let state = &self.program.states[id.0 as usize];
        if matches!(state.op, StateOp::ArgMax) {
            return Err(LowerError::unsupported("positions of maxima along kept axes"));
        }
        let (op, dtype, name) = (reduction(state.op), state.dtype, state.name.clone());
        // The axis along which the operands are contiguous, of several the last.
        let mut candidates = state.axes.clone();
        candidates.reverse();
        let row = self.best_axis(&[state.body], &candidates).ok_or_else(|| LowerError::internal("no kept axis"))?;
        let mut axes: Vec<AxisId> = state.axes.iter().copied().filter(|a| *a != row).collect();
        axes.push(row);
        let lanes = u64::from(self.target.vector_bytes / 4).max(1);
        let elem = reg_elem(dtype);
        let (len, total, strides) = self.padded(&axes, lanes)?;
        let kind = match len {
            Count::Const(n) if n <= STACK_ELEMENTS => BufferKind::Stack,
            _ => BufferKind::Scratch,
        };
        let compensated =
            self.schedule.compensate && op == ReduceOp::Sum && elem == crate::Elem::F32 && !pass.axes.is_empty();
        let buf = self.emit.buffer(&name, elem, kind, len.clone());
        let low = compensated.then(|| self.emit.buffer(&format!("{name}_low"), elem, kind, len.clone()));
        let before = shared.then(|| self.emit.buffer(&format!("{name}_before"), elem, kind, len));
        let array = ArrayPlace { buf, low, before, axes, strides, total };
        let nothing = identity(op, dtype);
        self.each_element(&array, &mut |lower, offset, lanes| {
            let ty = Ty { elem, lanes };
            let value = lower.emit.constant(ty, nothing);
            lower.emit.store(buf, offset, value);
            if let Some(low) = low {
                let zero = lower.zero(elem, lanes);
                lower.emit.store(low, offset, zero);
            }
            Ok(())
        })?;
        Ok(array)
    }

    /// Number of elements (as the kernel's sizes give it, and in a register) and strides of an array whose rows are padded
    /// to whole vectors.
    fn padded(&mut self, axes: &[AxisId], lanes: u64) -> Result<(Count, Reg, Vec<Reg>), LowerError> {
        let (row, others) = axes.split_last().ok_or_else(|| LowerError::internal("no kept axis"))?;
        let (mut len, mut total) = self.kept_length(*row)?;
        if let Count::Const(n) = len {
            len = Count::Const(n.next_multiple_of(lanes));
            total = self.emit.int(n.next_multiple_of(lanes) as i64);
        } else {
            let vectors = Count::DivCeil(Box::new(len), Box::new(Count::Const(lanes)));
            len = Count::Mul(Box::new(vectors), Box::new(Count::Const(lanes)));
            let (more, mask) = (self.emit.int(lanes as i64 - 1), self.emit.int(-(lanes as i64)));
            let up = self.emit.add(total, more);
            total = self.emit.bin(BinOp::And, up, mask);
        }
        let mut strides = vec![self.emit.int(1)];
        for axis in others.iter().rev() {
            strides.insert(0, total);
            let (count, size) = self.kept_length(*axis)?;
            total = self.emit.mul(total, size);
            len = match (len, count) {
                (Count::Const(a), Count::Const(b)) => Count::Const(a.saturating_mul(b)),
                (a, b) => Count::Mul(Box::new(a), Box::new(b)),
            };
        }
        Ok((len, total, strides))
    }

    /// Length of an array along a kept axis: of the axis or, if it is taken in blocks, of a block.
    fn kept_length(&mut self, axis: AxisId) -> Result<(Count, Reg), LowerError> {
        if self.block_of(axis).is_some() {
            return Ok((Count::Const(nest::BLOCK), self.emit.int(nest::BLOCK as i64)));
        }
        Ok((self.extent(axis).count.clone(), self.size(axis)?))
    }

    /// All elements of an array, padding included, in whole vectors: offset and number of lanes.
    pub fn each_element(
        &mut self,
        array: &ArrayPlace,
        body: &mut dyn FnMut(&mut Self, Reg, u16) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let lanes = (self.target.vector_bytes / 4).max(1) as u16;
        // 8-byte elements in half as many lanes; i64 does not come in vectors.
        let lanes = match self.emit.buffers[array.buf.0 as usize].elem {
            crate::Elem::F64 => (lanes / 2).max(1),
            crate::Elem::I64 | crate::Elem::Bool => 1,
            _ => lanes,
        };
        let zero = self.emit.int(0);
        let (block, outside) = self.open();
        let var = self.emit.reg(I64, "at");
        body(self, var, lanes)?;
        self.enter(outside);
        self.emit.push_for(var, zero, array.total, u64::from(lanes), false, block);
        Ok(())
    }

    /// Take a tile into an array.
    pub fn take_array(
        &mut self,
        id: StateId,
        array: &ArrayPlace,
        tile: Tile,
        running: &Running,
    ) -> Result<(), LowerError> {
        let program = self.program;
        let state = &program.states[id.0 as usize];
        let (op, body) = (reduction(state.op), state.body);
        let step = self.coefficients(id, true, running)?;
        let (row, others) = array.axes.split_last().ok_or_else(|| LowerError::internal("no kept axis"))?;
        let along_tile = self.best_axis(&[body], &[*row, tile.axis]) == Some(tile.axis);
        let (inner, outer) = if along_tile {
            (self.width(&[body], tile.axis), Width::SCALAR)
        } else {
            (Width::SCALAR, self.width(&[body], *row))
        };
        let work = Blocked {
            op,
            dtype: state.dtype,
            body,
            reduced: vec![(tile.axis, tile.lo, tile.hi)],
            inner,
            across: *row,
            outer,
            hides: AxisSet::EMPTY,
        };
        let range = self.range(*row)?;
        let count = if along_tile { self.schedule.side } else { self.schedule.block };
        self.scalar_loops(others, false, &mut |lower| {
            lower.blocked(&work, range, count as usize, &mut |lower, result| {
                lower.merge_elements(id, array, op, result, &step, running)
            })
        })
    }

    /// Merge a tile's result into the elements of the array at the current position.
    fn merge_elements(
        &mut self,
        id: StateId,
        array: &ArrayPlace,
        op: ReduceOp,
        result: Reg,
        step: &Move,
        running: &Running,
    ) -> Result<(), LowerError> {
        let lanes = self.emit.ty(result).lanes;
        let offset = self.array_offset(&array.axes, &array.strides)?;
        let (high, low) = self.moved_array(id, array, step, offset, lanes, running)?;
        let sum = combine(self, op, result, high);
        let sum = self.emit.wrap(self.program.states[id.0 as usize].dtype, sum);
        self.emit.store(array.buf, offset, sum);
        if let (Some(buf), Some(low)) = (array.low, low) {
            // What the addition lost (Dekker's fast two-sum: the tile is small beside the sum, or the sum just begins).
            // Infinities leave no number behind.
            let added = self.emit.sub(sum, high);
            let lost = self.emit.sub(result, added);
            let low = self.emit.add(low, lost);
            let is_number = self.emit.cmp(Cmp::Eq, low, low);
            let elem = self.emit.ty(low).elem;
            let zero = self.zero(elem, lanes);
            let low = self.emit.select(is_number, low, zero);
            self.emit.store(buf, offset, low);
        }
        Ok(())
    }

    /// The lanes that an axis is bound to, if it is vectorised.
    pub fn lanes_of(&self, axis: AxisId) -> Option<super::scope::Lanes> {
        match self.binding(axis) {
            Some((_, Bind::Vector(lanes))) => Some(lanes),
            _ => None,
        }
    }
}
