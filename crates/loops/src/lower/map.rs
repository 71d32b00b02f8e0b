//! Loops that only store, and stores.

use super::emit::I64;
use super::number::reg_elem;
use super::scope::Bind;
use super::vector::Width;
use super::{LowerError, Lowering};
use crate::{BinOp, Reg, Split, Stmt};
use onefold_ir::AxisId;
use onefold_passes::fold::{ArrayDecl, Step, Target};
use onefold_passes::term::{ArrayId, TermId, TermOp};

/// Where to, and what.
pub type Store = (Target, TermId);

/// The stores of a body that consists of nothing else.
pub fn stores(body: &[Step]) -> Option<Vec<Store>> {
    body.iter()
        .map(|step| match step {
            Step::Store { target, value } => Some((*target, *value)),
            _ => None,
        })
        .collect()
}

impl Lowering<'_> {
    /// The program's only outermost loop: calls may share its iterations.
    pub fn outermost(&mut self, axes: &[AxisId], body: &[Step]) -> Result<(), LowerError> {
        let (begin, end) = (self.emit.reg(I64, "begin"), self.emit.reg(I64, "end"));
        if let Some(stores) = stores(body) {
            return self.map(axes, &stores, Some((begin, end)));
        }
        self.split_loop(axes, (begin, end), &mut |lower| lower.steps(body))
    }

    /// One loop over all positions along some axes, of which this call runs its share.
    fn split_loop(
        &mut self,
        axes: &[AxisId],
        (begin, end): (Reg, Reg),
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        self.split = Some(Split { begin, end, extent: self.elements(axes) });
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        let name = if axes.len() == 1 { self.axis_name(axes[0]).to_owned() } else { "at".to_owned() };
        let var = self.emit.reg(I64, &name);
        let mut rest = var;
        for (n, axis) in axes.iter().enumerate().rev() {
            let mut position = rest;
            if n > 0 {
                let size = self.size(*axis)?;
                position = self.emit.bin(BinOp::Rem, rest, size);
                rest = self.emit.bin(BinOp::Div, rest, size);
            }
            self.here().binds.push((*axis, Bind::Scalar(position)));
        }
        body(self)?;
        self.enter(outside);
        self.emit.push_for(var, begin, end, 1, true, block);
        Ok(())
    }

    /// Stores at every position along some axes, vectorised along the axis in which the stored arrays are contiguous.
    pub fn map(&mut self, axes: &[AxisId], stores: &[Store], split: Option<(Reg, Reg)>) -> Result<(), LowerError> {
        let last = |target: &Target| self.target_decl(*target).axes.last().copied();
        let inner = last(&stores[0].0).filter(|a| axes.contains(a));
        let inner = inner.or(axes.last().copied()).ok_or_else(|| LowerError::internal("a loop over no axes"))?;
        let outer: Vec<AxisId> = axes.iter().copied().filter(|a| *a != inner).collect();
        let groups = self.groups(stores, inner);
        let lo = self.emit.int(0);
        let hi = self.size(inner)?;
        match split {
            None => self.scalar_loops(&outer, false, &mut |lower| lower.inner_maps(inner, &groups, (lo, hi))),
            Some(range) if outer.is_empty() => {
                self.split = Some(Split { begin: range.0, end: range.1, extent: self.elements(axes) });
                self.inner_maps(inner, &groups, range)
            }
            Some(range) => self.split_loop(&outer, range, &mut |lower| lower.inner_maps(inner, &groups, (lo, hi))),
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
            let contiguous = self.target_decl(*target).axes.last() == Some(&inner);
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

    fn target_decl(&self, target: Target) -> &ArrayDecl {
        match target {
            Target::Output(n) => &self.program.outputs[n],
            Target::Intermediate(n) => &self.program.intermediates[n],
        }
    }

    /// Store a value at the current position, or at the positions of the lanes.
    pub fn store(&mut self, target: Target, value: TermId) -> Result<(), LowerError> {
        let (buf, key) = match target {
            Target::Output(n) => (self.outputs[n], n),
            Target::Intermediate(n) => (self.intermediates[n], self.outputs.len() + n),
        };
        let decl = self.target_decl(target);
        let (axes, dtype) = (decl.axes.clone(), decl.dtype);
        let of = self.program.terms.get(value).dtype;
        let lanes = match axes.last().and_then(|a| self.binding(*a)) {
            Some((_, Bind::Vector(lanes))) => Some(lanes),
            _ => None,
        };
        let value = self.lanes(value, lanes.map_or(1, |l| l.lanes))?;
        debug_assert_eq!(reg_elem(of), self.emit.ty(value).elem);
        let value = self.emit.cast(of, dtype, value);
        let value = self.emit.narrow(dtype, value)?;
        let offset = match lanes.and_then(|l| l.twin) {
            Some((twin, distance)) => {
                let near = self.in_twin(twin, |lower| lower.position_offset(key, &axes))?;
                let distance = self.emit.int(distance);
                self.emit.add(near, distance)
            }
            None => self.position_offset(key, &axes)?,
        };
        let tail = lanes.and_then(|l| l.tail);
        self.emit.push(Stmt::Store { buf, offset, value, tail, stream: false });
        Ok(())
    }
}
