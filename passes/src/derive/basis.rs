//! Closed bases: when one coefficient is not enough.
//!
//! A body is written as a combination of terms at the *old* anchors, with coefficients free of the streamed axes:
//! `u(x, new) = sum_l c_l(old, new) * b_l(x, old)`. Combinations of products multiply, those of sums add; at the leaves the
//! e-graph finds a factor ([`rho::search`]) or a summand. If the same holds, with the same few terms, for each `b_l`, then the
//! sums of the `b_l` are a state. For `(x - a)^2` this gives `{(x - a)^2, x - a, 1}` and the pairwise form of the variance
//! (Chan, Golub and LeVeque, 1983); for `exp(x - a) * (x - a)` the two terms `{exp(x - a) * (x - a), exp(x - a)}`.

use super::probe::{anchors_of, holds, value};
use super::rho::{self, mentions_anchor, Relation};
use super::Correction;
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

/// Relations found so far, for each term, streamed axes and kind.
pub type Known = HashMap<(TermId, AxisSet, Relation), Option<TermId>>;

/// One search, with what it has found so far.
pub struct Search<'a> {
    /// Where terms live.
    pub terms: &'a mut Terms,
    /// Streamed axes.
    pub axes: AxisSet,
    memo: HashMap<TermId, Option<Combination>>,
    known: &'a mut Known,
}

impl<'a> Search<'a> {
    /// A search over streamed axes.
    pub fn new(terms: &'a mut Terms, axes: AxisSet, known: &'a mut Known) -> Search<'a> {
        Search { terms, axes, memo: HashMap::new(), known }
    }

    /// The correction of a sum over a body.
    pub fn sum(&mut self, body: TermId) -> Option<Correction> {
        let one = rho::one(self.terms, self.terms.get(body).dtype);
        let mut bodies = vec![self.product(body, one)];
        let mut rows = vec![];
        while rows.len() < bodies.len() {
            let mut row = vec![];
            for (coefficient, term) in self.combination(bodies[rows.len()])? {
                let at = bodies.iter().position(|b| *b == term).unwrap_or_else(|| {
                    bodies.push(term);
                    bodies.len() - 1
                });
                row.push((coefficient, at));
            }
            if bodies.len() > MAX_BASIS {
                return None;
            }
            self.verify(bodies[rows.len()], &row, &bodies).then_some(())?;
            rows.push(row);
        }
        Some(Correction::Linear { bodies, rows })
    }

    /// The correction of a maximum, a minimum or the like over a body.
    pub fn extremum(&mut self, body: TermId) -> Option<Correction> {
        for relation in likely_first(&self.terms.get(body).op.clone()) {
            let Some(found) = self.relation(body, relation) else { continue };
            match relation {
                Relation::Difference => return Some(Correction::Shift(found)),
                Relation::Quotient if self.is_positive(found) => return Some(Correction::Scale(found)),
                Relation::Quotient => {}
            }
        }
        None
    }

    fn is_positive(&self, scale: TermId) -> bool {
        let terms = &*self.terms;
        let anchors = anchors_of(terms, &[scale]);
        holds(terms, &anchors, |p| {
            let v = value(terms, scale, p, false);
            (if v > 0.0 || v.is_nan() { v } else { f64::MAX }, v)
        })
    }

    /// A factor or a summand from the e-graph, checked.
    fn relation(&mut self, body: TermId, relation: Relation) -> Option<TermId> {
        if let Some(known) = self.known.get(&(body, self.axes, relation)) {
            return *known;
        }
        let found = self.find_relation(body, relation);
        self.known.insert((body, self.axes, relation), found);
        found
    }

    fn find_relation(&mut self, body: TermId, relation: Relation) -> Option<TermId> {
        let found = rho::search(self.terms, body, self.axes, relation)?;
        let terms = &*self.terms;
        let anchors = anchors_of(terms, &[body, found]);
        let ok = holds(terms, &anchors, |p| {
            let (old, new) = (value(terms, body, p, true), value(terms, body, p, false));
            let moved = value(terms, found, p, false);
            (if relation == Relation::Quotient { old * moved } else { old + moved }, new)
        });
        ok.then_some(found)
    }

    fn verify(&self, body: TermId, row: &[(TermId, usize)], bodies: &[TermId]) -> bool {
        let terms = &*self.terms;
        let mut all = vec![body];
        all.extend(row.iter().map(|(c, _)| *c));
        let anchors = anchors_of(terms, &all);
        if anchors.is_empty() {
            return true;
        }
        holds(terms, &anchors, |p| {
            let moved =
                row.iter().map(|(c, at)| value(terms, *c, p, false) * value(terms, bodies[*at], p, true)).sum::<f64>();
            (moved, value(terms, body, p, false))
        })
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
            TermOp::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let mut all = self.combination(term.args[0])?;
                for (c, t) in self.combination(term.args[1])? {
                    let c = if op == BinaryOp::Sub { self.terms.unary(UnaryOp::Neg, c) } else { c };
                    all.push((c, t));
                }
                Some(self.collect(all))
            }
            TermOp::Unary(UnaryOp::Neg) => {
                let inner = self.combination(term.args[0])?;
                Some(inner.into_iter().map(|(c, t)| (self.terms.unary(UnaryOp::Neg, c), t)).collect())
            }
            TermOp::Select if !mentions_anchor(self.terms, term.args[0]) => self.branches(&term.args, one),
            _ => None,
        }
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
