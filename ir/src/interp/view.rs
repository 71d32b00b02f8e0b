//! Primitives that move elements without changing them.

use super::{Data, EvalError, Machine, Odometer, Value};
use crate::{AxisId, DType, NodeId, Op};
use std::borrow::Cow;

/// Where an element of the result comes from.
enum Source {
    /// An operand and a place in its memory.
    At(usize, usize),
    /// An id that is outside of the table.
    Outside(i64),
}

impl<'a> Machine<'a> {
    pub(super) fn view(&self, id: NodeId) -> Result<Value<'a>, EvalError> {
        let node = self.func.node(id);
        let axes: Vec<AxisId> = node.ty.axes.iter().collect();
        let operands = node.args.iter().map(|a| self.value(*a)).collect::<Result<Vec<_>, _>>()?;
        if operands.is_empty() {
            return Err(EvalError::Malformed("operands"));
        }
        let mut out = self.room(node.ty.dtype, &axes)?;
        if out.is_empty() {
            return Ok(Value { axes, data: Cow::Owned(out) });
        }
        // Strides of each operand along the result's axes, and where along them the primitive has its say.
        let strides: Vec<Vec<usize>> = operands.iter().map(|v| self.strides(v, &axes)).collect();
        let along = |axis: AxisId| axes.iter().position(|a| *a == axis);
        let position = |axis: AxisId| along(axis).ok_or(EvalError::Malformed("axes"));
        let stride = |n: usize, axis: AxisId| self.strides(operands[n], &[axis])[0];
        type Locate<'l> = Box<dyn Fn(&Odometer) -> Source + 'l>;
        let locate: Locate<'_> = match &node.op {
            Op::Gather(axis) => {
                let ids = operands.get(1).ok_or(EvalError::Malformed("operands"))?;
                let Data::Int(id_data) = ids.data.as_ref() else { return Err(EvalError::Malformed("dtypes")) };
                let (along_table, size) = (stride(0, *axis), self.size(*axis));
                // If the ids vary along the axis too, that is the result's axis, not the table's.
                let mut table = strides[0].clone();
                if let Some(at) = along(*axis) {
                    table[at] = 0;
                }
                let of_ids = strides[1].clone();
                Box::new(move |at| {
                    let id = id_data[at.offset(&of_ids)];
                    let place = if id < 0 { id.checked_add(size as i64) } else { Some(id) };
                    match place.and_then(|p| usize::try_from(p).ok()).filter(|p| *p < size) {
                        Some(place) => Source::At(0, at.offset(&table) + place * along_table),
                        None => Source::Outside(id),
                    }
                })
            }
            Op::Rename { from, to } => {
                let mut x = strides[0].clone();
                x[position(*to)?] = stride(0, *from);
                Box::new(move |at| Source::At(0, at.offset(&x)))
            }
            Op::Slice { from, to, start, step } => {
                let (at_to, along_x) = (position(*to)?, stride(0, *from));
                let (start, step) = (start.unsigned_abs() as usize, step.unsigned_abs() as usize);
                let mut x = strides[0].clone();
                x[at_to] = 0;
                Box::new(move |at| Source::At(0, at.offset(&x) + (start + at.at()[at_to] * step) * along_x))
            }
            Op::Split { from, to } => {
                let along_x = stride(0, *from);
                let mut x = strides[0].clone();
                let mut step = along_x;
                for axis in to.iter().rev() {
                    x[position(*axis)?] = step;
                    step *= self.size(*axis);
                }
                Box::new(move |at| Source::At(0, at.offset(&x)))
            }
            Op::Merge { from, to } => {
                let at_to = position(*to)?;
                let parts: Vec<(usize, usize)> = from.iter().rev().map(|a| (self.size(*a), stride(0, *a))).collect();
                let mut x = strides[0].clone();
                x[at_to] = 0;
                Box::new(move |at| {
                    let mut rest = at.at()[at_to];
                    let mut place = at.offset(&x);
                    for (size, step) in &parts {
                        place += rest % size * step;
                        rest /= size;
                    }
                    Source::At(0, place)
                })
            }
            Op::Concat { from, to } => {
                let at_to = position(*to)?;
                let parts: Vec<(usize, usize)> =
                    from.iter().enumerate().map(|(n, a)| (self.size(*a), stride(n, *a))).collect();
                let mut rest_strides = strides.clone();
                rest_strides.iter_mut().for_each(|s| s[at_to] = 0);
                Box::new(move |at| {
                    let mut place = at.at()[at_to];
                    for (n, (size, step)) in parts.iter().enumerate() {
                        if place < *size {
                            return Source::At(n, at.offset(&rest_strides[n]) + place * step);
                        }
                        place -= size;
                    }
                    Source::At(0, 0)
                })
            }
            Op::Shift { axis, by } => {
                let (at_axis, size) = (position(*axis)?, self.size(*axis) as i64);
                let (along_x, by) = (stride(0, *axis), *by);
                let mut x = strides[0].clone();
                x[at_axis] = 0;
                Box::new(move |at| match (at.at()[at_axis] as i64).checked_sub(by).filter(|p| (0..size).contains(p)) {
                    Some(place) => Source::At(0, at.offset(&x) + place as usize * along_x),
                    None => Source::At(1, 0),
                })
            }
            _ => return Err(EvalError::Malformed("plan")),
        };
        let axis_of_error = |id: i64| match &node.op {
            Op::Gather(axis) => {
                EvalError::Gather { id, axis: self.func.axis(*axis).name.clone(), size: self.size(*axis) as u64 }
            }
            _ => EvalError::Malformed("plan"),
        };
        let mut at = Odometer::new(axes.iter().map(|a| self.size(*a)).collect());
        for n in 0..out.len() {
            match locate(&at) {
                Source::At(operand, place) => match (operands[operand].data.as_ref(), &mut out) {
                    (Data::Float(d), Data::Float(o)) => o[n] = d[place],
                    (Data::Int(d), Data::Int(o)) => o[n] = d[place],
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Source::Outside(id) => return Err(axis_of_error(id)),
            }
            at.step();
        }
        Ok(Value { axes, data: Cow::Owned(out) })
    }

    /// A value's elements in another order of axes, repeated along those it lacks.
    pub(super) fn laid_out(&self, value: &Value<'_>, dtype: DType, axes: &[AxisId]) -> Result<Data, EvalError> {
        let mut out = self.room(dtype, axes)?;
        let strides = self.strides(value, axes);
        let mut at = Odometer::new(axes.iter().map(|a| self.size(*a)).collect());
        for n in 0..out.len() {
            match (value.data.as_ref(), &mut out) {
                (Data::Float(d), Data::Float(o)) => o[n] = d[at.offset(&strides)],
                (Data::Int(d), Data::Int(o)) => o[n] = d[at.offset(&strides)],
                _ => return Err(EvalError::Malformed("dtypes")),
            }
            at.step();
        }
        Ok(out)
    }
}
