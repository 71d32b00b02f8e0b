//! Groups of reductions become passes: states with bodies over anchors, in the order of their dependence.

use super::group::{inline_in, is_state, key, states_in, Group, Groups, Inline};
use crate::derive::{degenerate, Correction};
use crate::error::PassError;
use crate::fold::{Anchor, AnchorId, Carry, Item, Pass, State, StateId, StateOp};
use crate::streams::{Corrected, Streams};
use crate::term::{Term, TermId, TermOp, Terms};
use onefold_ir::{AxisId, AxisSet, Part, ReduceOp};
use std::collections::{BTreeMap, HashMap};

/// States and anchors so far.
#[derive(Debug, Default)]
pub struct Made {
    /// States.
    pub states: Vec<State>,
    /// Anchors.
    pub anchors: Vec<Anchor>,
}

/// States, anchors and passes as they are made.
pub struct Assembler<'a> {
    /// All terms.
    pub terms: &'a mut Terms,
    /// Stream numbers and corrections.
    pub streams: &'a Streams,
    /// States and anchors so far, also those of earlier stages.
    pub made: Made,
    /// The state of each reduction.
    of: BTreeMap<TermId, StateId>,
    /// Reductions computed on the spot in the body at hand.
    inline: Inline,
    /// The program's anchor for each of the search's, within one pass.
    anchor_of: BTreeMap<AnchorId, AnchorId>,
    /// Rank of axes in memory, for the order of kept ones.
    rank: &'a dyn Fn(AxisId) -> usize,
}

impl<'a> Assembler<'a> {
    /// An assembler that adds to what was made before.
    pub fn new(
        terms: &'a mut Terms,
        streams: &'a Streams,
        rank: &'a dyn Fn(AxisId) -> usize,
        made: Made,
    ) -> Assembler<'a> {
        let (of, anchor_of, inline) = (BTreeMap::new(), BTreeMap::new(), Inline::new());
        Assembler { terms, streams, made, of, inline, anchor_of, rank }
    }

    /// The pass of a group. Groups that it comes after are assembled already.
    ///
    /// # Errors
    /// Only on bugs.
    pub fn pass(&mut self, groups: &Groups, at: usize) -> Result<Pass, PassError> {
        let group = &groups.groups[at];
        self.anchor_of.clear();
        let mut order = vec![];
        for member in &group.members {
            self.inline = inline_in(self.terms, member.term);
            match &member.corrected {
                None => {
                    let body = self.terms.get(member.term).args[0];
                    let body = self.resolve(body, None)?;
                    let id = self.add_state(member.term, body, group, Carry::Keep);
                    self.of.insert(member.term, id);
                    order.push(Item::State(id));
                }
                Some(corrected) => {
                    for anchor in &corrected.anchors {
                        self.add_anchor(*anchor, group, &mut order)?;
                    }
                    self.corrected(member.term, corrected, group, &mut order)?;
                }
            }
        }
        self.inline.clear();
        self.find_degenerate(&order);
        let mut axes: Vec<AxisId> = group.axes.iter().collect();
        axes.sort_by_key(|a| (self.rank)(*a));
        Ok(Pass { axes, order })
    }

    fn add_anchor(&mut self, id: AnchorId, group: &Group, order: &mut Vec<Item>) -> Result<(), PassError> {
        if self.anchor_of.contains_key(&id) {
            return Ok(());
        }
        let term = self.streams.anchors[id.0 as usize];
        let value = self.resolve(term, Some(group.axes))?;
        let new = AnchorId(self.made.anchors.len() as u32);
        let name = format!("a{}", new.0);
        let dtype = self.terms.get(term).dtype;
        self.made.anchors.push(Anchor { name, dtype, value, degenerate: vec![] });
        self.anchor_of.insert(id, new);
        order.push(Item::Anchor(new));
        Ok(())
    }

    fn corrected(
        &mut self,
        term: TermId,
        corrected: &Corrected,
        group: &Group,
        order: &mut Vec<Item>,
    ) -> Result<(), PassError> {
        let (bodies, rows) = match &corrected.correction {
            Correction::Linear { bodies, rows } => (bodies, rows),
            Correction::Shift(c) | Correction::Scale(c) => {
                let coefficient = self.resolve(*c, None)?;
                let carry = match &corrected.correction {
                    Correction::Shift(_) => Carry::Shift(coefficient),
                    _ => Carry::Scale(coefficient),
                };
                let body = self.resolve(corrected.body, None)?;
                let id = self.add_state(term, body, group, carry);
                self.of.insert(term, id);
                order.push(Item::State(id));
                return Ok(());
            }
        };
        // A body that some state of this pass sums already is that state; the others are new.
        let mut ids = vec![];
        let mut fresh = vec![];
        for body in bodies {
            let resolved = self.resolve(*body, None)?;
            let twin = order.iter().find_map(|item| match item {
                Item::State(s) if self.made.states[s.0 as usize].body == resolved => Some(*s),
                _ => None,
            });
            let twin = twin.filter(|s| self.made.states[s.0 as usize].op == StateOp::Sum);
            ids.push(match twin {
                Some(id) => id,
                None => {
                    let id = self.add_state(term, resolved, group, Carry::Keep);
                    fresh.push(id);
                    id
                }
            });
        }
        for (row, id) in rows.iter().zip(&ids) {
            if !fresh.contains(id) {
                continue;
            }
            let mut carry = vec![];
            for (coefficient, at) in row {
                carry.push((self.resolve(*coefficient, None)?, ids[*at]));
            }
            let keeps = carry.len() == 1 && carry[0].1 == *id && self.is_one(carry[0].0);
            self.made.states[id.0 as usize].carry = if keeps { Carry::Keep } else { Carry::Linear(carry) };
        }
        // Old values are combined, so the order among the states of one basis does not matter.
        order.extend(fresh.iter().map(|id| Item::State(*id)));
        self.of.insert(term, ids[0]);
        Ok(())
    }

    fn is_one(&self, id: TermId) -> bool {
        matches!(self.terms.get(id).op, TermOp::Literal(v) if v.as_f64() == 1.0)
    }

    fn add_state(&mut self, term: TermId, body: TermId, group: &Group, carry: Carry) -> StateId {
        let Term { op, dtype, .. } = self.terms.get(term).clone();
        let op = match op {
            TermOp::Reduce(ReduceOp::Sum, _) => StateOp::Sum,
            TermOp::Reduce(ReduceOp::Prod, _) => StateOp::Prod,
            TermOp::Reduce(ReduceOp::Max, _) => StateOp::Max,
            TermOp::Reduce(ReduceOp::Min, _) => StateOp::Min,
            TermOp::TopK { to, .. } => StateOp::TopK { to },
            _ => StateOp::ArgMax,
        };
        let dtype = if op == StateOp::ArgMax { self.terms.get(body).dtype } else { dtype };
        let kept = self.terms.get(term).axes.minus(group.parallel);
        let mut axes: Vec<AxisId> = kept.iter().filter(|a| !matches!(op, StateOp::TopK { to } if to == *a)).collect();
        axes.sort_by_key(|a| (self.rank)(*a));
        let id = StateId(self.made.states.len() as u32);
        let letter = match op {
            StateOp::Sum => "s",
            StateOp::Prod => "p",
            StateOp::Max => "m",
            StateOp::Min => "n",
            StateOp::ArgMax => "i",
            StateOp::TopK { .. } => "k",
        };
        self.made.states.push(State { name: format!("{letter}{}", id.0), op, axes, dtype, body, carry });
        id
    }

    /// A term with states in place of reductions, and the program's anchors in place of the search's. Where `seen` is
    /// given, the term is an anchor's value: sizes of those axes are numbers of elements seen.
    pub fn resolve(&mut self, id: TermId, seen: Option<AxisSet>) -> Result<TermId, PassError> {
        self.rewrite(id, seen, &mut HashMap::new())
    }

    fn rewrite(
        &mut self,
        root: TermId,
        seen: Option<AxisSet>,
        made: &mut HashMap<TermId, TermId>,
    ) -> Result<TermId, PassError> {
        if let Some(&done) = made.get(&root) {
            return Ok(done);
        }
        let term = self.terms.get(root).clone();
        let new = if is_state(self.terms, root, &self.inline) {
            let state = key(self.terms, root);
            let state = *self.of.get(&state).ok_or_else(|| PassError::internal("a state is used before its pass"))?;
            let part = match term.op {
                TermOp::ArgMax(_) => Part::Indices,
                TermOp::TopK { part, .. } => part,
                _ => Part::Values,
            };
            self.terms.add(Term { op: TermOp::State { state, part }, args: vec![], ..term })
        } else {
            match (&term.op, seen) {
                (TermOp::Size(axis), Some(axes)) if axes.contains(*axis) => {
                    self.terms.make(TermOp::Seen(*axis), term.dtype, vec![])
                }
                (TermOp::Anchor(a), _) => self.anchor_leaf(*a, &term, TermOp::Anchor),
                (TermOp::AnchorOld(a), _) => self.anchor_leaf(*a, &term, TermOp::AnchorOld),
                _ => {
                    let mut args = vec![];
                    for arg in &term.args {
                        args.push(self.rewrite(*arg, seen, made)?);
                    }
                    if args == term.args {
                        root
                    } else {
                        self.terms.add(Term { args, ..term })
                    }
                }
            }
        };
        if new != root {
            let interval = self.terms.interval(root);
            self.terms.set_interval(new, interval);
        }
        made.insert(root, new);
        Ok(new)
    }

    fn anchor_leaf(&mut self, search: AnchorId, term: &Term, op: impl Fn(AnchorId) -> TermOp) -> TermId {
        let id = self.anchor_of.get(&search).copied().unwrap_or(search);
        let axes = self.terms.get(self.streams.anchors[search.0 as usize]).axes;
        self.terms.add(Term { op: op(id), args: vec![], dtype: term.dtype, axes })
    }

    /// Anchor values at which a body or a coefficient of the pass breaks down.
    fn find_degenerate(&mut self, order: &[Item]) {
        let (mut bodies, mut coefficients) = (vec![], vec![]);
        for item in order {
            let Item::State(id) = item else { continue };
            let state = &self.made.states[id.0 as usize];
            bodies.push(state.body);
            match &state.carry {
                Carry::Keep => {}
                Carry::Linear(row) => coefficients.extend(row.iter().map(|(c, _)| *c)),
                Carry::Shift(c) | Carry::Scale(c) => coefficients.push(*c),
            }
        }
        for item in order {
            let Item::Anchor(id) = item else { continue };
            self.made.anchors[id.0 as usize].degenerate =
                degenerate::degenerate(self.terms, *id, &bodies, &coefficients);
        }
    }

    /// Groups whose states a result needs.
    pub fn needs(&mut self, groups: &Groups, id: TermId) -> Vec<usize> {
        let states = states_in(self.terms, id, &Inline::new());
        states.iter().filter_map(|s| groups.of.get(s).copied()).collect()
    }
}
