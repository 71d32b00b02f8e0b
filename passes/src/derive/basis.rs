//! Closed bases: when one coefficient is not enough.
//!
//! A body is written as a combination of terms at the *old* anchors, with coefficients free of the streamed axes:
//! `u(x, new) = sum_l c_l(old, new) * b_l(x, old)`. Combinations of products multiply, those of sums add; at the leaves the
//! e-graph finds a factor ([`rho::search`]) or a summand. If the same holds, with the same few terms, for each `b_l`, then the
//! sums of the `b_l` are a state. For `(x - a)^2` this gives `{(x - a)^2, x - a, 1}` and the pairwise form of the variance
//! (Chan, Golub and LeVeque, 1983); for `exp(x - a) * (x - a)` the two terms `{exp(x - a) * (x - a), exp(x - a)}`.

use super::prefix::Prefixes;
use super::probe::{Claim, Probes, Verdict};
use super::rho::{self, Relation};
use super::{mentions_anchor, Correction, Refusal};
use crate::term::{Term, TermId, TermOp, Terms};
use onefold_ir::{AxisSet, BinaryOp, UnaryOp};
use std::collections::HashMap;

/// The largest basis: beyond, a second stream is cheaper than the state.
const MAX_BASIS: usize = 6;

/// A combination: coefficients (free of the streamed axes) times terms.
type Combination = Vec<(TermId, TermId)>;

/// Sums and logarithms move by a summand, most other things by a factor.
fn likely_first(op: &TermOp) -> [Relation; 2] {
    match op {
        TermOp::Binary(BinaryOp::Add | BinaryOp::Sub) | TermOp::Unary(UnaryOp::Log | UnaryOp::Log2) => {
            [Relation::Difference, Relation::Quotient]
        }
        _ => [Relation::Quotient, Relation::Difference],
    }
}

/// What searches over one stream have found and drawn so far.
#[derive(Debug)]
pub struct Known {
    relations: HashMap<(TermId, Relation), Result<TermId, Refusal>>,
    probes: Probes,
}

impl Known {
    /// Of streams along some axes.
    pub fn new(axes: AxisSet) -> Known {
        Known { relations: HashMap::new(), probes: Probes::new(axes) }
    }
}

/// One search, with what it has found so far.
pub struct Search<'a> {
    /// Where terms live.
    terms: &'a mut Terms,
    /// What each anchor stands for.
    anchors: &'a [TermId],
    /// Streamed axes.
    axes: AxisSet,
    memo: HashMap<TermId, Option<Combination>>,
    known: &'a mut Known,
    /// Of all that went wrong, what came furthest.
    why: Refusal,
}

impl<'a> Search<'a> {
    /// A search over streamed axes for a body.
    pub fn new(
        terms: &'a mut Terms,
        anchors: &'a [TermId],
        axes: AxisSet,
        known: &'a mut Known,
        body: TermId,
    ) -> Search<'a> {
        known.probes.note_literals(terms, &[body]);
        Search { terms, anchors, axes, memo: HashMap::new(), known, why: Refusal::NoLaw(body) }
    }

    /// The correction of a sum over the body.
    ///
    /// # Errors
    /// There is none that holds at every prefix.
    pub fn sum(&mut self, body: TermId) -> Result<Correction, Refusal> {
        let one = rho::one(self.terms, self.terms.get(body).dtype);
        let mut bodies = vec![self.product(body, one)];
        let mut rows: Vec<Vec<(TermId, usize)>> = vec![];
        while rows.len() < bodies.len() {
            let body = bodies[rows.len()];
            let mut row = vec![];
            let Some(combination) = self.combination(body) else { return Err(self.why.clone()) };
            self.check(&Claim { term: body, products: &combination, summand: None })?;
            for (coefficient, term) in combination {
                let at = bodies.iter().position(|b| *b == term).unwrap_or_else(|| {
                    bodies.push(term);
                    bodies.len() - 1
                });
                row.push((coefficient, at));
            }
            if bodies.len() > MAX_BASIS {
                return Err(Refusal::BasisTooLarge);
            }
            rows.push(row);
        }
        let correction = Correction::Linear { bodies, rows };
        self.prefixes().coefficients(&correction.coefficients())?;
        Ok(correction)
    }

    /// The correction of a maximum, a minimum or, if `selects`, of something of which the position counts too.
    ///
    /// # Errors
    /// There is none that holds at every prefix.
    pub fn extremum(&mut self, body: TermId, selects: bool) -> Result<Correction, Refusal> {
        for relation in likely_first(&self.terms.get(body).op.clone()) {
            let Some(found) = self.relation(body, relation) else { continue };
            self.prefixes().coefficients(&[found])?;
            match relation {
                Relation::Difference => return Ok(Correction::Shift(found)),
                // A factor of 0 leaves the largest value, which is 0 then, but not its place.
                Relation::Quotient if self.is_scale(found, selects) => return Ok(Correction::Scale(found)),
                Relation::Quotient => self.blame(Refusal::Sign(found)),
            }
        }
        Err(self.why.clone())
    }

    fn is_scale(&self, found: TermId, selects: bool) -> bool {
        let mut prefixes = self.prefixes();
        prefixes.is_positive(found) || !selects && prefixes.interval(found).is_nonnegative()
    }

    fn prefixes(&self) -> Prefixes<'_> {
        Prefixes::new(self.terms, self.anchors, self.axes)
    }

    fn blame(&mut self, why: Refusal) {
        if why.rank() > self.why.rank() {
            self.why = why;
        }
    }

    /// A factor or a summand from the e-graph, checked.
    fn relation(&mut self, body: TermId, relation: Relation) -> Option<TermId> {
        let found = match self.known.relations.get(&(body, relation)) {
            Some(known) => known.clone(),
            None => {
                let found = self.find_relation(body, relation);
                self.known.relations.insert((body, relation), found.clone());
                found
            }
        };
        found.map_err(|why| self.blame(why)).ok()
    }

    fn find_relation(&mut self, body: TermId, relation: Relation) -> Result<TermId, Refusal> {
        let found = rho::search(self.terms, body, self.axes, relation).ok_or(Refusal::NoLaw(body))?;
        let factor = [(found, body)];
        let claim = match relation {
            Relation::Quotient => Claim { term: body, products: &factor, summand: None },
            Relation::Difference => Claim { term: body, products: &[], summand: Some(found) },
        };
        self.check(&claim)?;
        Ok(found)
    }

    fn check(&mut self, claim: &Claim<'_>) -> Result<(), Refusal> {
        if !mentions_anchor(self.terms, claim.term) {
            return Ok(());
        }
        match self.known.probes.check(self.terms, self.anchors, claim) {
            Verdict::Holds => Ok(()),
            Verdict::Fails { found, wanted } => Err(Refusal::Fails { term: claim.term, found, wanted }),
            Verdict::Untested => Err(Refusal::Untested(claim.term)),
        }
    }

    fn combination(&mut self, u: TermId) -> Option<Combination> {
        if let Some(known) = self.memo.get(&u) {
            return known.clone();
        }
        let found = self.find(u);
        self.memo.insert(u, found.clone());
        found
    }

    fn find(&mut self, u: TermId) -> Option<Combination> {
        let term = self.terms.get(u).clone();
        let one = rho::one(self.terms, term.dtype);
        if !mentions_anchor(self.terms, u) {
            return Some(vec![(one, u)]);
        }
        if term.axes.intersect(self.axes).is_empty() {
            return Some(vec![(u, one)]);
        }
        // Products come apart without a search. Of a sum the difference is tried first, of anything else the quotient.
        if let Some(found) = self.structural_product(&term, one) {
            return Some(found);
        }
        if let Some(summand) = self.structural_shift(u) {
            return Some(vec![(one, u), (summand, one)]);
        }
        for relation in likely_first(&term.op) {
            if let Some(found) = self.relation(u, relation) {
                return Some(match relation {
                    Relation::Quotient => vec![(found, u)],
                    Relation::Difference => vec![(one, u), (found, one)],
                });
            }
        }
        match term.op {
            TermOp::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => self.sum_of(u, op, &term, one),
            TermOp::Unary(UnaryOp::Neg) => {
                let inner = self.combination(term.args[0])?;
                Some(inner.into_iter().map(|(c, t)| (self.terms.unary(UnaryOp::Neg, c), t)).collect())
            }
            TermOp::Select if !mentions_anchor(self.terms, term.args[0]) => self.branches(&term.args, one),
            TermOp::Cast if self.terms.get(term.args[0]).dtype.is_float() => {
                let inner = self.combination(term.args[0])?;
                let cast = |terms: &mut Terms, x: TermId| terms.make(TermOp::Cast, term.dtype, vec![x]);
                Some(inner.into_iter().map(|(c, t)| (cast(self.terms, c), cast(self.terms, t))).collect())
            }
            _ => None,
        }
    }

    /// Of a sum or difference. Two terms that each move by a factor come apart. Otherwise it stays whole and its change is added: `y - b * x`
    /// is a difference of near values, which sums of `y` and of `x` would not give back.
    fn sum_of(&mut self, u: TermId, op: BinaryOp, term: &Term, one: TermId) -> Option<Combination> {
        let (left, right) = (self.combination(term.args[0])?, self.combination(term.args[1])?);
        let scales = |side: &Combination, of: TermId| matches!(side[..], [(c, t)] if t == of && c != one);
        if scales(&left, term.args[0]) && scales(&right, term.args[1]) {
            let mut all = left;
            for (c, t) in right {
                let c = if op == BinaryOp::Sub { self.terms.unary(UnaryOp::Neg, c) } else { c };
                all.push((c, t));
            }
            return Some(self.collect(all));
        }
        let mut all = vec![(one, u)];
        all.extend(self.change(u)?);
        Some(self.collect(all))
    }

    /// By which combination of terms a term changes: `u(new) - u(old)`.
    fn change(&mut self, u: TermId) -> Option<Combination> {
        if !mentions_anchor(self.terms, u) {
            return Some(vec![]);
        }
        let term = self.terms.get(u).clone();
        let one = rho::one(self.terms, term.dtype);
        let is_free = |terms: &Terms, axes: AxisSet, t: TermId| terms.get(t).axes.intersect(axes).is_empty();
        if is_free(self.terms, self.axes, u) {
            return Some(vec![(self.moved(u), one)]);
        }
        match term.op {
            TermOp::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let mut all = self.change(term.args[0])?;
                for (c, t) in self.change(term.args[1])? {
                    let c = if op == BinaryOp::Sub { self.negate_shift(c) } else { c };
                    all.push((c, t));
                }
                return Some(all);
            }
            TermOp::Unary(UnaryOp::Neg) => {
                let inner = self.change(term.args[0])?;
                return Some(inner.into_iter().map(|(c, t)| (self.negate_shift(c), t)).collect());
            }
            TermOp::Binary(BinaryOp::Mul) => {
                for (factor, rest) in [(term.args[0], term.args[1]), (term.args[1], term.args[0])] {
                    if is_free(self.terms, self.axes, factor) && !mentions_anchor(self.terms, rest) {
                        return Some(vec![(self.moved(factor), rest)]);
                    }
                }
            }
            _ => {}
        }
        let mut all = self.combination(u)?;
        let itself = all.iter().position(|(_, t)| *t == u)?;
        match all[itself].0 {
            c if c == one => drop(all.remove(itself)),
            c => all[itself].0 = self.terms.binary(BinaryOp::Sub, c, one),
        }
        Some(all)
    }

    /// `u(new) - u(old)` of a term free of the streamed axes.
    fn moved(&mut self, u: TermId) -> TermId {
        let old = self.at_old(u);
        self.terms.binary(BinaryOp::Sub, u, old)
    }

    /// A term with old anchors in place of new ones.
    fn at_old(&mut self, u: TermId) -> TermId {
        let mut made: HashMap<TermId, TermId> = HashMap::new();
        for id in self.terms.reachable(&[u]) {
            let term = self.terms.get(id).clone();
            let op = match term.op {
                TermOp::Anchor(a) => TermOp::AnchorOld(a),
                op => op,
            };
            let args = term.args.iter().map(|a| made[a]).collect();
            made.insert(id, self.terms.add(Term { op, args, ..term }));
        }
        made[&u]
    }

    fn structural_product(&mut self, term: &Term, one: TermId) -> Option<Combination> {
        let is_quotient = match term.op {
            TermOp::Binary(BinaryOp::Mul) => false,
            TermOp::Binary(BinaryOp::Div) if term.args[0] != one => true,
            _ => return None,
        };
        let b = if is_quotient { self.terms.binary(BinaryOp::Div, one, term.args[1]) } else { term.args[1] };
        let (left, right) = (self.factor(term.args[0])?, self.factor(b)?);
        if let ([(c, t)], [(d, u)], true) = (&left[..], &right[..], is_quotient) {
            if *t == term.args[0] && *u == b {
                // Each side only scales: the quotient stays a quotient.
                let quotient = self.terms.binary(BinaryOp::Div, *t, term.args[1]);
                return Some(vec![(self.product(*c, *d), quotient)]);
            }
        }
        self.multiply(&left, &right)
    }

    /// The summand by which a sum moves, if each of its operands moves by one: differences of sums are sums of differences.
    fn structural_shift(&mut self, u: TermId) -> Option<TermId> {
        let term = self.terms.get(u).clone();
        let sides = match term.op {
            TermOp::Binary(BinaryOp::Add | BinaryOp::Sub) | TermOp::Unary(UnaryOp::Neg) => {
                term.args.iter().map(|a| self.shift(*a)).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        };
        let zero = self.terms.float(0.0, term.dtype);
        Some(match (&term.op, &sides[..]) {
            (TermOp::Binary(_), [x, y]) if *y == zero => *x,
            (TermOp::Binary(BinaryOp::Add), [x, y]) if *x == zero => *y,
            (TermOp::Binary(op), [x, y]) if *x != zero => self.terms.binary(*op, *x, *y),
            (_, sides) => {
                let last = sides[sides.len() - 1];
                self.negate_shift(last)
            }
        })
    }

    fn shift(&mut self, u: TermId) -> Option<TermId> {
        let dtype = self.terms.get(u).dtype;
        if !mentions_anchor(self.terms, u) {
            return Some(self.terms.float(0.0, dtype));
        }
        self.structural_shift(u).or_else(|| self.relation(u, Relation::Difference))
    }

    /// `old - new` for `new - old`, else a negation.
    fn negate_shift(&mut self, shift: TermId) -> TermId {
        let term = self.terms.get(shift).clone();
        match term.op {
            TermOp::Binary(BinaryOp::Sub) => self.terms.binary(BinaryOp::Sub, term.args[1], term.args[0]),
            _ => self.terms.unary(UnaryOp::Neg, shift),
        }
    }

    /// The combination of one factor of a product. A factor free of the streamed axes stays in the term: `x / new` is
    /// `x / old` times `old / new`, which keeps it in range, and not `x` times `1 / new`.
    fn factor(&mut self, u: TermId) -> Option<Combination> {
        let free = self.terms.get(u).axes.intersect(self.axes).is_empty();
        if free && mentions_anchor(self.terms, u) {
            if let Some(ratio) = self.relation(u, Relation::Quotient) {
                return Some(vec![(ratio, u)]);
            }
        }
        self.combination(u)
    }

    /// `select(c, a, b) = select(c, a, 0) + select(c, 0, b)`, each a combination.
    fn branches(&mut self, args: &[TermId], one: TermId) -> Option<Combination> {
        let dtype = self.terms.get(one).dtype;
        let zero = self.terms.float(0.0, dtype);
        let mut all = vec![];
        for side in [1, 2] {
            for (c, t) in self.combination(args[side])? {
                if t == zero {
                    continue;
                }
                let operands = if side == 1 { vec![args[0], t, zero] } else { vec![args[0], zero, t] };
                all.push((c, self.terms.make(TermOp::Select, dtype, operands)));
            }
        }
        Some(self.collect(all))
    }

    fn multiply(&mut self, a: &Combination, b: &Combination) -> Option<Combination> {
        if a.len() * b.len() > 2 * MAX_BASIS {
            return None;
        }
        let mut all = vec![];
        for (c, t) in a {
            for (d, u) in b {
                let coefficient = self.product(*c, *d);
                let term = self.product(*t, *u);
                all.push((coefficient, term));
            }
        }
        Some(self.collect(all))
    }

    /// A product in a normal form, so that equal basis elements are one.
    fn product(&mut self, a: TermId, b: TermId) -> TermId {
        let mut factors = vec![];
        for x in [a, b] {
            self.factors(x, &mut factors);
        }
        factors.sort_unstable();
        let one = rho::one(self.terms, self.terms.get(a).dtype);
        factors.retain(|f| *f != one);
        factors.into_iter().reduce(|a, b| self.terms.binary(BinaryOp::Mul, a, b)).unwrap_or(one)
    }

    fn factors(&self, x: TermId, out: &mut Vec<TermId>) {
        let term = self.terms.get(x);
        if term.op == TermOp::Binary(BinaryOp::Mul) {
            term.args.iter().for_each(|a| self.factors(*a, out));
        } else {
            out.push(x);
        }
    }

    /// Coefficients of one term added up, terms in order of first appearance.
    fn collect(&mut self, all: Combination) -> Combination {
        let mut collected: Combination = vec![];
        for (c, t) in all {
            match collected.iter_mut().find(|(_, u)| *u == t) {
                Some(entry) => entry.0 = self.terms.binary(BinaryOp::Add, entry.0, c),
                None => collected.push((c, t)),
            }
        }
        collected
    }
}
