//! Primitives that look at a whole row: `topk`, `sort`, `argmax`, `cumsum`.
//!
//! NaN is the greatest; of equals the lower index comes first.

use super::{scalar, Data, EvalError, Machine, Odometer, Value};
use crate::{AxisId, DType, NodeId, Op, Part};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The order of floats with NaN greatest; the zeros are equal.
fn by_float(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl<'a> Machine<'a> {
    pub(super) fn ordered(&self, id: NodeId) -> Result<Value<'a>, EvalError> {
        let node = self.func.node(id);
        let arg = *node.args.first().ok_or(EvalError::Malformed("operands"))?;
        let x = self.value(arg)?;
        match x.data.as_ref() {
            Data::Float(d) => self.rows(id, x, d, by_float),
            Data::Int(d) => self.rows(id, x, d, i64::cmp),
        }
    }

    fn rows<T: Row>(
        &self,
        id: NodeId,
        x: &Value<'_>,
        data: &[T],
        order: fn(&T, &T) -> Ordering,
    ) -> Result<Value<'a>, EvalError> {
        let node = self.func.node(id);
        let (axis, to) = match &node.op {
            Op::ArgMax(axis) => (*axis, None),
            Op::TopK { axis, to, .. } => (*axis, Some(*to)),
            Op::Sort { axis, .. } | Op::CumSum(axis) => (*axis, Some(*axis)),
            _ => return Err(EvalError::Malformed("plan")),
        };
        let outer: Vec<AxisId> = node.ty.axes.iter().filter(|a| Some(*a) != to).collect();
        let axes: Vec<AxisId> = outer.iter().copied().chain(to).collect();
        let mut out = self.room(node.ty.dtype, &axes)?;
        let strides = self.strides(x, &outer);
        let stride = self.strides(x, &[axis])[0];
        let n = self.size(axis);
        let kept = to.map_or(1, |t| self.size(t));
        if matches!(node.op, Op::ArgMax(_)) && n == 0 && !out.is_empty() {
            return Err(EvalError::EmptyArgMax(self.func.axis(axis).name.clone()));
        }
        if out.is_empty() || data.is_empty() {
            return Ok(Value { axes, data: Cow::Owned(out) });
        }
        let mut rows = Odometer::new(outer.iter().map(|a| self.size(*a)).collect());
        let (mut row, mut places): (Vec<T>, Vec<usize>) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut at = 0;
        loop {
            let base = rows.offset(&strides);
            row.clear();
            row.extend((0..n).map(|k| data[base + k * stride]));
            places.clear();
            places.extend(0..n);
            match &node.op {
                Op::CumSum(_) => T::running_sum(&mut row, node.ty.dtype),
                Op::Sort { .. } => places.sort_by(|a, b| order(&row[*a], &row[*b])),
                Op::ArgMax(_) => {
                    let best = (0..n).fold(0, |best, k| if order(&row[k], &row[best]).is_gt() { k } else { best });
                    places.clear();
                    places.push(best);
                }
                _ => {
                    let greatest_first = |a: &usize, b: &usize| order(&row[*b], &row[*a]).then(a.cmp(b));
                    if kept < n {
                        places.select_nth_unstable_by(kept, greatest_first);
                        places.truncate(kept);
                    }
                    places.sort_unstable_by(greatest_first);
                }
            }
            let indices = matches!(node.op, Op::ArgMax(_))
                || matches!(node.op, Op::TopK { part: Part::Indices, .. } | Op::Sort { part: Part::Indices, .. });
            if indices {
                let Data::Int(o) = &mut out else { return Err(EvalError::Malformed("dtypes")) };
                o[at..at + kept].iter_mut().zip(&places).for_each(|(o, p)| *o = *p as i64);
            } else {
                let o = T::elements(&mut out).ok_or(EvalError::Malformed("dtypes"))?;
                o[at..at + kept].iter_mut().zip(&places).for_each(|(o, p)| *o = row[*p]);
            }
            at += kept;
            if !rows.step() {
                return Ok(Value { axes, data: Cow::Owned(out) });
            }
        }
    }
}

/// Elements that can stand in a row.
trait Row: Copy {
    fn elements(data: &mut Data) -> Option<&mut [Self]>;
    fn running_sum(row: &mut [Self], dtype: DType);
}

impl Row for f64 {
    fn elements(data: &mut Data) -> Option<&mut [f64]> {
        match data {
            Data::Float(v) => Some(v),
            Data::Int(_) => None,
        }
    }

    fn running_sum(row: &mut [f64], dtype: DType) {
        // With the error of each addition carried along, long sums stay exact enough to compare others with.
        let (mut sum, mut carried) = (0.0f64, 0.0f64);
        for (n, v) in row.iter_mut().enumerate() {
            let next = if n == 0 { *v } else { sum + *v };
            let lost = if sum.abs() >= v.abs() { (sum - next) + *v } else { (*v - next) + sum };
            if n > 0 && lost.is_finite() {
                carried += lost;
            }
            sum = next;
            *v = if carried == 0.0 || !sum.is_finite() { sum } else { sum + carried };
        }
        scalar::settle(dtype, row);
    }
}

impl Row for i64 {
    fn elements(data: &mut Data) -> Option<&mut [i64]> {
        match data {
            Data::Int(v) => Some(v),
            Data::Float(_) => None,
        }
    }

    fn running_sum(row: &mut [i64], dtype: DType) {
        let mut sum = 0i64;
        for v in row {
            sum = scalar::wrap(dtype, sum.wrapping_add(*v));
            *v = sum;
        }
    }
}
