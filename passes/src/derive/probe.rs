//! Laws checked by multiplying back on rows of numbers.
//!
//! A correction is found by cancelling factors that may be zero and by laws that hold for one sign only, and it will be used between
//! the anchors of a prefix of a row and those of a longer one. So it is tried on just these: short rows of numbers of every
//! magnitude, their anchors computed from the first elements and from all of them, and what the law makes of the old value of each
//! element seen compared with its new one, in f64. What feeds a term (arrays, reductions over other axes) is drawn; all else is evaluated.

use super::anchors_of;
use super::measured::{apply, reduce, Measured};
use crate::fold::AnchorId;
use crate::interval::Interval;
use crate::term::{Term, TermId, TermOp, Terms};
use onefold_ir::{AxisSet, DType, Literal};
use std::collections::HashMap;
use std::rc::Rc;

/// Rows tried.
const ROWS: usize = 64;
/// Elements of a row, and how many of them the old anchors have seen.
const LENGTH: usize = 5;
const SEEN: usize = 3;
/// Rows on which a law must have said something.
const MIN_VALID: usize = 8;
/// Rounding errors allowed for each one that was counted.
const SLACK: f64 = 16.0;
/// A law says something where it is right to this share of the value.
const MEANINGFUL: f64 = 1e-6;
/// Below this, numbers are subnormal or were on the way, and have no relative error to speak of.
const TINY: f64 = 1e-290;

/// Which anchors a term is evaluated at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum When {
    /// Those of the prefix.
    Old,
    /// Those of the whole row.
    New,
    /// Inside the value of a prefix's anchor, where lengths are numbers of elements seen too.
    Prefix,
}

/// What the check of a law found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The law holds.
    Holds,
    /// It gives `found` where the term is `wanted`.
    Fails {
        /// By the law.
        found: f64,
        /// By the term.
        wanted: f64,
    },
    /// The term is a number on hardly any row.
    Untested,
}

/// A law: a term at new anchors as a sum of products of coefficients and terms at old ones, and one more coefficient alone.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The term.
    pub term: TermId,
    /// Coefficients and what they multiply.
    pub products: &'a [(TermId, TermId)],
    /// The summand alone.
    pub summand: Option<TermId>,
}

type Column = Rc<[Measured]>;

/// Rows of numbers for one stream, and the terms evaluated on them: a column has a value for each element of each row.
#[derive(Debug)]
pub struct Probes {
    axes: AxisSet,
    columns: HashMap<(TermId, When), Column>,
    /// Whether there is a reduction along the stream in a term.
    reduces: HashMap<TermId, bool>,
    literals: Vec<f64>,
}

impl Probes {
    /// For streams along some axes.
    pub fn new(axes: AxisSet) -> Probes {
        Probes { axes, columns: HashMap::new(), reduces: HashMap::new(), literals: vec![0.0, 1.0] }
    }

    /// Remember the numbers in some terms: rows hold them and what lies beside them. Has an effect on arrays not yet drawn.
    pub fn note_literals(&mut self, terms: &Terms, roots: &[TermId]) {
        for id in terms.reachable(roots) {
            if let TermOp::Literal(Literal::Float(v)) = terms.get(id).op {
                if v.is_finite() && !self.literals.contains(&v) && self.literals.len() < 16 {
                    self.literals.push(v);
                }
            }
        }
    }

    /// Whether a law holds wherever the term is a number; `anchors` says what each anchor stands for.
    ///
    /// A law that gives NaN or an infinity there is wrong, unless an anchor is 0, infinite or NaN: then a surrogate stands in.
    pub fn check(&mut self, terms: &Terms, anchors: &[TermId], claim: &Claim<'_>) -> Verdict {
        let mut probe = |id: TermId, when: When| self.column(terms, anchors, id, when);
        let wanted = probe(claim.term, When::New);
        let products: Vec<(Column, Column)> =
            claim.products.iter().map(|(c, t)| (probe(*c, When::New), probe(*t, When::Old))).collect();
        let summand = claim.summand.map(|c| (probe(c, When::New), probe(claim.term, When::Old)));
        let mut roots: Vec<TermId> = claim.products.iter().flat_map(|(c, t)| [*c, *t]).chain(claim.summand).collect();
        roots.push(claim.term);
        let moving: Vec<[Column; 2]> = anchors_of(terms, &roots)
            .iter()
            .map(|a| [probe(anchors[a.0 as usize], When::Prefix), probe(anchors[a.0 as usize], When::New)])
            .collect();
        let mut valid = 0;
        for row in 0..ROWS {
            let mut says = false;
            for at in row * LENGTH..row * LENGTH + SEEN {
                let wanted = wanted[at];
                if wanted.value.is_infinite() {
                    continue;
                }
                let parts = products.iter().map(|(c, t)| c[at].times(t[at]));
                let parts = parts.chain(summand.iter().flat_map(|(c, t)| [c[at], t[at]]));
                let found = parts.fold(Measured::exact(0.0), Measured::plus);
                let stands_in = |a: &[Column; 2]| a.iter().any(|c| c[at].value == 0.0 || !c[at].value.is_finite());
                if !found.value.is_finite() && moving.iter().any(stands_in) {
                    continue;
                }
                let allowed = SLACK * (found.error + wanted.error) + TINY;
                let agrees = if wanted.value.is_nan() {
                    !found.value.is_finite()
                } else {
                    found.value.is_finite() && (allowed.is_nan() || (found.value - wanted.value).abs() <= allowed)
                };
                if !agrees {
                    return Verdict::Fails { found: found.value, wanted: wanted.value };
                }
                says |= allowed <= MEANINGFUL * wanted.value.abs().max(found.error);
            }
            valid += usize::from(says);
        }
        if valid < MIN_VALID {
            return Verdict::Untested;
        }
        Verdict::Holds
    }

    /// A term on all elements of all rows.
    fn column(&mut self, terms: &Terms, anchors: &[TermId], id: TermId, when: When) -> Column {
        let first = self.canonical(terms, id, when);
        let mut open = vec![first];
        while let Some(&(id, when)) = open.last() {
            if self.columns.contains_key(&(id, when)) {
                open.pop();
                continue;
            }
            let term = terms.get(id);
            let needs = self.needs(terms, term, anchors, when);
            let missing = needs.iter().filter(|need| !self.columns.contains_key(*need)).copied();
            let before = open.len();
            open.extend(missing);
            if open.len() == before {
                open.pop();
                let args: Vec<Column> = needs.iter().map(|need| self.columns[need].clone()).collect();
                let column = self.evaluate(terms, id, when, &args);
                self.columns.insert((id, when), column);
            }
        }
        self.columns[&first].clone()
    }

    /// Where a term is evaluated: what would be an anchor in a body is one inside an anchor's reductions too.
    fn canonical(&mut self, terms: &Terms, id: TermId, when: When) -> (TermId, When) {
        let is_free = terms.get(id).axes.intersect(self.axes).is_empty();
        if when == When::Old && is_free && self.reduces(terms, id) {
            return (id, When::Prefix);
        }
        (id, when)
    }

    fn reduces(&mut self, terms: &Terms, id: TermId) -> bool {
        if let Some(known) = self.reduces.get(&id) {
            return *known;
        }
        let term = terms.get(id);
        let found = matches!(term.op, TermOp::Reduce(_, axes) if axes == self.axes)
            || term.args.iter().any(|a| self.reduces(terms, *a));
        self.reduces.insert(id, found);
        found
    }

    /// What must be known before a term is; nothing for what is drawn.
    fn needs(&mut self, terms: &Terms, term: &Term, anchors: &[TermId], when: When) -> Vec<(TermId, When)> {
        let anchor = |a: &AnchorId, when: When| vec![(anchors[a.0 as usize], when)];
        match &term.op {
            TermOp::Anchor(a) => anchor(a, if when == When::New { When::New } else { When::Prefix }),
            TermOp::AnchorOld(a) => anchor(a, When::Prefix),
            TermOp::Load { .. } | TermOp::ArgMax(_) | TermOp::TopK { .. } => vec![],
            // Positions and labels: rows are too short for what is said of them.
            TermOp::Compare(_) if !terms.get(term.args[0]).dtype.is_float() => vec![],
            // Lengths inside a reduction are those of the row.
            TermOp::Reduce(_, axes) if *axes == self.axes => {
                let when = if when == When::New { When::New } else { When::Old };
                vec![self.canonical(terms, term.args[0], when)]
            }
            TermOp::Reduce(..) => vec![],
            _ => term.args.iter().map(|a| self.canonical(terms, *a, when)).collect(),
        }
    }

    fn evaluate(&self, terms: &Terms, id: TermId, when: When, args: &[Column]) -> Column {
        let term = terms.get(id);
        let each = |f: &dyn Fn(usize) -> f64| (0..ROWS * LENGTH).map(|i| Measured::exact(f(i))).collect();
        match &term.op {
            TermOp::Anchor(_) | TermOp::AnchorOld(_) => args[0].clone(),
            TermOp::Reduce(op, _) if !args.is_empty() => {
                let seen = if when == When::New { LENGTH } else { SEEN };
                (0..ROWS * LENGTH).map(|i| reduce(*op, &args[0][i / LENGTH * LENGTH..][..seen])).collect()
            }
            TermOp::Index(axis) if self.axes.contains(*axis) => {
                each(&|i| if self.is_outermost(AxisSet::one(*axis)) { (i % LENGTH) as f64 } else { 0.0 })
            }
            TermOp::Size(axis) if self.axes.contains(*axis) => {
                let seen = if when == When::Prefix { SEEN } else { LENGTH };
                each(&|_| if self.is_outermost(AxisSet::one(*axis)) { seen as f64 } else { 1.0 })
            }
            TermOp::Literal(value) => each(&|_| value.as_f64()),
            TermOp::Size(_) => each(&|i| (2 + draw(id, i / LENGTH, 0) % 7) as f64),
            _ if !args.is_empty() && apply(term, &|n| args[n][0]).is_some() => {
                let nan = Measured::exact(f64::NAN);
                (0..ROWS * LENGTH).map(|i| apply(term, &|n| args[n][i]).unwrap_or(nan)).collect()
            }
            _ => {
                let varies = !term.axes.intersect(self.axes).is_empty();
                let salt = if matches!(term.op, TermOp::ArgMax(_) | TermOp::TopK { .. }) && when != When::New {
                    99
                } else {
                    0
                };
                let bounds = terms.interval(id);
                each(&|i| self.number(id, term.dtype, bounds, (i / LENGTH, if varies { i % LENGTH } else { salt })))
            }
        }
    }

    /// Of several streamed axes one has all the elements.
    fn is_outermost(&self, axis: AxisSet) -> bool {
        self.axes.iter().next().is_some_and(|first| axis.contains(first))
    }

    /// The number that an array holds at an element of a row.
    fn number(&self, id: TermId, dtype: DType, bounds: Interval, (row, at): (usize, usize)) -> f64 {
        let bits = draw(id, row, at);
        match dtype {
            // Now few, now many, now none or all of a row.
            DType::Bool => return f64::from(u8::from(bits % 8 < [4, 1, 7, 0, 8][row / 2 % 5])),
            d if !d.is_float() => return (bits % 4) as f64,
            _ => {}
        }
        let largest = if dtype == DType::F16 { 4.0 } else { 37.0 };
        // One magnitude for the whole array in this row, and one for this element alone.
        let of_array = draw(id, row, usize::MAX);
        let magnitude = |bits: u64, lo: f64, hi: f64| 10f64.powf(lo + (hi - lo) * (unit(mix(bits)) + 1.0) / 2.0);
        let sign = |bits: u64| if bits & 2 == 0 { 1.0 } else { -1.0 };
        let ordinary = unit(bits) * 3.0;
        let value = match row % 8 {
            0 => ordinary,
            1 if bits.is_multiple_of(3) => 0.0,
            1 => ordinary,
            // Rows whose beginning differs from the rest, by a little or by much.
            2 if at < SEEN => ordinary + sign(of_array) * magnitude(of_array, 0.0, 4.0),
            2 => ordinary,
            3 => sign(bits) * magnitude(bits, -largest, largest),
            4 => ordinary * magnitude(of_array, -largest, largest),
            5 => {
                let literal = self.literals[(bits >> 8) as usize % self.literals.len()];
                literal + [0.0, 1e-3, -1e-3, 1.0, -1.0][(bits >> 16) as usize % 5]
            }
            6 => ordinary + sign(of_array) * magnitude(of_array, 2.0, largest.min(6.0)),
            _ => sign(of_array) * magnitude(of_array, -2.0, 3.0) * at as f64 + ordinary,
        };
        let value = match row / 8 % 4 {
            1 => value.abs(),
            2 => -value.abs(),
            3 => value.abs() * sign(of_array),
            _ => value,
        };
        let value = if bounds.is_nonnegative() {
            value.abs()
        } else if bounds.is_nonpositive() {
            -value.abs()
        } else {
            value
        };
        value.max(bounds.lo).min(bounds.hi)
    }
}

fn draw(id: TermId, row: usize, at: usize) -> u64 {
    mix(mix(u64::from(id.0) << 32 | row as u64) ^ at as u64)
}

/// A number in (-1, 1).
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// splitmix64
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
