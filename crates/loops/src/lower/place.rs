//! Where values live between loops: tile buffers of terms, registers and arrays of states.

use super::number::{self, reg_elem};
use super::scope::{Bind, Mode};
use super::topk::List;
use super::{LowerError, Lowering};
use crate::{BufId, Elem, Expr, Number, Reg, Ty};
use onefold_ir::{AxisId, AxisSet, DType, Part};
use onefold_passes::fold::StateId;
use onefold_passes::term::TermId;

/// A tile buffer: the value at a position of the axis stands at that position minus `base`.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub buf: BufId,
    pub axis: AxisId,
    pub base: Reg,
}

/// Where a state's value is.
#[derive(Clone, Debug)]
pub enum StatePlace {
    /// A register; of float sums and products an f64.
    Scalar(Reg),
    /// The best element and its position.
    Best { value: Reg, at: Reg },
    /// The best elements and their positions.
    Top(List),
    /// An array along kept axes, rows padded to whole vectors; of compensated sums with the lower halves beside it.
    Array(ArrayPlace),
}

/// A state along kept axes.
#[derive(Clone, Debug)]
pub struct ArrayPlace {
    pub buf: BufId,
    /// What rounding took from the sums in `buf`.
    pub low: Option<BufId>,
    /// A copy of the values before the tile, if another state's carry reads them.
    pub before: Option<BufId>,
    /// Kept axes as stored, the contiguous one last.
    pub axes: Vec<AxisId>,
    /// Distance of neighbours along each.
    pub strides: Vec<Reg>,
    /// Number of elements, padding included.
    pub total: Reg,
}

impl Lowering<'_> {
    /// A term's value from its tile buffer.
    pub fn read_place(&mut self, place: Place, dtype: DType) -> Result<Reg, LowerError> {
        let offset = self.place_offset(place)?;
        let elem = reg_elem(dtype);
        match self.binding(place.axis) {
            Some((_, Bind::Vector(lanes))) if !self.first => {
                let ty = Ty::vector(elem, lanes.lanes);
                Ok(self.load_tail(place.buf, ty, offset, None, lanes.tail, "t"))
            }
            _ => Ok(self.emit.load(1, place.buf, offset, "t")),
        }
    }

    /// Offset of the bound position in a tile buffer.
    pub fn place_offset(&mut self, place: Place) -> Result<Reg, LowerError> {
        let slope = |_: &Self, _: AxisId| Some(1);
        self.displaced(AxisSet::one(place.axis), &slope, &mut |lower| {
            let Some((scope, _)) = lower.binding(place.axis) else {
                return Err(LowerError::internal("a tile buffer is read outside its tile"));
            };
            // Tile buffers begin at the same position: one offset for all of them.
            let key = (TermId(place.base.0), Mode::Place, None);
            if let Some(&known) = lower.scopes[scope.0].memo.get(&key) {
                return Ok(known);
            }
            let position = lower.position(place.axis)?;
            let outside = lower.enter(scope);
            let offset = lower.emit.sub(position, place.base);
            lower.enter(outside);
            lower.scopes[scope.0].memo.insert(key, offset);
            Ok(offset)
        })
    }

    /// A load whose dead lanes are zero.
    pub fn load_tail(
        &mut self,
        buf: BufId,
        ty: Ty,
        offset: Reg,
        stride: Option<Reg>,
        tail: Option<Reg>,
        name: &str,
    ) -> Reg {
        let tail = tail.map(|n| (n, self.emit.constant(Ty::scalar(ty.elem), number::zero(ty.elem))));
        self.emit.let_(ty, name, Expr::Load { ty, buf, offset, stride, tail })
    }

    /// A state's value.
    pub fn read_state(&mut self, id: StateId, part: Part, dtype: DType) -> Result<Reg, LowerError> {
        let place = self.state_place(id)?;
        match &*place {
            StatePlace::Scalar(reg) => Ok(self.emit.convert(reg_elem(dtype), *reg)),
            StatePlace::Best { value, at } => Ok(match part {
                Part::Values => *value,
                Part::Indices => *at,
            }),
            StatePlace::Top(list) => {
                let buf = if part == Part::Values { list.values } else { list.at };
                let one = self.emit.int(1);
                self.read_array(buf, &[list.to], &[one])
            }
            StatePlace::Array(array) => {
                let high = self.read_array(array.buf, &array.axes, &array.strides)?;
                match array.low {
                    None => Ok(high),
                    Some(low) => {
                        let low = self.read_array(low, &array.axes, &array.strides)?;
                        Ok(self.emit.add(high, low))
                    }
                }
            }
        }
    }

    /// An element of an array at the bound positions, or several if one of its axes is vectorised.
    fn read_array(&mut self, buf: BufId, axes: &[AxisId], strides: &[Reg]) -> Result<Reg, LowerError> {
        let offset = self.array_offset(axes, strides)?;
        let elem = self.emit.buffers[buf.0 as usize].elem;
        for (axis, stride) in axes.iter().zip(strides) {
            if let (Some((_, Bind::Vector(lanes))), false) = (self.binding(*axis), self.first) {
                let stride = if self.emit.known(*stride) == Some(1) { None } else { Some(*stride) };
                let ty = Ty::vector(elem, lanes.lanes);
                return Ok(self.load_tail(buf, ty, offset, stride, lanes.tail, "s"));
            }
        }
        Ok(self.emit.load(1, buf, offset, "s"))
    }

    /// Offset of the bound positions (of the first lanes) in an array.
    pub fn array_offset(&mut self, axes: &[AxisId], strides: &[Reg]) -> Result<Reg, LowerError> {
        let mut offset = self.emit.int(0);
        for (axis, stride) in axes.iter().zip(strides) {
            let mut position = self.position(*axis)?;
            // An array along a block begins where the block does.
            if let Some((lo, _)) = self.block_of(*axis) {
                position = self.emit.sub(position, lo);
            }
            let part = self.emit.mul(position, *stride);
            offset = self.emit.add(offset, part);
        }
        Ok(offset)
    }

    /// A register that holds the neutral number.
    pub fn zero(&mut self, elem: Elem, lanes: u16) -> Reg {
        self.emit.constant(Ty { elem, lanes }, number::zero(elem))
    }

    /// A number in a type's notation.
    pub fn number(&mut self, ty: Ty, v: f64) -> Reg {
        let value = if ty.elem.is_float() { Number::Float(v) } else { Number::Int(v as i64) };
        self.emit.constant(ty, value)
    }
}
