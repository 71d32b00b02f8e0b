//! Sizes at the call: from the shapes of the inputs to the length of every axis.

use crate::{AxisId, AxisSet, DType, Extent, Func, Op, SizeExpr};
use thiserror::Error;

/// Why an expression over sizes has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SizeValueError {
    /// A result below 0.
    #[error("it would be {0}")]
    Negative(i128),
    /// An exact quotient with a remainder.
    #[error("{dividend} is not a multiple of {divisor}")]
    NotDivisible {
        /// What is divided.
        dividend: i128,
        /// By what.
        divisor: i128,
    },
    /// A number beyond 64 bits, or a division by 0.
    #[error("it is out of range")]
    OutOfRange,
}

/// Why inputs of these shapes cannot be given to a function.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Too many or too few inputs.
    #[error("@{func} takes {expected} inputs, not {got}")]
    InputCount {
        /// The function.
        func: String,
        /// How many it takes.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// An array with more or fewer dimensions than the parameter has axes.
    #[error("input `{input}` must have {expected} dimensions ({axes}), but has {got}")]
    Rank {
        /// The input.
        input: String,
        /// Dimensions needed.
        expected: usize,
        /// Their names.
        axes: String,
        /// Dimensions of the array.
        got: usize,
    },
    /// A fixed axis of another size.
    #[error("axis `{axis}` of input `{input}` must have size {expected}, but has {got}")]
    Fixed {
        /// The input.
        input: String,
        /// The axis.
        axis: String,
        /// Size in the type.
        expected: u64,
        /// Size of the array.
        got: u64,
    },
    /// A symbolic axis that two inputs disagree on.
    #[error("axis `{axis}` has size {left} in input `{left_input}` but {right} in input `{right_input}`")]
    Disagree {
        /// The axis.
        axis: String,
        /// The input that gave the size first.
        left_input: String,
        /// That size.
        left: u64,
        /// The input that disagrees.
        right_input: String,
        /// Its size.
        right: u64,
    },
    /// A derived size that does not work out.
    #[error("axis `{axis}` = {size}: {reason}")]
    Derived {
        /// The axis.
        axis: String,
        /// Its size as an expression.
        size: String,
        /// What is wrong.
        reason: SizeValueError,
    },
    /// An axis that does not divide into the parts it is split into.
    #[error("axis `{axis}` of size {size} does not divide by {by}")]
    NotDivisible {
        /// The axis.
        axis: String,
        /// Its size.
        size: u64,
        /// The other parts with their sizes.
        by: String,
    },
    /// Axes that must be of one length.
    #[error("`{op}`: axis `{to}` has size {got}, but the operand gives {expected}")]
    Unequal {
        /// The primitive.
        op: &'static str,
        /// The new axis.
        to: String,
        /// Its size.
        got: u64,
        /// Size that the operand gives.
        expected: u64,
    },
    /// More elements asked for than there are.
    #[error("topk keeps {k} elements (axis `{to}`), but axis `{axis}` has {n}")]
    TopK {
        /// Elements kept.
        k: u64,
        /// The new axis.
        to: String,
        /// The axis searched.
        axis: String,
        /// Its size.
        n: u64,
    },
    /// A slice beyond the end of its axis.
    #[error("the slice reaches position {last} of axis `{axis}`, which has size {size}")]
    SliceEnd {
        /// The axis.
        axis: String,
        /// Last position.
        last: u64,
        /// Size of the axis.
        size: u64,
    },
    /// More elements or bytes than can be addressed.
    #[error("`{what}` would have more bytes than memory can hold ({sizes})")]
    TooLarge {
        /// The input, result or value.
        what: String,
        /// Its sizes.
        sizes: String,
    },
    /// A function that is not well formed.
    #[error("axis {0} has no size: the function is not well formed")]
    Unbound(String),
}

/// The value of an expression over sizes; `sizes` holds those of the axes by their ids.
///
/// # Errors
/// It is negative, out of range, or an exact quotient has a remainder.
pub fn eval_size(expr: &SizeExpr, sizes: &[u64]) -> Result<u64, SizeValueError> {
    let value = eval(expr, sizes)?;
    u64::try_from(value)
        .map_err(|_| if value < 0 { SizeValueError::Negative(value) } else { SizeValueError::OutOfRange })
}

fn eval(expr: &SizeExpr, sizes: &[u64]) -> Result<i128, SizeValueError> {
    let both = |a: &SizeExpr, b: &SizeExpr| Ok((eval(a, sizes)?, eval(b, sizes)?));
    let value = match expr {
        SizeExpr::Const(value) => Some(i128::from(*value)),
        SizeExpr::Axis(axis) => sizes.get(usize::from(axis.0)).map(|n| i128::from(*n)),
        SizeExpr::Add(a, b) => both(a, b).map(|(a, b)| a.checked_add(b))?,
        SizeExpr::Sub(a, b) => both(a, b).map(|(a, b)| a.checked_sub(b))?,
        SizeExpr::Mul(a, b) => both(a, b).map(|(a, b)| a.checked_mul(b))?,
        SizeExpr::DivCeil(a, b) => {
            let (a, b) = both(a, b)?;
            let whole = a.checked_div_euclid(b).filter(|_| b > 0);
            whole.map(|q| q + i128::from(a.rem_euclid(b) != 0))
        }
        SizeExpr::DivExact(a, b) => {
            let (dividend, divisor) = both(a, b)?;
            match dividend.checked_rem(divisor) {
                Some(0) => dividend.checked_div(divisor),
                Some(_) => return Err(SizeValueError::NotDivisible { dividend, divisor }),
                None => None,
            }
        }
    };
    // Beyond 64 bits nothing can be a size, nor become one again in a sensible program.
    value.filter(|v| v.unsigned_abs() <= i64::MAX as u128).ok_or(SizeValueError::OutOfRange)
}

/// The length of every axis of a verified function, from the shapes of its inputs in order; by [`AxisId`].
///
/// Everything about sizes that can go wrong at a call is found here: kernels rely on it.
///
/// # Errors
/// The shapes do not fit the parameters or each other, a derived size does not work out, or something is too large.
pub fn bind_sizes<S: AsRef<[usize]>>(func: &Func, shapes: &[S]) -> Result<Vec<u64>, SizeError> {
    let sizes = Binder { func, sizes: vec![None; func.axes.len()], first: vec![""; func.axes.len()] }.bind(shapes)?;
    Checks { func, sizes: &sizes }.all()?;
    Ok(sizes)
}

struct Binder<'a> {
    func: &'a Func,
    sizes: Vec<Option<u64>>,
    /// For each axis the input that gave its size.
    first: Vec<&'a str>,
}

impl Binder<'_> {
    fn bind<S: AsRef<[usize]>>(mut self, shapes: &[S]) -> Result<Vec<u64>, SizeError> {
        let func = self.func;
        if shapes.len() != func.params.len() {
            let (func, expected) = (func.name.clone(), func.params.len());
            return Err(SizeError::InputCount { func, expected, got: shapes.len() });
        }
        for (param, shape) in func.params.iter().zip(shapes) {
            let shape = shape.as_ref();
            if shape.len() != param.axes.len() {
                let names: Vec<&str> = param.axes.iter().map(|a| func.axis(*a).name.as_str()).collect();
                let (input, axes) = (param.name.clone(), names.join(", "));
                return Err(SizeError::Rank { input, expected: param.axes.len(), axes, got: shape.len() });
            }
            for (axis, size) in param.axes.iter().zip(shape) {
                self.give(*axis, *size as u64, &param.name)?;
            }
        }
        for (n, decl) in func.axes.iter().enumerate() {
            match &decl.extent {
                Extent::Fixed(size) => self.sizes[n] = Some(*size),
                Extent::Symbolic if self.sizes[n].is_none() => return Err(SizeError::Unbound(decl.name.clone())),
                Extent::Symbolic => {}
                Extent::Derived(expr) => {
                    // Derived sizes refer to earlier axes, all of which are bound.
                    let known: Vec<u64> = self.sizes.iter().map(|s| s.unwrap_or(0)).collect();
                    let value =
                        eval_size(expr, &known).map_err(|reason| self.derived_error(n, expr, &known, reason))?;
                    self.sizes[n] = Some(value);
                }
            }
        }
        Ok(self.sizes.into_iter().map(|s| s.unwrap_or(0)).collect())
    }

    fn give(&mut self, axis: AxisId, got: u64, input: &str) -> Result<(), SizeError> {
        let func = self.func;
        let decl = func.axis(axis);
        let name = || decl.name.clone();
        if let Extent::Fixed(expected) = decl.extent {
            if got != expected {
                return Err(SizeError::Fixed { input: input.to_string(), axis: name(), expected, got });
            }
        }
        let slot = usize::from(axis.0);
        match self.sizes[slot] {
            Some(left) if left != got => {
                let (left_input, right_input) = (self.first[slot].to_string(), input.to_string());
                Err(SizeError::Disagree { axis: name(), left_input, left, right_input, right: got })
            }
            Some(_) => Ok(()),
            None => {
                self.sizes[slot] = Some(got);
                self.first[slot] = func.params.iter().find(|p| p.name == input).map_or("", |p| p.name.as_str());
                Ok(())
            }
        }
    }

    /// A split whose rest is not whole is told as such.
    fn derived_error(&self, axis: usize, expr: &SizeExpr, known: &[u64], reason: SizeValueError) -> SizeError {
        let func = self.func;
        if let SizeValueError::NotDivisible { .. } = reason {
            for node in &func.nodes {
                let Op::Split { from, to } = &node.op else { continue };
                if !to.contains(&AxisId(axis as u8)) {
                    continue;
                }
                let others = to.iter().filter(|a| usize::from(a.0) != axis);
                let by: Vec<String> =
                    others.map(|a| format!("`{}` ({})", func.axis(*a).name, known[usize::from(a.0)])).collect();
                let size = known[usize::from(from.0)];
                return SizeError::NotDivisible { axis: func.axis(*from).name.clone(), size, by: by.join(" times ") };
            }
        }
        let size = crate::size::show_size(expr, &func.axes);
        SizeError::Derived { axis: func.axes[axis].name.clone(), size, reason }
    }
}

/// What must hold between sizes once they are known.
struct Checks<'a> {
    func: &'a Func,
    sizes: &'a [u64],
}

impl Checks<'_> {
    fn all(&self) -> Result<(), SizeError> {
        let func = self.func;
        for param in &func.params {
            self.check_bytes(&param.name, &param.axes, param.dtype)?;
        }
        for node in &func.nodes {
            self.check_node(&node.op)?;
            let axes: Vec<AxisId> = node.ty.axes.iter().collect();
            // Values inside need not exist in memory, but positions in them must be numbers.
            self.check_bytes(node.name.as_deref().unwrap_or("a value"), &axes, DType::U8)?;
        }
        for result in &func.results {
            self.check_bytes(&result.name, &result.axes, func.node(result.node).ty.dtype)?;
        }
        Ok(())
    }

    fn size(&self, axis: AxisId) -> u64 {
        self.sizes.get(usize::from(axis.0)).copied().unwrap_or(0)
    }

    fn name(&self, axis: AxisId) -> String {
        self.func.axis(axis).name.clone()
    }

    fn check_bytes(&self, what: &str, axes: &[AxisId], dtype: DType) -> Result<(), SizeError> {
        let each = u64::from(dtype.bits().div_ceil(8));
        let set: AxisSet = axes.iter().copied().collect();
        let whole = axes.iter().try_fold(each, |bytes, axis| bytes.checked_mul(self.size(*axis)));
        // A product may overflow although a later size is 0: then there is nothing.
        let empty = set.iter().any(|a| self.size(a) == 0);
        if empty || whole.is_some_and(|bytes| bytes <= isize::MAX as u64) {
            return Ok(());
        }
        let sizes: Vec<String> = axes.iter().map(|a| format!("{}={}", self.name(*a), self.size(*a))).collect();
        Err(SizeError::TooLarge { what: what.to_string(), sizes: sizes.join(", ") })
    }

    fn equal(&self, op: &'static str, to: AxisId, expected: Option<u64>) -> Result<(), SizeError> {
        let expected = expected.unwrap_or(u64::MAX);
        if self.size(to) == expected {
            Ok(())
        } else {
            Err(SizeError::Unequal { op, to: self.name(to), got: self.size(to), expected })
        }
    }

    fn check_node(&self, op: &Op) -> Result<(), SizeError> {
        let product = |axes: &[AxisId]| axes.iter().try_fold(1u64, |n, a| n.checked_mul(self.size(*a)));
        match op {
            Op::TopK { axis, to, .. } if self.size(*to) > self.size(*axis) => Err(SizeError::TopK {
                k: self.size(*to),
                to: self.name(*to),
                axis: self.name(*axis),
                n: self.size(*axis),
            }),
            Op::Slice { from, to, start, step } => {
                let (n, size) = (self.size(*to), self.size(*from));
                let last = n
                    .checked_sub(1)
                    .map(|n| n.saturating_mul(step.unsigned_abs()).saturating_add(start.unsigned_abs()));
                match last {
                    Some(last) if last >= size => Err(SizeError::SliceEnd { axis: self.name(*from), last, size }),
                    _ => Ok(()),
                }
            }
            Op::Rename { from, to } => self.equal("rename", *to, Some(self.size(*from))),
            Op::Merge { from, to } => self.equal("merge", *to, product(from)),
            Op::Concat { from, to } => {
                self.equal("concat", *to, from.iter().try_fold(0u64, |n, a| n.checked_add(self.size(*a))))
            }
            Op::Split { from, to } if product(to) != Some(self.size(*from)) => {
                let by: Vec<String> = to.iter().map(|a| format!("`{}` ({})", self.name(*a), self.size(*a))).collect();
                Err(SizeError::NotDivisible { axis: self.name(*from), size: self.size(*from), by: by.join(" times ") })
            }
            _ => Ok(()),
        }
    }
}
