//! How much a call moves and computes: what `bench` divides by.

use crate::element::bytes_of;
use onefold_ir::{AxisId, AxisSet, BinaryOp, DType, Func, Op, ReduceOp};
use onefold_passes::fold::{ArrayDecl, FoldProgram};
use onefold_passes::interp::extents;
use onefold_passes::schedule::reads::reads;

/// Bytes moved and arithmetic done by one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes of each input once per stream that the fold program states, of each output once, and of arrays that are stored and
    /// read back twice.
    pub bytes: u64,
    /// Of `bytes`, those written.
    pub written: u64,
    /// Multiplications and additions of contractions in the formula; other arithmetic does not count.
    pub flops: u64,
}

/// Arrays of a fold program with the number of times that they are moved.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    program: FoldProgram,
}

impl Traffic {
    pub(crate) fn of(program: FoldProgram) -> Traffic {
        Traffic { program }
    }

    /// Bytes read and written.
    pub(crate) fn bytes(&self, symbolic: &[i64]) -> Option<(u64, u64)> {
        let program = &self.program;
        let sizes = extents(program, symbolic).ok()?;
        let size = |decl: &ArrayDecl| {
            let elements = decl.axes.iter().try_fold(1usize, |n, a| n.checked_mul(sizes[usize::from(a.0)] as usize))?;
            bytes_of(decl.dtype, elements).map(|b| b as u64)
        };
        let (mut read, mut written) = (0u64, 0u64);
        for (decl, times) in program.inputs.iter().zip(reads(program)) {
            read = read.checked_add(size(decl)?.checked_mul(times.into())?)?;
        }
        for decl in &program.intermediates {
            read = read.checked_add(size(decl)?)?;
        }
        for decl in program.intermediates.iter().chain(&program.outputs) {
            written = written.checked_add(size(decl)?)?;
        }
        Some((read, written))
    }
}

/// Two for each element of each contraction: a sum of products whose factors vary along different axes.
pub(crate) fn flops(func: &Func, sizes: &[u64]) -> u64 {
    let count = |axes: AxisSet| axes.iter().map(|a: AxisId| sizes[usize::from(a.0)]).fold(2u64, u64::saturating_mul);
    let mut total = 0u64;
    for node in &func.nodes {
        let (Op::Reduce(ReduceOp::Sum, _), [body]) = (&node.op, node.args.as_slice()) else { continue };
        let mut body = func.node(*body);
        // Products of narrow integers are cast before they are added up.
        while let (Op::Cast, [inner]) = (&body.op, body.args.as_slice()) {
            body = func.node(*inner);
        }
        if let (Op::Binary(BinaryOp::Mul), [a, b]) = (&body.op, body.args.as_slice()) {
            let (a, b) = (func.node(*a).ty.axes, func.node(*b).ty.axes);
            if !a.is_subset(b) && !b.is_subset(a) && body.ty.dtype != DType::Bool {
                total = total.saturating_add(count(a.union(b)));
            }
        }
    }
    total
}
