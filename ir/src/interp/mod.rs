//! The reference: functions evaluated in f64, node by node, with the special values of the declared dtypes.
//!
//! ```
//! use onefold_ir::interp::{run, Tensor};
//! let module = onefold_ir::parse("p.fold", "func @p(%x: f32[j]) { return softmax[j](%x) }")?;
//! let out = run(&module, "p", &[Tensor::f32(&[2], &[0.0, 0.0])])?;
//! assert_eq!(out[0].to_f64(), [0.5, 0.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod order;
mod plan;
mod program;
mod reduce;
mod scalar;
mod tensor;
mod view;

pub use tensor::{Data, Tensor};

use crate::bind::{bind_sizes, SizeError};
use crate::types::int_range;
use crate::{AxisId, AxisSet, DType, Func, Module, NodeId, Op};
use plan::Plan;
use std::borrow::Cow;
use thiserror::Error;

/// Why a function cannot be evaluated on some inputs.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EvalError {
    /// A function that the module does not have.
    #[error("there is no function `@{0}`")]
    NoFunction(String),
    /// Shapes that do not fit.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// An input of another dtype.
    #[error("input `{input}` must be {expected}, but is {got}")]
    Dtype {
        /// The input.
        input: String,
        /// Of the parameter.
        expected: DType,
        /// Of the array.
        got: DType,
    },
    /// An input whose data does not fit its shape or dtype.
    #[error("input `{0}`: its elements do not fit its shape and dtype")]
    BadInput(String),
    /// An id outside of the table.
    #[error("gather: id {id} is outside of axis `{axis}` of size {size}")]
    Gather {
        /// The id.
        id: i64,
        /// The axis.
        axis: String,
        /// Its size.
        size: u64,
    },
    /// The largest of nothing.
    #[error("argmax over axis `{0}`, which is empty")]
    EmptyArgMax(String),
    /// A scale that is not finite and positive.
    #[error("a quantization scale must be finite and positive, not {0}")]
    Scale(f64),
    /// Not enough memory for a value.
    #[error("not enough memory for a value of {0} elements")]
    Memory(u64),
    /// A module that is not well formed.
    #[error("the function is not well formed (this is a bug unless `verify` was left out): {0}")]
    Malformed(&'static str),
}

/// Evaluates a function of a verified module; inputs and outputs in the order of its parameters and results.
///
/// # Errors
/// The inputs do not fit, or the formula has no value on them (see [`EvalError`]).
pub fn run(module: &Module, func: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    let func = module.func(func).ok_or_else(|| EvalError::NoFunction(func.to_string()))?;
    for (param, input) in func.params.iter().zip(inputs) {
        check_input(&param.name, param.dtype, input)?;
    }
    let shapes: Vec<&[usize]> = inputs.iter().map(|t| t.shape.as_slice()).collect();
    let sizes = bind_sizes(func, &shapes)?;
    let mut machine = Machine { module, func, sizes, inputs, values: (0..func.nodes.len()).map(|_| None).collect() };
    machine.run()
}

fn check_input(name: &str, dtype: DType, input: &Tensor) -> Result<(), EvalError> {
    if input.dtype != dtype {
        return Err(EvalError::Dtype { input: name.to_string(), expected: dtype, got: input.dtype });
    }
    let count = input.shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
    let fits = match &input.data {
        Data::Float(_) => dtype.is_float(),
        Data::Int(v) => {
            let (lo, hi) = int_range(dtype).unwrap_or((0, 1));
            !dtype.is_float() && v.iter().all(|v| (lo..=hi).contains(v))
        }
    };
    let empty = input.shape.contains(&0) && input.is_empty();
    if fits && (empty || count == Some(input.len())) {
        Ok(())
    } else {
        Err(EvalError::BadInput(name.to_string()))
    }
}

/// A value in memory.
pub(crate) struct Value<'a> {
    /// Order of the axes, outermost first.
    axes: Vec<AxisId>,
    data: Cow<'a, Data>,
}

struct Machine<'a> {
    module: &'a Module,
    func: &'a Func,
    sizes: Vec<u64>,
    inputs: &'a [Tensor],
    /// Of the nodes that are kept in memory now.
    values: Vec<Option<Value<'a>>>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Vec<Tensor>, EvalError> {
        let func = self.func;
        let mut plan = Plan::new(func);
        for id in 0..func.nodes.len() {
            if !plan.stored[id] {
                continue;
            }
            let value = self.evaluate(&plan, NodeId(id as u32))?;
            self.values[id] = Some(value);
            for done in plan.finished_by(func, NodeId(id as u32)) {
                self.values[done.0 as usize] = None;
            }
        }
        func.results.iter().map(|r| self.result(r.node, &r.axes)).collect()
    }

    fn evaluate(&self, plan: &Plan, id: NodeId) -> Result<Value<'a>, EvalError> {
        let node = self.func.node(id);
        match &node.op {
            Op::Param(n) => {
                let (param, input) =
                    self.func.params.get(*n).zip(self.inputs.get(*n)).ok_or(EvalError::Malformed("parameter"))?;
                Ok(Value { axes: param.axes.clone(), data: Cow::Borrowed(&input.data) })
            }
            Op::Constant(n) => self.constant(*n, node.ty.axes),
            Op::Reduce(op, axes) => self.reduce(plan, id, *op, *axes),
            Op::ArgMax(_) | Op::TopK { .. } | Op::Sort { .. } | Op::CumSum(_) => self.ordered(id),
            Op::Gather(_)
            | Op::Rename { .. }
            | Op::Split { .. }
            | Op::Merge { .. }
            | Op::Slice { .. }
            | Op::Concat { .. }
            | Op::Shift { .. } => self.view(id),
            _ => self.elementwise(plan, id, node.ty.axes.iter().collect()),
        }
    }

    fn constant(&self, n: usize, axes: AxisSet) -> Result<Value<'a>, EvalError> {
        let constant = self.module.constants.get(n).ok_or(EvalError::Malformed("constant"))?;
        let mut order = vec![];
        for (name, size) in &constant.axes {
            let same = |a: &AxisId| self.func.axis(*a).name == *name && self.size(*a) as u64 == *size;
            order.push(axes.iter().find(same).ok_or(EvalError::Malformed("axes of a constant"))?);
        }
        let data = if constant.dtype.is_float() {
            Data::Float(constant.data.iter().map(|v| scalar::round_to(constant.dtype, *v)).collect())
        } else {
            Data::Int(constant.data.iter().map(|v| *v as i64).collect())
        };
        Ok(Value { axes: order, data: Cow::Owned(data) })
    }

    /// A result in the order of axes that the function states; along axes that the value lacks it repeats.
    fn result(&self, id: NodeId, axes: &[AxisId]) -> Result<Tensor, EvalError> {
        let dtype = self.func.node(id).ty.dtype;
        let shape: Vec<usize> = axes.iter().map(|a| self.size(*a)).collect();
        let value = self.value(id)?;
        let same = value.axes == axes;
        let mut data = if same { value.data.clone().into_owned() } else { self.laid_out(value, dtype, axes)? };
        if let Data::Float(v) = &mut data {
            scalar::settle_result(dtype, v);
        }
        Ok(Tensor { dtype, shape, data })
    }

    fn size(&self, axis: AxisId) -> usize {
        self.sizes.get(usize::from(axis.0)).map_or(0, |n| *n as usize)
    }

    fn value(&self, id: NodeId) -> Result<&Value<'a>, EvalError> {
        self.values.get(id.0 as usize).and_then(Option::as_ref).ok_or(EvalError::Malformed("order of nodes"))
    }

    /// Distance in elements between neighbours along each of some axes (0 where the value does not vary).
    fn strides(&self, value: &Value<'_>, axes: &[AxisId]) -> Vec<usize> {
        let of = |axis: &AxisId| match value.axes.iter().position(|a| a == axis) {
            Some(at) => value.axes[at + 1..].iter().map(|a| self.size(*a)).product(),
            None => 0,
        };
        axes.iter().map(of).collect()
    }

    /// Elements over some axes; an error if there is not the memory.
    fn room(&self, dtype: DType, axes: &[AxisId]) -> Result<Data, EvalError> {
        let count = if axes.iter().any(|a| self.size(*a) == 0) {
            Some(0)
        } else {
            axes.iter().try_fold(1usize, |n, a| n.checked_mul(self.size(*a)))
        };
        count.and_then(|n| Data::zeroed(dtype, n)).ok_or(EvalError::Memory(count.map_or(u64::MAX, |n| n as u64)))
    }
}

/// Counts through positions along axes, innermost fastest.
pub(crate) struct Odometer {
    sizes: Vec<usize>,
    at: Vec<usize>,
}

impl Odometer {
    pub(crate) fn new(sizes: Vec<usize>) -> Odometer {
        let at = vec![0; sizes.len()];
        Odometer { sizes, at }
    }

    pub(crate) fn at(&self) -> &[usize] {
        &self.at
    }

    /// The place in memory for some strides.
    pub(crate) fn offset(&self, strides: &[usize]) -> usize {
        self.at.iter().zip(strides).map(|(a, s)| a * s).sum()
    }

    /// One step; false at the end, where it starts anew.
    pub(crate) fn step(&mut self) -> bool {
        for n in (0..self.at.len()).rev() {
            self.at[n] += 1;
            if self.at[n] < self.sizes[n] {
                return true;
            }
            self.at[n] = 0;
        }
        false
    }
}
