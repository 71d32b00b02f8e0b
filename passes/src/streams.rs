//! Streams as a cost: how many times an axis must be run through before a term is known.
//!
//! An input has 0, an elementwise term the largest of its operands', a reduction over j one more than the largest of what its body needs
//! *uncorrected*. A reduction whose body depends on another's result r, with a correction, runs beside it: it has the number of r itself.

use crate::derive::basis::{Known, Search};
use crate::derive::prefix::{clamp, Prefixes};
use crate::derive::{anchors_of, Correction, Refusal};
use crate::fold::{Anchor, AnchorId};
use crate::term::{Term, TermId, TermOp, Terms};
use onefold_ir::{AxisId, AxisSet, ReduceOp};
use std::collections::{BTreeMap, HashMap, HashSet};

/// For each axis (only those above 0) the number of streams.
pub type Levels = BTreeMap<AxisId, u32>;

/// A reduction that runs beside those that its body depends on.
#[derive(Clone, Debug)]
pub struct Corrected {
    /// The j-free subterms of the body that depend on other reductions of the same stream, now anchors.
    pub anchors: Vec<AnchorId>,
    /// The body over anchors.
    pub body: TermId,
    /// How the old value moves. Bodies mention the anchors.
    pub correction: Correction,
}

/// What a correction is looked for in.
struct Stream {
    axes: AxisSet,
    level: u32,
    largest: bool,
}

/// Stream numbers of terms, and the corrections found on the way.
#[derive(Debug, Default)]
pub struct Streams {
    levels: HashMap<TermId, Levels>,
    corrected: HashMap<TermId, Result<Corrected, Refusal>>,
    known: HashMap<AxisSet, Known>,
    /// For each anchor the term it stands for.
    pub anchors: Vec<TermId>,
    /// Whether corrections are looked for; without them every dependence costs a stream.
    pub correct: bool,
}

impl Streams {
    /// Without anything known yet.
    pub fn new(correct: bool) -> Streams {
        Streams { correct, ..Streams::default() }
    }

    /// Stream numbers of a term.
    pub fn levels(&mut self, terms: &mut Terms, id: TermId) -> Levels {
        if let Some(known) = self.levels.get(&id) {
            return known.clone();
        }
        for below in terms.reachable(&[id]) {
            if !self.levels.contains_key(&below) {
                let levels = self.compute(terms, below);
                self.levels.insert(below, levels);
            }
        }
        self.levels[&id].clone()
    }

    /// The number of streams over all axes together, with one more for each axis along which a result is written although
    /// something along it had to be known first.
    pub fn total(&mut self, terms: &mut Terms, id: TermId) -> u32 {
        let free = terms.get(id).axes;
        let levels = self.levels(terms, id);
        levels.iter().map(|(axis, n)| n + u32::from(free.contains(*axis))).sum()
    }

    /// The correction of a reduction, if it depends on others of its stream and has one.
    pub fn corrected(&mut self, terms: &mut Terms, id: TermId) -> Option<Corrected> {
        self.levels(terms, id);
        self.corrected.get(&id).cloned()?.ok()
    }

    /// Why a reduction that depends on others of its stream needs a stream of its own.
    pub fn refused(&self, id: TermId) -> Option<&Refusal> {
        self.corrected.get(&id)?.as_ref().err()
    }

    /// The correction of a term whose stream number is known already.
    pub fn known_correction(&self, id: TermId) -> Option<&Corrected> {
        self.corrected.get(&id)?.as_ref().ok()
    }

    /// The anchors of the search, as programs have them, for names.
    pub fn named_anchors(&self, terms: &Terms) -> Vec<Anchor> {
        let named = |(n, value): (usize, &TermId)| Anchor {
            name: format!("a{n}"),
            dtype: terms.get(*value).dtype,
            value: *value,
            degenerate: vec![],
        };
        self.anchors.iter().enumerate().map(named).collect()
    }

    fn compute(&mut self, terms: &mut Terms, id: TermId) -> Levels {
        let term = terms.get(id).clone();
        let mut levels = Levels::new();
        for arg in &term.args {
            for (axis, n) in &self.levels[arg] {
                let entry = levels.entry(*axis).or_default();
                *entry = (*entry).max(*n);
            }
        }
        let Some(axes) = reduced(&term.op) else { return levels };
        let below = axes.iter().map(|a| levels.get(&a).copied().unwrap_or(0)).max().unwrap_or(0);
        let mut level = below + 1;
        if below > 0 && self.correct {
            let found = self.correct(terms, &term, axes, below);
            if found.is_ok() {
                level = below;
            }
            self.corrected.insert(id, found);
        }
        for axis in axes.iter() {
            levels.insert(axis, level);
        }
        levels
    }

    /// Look for a correction of a reduction whose body needs results at a stream number. Anchors are first the largest subterms free of the
    /// axes; if there is no law for those, the reductions themselves (`exp(x - m) - exp(-m)` has one in m, not in `exp(-m)`).
    fn correct(&mut self, terms: &mut Terms, term: &Term, axes: AxisSet, level: u32) -> Result<Corrected, Refusal> {
        if !terms.get(term.args[0]).dtype.is_float() || matches!(term.op, TermOp::Reduce(ReduceOp::Prod, _)) {
            return Err(Refusal::NoCarry);
        }
        let first = match self.correct_with(terms, term, Stream { axes, level, largest: true }) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        let second = self.correct_with(terms, term, Stream { axes, level, largest: false });
        second.map_err(|why| if why.rank() > first.rank() { why } else { first })
    }

    fn correct_with(&mut self, terms: &mut Terms, term: &Term, stream: Stream) -> Result<Corrected, Refusal> {
        let axes = stream.axes;
        let body = self.anchored(terms, term.args[0], &stream, &mut HashMap::new()).ok_or(Refusal::NotAnAnchor)?;
        // An anchor must be one value for all the elements that a state adds up.
        for anchor in anchors_of(terms, &[body]) {
            let value = self.anchors[anchor.0 as usize];
            if !terms.get(value).axes.is_subset(term.axes) {
                return Err(Refusal::NotScalar(value));
            }
        }
        let body = self.clamped(terms, body, axes);
        Prefixes::new(terms, &self.anchors, axes).bodies(&[body])?;
        let known = self.known.entry(axes).or_insert_with(|| Known::new(axes));
        let mut search = Search::new(terms, &self.anchors, axes, known, body);
        let correction = match term.op {
            TermOp::Reduce(ReduceOp::Sum, _) => search.sum(body)?,
            TermOp::Reduce(..) => search.extremum(body, false)?,
            _ => search.extremum(body, true)?,
        };
        Ok(Corrected { anchors: anchors_of(terms, &[body]), body, correction })
    }

    /// A body whose anchors are kept where exponentials of them are in range.
    fn clamped(&mut self, terms: &mut Terms, body: TermId, axes: AxisSet) -> TermId {
        let mut body = body;
        for (leaf, op, bound) in Prefixes::new(terms, &self.anchors, axes).clamps(body) {
            let TermOp::Anchor(anchor) = terms.get(leaf).op else { continue };
            let value = clamp(terms, self.anchors[anchor.0 as usize], op, bound);
            self.levels(terms, value);
            let kept = self.anchor(value);
            let (dtype, axes) = (terms.get(value).dtype, terms.get(value).axes);
            let kept = terms.add(Term { op: TermOp::Anchor(kept), args: vec![], dtype, axes });
            body = terms.replace(body, leaf, kept);
        }
        body
    }

    /// A body with anchors in place of what depends on the other reductions of its stream. `None` if something of that stream number
    /// varies along the axes, so that no anchor can stand for it.
    fn anchored(
        &mut self,
        terms: &mut Terms,
        id: TermId,
        stream: &Stream,
        made: &mut HashMap<TermId, TermId>,
    ) -> Option<TermId> {
        if let Some(&done) = made.get(&id) {
            return Some(done);
        }
        let levels = self.levels.get(&id);
        let needs = stream.axes.iter().any(|a| levels.and_then(|l| l.get(&a)).copied().unwrap_or(0) >= stream.level);
        let term = terms.get(id).clone();
        let is_free = term.axes.intersect(stream.axes).is_empty();
        let result = if !needs {
            id
        } else if is_free && (stream.largest || reduced(&term.op).is_some()) {
            if !self.is_direct(terms, id, stream) {
                return None;
            }
            let anchor = self.anchor(id);
            terms.add(Term { op: TermOp::Anchor(anchor), args: vec![], dtype: term.dtype, axes: term.axes })
        } else if reduced(&term.op).is_some() {
            return None;
        } else {
            let args = term.args.iter().map(|a| self.anchored(terms, *a, stream, made)).collect::<Option<Vec<_>>>()?;
            let interval = terms.interval(id);
            let new = terms.make(term.op, term.dtype, args);
            terms.set_interval(new, interval);
            // Anchored terms are never reduced over, only inspected; their numbers are those of what they replace.
            if let Some(levels) = self.levels.get(&id).cloned() {
                self.levels.insert(new, levels);
            }
            new
        };
        made.insert(id, result);
        Some(result)
    }

    /// Whether a term takes its stream number from reductions over the very axes, not from ones inside reductions over others,
    /// which are known only after the stream.
    fn is_direct(&self, terms: &Terms, id: TermId, stream: &Stream) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let levels = self.levels.get(&id);
            let needs = |a| levels.and_then(|l| l.get(&a)).copied().unwrap_or(0) >= stream.level;
            if !stream.axes.iter().any(needs) || !seen.insert(id) {
                continue;
            }
            let term = terms.get(id);
            match reduced(&term.op) {
                Some(axes) if axes != stream.axes => return false,
                Some(_) => {}
                None => open.extend(&term.args),
            }
        }
        true
    }

    fn anchor(&mut self, term: TermId) -> AnchorId {
        let at = self.anchors.iter().position(|t| *t == term).unwrap_or_else(|| {
            self.anchors.push(term);
            self.anchors.len() - 1
        });
        AnchorId(at as u32)
    }
}

/// The axes that an operator reduces; `None` for other operators.
pub fn reduced(op: &TermOp) -> Option<AxisSet> {
    match op {
        TermOp::Reduce(_, axes) => Some(*axes),
        TermOp::ArgMax(axis) | TermOp::TopK { axis, .. } => Some(AxisSet::one(*axis)),
        _ => None,
    }
}
