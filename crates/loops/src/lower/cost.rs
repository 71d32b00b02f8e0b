//! What operators cost, and along which axis a computation is best vectorised.

use super::affine::{access, Access};
use super::Lowering;
use onefold_ir::{AxisId, BinaryOp, DType, Extent, UnaryOp};
use onefold_passes::fold::FoldProgram;
use onefold_passes::term::{TermId, TermOp};

/// From here on a term is kept rather than computed twice.
pub const EXPENSIVE: u32 = 4;

/// Instructions of one operator, roughly.
pub fn weight(program: &FoldProgram, id: TermId) -> u32 {
    let term = program.terms.get(id);
    match &term.op {
        TermOp::Unary(op) => match op {
            UnaryOp::Exp | UnaryOp::Exp2 => 12,
            UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Tanh | UnaryOp::Erf => 20,
            UnaryOp::Sqrt | UnaryOp::Rsqrt => 6,
            _ => 1,
        },
        TermOp::Wide(_) => 8,
        TermOp::Binary(op) => match op {
            BinaryOp::Div | BinaryOp::Rem => 5,
            BinaryOp::Pow => 50,
            BinaryOp::Min | BinaryOp::Max => 3,
            _ => 1,
        },
        TermOp::Cast => {
            let half = |d: DType| matches!(d, DType::F16 | DType::BF16);
            let from = program.terms.get(term.args[0]).dtype;
            if half(from) != half(term.dtype) {
                4
            } else {
                1
            }
        }
        TermOp::Load { .. } if matches!(term.dtype, DType::F16 | DType::BF16) => 4,
        TermOp::Reduce(..) => 100,
        _ => 1,
    }
}

/// The cost of the loads of some terms, an element, if an axis is vectorised. Terms that are `known` cost nothing.
pub fn access_cost(
    program: &FoldProgram,
    roots: &[TermId],
    axis: AxisId,
    lanes: u32,
    known: &dyn Fn(TermId) -> bool,
) -> u32 {
    let mut cost = 0;
    let mut seen = std::collections::HashSet::new();
    let mut stack = roots.to_vec();
    while let Some(id) = stack.pop() {
        if !seen.insert(id) || known(id) {
            continue;
        }
        let term = program.terms.get(id);
        if !matches!(term.op, TermOp::Load { .. }) {
            stack.extend(&term.args);
            continue;
        }
        cost += match access(program, term, axis) {
            Access::Invariant | Access::Contiguous => 1,
            Access::Edged => 2,
            Access::Strided => lanes,
            Access::Scattered => 3 * lanes,
        };
    }
    cost
}

/// Whether an axis is known to be shorter than a vector.
pub fn short(program: &FoldProgram, axis: AxisId, lanes: u32) -> bool {
    matches!(program.axes[axis.0 as usize].extent, Extent::Fixed(n) if n < u64::from(lanes))
}

impl Lowering<'_> {
    /// The axis along which some terms are best vectorised: the cheapest loads; among equals the first. Axes known to be
    /// shorter than a vector come last.
    pub fn best_axis(&self, roots: &[TermId], axes: &[AxisId]) -> Option<AxisId> {
        let lanes = (self.target.vector_bytes / 4).max(1);
        let known = |id: TermId| self.place_of(id).is_some();
        axes.iter().copied().min_by_key(|axis| {
            (short(self.program, *axis, lanes), access_cost(self.program, roots, *axis, lanes, &known))
        })
    }

    /// Instructions of all operators below some terms that vary along an axis.
    pub fn total_weight(&self, roots: &[TermId], axis: AxisId) -> u32 {
        let varies = |id: &TermId| self.program.terms.get(*id).axes.contains(axis);
        self.program.terms.reachable(roots).iter().filter(|id| varies(id)).map(|id| weight(self.program, *id)).sum()
    }
}
