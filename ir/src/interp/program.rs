//! Elementwise trees, evaluated in runs along the innermost axis: one dispatch for each operation and run.

use super::plan::Plan;
use super::scalar;
use super::{Data, EvalError, Machine, Odometer, Value};
use crate::{AxisId, BinaryOp, CmpOp, DType, Literal, NodeId, Op, UnaryOp};
use std::borrow::Cow;

/// Elements in a run.
pub(super) const RUN: usize = 256;

/// One operation; its operands are the results of earlier ones.
enum Step {
    /// From memory: the value and its strides along the loops.
    Load {
        value: NodeId,
        strides: Vec<usize>,
    },
    /// The same everywhere.
    Fill(f64, i64),
    /// The position along a loop (`None`: the axis is not looped over, position 0).
    Index(Option<usize>),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Compare(CmpOp, usize, usize),
    Select(usize, usize, usize),
    Cast(usize),
    Quantize(usize, usize, usize),
    Dequantize(usize, usize, usize, usize),
}

/// Results of one step over a run.
pub(super) enum Register {
    Float(Vec<f64>),
    Int(Vec<i64>),
}

/// A tree of operations over loops.
pub(super) struct Program {
    steps: Vec<(Step, DType)>,
    registers: Vec<Register>,
}

impl Program {
    /// The last operation's results.
    pub(super) fn output(&self) -> Option<&Register> {
        self.registers.last()
    }
}

impl<'a> Machine<'a> {
    /// The program of a node's operand (`whole` false) or of the node itself, over loops along some axes.
    pub(super) fn program(
        &self,
        plan: &Plan,
        root: NodeId,
        whole: bool,
        loops: &[AxisId],
    ) -> Result<Program, EvalError> {
        let mut ids: Vec<NodeId> = plan.tree(self.func, root).into_iter().collect();
        let last = if whole { Some(root) } else { self.func.node(root).args.first().copied() };
        let last = last.ok_or(EvalError::Malformed("operands"))?;
        ids.retain(|id| *id != last);
        ids.push(last);
        let mut program = Program { steps: vec![], registers: vec![] };
        for id in &ids {
            let node = self.func.node(*id);
            let register = |n: usize| {
                let arg = node.args.get(n).ok_or(EvalError::Malformed("operands"))?;
                ids.iter().position(|i| i == arg).ok_or(EvalError::Malformed("operands"))
            };
            let in_memory = plan.stored[id.0 as usize] && !(whole && *id == root);
            let step = match &node.op {
                _ if in_memory => Step::Load { value: *id, strides: self.strides(self.value(*id)?, loops) },
                Op::Literal(Literal::Float(v)) => Step::Fill(scalar::round_to(node.ty.dtype, *v), 0),
                Op::Literal(Literal::Int(v)) => Step::Fill(0.0, *v),
                Op::Literal(Literal::Bool(v)) => Step::Fill(0.0, i64::from(*v)),
                Op::Size(axis) => self.fill_size(*axis, node.ty.dtype),
                Op::Index(axis) => Step::Index(loops.iter().position(|a| a == axis)),
                Op::Unary(op) => Step::Unary(*op, register(0)?),
                Op::Binary(op) => Step::Binary(*op, register(0)?, register(1)?),
                Op::Compare(op) => Step::Compare(*op, register(0)?, register(1)?),
                Op::Select => Step::Select(register(0)?, register(1)?, register(2)?),
                Op::Cast => Step::Cast(register(0)?),
                Op::Quantize => Step::Quantize(register(0)?, register(1)?, register(2)?),
                Op::Dequantize => Step::Dequantize(register(0)?, register(1)?, register(2)?, register(3)?),
                _ => return Err(EvalError::Malformed("plan")),
            };
            program.registers.push(if node.ty.dtype.is_float() {
                Register::Float(vec![0.0; RUN])
            } else {
                Register::Int(vec![0; RUN])
            });
            program.steps.push((step, node.ty.dtype));
        }
        Ok(program)
    }

    fn fill_size(&self, axis: AxisId, dtype: DType) -> Step {
        let n = self.size(axis);
        Step::Fill(scalar::round_to(dtype, n as f64), scalar::wrap(dtype, n as i64))
    }

    /// Evaluates a run: `at` is the position along the loops, `start` and `len` the part of the last loop.
    pub(super) fn run_program(
        &self,
        program: &mut Program,
        at: &[usize],
        start: usize,
        len: usize,
    ) -> Result<(), EvalError> {
        let last = at.len().checked_sub(1);
        for n in 0..program.steps.len() {
            let (before, rest) = program.registers.split_at_mut(n);
            let (step, dtype) = &program.steps[n];
            let Some(out) = rest.first_mut() else { continue };
            match step {
                Step::Load { value, strides } => {
                    let outer: usize = at.iter().zip(strides).map(|(a, s)| a * s).sum();
                    let stride = last.map_or(0, |l| strides[l]);
                    let base = outer + start * stride;
                    load(&self.value(*value)?.data, base, stride, len, out);
                }
                Step::Fill(v, n) => match out {
                    Register::Float(o) => o[..len].fill(*v),
                    Register::Int(o) => o[..len].fill(*n),
                },
                Step::Index(axis) => {
                    let (base, step) = match axis {
                        Some(a) if Some(*a) == last => (start, 1),
                        Some(a) => (at[*a], 0),
                        None => (0, 0),
                    };
                    index(*dtype, base, step, len, out);
                }
                Step::Unary(op, x) => match (&before[*x], out) {
                    (Register::Float(x), Register::Float(o)) => {
                        scalar::unary_float(*op, *dtype, &x[..len], &mut o[..len])
                    }
                    (Register::Int(x), Register::Int(o)) => scalar::unary_int(*op, *dtype, &x[..len], &mut o[..len]),
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Step::Binary(op, a, b) => match (&before[*a], &before[*b], out) {
                    (Register::Float(a), Register::Float(b), Register::Float(o)) => {
                        scalar::binary_float(*op, *dtype, &a[..len], &b[..len], &mut o[..len]);
                    }
                    (Register::Int(a), Register::Int(b), Register::Int(o)) => {
                        scalar::binary_int(*op, *dtype, &a[..len], &b[..len], &mut o[..len]);
                    }
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Step::Compare(op, a, b) => match (&before[*a], &before[*b], out) {
                    (Register::Float(a), Register::Float(b), Register::Int(o)) => {
                        scalar::compare(*op, &a[..len], &b[..len], &mut o[..len]);
                    }
                    (Register::Int(a), Register::Int(b), Register::Int(o)) => {
                        scalar::compare(*op, &a[..len], &b[..len], &mut o[..len]);
                    }
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Step::Select(c, a, b) => match (&before[*c], &before[*a], &before[*b], out) {
                    (Register::Int(c), Register::Float(a), Register::Float(b), Register::Float(o)) => {
                        select(&c[..len], a, b, o);
                    }
                    (Register::Int(c), Register::Int(a), Register::Int(b), Register::Int(o)) => {
                        select(&c[..len], a, b, o)
                    }
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Step::Cast(x) => cast(*dtype, &before[*x], len, out),
                Step::Quantize(x, scale, zero) => match (&before[*x], &before[*scale], &before[*zero], out) {
                    (Register::Float(x), Register::Float(s), Register::Int(z), Register::Int(o)) => {
                        for n in 0..len {
                            let scale = usable(s[n])?;
                            let q = (x[n] / scale).round_ties_even() + z[n] as f64;
                            o[n] = if x[n].is_nan() { z[n] } else { scalar::to_int(*dtype, q) };
                        }
                    }
                    _ => return Err(EvalError::Malformed("dtypes")),
                },
                Step::Dequantize(q, scale, zero, offset) => {
                    match (&before[*q], &before[*scale], &before[*zero], &before[*offset], out) {
                        (
                            Register::Int(q),
                            Register::Float(s),
                            Register::Int(z),
                            Register::Float(f),
                            Register::Float(o),
                        ) => {
                            for n in 0..len {
                                o[n] = (q[n] as f64 - z[n] as f64) * usable(s[n])? + f[n];
                            }
                            scalar::settle(*dtype, &mut o[..len]);
                        }
                        _ => return Err(EvalError::Malformed("dtypes")),
                    }
                }
            }
        }
        Ok(())
    }

    /// A node's elements over its axes in that order.
    pub(super) fn elementwise(&self, plan: &Plan, id: NodeId, axes: Vec<AxisId>) -> Result<Value<'a>, EvalError> {
        let mut program = self.program(plan, id, true, &axes)?;
        let mut data = self.room(self.func.node(id).ty.dtype, &axes)?;
        if data.is_empty() {
            return Ok(Value { axes, data: Cow::Owned(data) });
        }
        let inner = axes.last().map_or(1, |a| self.size(*a));
        // The last loop is left to the runs: its position stays 0.
        let mut sizes: Vec<usize> = axes.iter().map(|a| self.size(*a)).collect();
        if let Some(last) = sizes.last_mut() {
            *last = 1;
        }
        let mut rows = Odometer::new(sizes);
        let mut row = 0;
        loop {
            for start in (0..inner).step_by(RUN) {
                let len = RUN.min(inner - start);
                self.run_program(&mut program, rows.at(), start, len)?;
                let at = row * inner + start;
                match (program.output(), &mut data) {
                    (Some(Register::Float(v)), Data::Float(d)) => d[at..at + len].copy_from_slice(&v[..len]),
                    (Some(Register::Int(v)), Data::Int(d)) => d[at..at + len].copy_from_slice(&v[..len]),
                    _ => return Err(EvalError::Malformed("dtypes")),
                }
            }
            row += 1;
            if !rows.step() {
                return Ok(Value { axes, data: Cow::Owned(data) });
            }
        }
    }
}

fn usable(scale: f64) -> Result<f64, EvalError> {
    if scale.is_finite() && scale > 0.0 {
        Ok(scale)
    } else {
        Err(EvalError::Scale(scale))
    }
}

fn load(data: &Data, base: usize, stride: usize, len: usize, out: &mut Register) {
    fn copy<T: Copy>(data: &[T], base: usize, stride: usize, out: &mut [T]) {
        match stride {
            0 => out.fill(data[base]),
            1 => out.copy_from_slice(&data[base..base + out.len()]),
            _ => {
                for (o, v) in out.iter_mut().zip(data[base..].iter().step_by(stride)) {
                    *o = *v;
                }
            }
        }
    }
    match (data, out) {
        (Data::Float(d), Register::Float(o)) => copy(d, base, stride, &mut o[..len]),
        (Data::Int(d), Register::Int(o)) => copy(d, base, stride, &mut o[..len]),
        _ => {}
    }
}

fn index(dtype: DType, base: usize, step: usize, len: usize, out: &mut Register) {
    match out {
        Register::Float(o) => {
            for (n, o) in o[..len].iter_mut().enumerate() {
                *o = scalar::round_to(dtype, (base + n * step) as f64);
            }
        }
        Register::Int(o) => {
            for (n, o) in o[..len].iter_mut().enumerate() {
                *o = scalar::wrap(dtype, (base + n * step) as i64);
            }
        }
    }
}

fn select<T: Copy>(c: &[i64], a: &[T], b: &[T], out: &mut [T]) {
    for (((o, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
        *o = if *c != 0 { *a } else { *b };
    }
}

fn cast(dtype: DType, x: &Register, len: usize, out: &mut Register) {
    match (x, out) {
        (Register::Float(x), Register::Float(o)) => {
            o[..len].iter_mut().zip(x).for_each(|(o, v)| *o = scalar::round_to(dtype, *v));
        }
        (Register::Int(x), Register::Float(o)) => {
            o[..len].iter_mut().zip(x).for_each(|(o, v)| *o = scalar::round_to(dtype, *v as f64));
        }
        (Register::Float(x), Register::Int(o)) => {
            o[..len].iter_mut().zip(x).for_each(|(o, v)| *o = scalar::to_int(dtype, *v));
        }
        (Register::Int(x), Register::Int(o)) => {
            o[..len].iter_mut().zip(x).for_each(|(o, v)| *o = scalar::saturate(dtype, *v));
        }
    }
}
