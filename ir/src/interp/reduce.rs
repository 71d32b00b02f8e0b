//! Reductions: the operand is evaluated in runs and never exists as a whole.

use super::plan::Plan;
use super::program::{Register, RUN};
use super::scalar;
use super::{Data, EvalError, Machine, Odometer, Value};
use crate::types::int_range;
use crate::{AxisId, AxisSet, DType, NodeId, ReduceOp};
use std::borrow::Cow;

impl<'a> Machine<'a> {
    pub(super) fn reduce(&self, plan: &Plan, id: NodeId, op: ReduceOp, over: AxisSet) -> Result<Value<'a>, EvalError> {
        let node = self.func.node(id);
        let dtype = node.ty.dtype;
        let axes: Vec<AxisId> = node.ty.axes.iter().collect();
        let inner: Vec<AxisId> = over.iter().collect();
        let loops: Vec<AxisId> = axes.iter().chain(&inner).copied().collect();
        let mut program = self.program(plan, id, false, &loops)?;
        let mut data = self.room(dtype, &axes)?;
        let outer_sizes: Vec<usize> = axes.iter().map(|a| self.size(*a)).collect();
        let mut inner_sizes: Vec<usize> = inner.iter().map(|a| self.size(*a)).collect();
        let nothing = inner_sizes.contains(&0);
        let row = inner_sizes.last().copied().unwrap_or(1);
        if let Some(last) = inner_sizes.last_mut() {
            *last = 1;
        }
        let mut outer = Odometer::new(outer_sizes);
        // Both start anew by themselves or are told to: nothing is allocated for each element.
        let mut rows = Odometer::new(inner_sizes);
        let mut total = Total::new(op, dtype);
        let mut at = vec![0; loops.len()];
        for n in 0..data.len() {
            at[..axes.len()].copy_from_slice(outer.at());
            total.restart();
            let mut more = !nothing;
            while more {
                at[axes.len()..].copy_from_slice(rows.at());
                for start in (0..row).step_by(RUN) {
                    let len = RUN.min(row - start);
                    self.run_program(&mut program, &at, start, len)?;
                    match program.output() {
                        Some(Register::Float(v)) => total.add_floats(&v[..len]),
                        Some(Register::Int(v)) => total.add_ints(&v[..len]),
                        None => return Err(EvalError::Malformed("plan")),
                    }
                }
                more = rows.step();
            }
            match &mut data {
                Data::Float(d) => d[n] = total.float(),
                Data::Int(d) => d[n] = scalar::wrap(dtype, total.int),
            }
            outer.step();
        }
        if let Data::Float(d) = &mut data {
            scalar::settle(dtype, d);
        }
        Ok(Value { axes, data: Cow::Owned(data) })
    }
}

/// A reduction so far. Sums are pairwise: of runs, then of sums of equally many runs.
struct Total {
    op: ReduceOp,
    /// Partial results and the binary logarithm of the number of runs in each.
    partial: Vec<(f64, u32)>,
    int: i64,
    /// What `int` is of nothing.
    identity: i64,
}

impl Total {
    fn new(op: ReduceOp, dtype: DType) -> Total {
        let (lowest, highest) = int_range(dtype).unwrap_or((0, 1));
        let identity = match op {
            ReduceOp::Sum => 0,
            ReduceOp::Prod => 1,
            ReduceOp::Max => lowest,
            ReduceOp::Min => highest,
        };
        Total { op, partial: Vec::new(), int: identity, identity }
    }

    fn restart(&mut self) {
        self.partial.clear();
        self.int = self.identity;
    }

    fn add_floats(&mut self, run: &[f64]) {
        let value = match self.op {
            ReduceOp::Sum => pairwise(run),
            ReduceOp::Prod => run.iter().product(),
            ReduceOp::Max => run.iter().copied().fold(f64::NEG_INFINITY, scalar::max),
            ReduceOp::Min => run.iter().copied().fold(f64::INFINITY, scalar::min),
        };
        self.partial.push((value, 0));
        while let [.., (a, x), (b, y)] = self.partial.as_slice() {
            if x != y {
                break;
            }
            let joined = (self.join(*a, *b), x + 1);
            self.partial.truncate(self.partial.len() - 2);
            self.partial.push(joined);
        }
    }

    fn join(&self, a: f64, b: f64) -> f64 {
        match self.op {
            ReduceOp::Sum => a + b,
            ReduceOp::Prod => a * b,
            ReduceOp::Max => scalar::max(a, b),
            ReduceOp::Min => scalar::min(a, b),
        }
    }

    fn add_ints(&mut self, run: &[i64]) {
        let fold = |f: fn(i64, i64) -> i64| run.iter().copied().fold(self.int, f);
        self.int = match self.op {
            ReduceOp::Sum => fold(i64::wrapping_add),
            ReduceOp::Prod => fold(i64::wrapping_mul),
            ReduceOp::Max => fold(i64::max),
            ReduceOp::Min => fold(i64::min),
        };
    }

    fn float(&self) -> f64 {
        let identity = match self.op {
            ReduceOp::Sum => 0.0,
            ReduceOp::Prod => 1.0,
            ReduceOp::Max => f64::NEG_INFINITY,
            ReduceOp::Min => f64::INFINITY,
        };
        // Without the identity first, so that a sum of negative zeros keeps its sign.
        self.partial.iter().rev().map(|(v, _)| *v).reduce(|a, b| self.join(a, b)).unwrap_or(identity)
    }
}

/// The sum of a run by halves.
fn pairwise(run: &[f64]) -> f64 {
    if run.len() <= 8 {
        return run.iter().copied().reduce(|a, b| a + b).unwrap_or(0.0);
    }
    let (left, right) = run.split_at(run.len() / 2);
    pairwise(left) + pairwise(right)
}
