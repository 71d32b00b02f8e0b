//! Loops over a vectorised axis: how many lanes, unrolled copies, tails.

use super::cost;
use super::emit::I64;
use super::number::reg_elem;
use super::scope::{Bind, Lanes, ScopeId, Twin};
use super::{LowerError, Lowering};
use crate::{BinOp, Elem, Reg};
use onefold_ir::{AxisId, DType};
use onefold_passes::term::{TermId, TermOp};

/// Number of lanes of a loop and their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Lanes; 1 if the loop cannot be vectorised.
    pub lanes: u16,
    /// Whether elements are 8 bytes wide.
    pub wide: bool,
}

/// Which of the copies of an unrolled body is at hand.
#[derive(Clone, Copy, Debug)]
pub struct Nth {
    /// From 0.
    pub at: usize,
    /// How many there are.
    pub of: usize,
}

impl Nth {
    /// A body that is not unrolled.
    pub const ONLY: Nth = Nth { at: 0, of: 1 };
}

/// A body of a vector loop.
pub type Body<'b, 'p> = dyn FnMut(&mut Lowering<'p>, Nth) -> Result<(), LowerError> + 'b;

impl Width {
    /// A loop of scalars.
    pub const SCALAR: Width = Width { lanes: 1, wide: false };
}

impl<'p> Lowering<'p> {
    /// How an axis can be vectorised in the computation of some terms.
    pub fn width(&self, roots: &[TermId], axis: AxisId) -> Width {
        let (mut narrow, mut wide, mut scalar) = (false, false, false);
        let mut seen = std::collections::HashSet::new();
        let mut stack: Vec<TermId> = roots.to_vec();
        while let Some(id) = stack.pop() {
            let term = self.program.terms.get(id);
            if !term.axes.contains(axis) && !roots.contains(&id) || !seen.insert(id) {
                continue;
            }
            match reg_elem(term.dtype) {
                Elem::F64 => wide = true,
                Elem::I64 => scalar = true,
                // A mask has the width of what was compared; one from memory comes in narrow lanes.
                Elem::Bool => narrow |= matches!(term.op, TermOp::Load { .. }) || self.place_of(id).is_some(),
                _ => narrow = true,
            }
            if self.place_of(id).is_some() || !term.axes.contains(axis) {
                continue;
            }
            if self.by_lane(id, axis) {
                narrow |= term.dtype == DType::Bool;
                continue;
            }
            match &term.op {
                TermOp::Load { .. } => {}
                TermOp::Compare(_) | TermOp::Cast if self.program.terms.get(term.args[0]).dtype == DType::I64 => {}
                _ => stack.extend(&term.args),
            }
        }
        let bytes = self.target.vector_bytes;
        match (narrow, wide, scalar) {
            (_, _, true) | (true, true, _) => Width::SCALAR,
            (false, true, false) => Width { lanes: (bytes / 8).max(1) as u16, wide: true },
            _ => Width { lanes: (bytes / 4).max(1) as u16, wide: false },
        }
    }

    /// Scopes of neighbouring vectors from a position on: copies of one body. The last may have a tail.
    pub fn copies(&mut self, axis: AxisId, base: Reg, width: Width, count: usize, tail: Option<Reg>) -> Vec<ScopeId> {
        let mut scopes: Vec<ScopeId> = vec![];
        for n in 0..count {
            let scope = self.scope(None);
            let distance = n as i64 * i64::from(width.lanes);
            let step = self.emit.int(distance);
            let base = self.emit.add(base, step);
            let tail = if n + 1 == count { tail } else { None };
            let bind = match width.lanes {
                1 => Bind::Scalar(base),
                lanes => Bind::Vector(Lanes { base, lanes, wide: width.wide, tail }),
            };
            self.scopes[scope.0].binds.push((axis, bind));
            self.scopes[scope.0].copy = true;
            self.scopes[scope.0].twin = scopes.first().map(|first| Twin { first: *first, axis, distance });
            scopes.push(scope);
        }
        scopes
    }

    /// A loop over positions `lo..hi` of an axis in vectors, several at a time, then one at a time, the last with a tail.
    pub fn vector_loop(
        &mut self,
        axis: AxisId,
        (lo, hi): (Reg, Reg),
        width: Width,
        unroll: usize,
        body: &mut Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        let lanes = i64::from(width.lanes);
        if let (Some(first), Some(end)) = (self.emit.known(lo), self.emit.known(hi)) {
            return self.vector_loop_known(axis, (first, end.max(first)), width, unroll, body);
        }
        let unroll = if width.lanes == 1 { 1 } else { unroll.next_power_of_two() };
        let group = lanes * unroll as i64;
        let span = self.emit.sub(hi, lo);
        if width.lanes == 1 {
            return self.group_loop(axis, (lo, hi), width, (1, 1), None, body);
        }
        let mask = self.emit.int(-group);
        let whole = self.emit.bin(BinOp::And, span, mask);
        let middle = self.emit.add(lo, whole);
        self.group_loop(axis, (lo, middle), width, (unroll, group), None, body)?;
        self.group_loop(axis, (middle, hi), width, (1, lanes), Some(hi), body)
    }

    fn vector_loop_known(
        &mut self,
        axis: AxisId,
        (lo, hi): (i64, i64),
        width: Width,
        unroll: usize,
        body: &mut Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        let lanes = i64::from(width.lanes);
        let unroll = if width.lanes == 1 { 1 } else { unroll };
        let group = lanes * unroll as i64;
        let middle = lo + (hi - lo) / group * group;
        let single = middle + (hi - middle) / lanes * lanes;
        let (first, middle_reg) = (self.emit.int(lo), self.emit.int(middle));
        if middle > lo {
            self.group_loop(axis, (first, middle_reg), width, (unroll, group), None, body)?;
        }
        let vectors = ((single - middle) / lanes) as usize;
        let rest = hi - single;
        if vectors > 0 {
            self.group_once(axis, middle_reg, width, vectors, None, body)?;
        }
        if rest > 0 {
            let (at, tail) = (self.emit.int(single), self.emit.int(rest));
            self.group_once(axis, at, width, 1, Some(tail), body)?;
        }
        Ok(())
    }

    /// A loop over groups of copies; `end` is given if the last vector may have a tail.
    fn group_loop(
        &mut self,
        axis: AxisId,
        (lo, hi): (Reg, Reg),
        width: Width,
        (count, step): (usize, i64),
        end: Option<Reg>,
        body: &mut Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        if let (Some(first), Some(last)) = (self.emit.known(lo), self.emit.known(hi)) {
            if last - first == step && end.is_none() {
                return self.group_once(axis, lo, width, count, None, body);
            }
        }
        let (block, outside) = self.open();
        let name = self.axis_name(axis).to_owned();
        let var = self.emit.reg(I64, &name);
        let tail = end.map(|end| {
            let left = self.emit.sub(end, var);
            let lanes = self.emit.int(i64::from(width.lanes));
            self.emit.bin(BinOp::Min, left, lanes)
        });
        self.group_once(axis, var, width, count, tail, body)?;
        self.enter(outside);
        self.emit.push_for(var, lo, hi, step as u64, false, block);
        Ok(())
    }

    fn group_once(
        &mut self,
        axis: AxisId,
        base: Reg,
        width: Width,
        count: usize,
        tail: Option<Reg>,
        body: &mut Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        let inner = self.scope(None);
        let outside = self.enter(inner);
        for (at, scope) in self.copies(axis, base, width, count, tail).into_iter().enumerate() {
            self.enter(scope);
            body(self, Nth { at, of: count })?;
            self.enter(inner);
        }
        self.enter(outside);
        Ok(())
    }

    /// A loop over positions `lo..hi` of an axis, several at a time, then one at a time.
    pub fn unrolled_range(
        &mut self,
        axis: AxisId,
        (lo, hi): (Reg, Reg),
        unroll: usize,
        body: &mut Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        let width = Width::SCALAR;
        let group = unroll as i64;
        if let (Some(first), Some(end)) = (self.emit.known(lo), self.emit.known(hi)) {
            let middle = first + (end - first).max(0) / group * group;
            let middle = self.emit.int(middle);
            self.group_loop(axis, (lo, middle), width, (unroll, group), None, body)?;
            let rest = (end - first).max(0) % group;
            return if rest > 0 { self.group_once(axis, middle, width, rest as usize, None, body) } else { Ok(()) };
        }
        let (span, mask) = (self.emit.sub(hi, lo), self.emit.int(-group));
        let whole = self.emit.bin(BinOp::And, span, mask);
        let middle = self.emit.add(lo, whole);
        self.group_loop(axis, (lo, middle), width, (unroll, group), None, body)?;
        self.group_loop(axis, (middle, hi), width, (1, 1), None, body)
    }

    /// A scalar loop over a whole axis.
    pub fn scalar_loop(
        &mut self,
        axis: AxisId,
        parallel: bool,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let range = self.range(axis)?;
        self.scalar_range(axis, range, parallel, body)
    }

    /// A scalar loop over positions `lo..hi` of an axis.
    pub fn scalar_range(
        &mut self,
        axis: AxisId,
        (lo, hi): (Reg, Reg),
        parallel: bool,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let (block, outside) = self.open();
        let name = self.axis_name(axis).to_owned();
        let var = self.emit.reg(I64, &name);
        self.here().binds.push((axis, Bind::Scalar(var)));
        body(self)?;
        self.enter(outside);
        self.emit.push_for(var, lo, hi, 1, parallel, block);
        Ok(())
    }

    /// Scalar loops over whole axes, outermost first.
    pub fn scalar_loops(
        &mut self,
        axes: &[AxisId],
        parallel: bool,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        match axes.split_first() {
            None => body(self),
            Some((first, rest)) => {
                self.scalar_loop(*first, parallel, &mut |lower| lower.scalar_loops(rest, parallel, body))
            }
        }
    }

    /// Whether a term is costly enough to be kept rather than computed twice.
    pub fn is_expensive(&self, id: TermId) -> bool {
        cost::weight(self.program, id) >= cost::EXPENSIVE
    }
}
