//! Accumulators, and reductions inside terms.

use super::number::{int_range, reg_elem};
use super::scope::Bind;
use super::vector::{Nth, Width};
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Elem, Expr, Fold, Number, Reg, Ty};
use onefold_ir::{AxisId, AxisSet, BinaryOp, DType, ReduceOp};
use onefold_passes::term::{Term, TermId, TermOp};
use std::cell::{Cell, RefCell};

/// Accumulators of one reduction: one register for each copy of an unrolled body, or one for all where registers are dear.
#[derive(Clone, Debug)]
pub struct Accum {
    op: ReduceOp,
    dtype: DType,
    ty: Ty,
    sums: Vec<Reg>,
    /// Of float extremes: lanes in which a NaN was seen by any copy.
    nan: Option<Reg>,
    /// A value whose NaN test waits for the next copy's.
    odd: Cell<Option<Reg>>,
    /// Values of earlier copies that wait for the last one to be taken in together.
    group: RefCell<Vec<Reg>>,
}

/// What a reduction gives over nothing.
pub fn identity(op: ReduceOp, dtype: DType) -> Number {
    let (lo, hi) = int_range(dtype);
    match (op, dtype.is_float()) {
        (ReduceOp::Sum, true) => Number::Float(0.0),
        (ReduceOp::Prod, true) => Number::Float(1.0),
        (ReduceOp::Max, true) => Number::Float(f64::NEG_INFINITY),
        (ReduceOp::Min, true) => Number::Float(f64::INFINITY),
        (ReduceOp::Sum, false) => Number::Int(0),
        (ReduceOp::Prod, false) => Number::Int(1),
        (ReduceOp::Max, false) => Number::Int(lo),
        (ReduceOp::Min, false) => Number::Int(hi),
    }
}

impl Accum {
    /// Accumulators that have seen nothing, in so many lanes.
    pub fn new(lower: &mut Lowering<'_>, op: ReduceOp, dtype: DType, lanes: u16, copies: usize) -> Accum {
        let ty = Ty { elem: reg_elem(dtype), lanes };
        let mut accum =
            Accum { op, dtype, ty, sums: vec![], nan: None, odd: Cell::new(None), group: RefCell::default() };
        let patches = ty.elem.is_float() && matches!(op, ReduceOp::Max | ReduceOp::Min);
        for _ in 0..copies.max(1) {
            accum.sums.push(lower.emit.let_(ty, "acc", Expr::Const(ty, identity(op, dtype))));
        }
        if patches {
            let mask = ty.with(Elem::Bool);
            accum.nan = Some(lower.emit.let_(mask, "nan", Expr::Const(mask, Number::Int(0))));
        }
        accum
    }

    /// Take in the value of a term at the current position.
    pub fn step(&self, lower: &mut Lowering<'_>, copy: Nth, body: TermId, mask: Option<Reg>) -> Result<(), LowerError> {
        let term = lower.program.terms.get(body);
        let acc = self.sums[copy.at % self.sums.len()];
        let is_product = term.op == TermOp::Binary(BinaryOp::Mul) && lower.place_of(body).is_none();
        if self.op == ReduceOp::Sum
            && self.ty.elem.is_float()
            && is_product
            && mask.is_none()
            && term.dtype == self.dtype
        {
            let a = lower.lanes(term.args[0], self.ty.lanes)?;
            let b = lower.lanes(term.args[1], self.ty.lanes)?;
            let sum = lower.multiply_add(a, b, acc);
            lower.emit.copy(acc, sum);
            return Ok(());
        }
        let value = lower.lanes(body, self.ty.lanes)?;
        let value = lower.emit.cast(term.dtype, self.dtype, value);
        self.take(lower, copy, value, mask);
        Ok(())
    }

    /// Take in a value; dead lanes count as nothing.
    pub fn take(&self, lower: &mut Lowering<'_>, copy: Nth, value: Reg, mask: Option<Reg>) {
        let acc = self.sums[copy.at % self.sums.len()];
        let nothing = lower.emit.constant(self.ty, identity(self.op, self.dtype));
        let value = lower.masked(mask, value, nothing);
        if let Some(nan) = self.nan {
            // One comparison tells whether either of two values is NaN: copies go in pairs.
            let other = match self.odd.take() {
                None if copy.of.is_multiple_of(2) && copy.at.is_multiple_of(2) => {
                    self.odd.set(Some(value));
                    None
                }
                None => Some(value),
                other => other,
            };
            if let Some(other) = other {
                let unordered = lower.emit.cmp(Cmp::Uno, other, value);
                lower.emit.assign(nan, Expr::Binary(BinOp::Or, nan, unordered));
            }
        }
        let op = self.instruction();
        let mut group = self.group.borrow_mut();
        group.push(value);
        // With a register for each copy nothing waits; with one, the copies are combined first, so that it is live but once.
        if self.sums.len() == 1 && copy.at + 1 < copy.of {
            return;
        }
        let value = tree(lower, op, &group);
        group.clear();
        lower.emit.assign(acc, Expr::Binary(op, value, acc));
    }

    /// Take in several vectors of a maximum; returns their own maximum (NaN left out) and the lanes in which one is NaN.
    pub fn take_group(&self, lower: &mut Lowering<'_>, values: &[Reg], mask: Option<Reg>) -> (Reg, Option<Reg>) {
        let nothing = lower.emit.constant(self.ty, identity(self.op, self.dtype));
        let values: Vec<Reg> = values.iter().map(|v| lower.masked(mask, *v, nothing)).collect();
        let most = tree(lower, self.instruction(), &values);
        let acc = self.sums[0];
        lower.emit.assign(acc, Expr::Binary(self.instruction(), most, acc));
        let Some(nan) = self.nan else { return (most, None) };
        let mut pairs = vec![];
        for pair in values.chunks(2) {
            pairs.push(lower.emit.cmp(Cmp::Uno, pair[0], pair[pair.len() - 1]));
        }
        let unordered = tree(lower, BinOp::Or, &pairs);
        lower.emit.assign(nan, Expr::Binary(BinOp::Or, nan, unordered));
        (most, Some(unordered))
    }

    fn instruction(&self) -> BinOp {
        match (self.op, self.dtype) {
            (ReduceOp::Sum, _) => BinOp::Add,
            (ReduceOp::Prod, _) => BinOp::Mul,
            (ReduceOp::Max, DType::Bool) => BinOp::Or,
            (ReduceOp::Min, DType::Bool) => BinOp::And,
            (ReduceOp::Max, _) => BinOp::Max,
            (ReduceOp::Min, _) => BinOp::Min,
        }
    }

    /// The result in each lane.
    pub fn finish_lanes(&self, lower: &mut Lowering<'_>) -> Reg {
        let sum = tree(lower, self.instruction(), &self.sums);
        match self.nan {
            Some(nan) => self.patch(lower, nan, sum),
            None => lower.emit.wrap(self.dtype, sum),
        }
    }

    /// The result of all lanes together.
    pub fn finish(&self, lower: &mut Lowering<'_>) -> Reg {
        let sum = tree(lower, self.instruction(), &self.sums);
        let fold = match self.instruction() {
            BinOp::Mul => Fold::Mul,
            BinOp::Or => Fold::Any,
            BinOp::And => Fold::All,
            BinOp::Max => Fold::Max,
            BinOp::Min => Fold::Min,
            _ => Fold::Add,
        };
        let sum = lower.emit.fold_lanes(fold, sum);
        let Some(nan) = self.nan else { return lower.emit.wrap(self.dtype, sum) };
        let nan = lower.emit.fold_lanes(Fold::Any, nan);
        self.patch(lower, nan, sum)
    }

    fn patch(&self, lower: &mut Lowering<'_>, nan: Reg, value: Reg) -> Reg {
        let ty = lower.emit.ty(value);
        let not_a_number = lower.emit.float(ty, f64::NAN);
        lower.emit.select(nan, not_a_number, value)
    }
}

/// Combine registers in pairs.
fn tree(lower: &mut Lowering<'_>, op: BinOp, regs: &[Reg]) -> Reg {
    if let [one] = regs {
        return *one;
    }
    let (a, b) = regs.split_at(regs.len() / 2);
    let (a, b) = (tree(lower, op, a), tree(lower, op, b));
    lower.emit.bin(op, a, b)
}

/// The accumulating form of two partial results of one dtype.
pub fn combine(lower: &mut Lowering<'_>, op: ReduceOp, a: Reg, b: Reg) -> Reg {
    match op {
        ReduceOp::Sum => lower.emit.add(a, b),
        ReduceOp::Prod => lower.emit.mul(a, b),
        ReduceOp::Max => lower.emit.extreme(true, a, b),
        ReduceOp::Min => lower.emit.extreme(false, a, b),
    }
}

impl Lowering<'_> {
    /// A reduction inside a term, in so many lanes: loops on the spot.
    pub fn reduce_here(&mut self, op: ReduceOp, axes: AxisSet, term: &Term, lanes: u16) -> Result<Reg, LowerError> {
        let body = term.args[0];
        let before = std::mem::replace(&mut self.first, false);
        let scope = self.scope(None);
        self.scopes[scope.0].hides = axes;
        let outside = self.enter(scope);
        let all: Vec<AxisId> = axes.iter().collect();
        // Where lanes are taken already the reduced axes are scalar loops.
        let inner = if lanes > 1 { None } else { self.best_axis(&[body], &all) };
        let width = inner.map_or(Width::SCALAR, |axis| self.reduce_width(body, axis));
        let others: Vec<AxisId> = all.iter().copied().filter(|a| Some(*a) != inner).collect();
        let unroll = self.schedule.accumulators as usize;
        let lanes = if inner.is_some() { width.lanes } else { lanes };
        let accum = Accum::new(self, op, term.dtype, lanes, if inner.is_some() { unroll } else { 1 });
        let result = self.scalar_loops(&others, false, &mut |lower| match inner {
            None => accum.step(lower, Nth::ONLY, body, None),
            Some(axis) => {
                let (lo, hi) = (lower.emit.int(0), lower.size(axis)?);
                lower.vector_loop(axis, (lo, hi), width, unroll, &mut |lower, copy| {
                    let mask = lower.live_here(axis);
                    accum.step(lower, copy, body, mask)
                })
            }
        });
        let value = if inner.is_some() { accum.finish(self) } else { accum.finish_lanes(self) };
        self.enter(outside);
        self.first = before;
        result.map(|()| value)
    }

    /// How a reduction's body is vectorised along an axis that will be bound.
    pub fn reduce_width(&self, body: TermId, axis: AxisId) -> Width {
        self.width(&[body], axis)
    }

    /// The mask of live lanes of an axis that may be vectorised.
    pub fn live_here(&mut self, axis: AxisId) -> Option<Reg> {
        match self.binding(axis) {
            Some((_, Bind::Vector(lanes))) => self.live(lanes),
            _ => None,
        }
    }
}
