//! Loops that only store, and stores.

use super::nest::Dim;
use super::number::reg_elem;
use super::reduce::identity;
use super::scope::Bind;
use super::vector::Width;
use super::{LowerError, Lowering};
use crate::{BinOp, Elem, Expr, Reg, Split, Stmt, Ty};
use onefold_ir::{AxisId, ReduceOp};
use onefold_passes::fold::Target;
use onefold_passes::term::{ArrayId, TermId, TermOp};

/// Where to, and what.
pub type Store = (Target, TermId);

impl Lowering<'_> {
    /// Stores at every position along some axes, vectorised along the axis in which the stored arrays are contiguous.
    pub fn map(&mut self, axes: &[AxisId], stores: &[Store], split: Option<(Reg, Reg)>) -> Result<(), LowerError> {
        let last = |target: &Target| self.program.target(*target).axes.last().copied();
        let inner = last(&stores[0].0).filter(|a| axes.contains(a));
        let inner = inner.or(axes.last().copied()).ok_or_else(|| LowerError::internal("a loop over no axes"))?;
        let outer: Vec<AxisId> = axes.iter().copied().filter(|a| *a != inner).collect();
        let groups = self.groups(stores, inner);
        let (lo, hi) = self.range(inner)?;
        match split {
            None => self.scalar_loops(&outer, false, &mut |lower| lower.inner_maps(inner, &groups, (lo, hi))),
            Some(range) if outer.is_empty() => {
                self.split = Some(Split { begin: range.0, end: range.1, extent: self.elements(axes) });
                self.inner_maps(inner, &groups, range)
            }
            Some(range) => {
                let dims: Vec<Dim> = outer.iter().map(|a| Dim::Axis(*a)).collect();
                self.split_loop(&dims, range, &mut |lower| lower.inner_maps(inner, &groups, (lo, hi)))
            }
        }
    }

    /// Stores that can share a loop: those of one width. Where one reads what another stores, all go one by one.
    fn groups(&self, stores: &[Store], inner: AxisId) -> Vec<(Width, Vec<Store>)> {
        let mut groups: Vec<(Width, Vec<Store>)> = vec![];
        let values: Vec<TermId> = stores.iter().map(|(_, value)| *value).collect();
        let reads_back = self.program.terms.reachable(&values).iter().any(|id| {
            matches!(self.program.terms.get(*id).op, TermOp::Load { array: ArrayId::Intermediate(n), .. }
                if stores.iter().any(|(target, _)| *target == Target::Intermediate(n)))
        });
        if reads_back {
            return vec![(Width::SCALAR, stores.to_vec())];
        }
        for (target, value) in stores {
            let contiguous = self.program.target(*target).axes.last() == Some(&inner);
            let width = if contiguous { self.width(&[*value], inner) } else { Width::SCALAR };
            match groups.iter_mut().find(|(w, _)| *w == width) {
                Some((_, group)) => group.push((*target, *value)),
                None => groups.push((width, vec![(*target, *value)])),
            }
        }
        groups
    }

    fn inner_maps(
        &mut self,
        inner: AxisId,
        groups: &[(Width, Vec<Store>)],
        range: (Reg, Reg),
    ) -> Result<(), LowerError> {
        for (width, stores) in groups {
            let values: Vec<TermId> = stores.iter().map(|(_, value)| *value).collect();
            let cheap = self.total_weight(&values, inner) < 10;
            let unroll = if cheap { self.schedule.accumulators } else { self.schedule.unroll };
            self.vector_loop(inner, range, *width, unroll as usize, &mut |lower, _| {
                stores.iter().try_for_each(|(target, value)| lower.store(*target, *value))
            })?;
        }
        Ok(())
    }

    /// Store the running sum of a value along an axis: in f64, so that it may be long.
    pub fn scan(&mut self, axis: AxisId, (target, value): Store) -> Result<(), LowerError> {
        let dtype = self.program.target(target).dtype;
        let of = self.program.terms.get(value).dtype;
        let elem = if dtype.is_float() { Elem::F64 } else { reg_elem(dtype) };
        let ty = Ty::scalar(elem);
        let nothing = identity(ReduceOp::Sum, dtype);
        let sum = self.emit.let_(ty, "sum", Expr::Const(ty, nothing));
        self.scalar_loop(axis, false, &mut |lower| {
            let x = lower.value(value)?;
            let x = lower.emit.cast(of, dtype, x);
            let x = lower.emit.convert(elem, x);
            lower.emit.assign(sum, Expr::Binary(BinOp::Add, sum, x));
            let so_far = lower.emit.convert(reg_elem(dtype), sum);
            let so_far = lower.emit.wrap(dtype, so_far);
            lower.store_register(target, so_far, None)
        })
    }

    /// Store a value at the current position, or at the positions of the lanes.
    pub fn store(&mut self, target: Target, value: TermId) -> Result<(), LowerError> {
        let decl = self.program.target(target);
        let of = self.program.terms.get(value).dtype;
        let lanes = match decl.axes.last().and_then(|a| self.binding(*a)) {
            Some((_, Bind::Vector(lanes))) => Some(lanes),
            _ => None,
        };
        let value = self.lanes(value, lanes.map_or(1, |l| l.lanes))?;
        debug_assert_eq!(reg_elem(of), self.emit.ty(value).elem);
        let value = self.emit.cast(of, decl.dtype, value);
        self.store_register(target, value, lanes.and_then(|l| l.tail))
    }

    /// Store a register of the array's dtype.
    fn store_register(&mut self, target: Target, value: Reg, tail: Option<Reg>) -> Result<(), LowerError> {
        let (buf, key) = match target {
            Target::Output(n) => (self.outputs[n], n),
            Target::Intermediate(n) => (self.intermediates[n], self.outputs.len() + n),
        };
        let decl = self.program.target(target);
        let (axes, dtype) = (decl.axes.clone(), decl.dtype);
        let value = self.emit.narrow(dtype, value)?;
        let inner = axes.last().copied();
        let slope = |_: &Self, axis| (Some(axis) == inner).then_some(1);
        let all = axes.iter().copied().collect();
        let offset = self.displaced(all, &slope, &mut |lower| lower.position_offset(key, &axes))?;
        self.emit.push(Stmt::Store { buf, offset, value, tail, stream: false });
        Ok(())
    }
}
