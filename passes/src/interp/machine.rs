//! Loops, stores and the evaluation of terms.

use super::{scalar, FoldError};
use crate::eval;
use crate::fold::{ArrayDecl, FoldProgram, Step, Target};
use crate::term::{ArrayId, Term, TermId, TermOp};
use onefold_ir::{AxisId, DType, Part, ReduceOp};
use std::collections::HashMap;

/// The value of a state: an array along its kept axes, or the entries of a selection.
#[derive(Clone, Debug, Default)]
pub struct StateValue {
    /// Elements; of `TopK` in descending order.
    pub values: Vec<f64>,
    /// Positions of the elements of a selection.
    pub at: Vec<i64>,
    /// Axes of the array.
    pub axes: Vec<AxisId>,
}

/// The value of an anchor.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnchorValue {
    /// Now, degenerate values replaced.
    pub new: f64,
    /// Before the current tile.
    pub old: f64,
    /// Now, as the formula gives it.
    pub exact: f64,
    /// Whether the old value stood in for a degenerate one.
    pub old_stood_in: bool,
}

/// A run in progress.
pub struct Machine<'a> {
    pub program: &'a FoldProgram,
    pub sizes: Vec<i64>,
    pub inputs: &'a [Vec<f64>],
    pub outputs: Vec<Vec<f64>>,
    pub intermediates: Vec<Vec<f64>>,
    pub tile: usize,
    /// Positions of the axes that are bound.
    pub at: Vec<Option<i64>>,
    pub states: Vec<StateValue>,
    pub anchors: Vec<AnchorValue>,
    /// For each axis the number of elements seen.
    pub seen: Vec<f64>,
    /// Values of terms at the current position; dropped whenever anything that they depend on changes.
    pub memo: HashMap<TermId, f64>,
}

impl<'a> Machine<'a> {
    pub fn new(
        program: &'a FoldProgram,
        sizes: Vec<i64>,
        inputs: &'a [Vec<f64>],
        outputs: Vec<Vec<f64>>,
        intermediates: Vec<Vec<f64>>,
        tile: usize,
    ) -> Machine<'a> {
        Machine {
            program,
            inputs,
            outputs,
            intermediates,
            tile,
            at: vec![None; program.axes.len()],
            states: vec![StateValue::default(); program.states.len()],
            anchors: vec![AnchorValue::default(); program.anchors.len()],
            seen: vec![0.0; program.axes.len()],
            memo: HashMap::new(),
            sizes,
        }
    }

    pub fn size(&self, axis: AxisId) -> i64 {
        self.sizes[axis.0 as usize]
    }

    pub fn count(&self, axes: &[AxisId]) -> usize {
        axes.iter().map(|a| self.size(*a) as usize).product()
    }

    /// Bind some axes to the n-th of their positions, the last varying fastest.
    pub fn bind(&mut self, axes: &[AxisId], mut n: usize) {
        for axis in axes.iter().rev() {
            let size = self.size(*axis) as usize;
            self.at[axis.0 as usize] = Some((n % size) as i64);
            n /= size;
        }
        self.memo.clear();
    }

    pub fn unbind(&mut self, axes: &[AxisId]) {
        for axis in axes {
            self.at[axis.0 as usize] = None;
        }
        self.memo.clear();
    }

    pub fn steps(&mut self, steps: &[Step]) -> Result<(), FoldError> {
        for step in steps {
            match step {
                Step::Loop { axes, body } => {
                    for n in 0..self.count(axes) {
                        self.bind(axes, n);
                        self.steps(body)?;
                    }
                    self.unbind(axes);
                }
                Step::Pass(pass) => self.pass(pass)?,
                Step::Store { target, value } => {
                    let v = self.eval(*value)?;
                    self.store(*target, v)?;
                }
                Step::Scan { axis, target, value } => {
                    let mut sum = 0.0;
                    for n in 0..self.count(&[*axis]) {
                        self.bind(&[*axis], n);
                        sum += self.eval(*value)?;
                        self.store(*target, sum)?;
                    }
                    self.unbind(&[*axis]);
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, target: Target, value: f64) -> Result<(), FoldError> {
        let program = self.program;
        let decl = program.target(target);
        let v = scalar::cast(decl.dtype, value);
        let mut offset = 0;
        for axis in &decl.axes {
            let at = self.position(*axis)?;
            offset = offset * self.size(*axis) + at;
        }
        match target {
            Target::Output(n) => self.outputs[n][offset as usize] = v,
            Target::Intermediate(n) => self.intermediates[n][offset as usize] = v,
        }
        self.memo.clear();
        Ok(())
    }

    fn position(&self, axis: AxisId) -> Result<i64, FoldError> {
        self.at[axis.0 as usize].ok_or_else(|| {
            FoldError::Malformed(format!("axis {} is not bound", self.program.axes[axis.0 as usize].name))
        })
    }

    /// The value of a term where the axes are bound.
    pub fn eval(&mut self, id: TermId) -> Result<f64, FoldError> {
        if let Some(&known) = self.memo.get(&id) {
            return Ok(known);
        }
        let program = self.program;
        let term = program.terms.get(id);
        let v = match &term.op {
            TermOp::Reduce(op, axes) => {
                let axes: Vec<AxisId> = axes.iter().collect();
                self.reduce(*op, &axes, term)?
            }
            TermOp::Select => {
                let side = if self.eval(term.args[0])? != 0.0 { 1 } else { 2 };
                self.eval(term.args[side])?
            }
            _ => {
                let args = term.args.iter().map(|a| self.eval(*a)).collect::<Result<Vec<_>, _>>()?;
                self.apply(term, &args)?
            }
        };
        self.memo.insert(id, v);
        Ok(v)
    }

    fn apply(&self, term: &Term, args: &[f64]) -> Result<f64, FoldError> {
        Ok(match &term.op {
            TermOp::Literal(value) => value.as_f64(),
            TermOp::Index(axis) => self.position(*axis)? as f64,
            TermOp::Size(axis) => self.size(*axis) as f64,
            TermOp::Seen(axis) => self.seen[axis.0 as usize],
            TermOp::Load { array, .. } => self.load(*array, args)?,
            TermOp::Unary(op) => scalar::unary(*op, term.dtype, args[0]),
            TermOp::Wide(op) => eval::wide(*op, args[0]),
            TermOp::Binary(op) => scalar::binary(*op, term.dtype, args[0], args[1]),
            TermOp::Compare(op) => f64::from(u8::from(eval::compare(*op, args[0], args[1]))),
            TermOp::Cast => scalar::cast(term.dtype, args[0]),
            TermOp::State { state, part } => {
                let value = &self.states[state.0 as usize];
                let mut offset = 0;
                for axis in &value.axes {
                    offset = offset * self.size(*axis) + self.position(*axis)?;
                }
                match part {
                    Part::Values => value.values.get(offset as usize).copied(),
                    Part::Indices => value.at.get(offset as usize).map(|n| *n as f64),
                }
                .ok_or_else(|| FoldError::Malformed("a state is read before its pass".to_owned()))?
            }
            TermOp::Anchor(a) => self.anchors[a.0 as usize].new,
            TermOp::AnchorOld(a) => self.anchors[a.0 as usize].old,
            TermOp::Reduce(..) | TermOp::Select | TermOp::ArgMax(_) | TermOp::TopK { .. } => {
                return Err(FoldError::Malformed("a selection outside a pass".to_owned()));
            }
        })
    }

    fn load(&self, array: ArrayId, args: &[f64]) -> Result<f64, FoldError> {
        let (decl, data): (&ArrayDecl, &Vec<f64>) = match array {
            ArrayId::Input(n) => (&self.program.inputs[n], &self.inputs[n]),
            ArrayId::Intermediate(n) => (&self.program.intermediates[n], &self.intermediates[n]),
        };
        let mut offset = 0;
        for (axis, arg) in decl.axes.iter().zip(args) {
            let size = self.size(*axis);
            let at = *arg as i64;
            if !(0..size).contains(&at) {
                return Err(FoldError::OutOfRange);
            }
            offset = offset * size + at;
        }
        data.get(offset as usize).copied().ok_or(FoldError::OutOfRange)
    }

    fn reduce(&mut self, op: ReduceOp, axes: &[AxisId], term: &Term) -> Result<f64, FoldError> {
        let outer = std::mem::take(&mut self.memo);
        // The axes may be bound around the reduction too: `sum[j](tanh(sum[j](x)) + x)`.
        let around: Vec<_> = axes.iter().map(|a| self.at[a.0 as usize]).collect();
        let mut v = identity(op, term.dtype);
        for n in 0..self.count(axes) {
            self.bind(axes, n);
            let x = self.eval(term.args[0])?;
            v = combine(op, term.dtype, v, x);
        }
        for (axis, position) in axes.iter().zip(around) {
            self.at[axis.0 as usize] = position;
        }
        self.memo = outer;
        Ok(v)
    }
}

/// What a reduction gives over nothing.
pub fn identity(op: ReduceOp, dtype: DType) -> f64 {
    let range = |lo: f64, hi: f64| if op == ReduceOp::Max { lo } else { hi };
    match op {
        ReduceOp::Sum => 0.0,
        ReduceOp::Prod => 1.0,
        _ if dtype == DType::Bool => range(0.0, 1.0),
        _ if dtype == DType::I64 => range(i64::MIN as f64, i64::MAX as f64),
        _ => range(scalar::cast(dtype, f64::NEG_INFINITY), scalar::cast(dtype, f64::INFINITY)),
    }
}

/// One element more.
pub fn combine(op: ReduceOp, dtype: DType, a: f64, b: f64) -> f64 {
    use onefold_ir::BinaryOp::{Add, And, Max, Min, Mul, Or};
    let op = match op {
        ReduceOp::Sum => Add,
        ReduceOp::Prod => Mul,
        ReduceOp::Max if dtype == DType::Bool => Or,
        ReduceOp::Min if dtype == DType::Bool => And,
        ReduceOp::Max => Max,
        ReduceOp::Min => Min,
    };
    // Sums and products are settled only when they are read: a running sum in f64 has room that one in f32 lacks.
    if dtype.is_float() {
        return eval::binary(op, a, b).unwrap_or(f64::NAN);
    }
    scalar::binary(op, dtype, a, b)
}
