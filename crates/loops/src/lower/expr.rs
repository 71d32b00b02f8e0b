//! Terms become registers: scalars, or vectors where they vary along the vectorised axis.

use super::affine::{self, Slope};
use super::number::reg_elem;
use super::scope::{Lanes, Mode};
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Elem, Expr, Number, Reg, Ty};
use onefold_ir::{AxisId, BinaryOp, CmpOp, DType, Literal};
use onefold_passes::term::{Term, TermId, TermOp};
use std::collections::BTreeSet;

/// Terms of more levels are computed from the bottom up.
const DEEP: u32 = 100;

impl Lowering<'_> {
    /// The value of a term here: a vector if it varies along the vectorised axis, else a scalar.
    pub fn value(&mut self, id: TermId) -> Result<Reg, LowerError> {
        let program = self.program;
        let term = program.terms.get(id);
        if let TermOp::Literal(value) = term.op {
            return Ok(self.literal(value, term.dtype, 1));
        }
        let vector = self.vector_among(term.axes);
        let mode = if self.first && vector.is_some() { Mode::First } else { Mode::Value };
        let level = self.level(id);
        let key = (id, mode, self.copy_above(level, term.axes));
        if let Some(&known) = self.scopes[level.0].memo.get(&key) {
            return Ok(known);
        }
        if self.heights[id.0 as usize] > DEEP {
            self.prepare(term)?;
        }
        let place = self.place_of(id);
        let outside = self.enter(level);
        let reg = match (place, vector) {
            (Some(place), _) => self.read_place(place, term.dtype),
            (None, Some((axis, _, lanes))) if !self.first => self.vector_term(id, term, axis, lanes),
            _ => self.scalar_term(id, term),
        };
        self.enter(outside);
        let reg = reg?;
        self.scopes[level.0].memo.insert(key, reg);
        Ok(reg)
    }

    /// Compute what a deep term consists of from the bottom up, so that the recursion above never goes deep.
    fn prepare(&mut self, term: &Term) -> Result<(), LowerError> {
        let program = self.program;
        let mut parts = BTreeSet::new();
        let mut stack = term.args.clone();
        while let Some(id) = stack.pop() {
            let part = program.terms.get(id);
            let elementwise = matches!(
                part.op,
                TermOp::Unary(_)
                    | TermOp::Wide(_)
                    | TermOp::Binary(_)
                    | TermOp::Compare(_)
                    | TermOp::Select
                    | TermOp::Cast
            );
            if !elementwise || parts.contains(&id) || self.is_known(id) || self.place_of(id).is_some() {
                continue;
            }
            let vector = self.vector_among(part.axes).filter(|_| !self.first);
            if vector.is_some_and(|(axis, ..)| part.dtype == DType::I64 || self.by_lane(id, axis)) {
                continue;
            }
            parts.insert(id);
            stack.extend(&part.args);
        }
        for id in parts {
            self.value(id)?;
        }
        Ok(())
    }

    fn is_known(&self, id: TermId) -> bool {
        let axes = self.program.terms.get(id).axes;
        let mode = if self.first && self.vector_among(axes).is_some() { Mode::First } else { Mode::Value };
        let level = self.level(id);
        self.scopes[level.0].memo.contains_key(&(id, mode, self.copy_above(level, axes)))
    }

    /// The value of a term in so many lanes.
    pub fn lanes(&mut self, id: TermId, lanes: u16) -> Result<Reg, LowerError> {
        let term = self.program.terms.get(id);
        if let TermOp::Literal(value) = term.op {
            return Ok(self.literal(value, term.dtype, lanes));
        }
        let reg = self.value(id)?;
        if self.emit.ty(reg).lanes == lanes {
            return Ok(reg);
        }
        let level = self.level(id);
        let key = (id, Mode::Splat, self.copy_above(level, term.axes));
        if let Some(&known) = self.scopes[level.0].memo.get(&key) {
            return Ok(known);
        }
        let outside = self.enter(level);
        let wide = self.emit.splat(lanes, reg);
        self.enter(outside);
        self.scopes[level.0].memo.insert(key, wide);
        Ok(wide)
    }

    fn literal(&mut self, value: Literal, dtype: DType, lanes: u16) -> Reg {
        let ty = Ty { elem: reg_elem(dtype), lanes };
        let number = match (value, dtype.is_float()) {
            (Literal::Int(n), false) => Number::Int(n),
            (v, true) => Number::Float(v.as_f64()),
            (v, false) => Number::Int(v.as_f64() as i64),
        };
        self.emit.constant(ty, number)
    }

    fn scalar_term(&mut self, id: TermId, term: &Term) -> Result<Reg, LowerError> {
        match &term.op {
            TermOp::Index(axis) => {
                let position = self.position(*axis)?;
                Ok(self.emit.cast(DType::I64, term.dtype, position))
            }
            TermOp::Size(axis) => {
                let size = self.size(*axis)?;
                Ok(self.emit.cast(DType::I64, term.dtype, size))
            }
            TermOp::Seen(axis) => self.seen(*axis, term.dtype),
            TermOp::Load { .. } => self.load_scalar(id, term),
            TermOp::State { state, part } => self.read_state(*state, *part, term.dtype),
            TermOp::Anchor(a) => Ok(self.anchor_regs(*a)?.new),
            TermOp::AnchorOld(a) => Ok(self.anchor_regs(*a)?.old),
            TermOp::Reduce(op, axes) => self.reduce_here(*op, *axes, term, 1),
            _ => self.apply(id, term, 1),
        }
    }

    fn vector_term(&mut self, id: TermId, term: &Term, axis: AxisId, lanes: Lanes) -> Result<Reg, LowerError> {
        if self.by_lane(id, axis) {
            return self.lane_by_lane(id, term, axis, lanes);
        }
        match &term.op {
            TermOp::Index(_) => Ok(self.positions(id, term.dtype, lanes, 1)),
            TermOp::Load { .. } => self.load_vector(id, term, axis, lanes),
            TermOp::State { state, part } => self.read_state(*state, *part, term.dtype),
            TermOp::Reduce(op, axes) => self.reduce_here(*op, *axes, term, lanes.lanes),
            TermOp::Compare(op) if self.program.terms.get(term.args[0]).dtype == DType::I64 => {
                self.compare_positions(*op, term, axis, lanes)
            }
            TermOp::Cast if self.program.terms.get(term.args[0]).dtype == DType::I64 => {
                let Slope::Const(slope) = affine::slope(self.program, term.args[0], axis) else {
                    return Err(LowerError::internal("an irregular index in lanes"));
                };
                Ok(self.positions(term.args[0], term.dtype, lanes, slope))
            }
            _ => self.apply(id, term, lanes.lanes),
        }
    }

    /// Whether a term that varies along the vectorised axis is computed lane by lane.
    pub fn by_lane(&self, id: TermId, axis: AxisId) -> bool {
        let program = self.program;
        let term = program.terms.get(id);
        let arg = |i: usize| program.terms.get(term.args[i]);
        match &term.op {
            TermOp::Load { .. } => affine::access(program, term, axis) == affine::Access::Scattered,
            TermOp::Compare(_) if arg(0).dtype == DType::I64 => {
                let (a, b) = (affine::slope(program, term.args[0], axis), affine::slope(program, term.args[1], axis));
                !matches!((a, b), (Slope::Const(a), Slope::Const(b)) if (a - b).abs() < 1 << 20)
            }
            // i32 lanes hold positions; what is scaled might not fit.
            TermOp::Cast if arg(0).dtype == DType::I64 => {
                term.dtype == DType::Bool || affine::slope(program, term.args[0], axis) != Slope::Const(1)
            }
            TermOp::Binary(BinaryOp::Div | BinaryOp::Rem) => term.dtype.is_int(),
            TermOp::Binary(BinaryOp::Shl | BinaryOp::Shr) => affine::literal(program, term.args[1]).is_none(),
            TermOp::Binary(BinaryOp::Pow) => true,
            TermOp::Reduce(..) => arg(0).dtype == DType::I64,
            _ => false,
        }
    }

    /// 0, 1, 2, ... in lanes of the width at hand: i32, or f64 (which holds 53 bits) where lanes are wide.
    pub fn iota(&mut self, lanes: Lanes) -> Reg {
        let elem = if lanes.wide { Elem::F64 } else { Elem::I32 };
        let ty = Ty::vector(elem, lanes.lanes);
        self.emit.let_(ty, "iota", Expr::Iota(ty))
    }

    /// An `i64` scalar in the lanes of [`Lowering::iota`].
    pub fn wide_int(&mut self, lanes: Lanes, x: Reg) -> Reg {
        let x = self.emit.convert(if lanes.wide { Elem::F64 } else { Elem::I32 }, x);
        self.emit.splat(lanes.lanes, x)
    }

    /// The mask of lanes that are positions of the vectorised axis; `None` if all are.
    pub fn live(&mut self, lanes: Lanes) -> Option<Reg> {
        let tail = lanes.tail?;
        let iota = self.iota(lanes);
        let count = self.wide_int(lanes, tail);
        Some(self.emit.cmp(Cmp::Lt, iota, count))
    }

    /// An index term that grows by `slope` a lane, in another dtype. Exact while positions fit in 31 bits (53 in wide lanes).
    fn positions(&mut self, id: TermId, dtype: DType, lanes: Lanes, slope: i64) -> Reg {
        debug_assert_eq!(slope, 1);
        let first = match self.program.terms.get(id).op {
            TermOp::Index(_) => lanes.base,
            _ => self.in_first(id).unwrap_or(lanes.base),
        };
        let base = self.wide_int(lanes, first);
        let iota = self.iota(lanes);
        let sum = self.emit.add(base, iota);
        if lanes.wide {
            return self.emit.convert(reg_elem(dtype), sum);
        }
        self.emit.cast(DType::I32, dtype, sum)
    }

    /// A scalar in the first lane.
    pub fn in_first(&mut self, id: TermId) -> Result<Reg, LowerError> {
        let before = std::mem::replace(&mut self.first, true);
        let reg = self.value(id);
        self.first = before;
        reg
    }

    /// `a op b` of indices that change by constants from lane to lane: the lane number against a scalar difference.
    fn compare_positions(&mut self, op: CmpOp, term: &Term, axis: AxisId, lanes: Lanes) -> Result<Reg, LowerError> {
        let slope = |i: usize| match affine::slope(self.program, term.args[i], axis) {
            Slope::Const(n) => n,
            _ => 0,
        };
        let step = slope(0) - slope(1);
        let a = self.in_first(term.args[0])?;
        let b = self.in_first(term.args[1])?;
        // a + step * lane op b, that is step * lane op b - a, which saturates far outside of what lanes reach.
        let difference = self.emit.sub(b, a);
        let most = self.emit.int(1 << 30);
        let least = self.emit.int(-(1 << 30));
        let difference = self.emit.bin(BinOp::Min, difference, most);
        let difference = self.emit.bin(BinOp::Max, difference, least);
        let right = self.wide_int(lanes, difference);
        let mut left = self.iota(lanes);
        if step != 1 {
            let ty = self.emit.ty(left);
            let factor = self.number(ty, step as f64);
            left = self.emit.mul(left, factor);
        }
        Ok(self.emit.cmp(compare_op(op), left, right))
    }

    /// The number of elements seen along an axis, such that the product over the streamed axes is that of all elements.
    fn seen(&mut self, axis: AxisId, dtype: DType) -> Result<Reg, LowerError> {
        let seen = self.path().find_map(|(_, s)| s.seen.clone());
        let seen = seen.ok_or_else(|| LowerError::internal("elements are counted outside a pass"))?;
        if seen.axes.first() != Some(&axis) {
            let size = self.size(axis)?;
            return Ok(self.emit.cast(DType::I64, dtype, size));
        }
        let mut inner = self.emit.int(1);
        for axis in &seen.axes[1..] {
            let size = self.size(*axis)?;
            inner = self.emit.mul(inner, size);
        }
        if self.emit.known(inner) == Some(1) {
            return Ok(self.emit.cast(DType::I64, dtype, seen.elements));
        }
        // In fractions, where the type has them.
        let (elements, inner) = (self.emit.convert(Elem::F64, seen.elements), self.emit.convert(Elem::F64, inner));
        let one = self.emit.float(Ty::scalar(Elem::F64), 1.0);
        let inner = self.emit.bin(BinOp::Max, inner, one);
        let quotient = self.emit.bin(BinOp::Div, elements, inner);
        Ok(self.emit.cast(DType::F64, dtype, quotient))
    }
}

/// A comparison in loop IR.
pub fn compare_op(op: CmpOp) -> Cmp {
    match op {
        CmpOp::Lt => Cmp::Lt,
        CmpOp::Le => Cmp::Le,
        CmpOp::Gt => Cmp::Gt,
        CmpOp::Ge => Cmp::Ge,
        CmpOp::Eq => Cmp::Eq,
        CmpOp::Ne => Cmp::Ne,
    }
}
