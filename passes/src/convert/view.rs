//! Views and gathers: index arithmetic that is handed down to the leaves.

use super::{same_extent, Converter, Substitution};
use crate::error::PassError;
use crate::term::{TermId, TermOp};
use onefold_ir::{AxisId, BinaryOp, CmpOp, DType, Extent, Literal, NodeId, Op};

impl Converter<'_> {
    /// A view of its operands, under the views around it.
    pub(super) fn view(
        &mut self,
        op: &Op,
        args: &[NodeId],
        dtype: DType,
        subst: &Substitution,
    ) -> Result<TermId, PassError> {
        match op {
            Op::Gather(axis) => {
                let ids = self.node(args[1], subst)?;
                let ids = self.cast(ids, DType::I64);
                let at = self.picked(ids, *axis);
                self.with(args[0], subst, &[(*axis, at)])
            }
            Op::Rename { from, to } => {
                let at = self.position(*to, subst);
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Split { from, to } => {
                let mut at = self.position(to[0], subst);
                for axis in &to[1..] {
                    let size = self.size(*axis, DType::I64);
                    let inner = self.position(*axis, subst);
                    at = self.terms.binary(BinaryOp::Mul, at, size);
                    at = self.terms.binary(BinaryOp::Add, at, inner);
                }
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Merge { from, to } => {
                let mut rest = self.position(*to, subst);
                let mut parts = vec![];
                for axis in from[1..].iter().rev() {
                    let size = self.size(*axis, DType::I64);
                    parts.push((*axis, self.terms.binary(BinaryOp::Rem, rest, size)));
                    rest = self.terms.binary(BinaryOp::Div, rest, size);
                }
                parts.push((from[0], rest));
                self.with(args[0], subst, &parts)
            }
            Op::Slice { from, to, start, step } => {
                let mut at = self.position(*to, subst);
                if *step != 1 {
                    let step = self.terms.int(*step);
                    at = self.terms.binary(BinaryOp::Mul, at, step);
                }
                if *start != 0 {
                    let start = self.terms.int(*start);
                    at = self.terms.binary(BinaryOp::Add, at, start);
                }
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Shift { axis, by } => {
                let at = self.position(*axis, subst);
                let by = self.terms.int(*by);
                let at = self.terms.binary(BinaryOp::Sub, at, by);
                let (inside, at) = self.clamped(at, *axis);
                let x = self.with(args[0], subst, &[(*axis, at)])?;
                let fill = self.node(args[1], subst)?;
                Ok(self.terms.make(TermOp::Select, dtype, vec![inside, x, fill]))
            }
            Op::Concat { from, to } => {
                let mut at = self.position(*to, subst);
                let mut pieces = vec![];
                for (axis, arg) in from.iter().zip(args) {
                    let (inside, clamped) = self.clamped(at, *axis);
                    pieces.push((inside, self.with(*arg, subst, &[(*axis, clamped)])?));
                    let size = self.size(*axis, DType::I64);
                    at = self.terms.binary(BinaryOp::Sub, at, size);
                }
                let (_, mut joined) = pieces.pop().ok_or_else(|| PassError::internal("concat of nothing"))?;
                for (inside, piece) in pieces.into_iter().rev() {
                    joined = self.terms.make(TermOp::Select, dtype, vec![inside, piece, joined]);
                }
                Ok(joined)
            }
            other => Err(PassError::internal(format!("no term form of {other:?}"))),
        }
    }

    /// An operand under a view: some of its axes are at given positions, the others as outside.
    pub(super) fn with(
        &mut self,
        arg: NodeId,
        subst: &Substitution,
        at: &[(AxisId, TermId)],
    ) -> Result<TermId, PassError> {
        let mut inner = subst.clone();
        for (axis, term) in at {
            let identity = self.terms.get(*term).op == TermOp::Index(*axis);
            if identity {
                inner.remove(axis);
            } else {
                inner.insert(*axis, *term);
            }
        }
        self.node(arg, &inner)
    }

    /// The position that an id means, counted from the end if it is negative. Loads from there are checked unless it is known to
    /// be inside.
    fn picked(&mut self, ids: TermId, axis: AxisId) -> TermId {
        let size = self.size(axis, DType::I64);
        let fixed = |c: &Self| match c.axes[axis.0 as usize].extent {
            Extent::Fixed(n) => i64::try_from(n).ok(),
            _ => None,
        };
        let at = match self.terms.get(ids).op {
            TermOp::Index(_) => ids,
            TermOp::Literal(Literal::Int(n)) if n >= 0 => ids,
            TermOp::Literal(Literal::Int(n)) => match fixed(self) {
                Some(size) => self.terms.int(size + n),
                None => self.terms.binary(BinaryOp::Add, size, ids),
            },
            _ => {
                let zero = self.terms.int(0);
                let is_negative = self.terms.make(TermOp::Compare(CmpOp::Lt), DType::Bool, vec![ids, zero]);
                let from_end = self.terms.binary(BinaryOp::Add, ids, size);
                self.terms.make(TermOp::Select, DType::I64, vec![is_negative, from_end, ids])
            }
        };
        let is_inside = match self.terms.get(at).op {
            TermOp::Literal(Literal::Int(n)) => fixed(self).is_some_and(|size| (0..size).contains(&n)),
            TermOp::Index(along) => same_extent(&self.axes, along, axis),
            _ => false,
        };
        if !is_inside {
            self.picked.insert(at);
        }
        at
    }

    /// Whether one of some positions is picked and may lie outside of its axis.
    pub(super) fn may_be_outside(&self, args: &[TermId]) -> bool {
        let is_literal = |id: &TermId| matches!(self.terms.get(*id).op, TermOp::Literal(_));
        let picks = |id: &TermId| self.picked.contains(id);
        // Literals occur in positions that have nothing to do with the picked one.
        args.iter().any(|a| picks(a) || self.terms.reachable(&[*a]).iter().any(|t| picks(t) && !is_literal(t)))
    }

    /// Whether a position is inside an axis, and the nearest position that is.
    fn clamped(&mut self, at: TermId, axis: AxisId) -> (TermId, TermId) {
        let zero = self.terms.int(0);
        let one = self.terms.int(1);
        let size = self.size(axis, DType::I64);
        let last = self.terms.binary(BinaryOp::Sub, size, one);
        let from = self.terms.make(TermOp::Compare(CmpOp::Ge), DType::Bool, vec![at, zero]);
        let to = self.terms.make(TermOp::Compare(CmpOp::Lt), DType::Bool, vec![at, size]);
        let inside = self.terms.make(TermOp::Binary(BinaryOp::And), DType::Bool, vec![from, to]);
        let low = self.terms.binary(BinaryOp::Max, at, zero);
        let clamped = self.terms.binary(BinaryOp::Min, low, last);
        (inside, clamped)
    }
}
