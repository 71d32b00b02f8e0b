//! Blocked reductions: several results side by side, so that what they share is loaded once.
//!
//! Both contractions of a fold have this shape: scores of a few keys at a time (lanes along the reduced axis), and weighted
//! sums of a few vectors of a row at a time (lanes along the row). Results that stand side by side are copies of one body;
//! the loops inside are shared by all copies, and so is what depends on those loops alone.

use super::reduce::Accum;
use super::vector::{Nth, Width};
use super::{LowerError, Lowering};
use crate::Reg;
use onefold_ir::{AxisId, AxisSet, DType, ReduceOp};
use onefold_passes::term::TermId;

/// A reduction to be blocked.
#[derive(Clone, Debug)]
pub struct Blocked {
    pub op: ReduceOp,
    pub dtype: DType,
    pub body: TermId,
    /// Axes reduced, outermost first, each over positions `lo..hi`.
    pub reduced: Vec<(AxisId, Reg, Reg)>,
    /// How the last of the reduced axes is vectorised.
    pub inner: Width,
    /// The axis along which results stand side by side.
    pub across: AxisId,
    /// How that axis is vectorised; not both.
    pub outer: Width,
    /// Axes of the reduction that hide loops of the same name.
    pub hides: AxisSet,
}

/// What is done with a result; the scope is that of its copy.
pub type Sink<'b, 'p> = dyn FnMut(&mut Lowering<'p>, Reg) -> Result<(), LowerError> + 'b;

impl<'p> Lowering<'p> {
    /// Results at positions `lo..hi` across, `count` vectors (or scalars) at a time.
    pub fn blocked(
        &mut self,
        work: &Blocked,
        (lo, hi): (Reg, Reg),
        count: usize,
        sink: &mut Sink<'_, 'p>,
    ) -> Result<(), LowerError> {
        let lanes = i64::from(work.outer.lanes);
        let count = count.next_power_of_two();
        let group = lanes * count as i64;
        if let (Some(first), Some(end)) = (self.emit.known(lo), self.emit.known(hi)) {
            let middle = first + (end - first) / group * group;
            if middle > first {
                let middle = self.emit.int(middle);
                self.block_loop(work, (lo, middle), (count, group), None, sink)?;
            }
            let rest = end - middle;
            if rest > 0 {
                let count = ((rest + lanes - 1) / lanes) as usize;
                let tail = (rest % lanes != 0).then(|| self.emit.int(rest % lanes));
                let at = self.emit.int(middle);
                self.block_once(work, at, count, tail, sink)?;
            }
            return Ok(());
        }
        let span = self.emit.sub(hi, lo);
        let mask = self.emit.int(-group);
        let whole = self.emit.bin(crate::BinOp::And, span, mask);
        let middle = self.emit.add(lo, whole);
        self.block_loop(work, (lo, middle), (count, group), None, sink)?;
        let end = (lanes > 1).then_some(hi);
        self.block_loop(work, (middle, hi), (1, lanes), end, sink)
    }

    fn block_loop(
        &mut self,
        work: &Blocked,
        (lo, hi): (Reg, Reg),
        (count, step): (usize, i64),
        end: Option<Reg>,
        sink: &mut Sink<'_, 'p>,
    ) -> Result<(), LowerError> {
        if let (Some(first), Some(last)) = (self.emit.known(lo), self.emit.known(hi)) {
            if last - first == step && end.is_none() {
                return self.block_once(work, lo, count, None, sink);
            }
        }
        let (block, outside) = self.open();
        let name = self.axis_name(work.across).to_owned();
        let var = self.emit.reg(super::emit::I64, &name);
        let tail = end.map(|end| {
            let left = self.emit.sub(end, var);
            let lanes = self.emit.int(i64::from(work.outer.lanes));
            self.emit.bin(crate::BinOp::Min, left, lanes)
        });
        self.block_once(work, var, count, tail, sink)?;
        self.enter(outside);
        self.emit.push_for(var, lo, hi, step as u64, false, block);
        Ok(())
    }

    fn block_once(
        &mut self,
        work: &Blocked,
        base: Reg,
        count: usize,
        tail: Option<Reg>,
        sink: &mut Sink<'_, 'p>,
    ) -> Result<(), LowerError> {
        let group = self.scope(None);
        let outside = self.enter(group);
        self.here().hides = work.hides;
        let copies = self.copies(work.across, base, work.outer, count, tail);
        // With few results the inner loop is unrolled instead, for as many sums in flight.
        let unroll = if work.inner.lanes > 1 { (4 / count).clamp(1, 2) } else { 1 };
        let lanes = work.inner.lanes.max(work.outer.lanes);
        let accums: Vec<Accum> = copies.iter().map(|_| Accum::new(self, work.op, work.dtype, lanes, unroll)).collect();
        self.reduced_loops(work, &work.reduced, unroll, &mut |lower, at| {
            let mask = work.reduced.last().and_then(|(axis, ..)| lower.live_here(*axis));
            for (copy, accum) in copies.iter().zip(&accums) {
                lower.with_copy(group, *copy, |lower| accum.step(lower, at, work.body, mask))?;
            }
            Ok(())
        })?;
        for (copy, accum) in copies.iter().zip(&accums) {
            let result = if work.inner.lanes > 1 { accum.finish(self) } else { accum.finish_lanes(self) };
            self.enter(*copy);
            let done = sink(self, result);
            self.enter(group);
            done?;
        }
        self.enter(outside);
        Ok(())
    }

    fn reduced_loops(
        &mut self,
        work: &Blocked,
        left: &[(AxisId, Reg, Reg)],
        unroll: usize,
        body: &mut super::vector::Body<'_, 'p>,
    ) -> Result<(), LowerError> {
        match left {
            [] => body(self, Nth::ONLY),
            [(axis, lo, hi)] if work.inner.lanes > 1 => self.vector_loop(*axis, (*lo, *hi), work.inner, unroll, body),
            // Twice, for fewer counters and branches.
            [(axis, lo, hi)] => self.unrolled_range(*axis, (*lo, *hi), 2, body),
            [(axis, lo, hi), rest @ ..] => {
                self.scalar_range(*axis, (*lo, *hi), false, &mut |lower| lower.reduced_loops(work, rest, unroll, body))
            }
        }
    }
}
