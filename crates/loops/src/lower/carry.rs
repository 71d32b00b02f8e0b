//! Carries: states move when anchors do, and once more at the end from surrogates to the true values.

use super::number::reg_elem;
use super::pass::Running;
use super::place::{ArrayPlace, StatePlace};
use super::scope::AnchorRegs;
use super::{LowerError, Lowering};
use crate::{BinOp, Cmp, Elem, Expr, Reg, Ty};
use onefold_ir::DType;
use onefold_passes::fold::{AnchorId, Carry, Item, Pass, StateId};
use onefold_passes::term::TermId;

/// A carry with its coefficients evaluated.
#[derive(Clone, Debug)]
pub enum Move {
    /// The value stays.
    Keep,
    /// A combination of old values.
    Linear(Vec<(Reg, StateId)>),
    /// A number added.
    Shift(Reg),
    /// A factor.
    Scale(Reg),
}

impl Lowering<'_> {
    /// Evaluate a state's coefficients; with `clamp` those that come from a surrogate are kept finite.
    pub fn coefficients(&mut self, id: StateId, clamp: bool, running: &Running) -> Result<Move, LowerError> {
        let program = self.program;
        let state = &program.states[id.0 as usize];
        let mut of = |term: TermId| self.coefficient(term, state.dtype, clamp, running);
        Ok(match &state.carry {
            Carry::Keep => Move::Keep,
            Carry::Linear(row) => {
                Move::Linear(row.iter().map(|(c, from)| Ok((of(*c)?, *from))).collect::<Result<_, LowerError>>()?)
            }
            Carry::Shift(c) => Move::Shift(of(*c)?),
            Carry::Scale(c) => Move::Scale(of(*c)?),
        })
    }

    fn coefficient(&mut self, id: TermId, dtype: DType, clamp: bool, running: &Running) -> Result<Reg, LowerError> {
        let value = self.value(id)?;
        let value = self.emit.cast(self.program.terms.get(id).dtype, dtype, value);
        let anchors = self.leaves[id.0 as usize].anchors.clone();
        let flags: Vec<Reg> = anchors
            .iter()
            .filter_map(|a| Self::anchor_of(running, *a)?.stands_in)
            .map(|(_, stood_in)| stood_in)
            .collect();
        let ty = self.emit.ty(value);
        let Some((first, others)) = flags.split_first().filter(|_| clamp && ty.elem.is_float()) else {
            return Ok(value);
        };
        let any = others.iter().fold(*first, |any, flag| self.emit.bin(BinOp::Or, any, *flag));
        let most = if ty.elem == Elem::F64 { f64::MAX } else { f64::from(f32::MAX) };
        let (most, least) = (self.emit.float(ty, most), self.emit.float(ty, -most));
        // Bounds first: the instructions give their second operand if it is NaN.
        let bounded = self.emit.bin(BinOp::Max, least, value);
        let bounded = self.emit.bin(BinOp::Min, most, bounded);
        Ok(self.emit.select(any, bounded, value))
    }

    /// A single-valued state's old value moved; `old` tells where old values are.
    pub fn moved(&mut self, own: Reg, step: &Move, old: &dyn Fn(StateId) -> Option<Reg>) -> Result<Reg, LowerError> {
        let ty = self.emit.ty(own);
        let missing = || LowerError::internal("a carry over a state of another shape");
        Ok(match step {
            Move::Keep => own,
            Move::Linear(row) => {
                let mut sum = None;
                for (c, from) in row {
                    let value = old(*from).ok_or_else(missing)?;
                    let c = self.emit.convert(ty.elem, *c);
                    let part = self.emit.mul(c, value);
                    sum = Some(sum.map_or(part, |s| self.emit.add(s, part)));
                }
                sum.unwrap_or_else(|| self.zero(ty.elem, 1))
            }
            Move::Shift(c) => {
                let c = self.emit.convert(ty.elem, *c);
                self.emit.add(own, c)
            }
            Move::Scale(c) => {
                let c = self.emit.convert(ty.elem, *c);
                self.emit.mul(own, c)
            }
        })
    }

    /// Keep what other states' carries of this tile will read.
    pub fn remember_before(&mut self, running: &Running) -> Result<(), LowerError> {
        for (id, reg) in &running.before {
            match (running.place(*id)?, reg) {
                (StatePlace::Scalar(value), Some(reg)) => self.emit.copy(*reg, *value),
                (StatePlace::Array(array), _) => {
                    let array = array.clone();
                    self.copy_array(&array)?;
                }
                _ => return Err(LowerError::internal("a carry over a selection")),
            }
        }
        Ok(())
    }

    /// Copy an array (high and low parts together) to its `before`.
    fn copy_array(&mut self, array: &ArrayPlace) -> Result<(), LowerError> {
        let Some(before) = array.before else { return Ok(()) };
        self.each_element(array, &mut |lower, offset, lanes| {
            let value = lower.array_value(array, offset, lanes);
            lower.emit.store(before, offset, value);
            Ok(())
        })
    }

    /// High and low part of an array's elements together.
    pub fn array_value(&mut self, array: &ArrayPlace, offset: Reg, lanes: u16) -> Reg {
        let high = self.emit.load(lanes, array.buf, offset, "s");
        match array.low {
            Some(low) => {
                let low = self.emit.load(lanes, low, offset, "s");
                self.emit.add(high, low)
            }
            None => high,
        }
    }

    /// From surrogates to the true values, if elements were seen and an anchor still stands for a degenerate value.
    pub fn close(&mut self, pass: &Pass, running: &Running) -> Result<(), LowerError> {
        let flags: Vec<Reg> = running.anchors.iter().filter_map(|a| a.stands_in).map(|(now, _)| now).collect();
        let Some((first, others)) = flags.split_first() else { return Ok(()) };
        let mut any = others.iter().fold(*first, |any, flag| self.emit.bin(BinOp::Or, any, *flag));
        let zero = self.emit.int(0);
        for axis in &pass.axes {
            if self.extent(*axis).fixed.is_none_or(|n| n == 0) {
                let size = self.size(*axis)?;
                let some = self.emit.cmp(Cmp::Gt, size, zero);
                any = self.emit.bin(BinOp::And, any, some);
            }
        }
        let (block, outside) = self.open();
        let pins: Vec<(AnchorId, AnchorRegs)> =
            running.anchors.iter().map(|a| (a.id, AnchorRegs { new: a.exact, old: a.new })).collect();
        self.here().anchors = pins;
        self.here().states = running.states.clone();
        self.remember_before(running)?;
        for item in &pass.order {
            let Item::State(id) = item else { continue };
            if self.depends_on_surrogates(*id, running) {
                self.close_state(*id, running)?;
            }
        }
        self.enter(outside);
        self.emit.push_if(any, block);
        Ok(())
    }

    fn depends_on_surrogates(&self, id: StateId, running: &Running) -> bool {
        let coefficients: Vec<TermId> = match &self.program.states[id.0 as usize].carry {
            Carry::Keep => vec![],
            Carry::Linear(row) => row.iter().map(|(c, _)| *c).collect(),
            Carry::Shift(c) | Carry::Scale(c) => vec![*c],
        };
        coefficients.iter().any(|c| {
            let anchors = &self.leaves[c.0 as usize].anchors;
            anchors.iter().any(|a| Self::anchor_of(running, *a).is_some_and(|a| a.stands_in.is_some()))
        })
    }

    fn close_state(&mut self, id: StateId, running: &Running) -> Result<(), LowerError> {
        let step = self.coefficients(id, false, running)?;
        match running.place(id)? {
            StatePlace::Scalar(reg) => {
                let old = |s: StateId| old_scalar(running, s, id);
                let value = self.moved(*reg, &step, &old)?;
                self.emit.copy(*reg, value);
            }
            StatePlace::Best { value, .. } => {
                let moved = self.moved(*value, &step, &|_| None)?;
                self.emit.copy(*value, moved);
            }
            StatePlace::Top(_) => self.move_top(id, &step, running)?,
            StatePlace::Array(array) => {
                let array = array.clone();
                self.each_element(&array, &mut |lower, offset, lanes| {
                    let (high, low) = lower.moved_array(id, &array, &step, offset, lanes, running)?;
                    let value = low.map_or(high, |low| lower.emit.add(high, low));
                    lower.emit.store(array.buf, offset, value);
                    if let Some(low) = array.low {
                        let zero = lower.zero(lower.emit.ty(value).elem, lanes);
                        lower.emit.store(low, offset, zero);
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Old elements of an array moved: the high part, and the low one if there is.
    pub fn moved_array(
        &mut self,
        id: StateId,
        array: &ArrayPlace,
        step: &Move,
        offset: Reg,
        lanes: u16,
        running: &Running,
    ) -> Result<(Reg, Option<Reg>), LowerError> {
        let high = self.emit.load(lanes, array.buf, offset, "s");
        let low = array.low.map(|low| self.emit.load(lanes, low, offset, "s"));
        Ok(match step {
            Move::Keep => (high, low),
            Move::Shift(c) => {
                let c = self.emit.splat(lanes, *c);
                (self.emit.add(high, c), low)
            }
            Move::Scale(c) => self.scaled(high, low, *c),
            Move::Linear(row) if row.len() == 1 && row[0].1 == id => self.scaled(high, low, row[0].0),
            Move::Linear(row) => {
                let mut sum = None;
                for (c, from) in row {
                    let StatePlace::Array(other) = running.place(*from)? else {
                        return Err(LowerError::internal("a carry over a state of another shape"));
                    };
                    let value = if *from == id && other.before.is_none() {
                        self.array_value(&other.clone(), offset, lanes)
                    } else {
                        let before = other.before.ok_or_else(|| LowerError::internal("an old value was not kept"))?;
                        self.emit.load(lanes, before, offset, "s")
                    };
                    let c = self.emit.splat(lanes, *c);
                    sum = Some(match sum {
                        None => self.emit.mul(c, value),
                        Some(sum) => self.multiply_add(c, value, sum),
                    });
                }
                let elem = self.emit.ty(high).elem;
                (sum.unwrap_or_else(|| self.zero(elem, lanes)), low.map(|_| self.zero(elem, lanes)))
            }
        })
    }

    /// Both parts times a factor; what rounding takes from the high part goes to the low one.
    fn scaled(&mut self, high: Reg, low: Option<Reg>, c: Reg) -> (Reg, Option<Reg>) {
        let ty = self.emit.ty(high);
        let c = self.emit.splat(ty.lanes, c);
        let product = self.emit.mul(high, c);
        let Some(low) = low else { return (product, None) };
        let low = self.emit.mul(low, c);
        if !self.target.fma {
            return (product, Some(low));
        }
        let minus = self.emit.un(crate::UnOp::Neg, product);
        let lost = self.emit.let_(ty, "v", Expr::Fma(high, c, minus));
        (product, Some(self.emit.add(low, lost)))
    }

    /// The type that a single-valued state is held in: float sums and products in f64.
    pub fn held_in(&self, id: StateId) -> Ty {
        use onefold_passes::fold::StateOp::{Prod, Sum};
        let state = &self.program.states[id.0 as usize];
        match (reg_elem(state.dtype), state.op) {
            (Elem::F32, Sum | Prod) => Ty::scalar(Elem::F64),
            (elem, _) => Ty::scalar(elem),
        }
    }
}

/// The old value of a single-valued state, for the carry of another.
pub fn old_scalar(running: &Running, id: StateId, own: StateId) -> Option<Reg> {
    if let Some((_, Some(reg))) = running.before.iter().find(|(s, _)| *s == id) {
        return Some(*reg);
    }
    match running.place(id) {
        Ok(StatePlace::Scalar(reg)) if id == own => Some(*reg),
        _ => None,
    }
}
