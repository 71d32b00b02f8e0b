//! Loads: offsets summed loop by loop, strides along the vectorised axis, checks of indices that come from data.

use super::affine::{self, Access, Slope};
use super::number::{reg_elem, zero};
use super::scope::{Bind, Lanes, Mode, ScopeId, Twin};
use super::{LowerError, Lowering};
use crate::{status, BinOp, BufId, BufferKind, Cmp, Count, Expr, Reg, Stmt, Ty};
use onefold_ir::{AxisId, AxisSet, BinaryOp};
use onefold_passes::fold::ArrayDecl;
use onefold_passes::term::{ArrayId, Term, TermId, TermOp};

/// A part of an offset.
struct Part {
    level: ScopeId,
    axes: AxisSet,
    /// The axis of the array whose stride applies.
    at: usize,
    index: Index,
}

enum Index {
    /// The position along an axis.
    Axis(AxisId),
    /// A term; to be checked or not.
    Term(TermId, bool),
}

impl Lowering<'_> {
    /// The buffer that a load reads, its declaration, and whether indices are to be checked.
    pub fn array(&self, term: &Term) -> Result<(BufId, &ArrayDecl, bool), LowerError> {
        let TermOp::Load { array, checked } = term.op else { return Err(LowerError::internal("not a load")) };
        let buf = match array {
            ArrayId::Input(n) => self.inputs[n],
            ArrayId::Intermediate(n) => self.intermediates[n],
        };
        Ok((buf, affine::array(self.program, array), checked))
    }

    /// One element.
    pub fn load_scalar(&mut self, id: TermId, term: &Term) -> Result<Reg, LowerError> {
        let (buf, decl, checked) = self.array(term)?;
        let (dtype, axes, name) = (decl.dtype, decl.axes.clone(), decl.name.clone());
        let offset = self.displaced_offset(id, term, checked)?;
        let ty = Ty::scalar(self.emit.buffers[buf.0 as usize].elem);
        // A clamped index into an axis of no elements is the one way to point outside: then nothing is read.
        let mut some = None;
        for (axis, arg) in axes.iter().zip(&term.args) {
            if self.is_clamped(*arg) && self.extent(*axis).fixed.is_none_or(|n| n == 0) {
                let size = self.size(*axis)?;
                let one = self.emit.int(1);
                let here = self.emit.bin(BinOp::Min, size, one);
                some = Some(some.map_or(here, |s| self.emit.mul(s, here)));
            }
        }
        let loaded = self.load_tail(buf, ty, offset, None, some, &name);
        Ok(self.emit.widen(dtype, loaded))
    }

    fn is_clamped(&self, id: TermId) -> bool {
        let terms = &self.program.terms;
        let clamps = |t: &TermId| matches!(terms.get(*t).op, TermOp::Binary(BinaryOp::Min | BinaryOp::Max));
        terms.reachable(&[id]).iter().any(clamps)
    }

    /// Neighbours or elements at equal distances.
    pub fn load_vector(&mut self, id: TermId, term: &Term, axis: AxisId, lanes: Lanes) -> Result<Reg, LowerError> {
        let (buf, decl, checked) = self.array(term)?;
        let (dtype, name) = (decl.dtype, decl.name.clone());
        let access = affine::access(self.program, term, axis);
        if access == Access::Edged {
            return self.load_edged(id, term, axis, lanes);
        }
        let contiguous = access == Access::Contiguous;
        let offset = self.first_offset(id, term, checked)?;
        let stride = if contiguous { None } else { Some(self.stride(term, axis)?) };
        let ty = Ty::vector(self.emit.buffers[buf.0 as usize].elem, lanes.lanes);
        let loaded = self.load_tail(buf, ty, offset, stride, lanes.tail, &name);
        Ok(self.emit.widen(dtype, loaded))
    }

    /// Where a load along an axis would find its element so much further on.
    pub fn ahead(&mut self, id: TermId, distance: u64) -> Result<(BufId, Reg), LowerError> {
        let term = self.program.terms.get(id);
        let (buf, ..) = self.array(term)?;
        let here = self.first_offset(id, term, false)?;
        let distance = self.emit.int(distance as i64);
        Ok((buf, self.emit.add(here, distance)))
    }

    fn first_offset(&mut self, id: TermId, term: &Term, checked: bool) -> Result<Reg, LowerError> {
        let before = std::mem::replace(&mut self.first, true);
        let offset = self.displaced_offset(id, term, checked);
        self.first = before;
        offset
    }

    fn displaced_offset(&mut self, id: TermId, term: &Term, checked: bool) -> Result<Reg, LowerError> {
        let slope = |lower: &Self, axis| match affine::load_slope(lower.program, term, axis) {
            Slope::Const(n) => Some(n),
            _ => None,
        };
        self.displaced(term.axes, &slope, &mut |lower| lower.offset(id, term, checked))
    }

    /// An offset that varies along some axes, in a later copy of an unrolled body: that of the first copy and a constant,
    /// which addresses can hold.
    pub fn displaced(
        &mut self,
        axes: AxisSet,
        slope: &dyn Fn(&Self, AxisId) -> Option<i64>,
        offset: &mut dyn FnMut(&mut Self) -> Result<Reg, LowerError>,
    ) -> Result<Reg, LowerError> {
        let Some((twin, slope_there)) = self.twin_among(axes).and_then(|t| Some((t, slope(self, t.axis)?))) else {
            return offset(self);
        };
        let near = self.in_twin(twin.first, |lower| lower.displaced(axes, slope, offset))?;
        let distance = self.emit.int(twin.distance * slope_there);
        Ok(self.emit.add(near, distance))
    }

    /// The innermost copy that is not the first among the scopes that some axes are bound in.
    fn twin_among(&self, axes: AxisSet) -> Option<Twin> {
        let mut open = axes;
        for (_, scope) in self.path() {
            if let Some(twin) = scope.twin.filter(|t| open.contains(t.axis)) {
                return Some(twin);
            }
            // An axis bound anew further in (a lane of a vector) does not follow the copies.
            open = scope.binds.iter().fold(open, |open, (axis, _)| open.without(*axis));
        }
        None
    }

    /// Run in the scope of an earlier copy of the same unrolled body.
    fn in_twin<T>(
        &mut self,
        twin: ScopeId,
        f: impl FnOnce(&mut Self) -> Result<T, LowerError>,
    ) -> Result<T, LowerError> {
        let group = self.scopes[twin.0].parent;
        let current = self.path().find(|(_, s)| s.copy && s.parent == group).map(|(id, _)| id);
        let (Some(group), Some(current)) = (group, current) else { return f(self) };
        if current == self.current {
            let outside = self.enter(twin);
            let result = f(self);
            self.enter(outside);
            return result;
        }
        // Scopes between the copy and here are shared by both copies.
        let shared = self.path().find(|(_, s)| s.parent == Some(current)).map(|(id, _)| id);
        let Some(shared) = shared else { return f(self) };
        self.scopes[shared.0].parent = Some(group);
        let result = self.with_copy(group, twin, f);
        self.scopes[shared.0].parent = Some(current);
        result
    }

    /// Offset of the element (the first lane's).
    fn offset(&mut self, id: TermId, term: &Term, checked: bool) -> Result<Reg, LowerError> {
        let (_, decl, _) = self.array(term)?;
        let axes = decl.axes.clone();
        let parts: Vec<(TermId, usize)> = if checked {
            term.args.iter().copied().zip(0..).collect()
        } else {
            affine::joined(self.program, decl, &term.args)
        };
        let parts = parts
            .into_iter()
            .map(|(arg, at)| Part {
                level: self.level(arg),
                axes: self.program.terms.get(arg).axes,
                at,
                index: Index::Term(arg, checked && !affine::is_inside(self.program, arg, axes[at])),
            })
            .collect();
        self.sum_parts(id, Mode::Offset, &axes, parts)
    }

    /// Offset of the bound positions (first lanes) in an array.
    pub fn position_offset(&mut self, target: usize, axes: &[AxisId]) -> Result<Reg, LowerError> {
        let mut parts = vec![];
        for (at, axis) in axes.iter().enumerate() {
            let (level, _) = self.binding(*axis).ok_or_else(|| {
                LowerError::internal(format!("axis {} is not bound where its array is stored", self.axis_name(*axis)))
            })?;
            parts.push(Part { level, axes: AxisSet::one(*axis), at, index: Index::Axis(*axis) });
        }
        self.sum_parts(TermId(target as u32), Mode::Store, axes, parts)
    }

    /// A sum of indices times strides, each part computed in the loop that it depends on, outermost first.
    fn sum_parts(
        &mut self,
        id: TermId,
        mode: fn(u8) -> Mode,
        axes: &[AxisId],
        mut parts: Vec<Part>,
    ) -> Result<Reg, LowerError> {
        let path: Vec<ScopeId> = self.path().map(|(id, _)| id).collect();
        let depth = |scope: ScopeId| path.iter().position(|s| *s == scope).unwrap_or(path.len());
        parts.sort_by_key(|part| std::cmp::Reverse(depth(part.level)));
        let outside = self.current;
        let mut sum = self.emit.int(0);
        let mut axes_so_far = AxisSet::EMPTY;
        for (n, part) in parts.into_iter().enumerate() {
            axes_so_far = axes_so_far.union(part.axes);
            let key = (id, mode(n as u8), self.copy_above(part.level, axes_so_far));
            if let Some(&known) = self.scopes[part.level.0].memo.get(&key) {
                sum = known;
                continue;
            }
            self.enter(part.level);
            let index = match part.index {
                Index::Axis(axis) => self.position(axis)?,
                Index::Term(arg, false) => self.value(arg)?,
                Index::Term(arg, true) => {
                    let index = self.value(arg)?;
                    self.checked(index, axes[part.at])?
                }
            };
            let stride = self.row_stride(axes, part.at)?;
            let product = self.emit.mul(index, stride);
            sum = self.emit.add(sum, product);
            self.enter(outside);
            self.scopes[part.level.0].memo.insert(key, sum);
        }
        Ok(sum)
    }

    /// An index; outside of the axis the kernel fails.
    fn checked(&mut self, index: Reg, axis: AxisId) -> Result<Reg, LowerError> {
        let size = self.size(axis)?;
        let zero = self.emit.int(0);
        let below = self.emit.cmp(Cmp::Lt, index, zero);
        let above = self.emit.cmp(Cmp::Ge, index, size);
        let outside = self.emit.bin(BinOp::Or, below, above);
        self.emit.push(Stmt::Fail { cond: outside, status: status::GATHER_OUT_OF_RANGE });
        Ok(index)
    }

    /// Number of elements of the axes behind one.
    pub fn row_stride(&mut self, axes: &[AxisId], at: usize) -> Result<Reg, LowerError> {
        let mut stride = self.emit.int(1);
        for axis in &axes[at + 1..] {
            stride = self.product(stride, *axis)?;
        }
        Ok(stride)
    }

    /// Distance in memory from one position of an axis to the next.
    fn stride(&mut self, term: &Term, axis: AxisId) -> Result<Reg, LowerError> {
        let (_, decl, _) = self.array(term)?;
        let axes = decl.axes.clone();
        let parts = affine::joined(self.program, decl, &term.args);
        let mut total = self.emit.int(0);
        for (arg, at) in parts {
            if !self.program.terms.get(arg).axes.contains(axis) {
                continue;
            }
            let slope = self.slope(arg, axis)?;
            let row = self.row_stride(&axes, at)?;
            let part = self.emit.mul(slope, row);
            total = self.emit.add(total, part);
        }
        Ok(total)
    }

    /// Change of an index from one position of an axis to the next.
    pub fn slope(&mut self, id: TermId, axis: AxisId) -> Result<Reg, LowerError> {
        let program = self.program;
        let term = program.terms.get(id);
        if !term.axes.contains(axis) {
            return Ok(self.emit.int(0));
        }
        let zero = self.emit.int(0);
        match &term.op {
            TermOp::Index(_) => Ok(self.emit.int(1)),
            TermOp::Unary(_) => {
                let x = self.slope(term.args[0], axis)?;
                Ok(self.emit.sub(zero, x))
            }
            TermOp::Binary(BinaryOp::Mul) => {
                let varies = program.terms.get(term.args[0]).axes.contains(axis);
                let (x, factor) = if varies { (0, 1) } else { (1, 0) };
                let x = self.slope(term.args[x], axis)?;
                let factor = self.value(term.args[factor])?;
                Ok(self.emit.mul(x, factor))
            }
            TermOp::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let (a, b) = (self.slope(term.args[0], axis)?, self.slope(term.args[1], axis)?);
                Ok(if *op == BinaryOp::Add { self.emit.add(a, b) } else { self.emit.sub(a, b) })
            }
            _ => Err(LowerError::internal("an irregular index is taken for a regular one")),
        }
    }

    /// A vector whose lanes are computed one after the other and pass through memory.
    pub fn lane_by_lane(&mut self, id: TermId, term: &Term, axis: AxisId, lanes: Lanes) -> Result<Reg, LowerError> {
        let elem = reg_elem(term.dtype);
        let len = Count::Const(u64::from(lanes.lanes));
        // Taken while in use: a lane's value may itself hold vectors that are computed so.
        let buf = match self.lane_buffers.remove(&(elem, lanes.lanes)) {
            Some(buf) => buf,
            None => self.emit.buffer("lanes", elem, BufferKind::Stack, len),
        };
        let (block, outside) = self.open();
        let lane = self.emit.reg(super::emit::I64, "lane");
        let position = self.emit.add(lanes.base, lane);
        self.here().binds.push((axis, Bind::Scalar(position)));
        let before = std::mem::replace(&mut self.first, false);
        let value = self.value(id);
        self.first = before;
        self.emit.store(buf, lane, value?);
        self.enter(outside);
        let lo = self.emit.int(0);
        let hi = lanes.tail.unwrap_or_else(|| self.emit.int(i64::from(lanes.lanes)));
        self.emit.push_for(lane, lo, hi, 1, false, block);
        self.lane_buffers.insert((elem, lanes.lanes), buf);
        let ty = Ty::vector(elem, lanes.lanes);
        let tail = lanes.tail.map(|n| (n, self.emit.constant(Ty::scalar(elem), zero(elem))));
        Ok(self.emit.let_(ty, "v", Expr::Load { ty, buf, offset: lo, stride: None, tail }))
    }
}
