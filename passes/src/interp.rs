//! An executable definition of fold programs: runs one in f64, tile by tile, exactly as [`crate::fold`] says.
//!
//! It is slow and plain on purpose. A wrong kernel is bisected with it: if the program run here agrees with the tensor
//! IR's interpreter, the derivation is right and the fault lies in the lowering; if results change with the tile size, a
//! correction or a degenerate value is wrong.

mod machine;
mod pass;
mod scalar;

use crate::fold::FoldProgram;
use onefold_ir::{AxisId, Extent, SizeExpr};

pub use scalar::{binary, cast, settle, unary};

/// Why a program could not be run.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// A number of inputs or elements that does not fit the program.
    #[error("input {name}: {found} elements where the sizes say {expected}")]
    Shape {
        /// The input.
        name: String,
        /// Elements given.
        found: usize,
        /// Elements expected.
        expected: usize,
    },
    /// A size is missing, negative, overflows or does not divide.
    #[error("axis {name} has no size")]
    Size {
        /// The axis.
        name: String,
    },
    /// An index of a gather lies outside its axis.
    #[error("an index lies outside its axis")]
    OutOfRange,
    /// The program breaks a rule of [`crate::fold`].
    #[error("malformed fold program: {0}")]
    Malformed(String),
}

/// Length of every axis, given those of the symbolic ones in the order of [`FoldProgram::axes`].
///
/// # Errors
/// A size is missing or negative, or a derived one overflows or does not divide.
pub fn extents(program: &FoldProgram, symbolic: &[i64]) -> Result<Vec<i64>, FoldError> {
    let mut given = symbolic.iter();
    let mut sizes: Vec<Option<i64>> = program
        .axes
        .iter()
        .map(|axis| match axis.extent {
            Extent::Fixed(n) => i64::try_from(n).ok(),
            Extent::Symbolic => given.next().copied(),
            Extent::Derived(_) => None,
        })
        .collect();
    // A derived size may stand on another: as many rounds as there are axes reach the bottom.
    for _ in 0..program.axes.len() {
        for (at, axis) in program.axes.iter().enumerate() {
            if let (Extent::Derived(expr), None) = (&axis.extent, sizes[at]) {
                sizes[at] = derived(expr, &sizes);
            }
        }
    }
    let named = sizes.into_iter().zip(&program.axes);
    named.map(|(n, a)| n.filter(|n| *n >= 0).ok_or_else(|| FoldError::Size { name: a.name.clone() })).collect()
}

fn derived(expr: &SizeExpr, sizes: &[Option<i64>]) -> Option<i64> {
    let of = |e: &SizeExpr| derived(e, sizes);
    match expr {
        SizeExpr::Const(n) => Some(*n),
        SizeExpr::Axis(AxisId(a)) => sizes.get(*a as usize).copied().flatten(),
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

/// Run a program. Elements of every dtype are given and returned as f64 (`bool` as 0 and 1); values of the narrower float
/// types are not rounded, but become infinite where their type would.
///
/// # Errors
/// Inputs that do not fit, an index out of range, or a malformed program.
pub fn run(
    program: &FoldProgram,
    symbolic: &[i64],
    inputs: &[Vec<f64>],
    tile: usize,
) -> Result<Vec<Vec<f64>>, FoldError> {
    let sizes = extents(program, symbolic)?;
    let count = |axes: &[AxisId]| axes.iter().map(|a| sizes[a.0 as usize] as usize).product::<usize>();
    for (at, decl) in program.inputs.iter().enumerate() {
        let found = inputs.get(at).map_or(0, Vec::len);
        let expected = count(&decl.axes);
        if inputs.get(at).is_none() || found != expected {
            return Err(FoldError::Shape { name: decl.name.clone(), found, expected });
        }
    }
    let arrays = |list: &[crate::fold::ArrayDecl]| list.iter().map(|d| vec![0.0; count(&d.axes)]).collect();
    let outputs: Vec<Vec<f64>> = arrays(&program.outputs);
    let intermediates = arrays(&program.intermediates);
    let mut machine = machine::Machine::new(program, sizes, inputs, outputs, intermediates, tile.max(1));
    machine.steps(&program.body)?;
    Ok(machine.outputs)
}
