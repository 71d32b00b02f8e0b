//! Lengths of axes from the shapes of a call's arrays.

use crate::error::CallError;
use crate::signature::Signature;
use onefold_ir::{AxisId, Extent, Func, Op, SizeExpr};

/// The length of every axis of a function.
///
/// # Errors
/// Arrays that do not fit the function or each other, named in the error.
pub(crate) fn bind(func: &Func, signature: &Signature, shapes: &[Vec<usize>]) -> Result<Vec<u64>, CallError> {
    let mut sizes: Vec<Option<(u64, &str)>> = vec![None; func.axes.len()];
    for (at, axis) in func.axes.iter().enumerate() {
        if let Extent::Fixed(n) = axis.extent {
            sizes[at] = Some((n, ""));
        }
    }
    for derived in [false, true] {
        for ((param, argument), shape) in func.params.iter().zip(&signature.inputs).zip(shapes) {
            if shape.len() != param.axes.len() {
                let (name, axes) = (param.name.clone(), argument.show_axes());
                return Err(CallError::Rank { name, axes, shape: shape.clone() });
            }
            for (axis, size) in param.axes.iter().zip(shape) {
                bind_one(func, *axis, &param.name, *size as u64, derived, &mut sizes)?;
            }
        }
        for at in 0..func.axes.len() {
            if let (Extent::Derived(expr), None) = (&func.axes[at].extent, sizes[at]) {
                sizes[at] = Some((derived_size(expr, at, func, &sizes)?, ""));
            }
        }
    }
    let named = sizes.iter().zip(&func.axes);
    named.map(|(s, a)| s.map(|s| s.0).ok_or_else(|| CallError::Size(format!("axis {} has no size", a.name)))).collect()
}

fn bind_one<'f>(
    func: &Func,
    axis: AxisId,
    input: &'f str,
    size: u64,
    derived: bool,
    sizes: &mut [Option<(u64, &'f str)>],
) -> Result<(), CallError> {
    let at = usize::from(axis.0);
    let name = &func.axes[at].name;
    if matches!(func.axes[at].extent, Extent::Derived(_)) && !derived {
        return Ok(());
    }
    match sizes[at] {
        None => sizes[at] = Some((size, input)),
        Some((known, _)) if known == size => {}
        Some((known, "")) => {
            return Err(CallError::Size(format!("axis {name} is {known} long, but input {input} has {size} along it")))
        }
        Some((known, first)) => {
            return Err(CallError::Size(format!(
                "axis {name} is {known} long in input {first} but {size} long in input {input}"
            )))
        }
    }
    Ok(())
}

fn derived_size(expr: &SizeExpr, axis: usize, func: &Func, sizes: &[Option<(u64, &str)>]) -> Result<u64, CallError> {
    let name = &func.axes[axis].name;
    let text = || onefold_ir::size::show_size(expr, &func.axes);
    match eval(expr, sizes) {
        Some(n) if n >= 0 => Ok(n as u64),
        Some(n) => Err(CallError::Size(format!("axis {name} would be {n} long ({})", text()))),
        None => Err(CallError::Size(format!("axis {name} has no length: {} overflows or does not divide", text()))),
    }
}

fn eval(expr: &SizeExpr, sizes: &[Option<(u64, &str)>]) -> Option<i64> {
    let of = |e: &SizeExpr| eval(e, sizes);
    match expr {
        SizeExpr::Const(n) => Some(*n),
        SizeExpr::Axis(a) => i64::try_from(sizes.get(usize::from(a.0)).copied().flatten()?.0).ok(),
        SizeExpr::Add(a, b) => of(a)?.checked_add(of(b)?),
        SizeExpr::Sub(a, b) => of(a)?.checked_sub(of(b)?),
        SizeExpr::Mul(a, b) => of(a)?.checked_mul(of(b)?),
        SizeExpr::DivCeil(a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            (b > 0).then(|| a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0))
        }
        SizeExpr::DivExact(a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            (b > 0 && a % b == 0).then(|| a / b)
        }
    }
}

/// What a function asks of its sizes beyond shapes: enough elements for `topk`, at least one for `argmax`.
pub(crate) fn check(func: &Func, sizes: &[u64]) -> Result<(), CallError> {
    let size = |a: AxisId| sizes[usize::from(a.0)];
    for node in &func.nodes {
        match node.op {
            Op::TopK { axis, to, .. } if size(to) > size(axis) => {
                let name = func.axis(axis).name.clone();
                return Err(CallError::TooMany { k: size(to), axis: name, size: size(axis) });
            }
            Op::ArgMax(axis) if size(axis) == 0 => {
                return Err(CallError::EmptyArgMax { axis: func.axis(axis).name.clone() });
            }
            _ => {}
        }
    }
    Ok(())
}
