//! What operators cost, and along which axis a computation is best vectorised.

use super::affine::{access, Access};
use super::Lowering;
use onefold_ir::{AxisId, BinaryOp, DType, UnaryOp};
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

impl Lowering<'_> {
    /// The cost of the loads of some terms, an element, if an axis is vectorised.
    pub fn access_cost(&self, roots: &[TermId], axis: AxisId) -> u32 {
        let lanes = (self.target.vector_bytes / 4).max(1);
        let mut cost = 0;
        for id in self.program.terms.reachable(roots) {
            let term = self.program.terms.get(id);
            if !matches!(term.op, TermOp::Load { .. }) {
                continue;
            }
            cost += match access(self.program, term, axis) {
                Access::Invariant | Access::Contiguous => 1,
                Access::Strided => lanes,
                Access::Scattered => 3 * lanes,
            };
        }
        cost
    }

    /// The axis along which some terms are best vectorised: the cheapest loads; among equals the first. Axes known to be
    /// shorter than a vector come last.
    pub fn best_axis(&self, roots: &[TermId], axes: &[AxisId]) -> Option<AxisId> {
        let lanes = u64::from(self.target.vector_bytes / 4);
        let short = |axis: AxisId| self.extent(axis).fixed.is_some_and(|n| n < lanes);
        axes.iter().copied().min_by_key(|axis| (short(*axis), self.access_cost(roots, *axis)))
    }

    /// Instructions of all operators below some terms that vary along an axis.
    pub fn total_weight(&self, roots: &[TermId], axis: AxisId) -> u32 {
        let varies = |id: &TermId| self.program.terms.get(*id).axes.contains(axis);
        self.program.terms.reachable(roots).iter().filter(|id| varies(id)).map(|id| weight(self.program, *id)).sum()
    }
}
