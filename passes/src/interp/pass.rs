//! Passes: tiles, carries, anchors and the closing.

use super::machine::{combine, identity, AnchorValue, Machine, StateValue};
use super::FoldError;
use crate::fold::{AnchorId, Carry, Item, Pass, StateId, StateOp};
use crate::term::{TermId, TermOp};
use onefold_ir::{AxisId, DType, ReduceOp};
use std::cmp::Ordering;

impl Machine<'_> {
    pub fn pass(&mut self, pass: &Pass) -> Result<(), FoldError> {
        let states: Vec<StateId> = pass
            .order
            .iter()
            .filter_map(|i| match i {
                Item::State(s) => Some(*s),
                Item::Anchor(_) => None,
            })
            .collect();
        let anchors: Vec<AnchorId> = pass
            .order
            .iter()
            .filter_map(|i| match i {
                Item::Anchor(a) => Some(*a),
                Item::State(_) => None,
            })
            .collect();
        for state in &states {
            self.states[state.0 as usize] = self.initial(*state);
        }
        self.set_seen(&pass.axes, 0);
        for anchor in &anchors {
            self.update_anchor(*anchor)?;
        }
        let total = self.count(&pass.axes);
        let mut begin = 0;
        while begin < total {
            let end = total.min(begin + self.tile);
            self.set_seen(&pass.axes, end);
            let before = self.states.clone();
            for item in &pass.order {
                match item {
                    Item::Anchor(anchor) => self.update_anchor(*anchor)?,
                    Item::State(state) => {
                        self.carry(*state, &before, true)?;
                        for n in begin..end {
                            self.bind(&pass.axes, n);
                            self.fold(*state, n as i64)?;
                        }
                        self.unbind(&pass.axes);
                    }
                }
            }
            begin = end;
        }
        if total > 0 {
            self.close(&states, &anchors)?;
        }
        Ok(())
    }

    /// Elements seen, axis by axis, so that the product over the streamed axes is the number of elements: inner axes count
    /// in full, the outermost in fractions.
    fn set_seen(&mut self, axes: &[AxisId], elements: usize) {
        let inner: f64 = axes[1..].iter().map(|a| self.size(*a) as f64).product();
        for axis in &axes[1..] {
            self.seen[axis.0 as usize] = self.size(*axis) as f64;
        }
        self.seen[axes[0].0 as usize] = if inner == 0.0 { 0.0 } else { elements as f64 / inner };
        self.memo.clear();
    }

    fn initial(&self, id: StateId) -> StateValue {
        let state = &self.program.states[id.0 as usize];
        let of = |op: ReduceOp| StateValue {
            values: vec![identity(op, state.dtype); self.count(&state.axes)],
            at: vec![],
            axes: state.axes.clone(),
        };
        match state.op {
            StateOp::Sum => of(ReduceOp::Sum),
            StateOp::Prod => of(ReduceOp::Prod),
            StateOp::Max => of(ReduceOp::Max),
            StateOp::Min => of(ReduceOp::Min),
            StateOp::ArgMax => StateValue { at: vec![0], ..of(ReduceOp::Max) },
            StateOp::TopK { to } => StateValue { values: vec![], at: vec![], axes: vec![to] },
        }
    }

    fn update_anchor(&mut self, id: AnchorId) -> Result<(), FoldError> {
        let anchor = &self.program.anchors[id.0 as usize];
        let exact = self.eval(anchor.value)?;
        let surrogate = anchor.degenerate.iter().find(|(v, _)| *v == exact || v.is_nan() && exact.is_nan());
        let before = self.anchors[id.0 as usize];
        self.anchors[id.0 as usize] = AnchorValue {
            new: surrogate.map_or(exact, |(_, s)| *s),
            old: before.new,
            exact,
            old_stood_in: before.stands_in(),
        };
        self.memo.clear();
        Ok(())
    }

    /// Carry a state's old value to the new anchors.
    fn carry(&mut self, id: StateId, before: &[StateValue], clamp: bool) -> Result<(), FoldError> {
        let program = self.program;
        let state = &program.states[id.0 as usize];
        let at = id.0 as usize;
        match &state.carry {
            Carry::Keep => {}
            Carry::Linear(row) => {
                let mut values = vec![0.0; before[at].values.len()];
                for (coefficient, from) in row {
                    let c = self.coefficient(*coefficient, state.dtype, clamp)?;
                    for (v, old) in values.iter_mut().zip(&before[from.0 as usize].values) {
                        *v += c * old;
                    }
                }
                self.states[at].values = values;
            }
            Carry::Shift(coefficient) => {
                let c = self.coefficient(*coefficient, state.dtype, clamp)?;
                self.states[at].values.iter_mut().for_each(|v| *v += c);
            }
            Carry::Scale(coefficient) => {
                let c = self.coefficient(*coefficient, state.dtype, clamp)?;
                self.states[at].values.iter_mut().for_each(|v| *v *= c);
            }
        }
        self.memo.clear();
        Ok(())
    }

    fn coefficient(&mut self, id: TermId, dtype: DType, clamp: bool) -> Result<f64, FoldError> {
        let c = self.eval(id)?;
        let stood_in = crate::derive::anchors_of(&self.program.terms, &[id])
            .iter()
            .any(|a| self.anchors[a.0 as usize].old_stood_in);
        let largest = if dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        Ok(if clamp && stood_in && !c.is_nan() { c.clamp(-largest, largest) } else { c })
    }

    /// Fold in the element at the current position, the n-th.
    fn fold(&mut self, id: StateId, n: i64) -> Result<(), FoldError> {
        let program = self.program;
        let state = &program.states[id.0 as usize];
        let op = match state.op {
            StateOp::Sum => ReduceOp::Sum,
            StateOp::Prod => ReduceOp::Prod,
            StateOp::Max => ReduceOp::Max,
            StateOp::Min => ReduceOp::Min,
            StateOp::ArgMax => {
                let x = self.eval(state.body)?;
                let best = &mut self.states[id.0 as usize];
                if order(x, best.values[0]) == Ordering::Less {
                    (best.values[0], best.at[0]) = (x, n);
                }
                return Ok(());
            }
            StateOp::TopK { to } => {
                let x = self.eval(state.body)?;
                let keep = self.size(to) as usize;
                let best = &mut self.states[id.0 as usize];
                let place = best.values.partition_point(|v| order(*v, x) != Ordering::Greater);
                best.values.insert(place, x);
                best.at.insert(place, n);
                best.values.truncate(keep);
                best.at.truncate(keep);
                return Ok(());
            }
        };
        for at in 0..self.count(&state.axes) {
            self.bind(&state.axes, at);
            let x = self.eval(state.body)?;
            let values = &mut self.states[id.0 as usize].values;
            values[at] = combine(op, state.dtype, values[at], x);
        }
        self.unbind(&state.axes);
        Ok(())
    }

    /// Carry from the surrogates to the true values.
    fn close(&mut self, states: &[StateId], anchors: &[AnchorId]) -> Result<(), FoldError> {
        let degenerate: Vec<AnchorId> =
            anchors.iter().copied().filter(|a| self.anchors[a.0 as usize].stands_in()).collect();
        if degenerate.is_empty() {
            return Ok(());
        }
        for anchor in anchors {
            let value = &mut self.anchors[anchor.0 as usize];
            (value.old, value.new) = (value.new, value.exact);
        }
        self.memo.clear();
        let before = self.states.clone();
        for id in states {
            let state = &self.program.states[id.0 as usize];
            let coefficients: Vec<TermId> = match &state.carry {
                Carry::Keep => vec![],
                Carry::Linear(row) => row.iter().map(|(c, _)| *c).collect(),
                Carry::Shift(c) | Carry::Scale(c) => vec![*c],
            };
            let mentions = self.program.terms.reachable(&coefficients).iter().any(|t| {
                matches!(self.program.terms.get(*t).op,
                    TermOp::Anchor(a) | TermOp::AnchorOld(a) if degenerate.contains(&a))
            });
            if mentions {
                self.carry(*id, &before, false)?;
            }
        }
        Ok(())
    }
}

impl AnchorValue {
    fn stands_in(&self) -> bool {
        self.new != self.exact && !(self.new.is_nan() && self.exact.is_nan())
    }
}

/// Descending, NaN first.
fn order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
    }
}
