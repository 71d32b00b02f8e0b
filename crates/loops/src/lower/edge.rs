//! Loads whose positions are clamped to an array, as shifts and concatenations make them: vectors where all lanes are
//! inside, lane by lane at the ends.

use super::affine;
use super::number::reg_elem;
use super::scope::Lanes;
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Reg, Stmt, Ty};
use onefold_ir::AxisId;
use onefold_passes::term::{Term, TermId};

impl Lowering<'_> {
    /// A vector of elements that are neighbours or at equal distances unless the array ends between them.
    pub fn load_edged(&mut self, id: TermId, term: &Term, axis: AxisId, lanes: Lanes) -> Result<Reg, LowerError> {
        let (_, decl, _) = self.array(term)?;
        let axes = decl.axes.clone();
        let args = affine::inside(self.program, term);
        let count = lanes.tail.unwrap_or_else(|| self.emit.int(i64::from(lanes.lanes)));
        let one = self.emit.int(1);
        let steps = self.emit.sub(count, one);
        let mut all = None;
        for ((arg, clamped), of) in args.iter().zip(&term.args).zip(&axes) {
            if arg == clamped || !self.program.terms.get(*arg).axes.contains(axis) {
                continue;
            }
            let first = self.in_first(*arg)?;
            let slope = self.slope(*arg, axis)?;
            let way = self.emit.mul(slope, steps);
            let last = self.emit.add(first, way);
            let size = self.size(*of)?;
            for end in [first, last] {
                let zero = self.emit.int(0);
                let above = self.emit.cmp(Cmp::Ge, end, zero);
                let below = self.emit.cmp(Cmp::Lt, end, size);
                let inside = self.emit.bin(BinOp::And, above, below);
                all = Some(all.map_or(inside, |all| self.emit.bin(BinOp::And, all, inside)));
            }
        }
        let all = all.ok_or_else(|| LowerError::internal("an edge without a clamped position"))?;
        let value = self.emit.reg(Ty::vector(reg_elem(term.dtype), lanes.lanes), "v");
        let (then, els) = (self.emit.block(), self.emit.block());
        for (block, whole) in [(then, true), (els, false)] {
            let scope = self.scope(Some(block));
            let outside = self.enter(scope);
            let loaded = if whole {
                let inner = Term { args: self.unclamped_args(term, &args, axis), ..term.clone() };
                self.load_vector(id, &inner, axis, lanes)
            } else {
                self.lane_by_lane(id, term, axis, lanes)
            };
            self.emit.copy(value, loaded?);
            self.enter(outside);
        }
        let (then, els) = (self.emit.take(then), self.emit.take(els));
        self.emit.push(Stmt::If { cond: all, then, els });
        Ok(value)
    }

    /// Operands with clamps left out where they vary along an axis.
    fn unclamped_args(&self, term: &Term, args: &[TermId], axis: AxisId) -> Vec<TermId> {
        let varies = |arg: &TermId| self.program.terms.get(*arg).axes.contains(axis);
        term.args.iter().zip(args).map(|(clamped, arg)| if varies(arg) { *arg } else { *clamped }).collect()
    }
}
