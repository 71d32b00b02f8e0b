//! Whether bodies and states stay in range while a row is being streamed.
//!
//! An anchor's value over what was seen so far may lie far from the final one: a mean that starts at -400 makes `exp(x - a)` overflow in
//! the second tile although no term of the formula does. Polynomials and quotients of finite numbers stay in range for all ordinary
//! data; exponentials need not. So for each exponential that mentions an anchor one of these must be known:
//!
//! * its argument is bounded above, by the intervals and order facts of the e-graph. A prefix of a row is a row, so what
//!   holds of every row (`x <= max_j(x)`) holds of every prefix and the elements in it;
//! * its argument is free of the streamed axes and never falls while the row goes on: then it is largest at the end, where the
//!   formula has it too.
//!
//! And the exponentials by which states are carried must not grow: `exp(old - new)` is at most 1 for an anchor that only rises. Otherwise
//! what has underflowed at one anchor would be missing at the next.

use super::measured::{apply, Measured};
use super::{anchors_of, Refusal};
use crate::interval::{self, Interval};
use crate::term::{Term, TermId, TermOp, Terms, WideOp};
use onefold_ir::{AxisSet, BinaryOp, CmpOp, DType, ReduceOp, UnaryOp};
use std::collections::HashMap;

/// Arguments of exponentials up to this are in range, with room for sums and factors of data.
const IN_RANGE: f64 = 60.0;
/// How much an exponential in a carry may grow: what underflowed before it stays negligible.
const MAX_GROWTH: f64 = 10.0;
/// An anchor is kept where exponentials of it alone have arguments up to this.
const CLAMP_TO: f64 = 40.0;

/// How a value moves while its row goes on, if it is not NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It does not.
    None,
    /// It never falls.
    Up,
    /// It never rises.
    Down,
    /// Either way.
    Any,
}

impl Drift {
    fn and(self, other: Drift) -> Drift {
        match (self, other) {
            (Drift::None, x) | (x, Drift::None) => x,
            (a, b) if a == b => a,
            _ => Drift::Any,
        }
    }

    fn flip(self) -> Drift {
        match self {
            Drift::Up => Drift::Down,
            Drift::Down => Drift::Up,
            other => other,
        }
    }

    /// Bounds on the value later minus the value before.
    fn difference(self) -> Interval {
        match self {
            Drift::None => Interval::point(0.0),
            Drift::Up => Interval::NONNEGATIVE,
            Drift::Down => Interval::new(f64::NEG_INFINITY, 0.0),
            Drift::Any => Interval::ANY,
        }
    }
}

/// What is known of the prefixes of a stream.
pub struct Prefixes<'a> {
    terms: &'a Terms,
    /// What each anchor stands for.
    anchors: &'a [TermId],
    axes: AxisSet,
    drifts: HashMap<(TermId, bool), Drift>,
    reduces: HashMap<TermId, bool>,
    intervals: HashMap<TermId, Interval>,
}

impl<'a> Prefixes<'a> {
    /// Of streams along some axes.
    pub fn new(terms: &'a Terms, anchors: &'a [TermId], axes: AxisSet) -> Prefixes<'a> {
        Prefixes { terms, anchors, axes, drifts: HashMap::new(), reduces: HashMap::new(), intervals: HashMap::new() }
    }

    /// Whether bodies, and the anchors that they mention, stay in range at every prefix.
    ///
    /// # Errors
    /// The exponential that may not.
    pub fn bodies(&mut self, bodies: &[TermId]) -> Result<(), Refusal> {
        let anchors = anchors_of(self.terms, bodies);
        let values: Vec<TermId> = anchors.iter().map(|a| self.anchors[a.0 as usize]).collect();
        let outside = self.outside_reductions(&values);
        let mentioning = self.mentioning(bodies);
        for id in mentioning.into_iter().chain(outside) {
            let Some(argument) = self.argument(id) else { continue };
            let is_free = self.terms.get(id).axes.intersect(self.axes).is_empty();
            let grows_only = is_free && matches!(self.drift(argument), Drift::Up | Drift::None);
            if !(grows_only || self.exponent(id).hi <= self.limit(id, IN_RANGE)) {
                return Err(Refusal::Unbounded(id));
            }
        }
        Ok(())
    }

    /// Whether the exponentials in coefficients do not grow.
    ///
    /// # Errors
    /// The exponential that may.
    pub fn coefficients(&mut self, coefficients: &[TermId]) -> Result<(), Refusal> {
        for id in self.mentioning(coefficients) {
            let Some(argument) = self.argument(id) else { continue };
            let below = self.terms.reachable(&[argument]);
            let moves = below.iter().any(|t| matches!(self.terms.get(*t).op, TermOp::AnchorOld(_)));
            let most = if moves { MAX_GROWTH } else { self.limit(id, IN_RANGE) };
            let grows_only = !moves && matches!(self.drift(argument), Drift::Up | Drift::None);
            if !grows_only && self.exponent(id).hi > most {
                return Err(Refusal::Unbounded(id));
            }
        }
        Ok(())
    }

    /// Whether a coefficient is known to be positive in the reals.
    pub fn is_positive(&mut self, id: TermId) -> bool {
        let term = self.terms.get(id);
        if self.interval(id).is_positive() {
            return true;
        }
        match &term.op {
            TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2) | TermOp::Wide(WideOp::Power | WideOp::Mantissa) => true,
            TermOp::Unary(UnaryOp::Sqrt | UnaryOp::Rsqrt) | TermOp::Cast => self.is_positive(term.args[0]),
            TermOp::Binary(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min) => {
                term.args.iter().all(|a| self.is_positive(*a))
            }
            TermOp::Binary(BinaryOp::Max) => term.args.iter().any(|a| self.is_positive(*a)),
            TermOp::Select => self.is_positive(term.args[1]) && self.is_positive(term.args[2]),
            TermOp::Reduce(..) | TermOp::Binary(BinaryOp::Pow) => self.is_positive(term.args[0]),
            TermOp::Anchor(a) | TermOp::AnchorOld(a) => self.is_positive(self.anchors[a.0 as usize]),
            TermOp::Size(_) | TermOp::Seen(_) => true,
            _ => false,
        }
    }

    /// Where an anchor must be kept so that exponentials of it alone stay in range, for each anchor of a body that needs it: bounds and the
    /// side. The law holds for any anchor, so keeping one back changes nothing; and where the final one lies outside, the formula has
    /// overflowed itself. Only anchors that move away from the bound are kept: the others' final values are what the formula has.
    pub fn clamps(&mut self, body: TermId) -> Vec<(TermId, BinaryOp, f64)> {
        let mut found: Vec<(TermId, BinaryOp, f64)> = vec![];
        for id in self.mentioning(&[body]) {
            let Some(argument) = self.argument(id) else { continue };
            let is_free = self.terms.get(id).axes.intersect(self.axes).is_empty();
            if !is_free || self.drift(argument) != Drift::Down || self.exponent(id).hi <= self.limit(id, IN_RANGE) {
                continue;
            }
            let below = self.terms.reachable(&[argument]);
            let is_leaf = |t: &&TermId| self.terms.get(**t).args.is_empty();
            let leaves: Vec<TermId> = below.iter().filter(is_leaf).copied().collect();
            let anchors: Vec<TermId> =
                leaves.iter().filter(|t| matches!(self.terms.get(**t).op, TermOp::Anchor(_))).copied().collect();
            let literals =
                leaves.iter().all(|t| matches!(self.terms.get(*t).op, TermOp::Anchor(_) | TermOp::Literal(_)));
            let ([anchor], true) = (&anchors[..], literals) else { continue };
            let (op, sign) = match self.drift(*anchor) {
                Drift::Up => (BinaryOp::Max, -1.0),
                Drift::Down => (BinaryOp::Min, 1.0),
                _ => continue,
            };
            let Some(bound) = self.last_in_range(id, *anchor, sign) else { continue };
            found.push((*anchor, op, bound));
        }
        found
    }

    /// The largest of some magnitudes at which an exponential of an anchor is in range.
    fn last_in_range(&self, exponential: TermId, anchor: TermId, sign: f64) -> Option<f64> {
        const MAGNITUDES: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];
        let fits = |m: f64| {
            let mut known: HashMap<TermId, f64> = HashMap::from([(anchor, sign * m)]);
            for id in self.terms.reachable(&[exponential]) {
                if id != anchor {
                    let term = self.terms.get(id);
                    let value = apply(term, &|n| Measured::exact(known[&term.args[n]]));
                    known.insert(id, value.map_or(f64::NAN, |v| v.value));
                }
            }
            known[&exponential].ln() <= CLAMP_TO
        };
        let found = MAGNITUDES.iter().take_while(|m| fits(**m)).last();
        found.map(|m| sign * m)
    }

    /// Terms below some roots that mention an anchor.
    fn mentioning(&self, roots: &[TermId]) -> Vec<TermId> {
        let mut mentions = vec![];
        for id in self.terms.reachable(roots) {
            let term = self.terms.get(id);
            let is_anchor = matches!(term.op, TermOp::Anchor(_) | TermOp::AnchorOld(_));
            if is_anchor || term.args.iter().any(|a| mentions.binary_search(a).is_ok()) {
                mentions.push(id);
            }
        }
        mentions
    }

    /// Terms of anchors' values that are not inside a reduction along the stream, but need one: bodies of those are checked where they are
    /// corrected.
    fn outside_reductions(&mut self, values: &[TermId]) -> Vec<TermId> {
        let mut found = vec![];
        let mut open = values.to_vec();
        while let Some(id) = open.pop() {
            let is_reduction = matches!(self.terms.get(id).op, TermOp::Reduce(_, axes) if axes == self.axes);
            if !is_reduction && !found.contains(&id) && self.drift(id) != Drift::None {
                found.push(id);
                open.extend(&self.terms.get(id).args);
            }
        }
        found.sort_unstable();
        found
    }

    /// What an exponential is of.
    fn argument(&self, id: TermId) -> Option<TermId> {
        let term = self.terms.get(id);
        let is_number = |t: TermId| matches!(self.terms.get(t).op, TermOp::Literal(_));
        match term.op {
            TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2) | TermOp::Wide(WideOp::Power) => Some(term.args[0]),
            TermOp::Binary(BinaryOp::Pow) if !is_number(term.args[1]) => Some(term.args[1]),
            _ => None,
        }
    }

    /// Bounds on the logarithm of an exponential.
    fn exponent(&mut self, id: TermId) -> Interval {
        let term = self.terms.get(id);
        match term.op {
            TermOp::Unary(UnaryOp::Exp) => self.interval(term.args[0]),
            TermOp::Unary(_) | TermOp::Wide(_) => {
                self.interval(term.args[0]).times(Interval::point(std::f64::consts::LN_2))
            }
            _ => {
                let value = self.interval(id);
                Interval::new(f64::NEG_INFINITY, value.hi.max(0.0).ln())
            }
        }
    }

    fn limit(&self, id: TermId, of_f32: f64) -> f64 {
        if self.terms.get(id).dtype == DType::F64 {
            8.0 * of_f32
        } else {
            of_f32
        }
    }

    /// Bounds on a term over anchors at every prefix.
    pub fn interval(&mut self, id: TermId) -> Interval {
        if let Some(known) = self.intervals.get(&id) {
            return *known;
        }
        let term = self.terms.get(id);
        let computed = match &term.op {
            TermOp::Anchor(a) | TermOp::AnchorOld(a) => self.terms.interval(self.anchors[a.0 as usize]),
            TermOp::Binary(BinaryOp::Add | BinaryOp::Sub) if term.dtype.is_float() => self.of_sum(id),
            TermOp::Reduce(..) | TermOp::Load { .. } => Interval::ANY,
            _ => {
                let args: Vec<Interval> = term.args.iter().map(|a| self.interval(*a)).collect();
                interval::of_term(&term.op, term.dtype, &args)
            }
        };
        let found = computed.intersect(self.terms.interval(id));
        self.intervals.insert(id, found);
        found
    }

    /// Of a sum, in which values at new and old anchors are paired.
    fn of_sum(&mut self, id: TermId) -> Interval {
        let mut signed = vec![];
        self.flatten(id, 1.0, &mut signed);
        let mut total = Interval::point(0.0);
        while let Some((sign, x)) = signed.pop() {
            let twin = signed.iter().enumerate().find_map(|(at, (s, y))| {
                let relative = self.same_but_for_age(x, *y)?;
                (s * relative == -sign).then_some(at)
            });
            let bounds = match twin {
                Some(at) => {
                    let (other, y) = signed.remove(at);
                    let (sign, later) = if self.is_old(x) { (other, y) } else { (sign, x) };
                    self.drift(later).difference().times(Interval::point(sign))
                }
                None => self.interval(x).times(Interval::point(sign)),
            };
            total = total.plus(bounds);
        }
        total
    }

    fn flatten(&self, id: TermId, sign: f64, out: &mut Vec<(f64, TermId)>) {
        let term = self.terms.get(id);
        match term.op {
            TermOp::Binary(BinaryOp::Add) => {
                term.args.iter().for_each(|a| self.flatten(*a, sign, out));
            }
            TermOp::Binary(BinaryOp::Sub) => {
                self.flatten(term.args[0], sign, out);
                self.flatten(term.args[1], -sign, out);
            }
            TermOp::Unary(UnaryOp::Neg) => self.flatten(term.args[0], -sign, out),
            _ => out.push((sign, id)),
        }
    }

    fn is_old(&self, id: TermId) -> bool {
        self.terms.reachable(&[id]).iter().any(|t| matches!(self.terms.get(*t).op, TermOp::AnchorOld(_)))
    }

    /// Whether two terms are one at new and at old anchors: 1 if they are, -1 if one is the negation of the other.
    fn same_but_for_age(&self, x: TermId, y: TermId) -> Option<f64> {
        let (a, b) = (self.terms.get(x), self.terms.get(y));
        match (&a.op, &b.op) {
            _ if x == y => Some(1.0),
            (TermOp::Anchor(p), TermOp::AnchorOld(q)) | (TermOp::AnchorOld(p), TermOp::Anchor(q)) => {
                (p == q).then_some(1.0)
            }
            (TermOp::Unary(UnaryOp::Neg), _) => Some(-self.same_but_for_age(a.args[0], y)?),
            (_, TermOp::Unary(UnaryOp::Neg)) => Some(-self.same_but_for_age(x, b.args[0])?),
            _ if a.op != b.op || a.args.len() != b.args.len() => None,
            _ => {
                let signs = a.args.iter().zip(&b.args).map(|(p, q)| self.same_but_for_age(*p, *q));
                let signs = signs.collect::<Option<Vec<f64>>>()?;
                let is_odd = matches!(a.op, TermOp::Cast | TermOp::Binary(BinaryOp::Mul | BinaryOp::Div));
                (is_odd || signs.iter().all(|s| *s == 1.0)).then(|| signs.iter().product())
            }
        }
    }

    /// How a term moves while its row goes on, at a fixed element.
    pub fn drift(&mut self, id: TermId) -> Drift {
        self.drift_in(id, false)
    }

    /// Inside a reduction lengths are those of the row, but for what is an anchor there.
    fn drift_in(&mut self, id: TermId, inside: bool) -> Drift {
        let is_free = self.terms.get(id).axes.intersect(self.axes).is_empty();
        let inside = inside && !(is_free && self.reduces(id));
        if let Some(known) = self.drifts.get(&(id, inside)) {
            return *known;
        }
        let term = self.terms.get(id).clone();
        let found = self.find_drift(&term, inside);
        self.drifts.insert((id, inside), found);
        found
    }

    /// Whether there is a reduction along the stream in a term.
    fn reduces(&mut self, id: TermId) -> bool {
        if let Some(known) = self.reduces.get(&id) {
            return *known;
        }
        let term = self.terms.get(id);
        let found = matches!(term.op, TermOp::Reduce(_, axes) if axes == self.axes)
            || term.args.iter().any(|a| self.reduces(*a));
        self.reduces.insert(id, found);
        found
    }

    fn find_drift(&mut self, term: &Term, inside: bool) -> Drift {
        match &term.op {
            TermOp::Anchor(a) => return self.drift(self.anchors[a.0 as usize]),
            TermOp::Size(axis) if self.axes.contains(*axis) && !inside => return Drift::Up,
            TermOp::Reduce(op, axes) if *axes == self.axes => return self.of_reduction(*op, term.args[0]),
            TermOp::ArgMax(axis) | TermOp::TopK { axis, .. } if self.axes.contains(*axis) => return Drift::Any,
            _ => {}
        }
        let args: Vec<Drift> = term.args.iter().map(|a| self.drift_in(*a, inside)).collect();
        if args.iter().all(|d| *d == Drift::None) {
            return Drift::None;
        }
        let signs: Vec<Interval> = term.args.iter().map(|a| self.interval(*a)).collect();
        // How a product or quotient moves with one operand depends on the sign of the other.
        let by_sign = |drift: Drift, other: Interval| match other {
            _ if drift == Drift::None => drift,
            o if o.is_nonnegative() => drift,
            o if o.is_nonpositive() => drift.flip(),
            _ => Drift::Any,
        };
        match &term.op {
            TermOp::Unary(op) => match op {
                UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Sqrt => args[0],
                UnaryOp::Tanh | UnaryOp::Erf | UnaryOp::Floor | UnaryOp::Round => args[0],
                UnaryOp::Neg | UnaryOp::Rsqrt => args[0].flip(),
                UnaryOp::Abs => by_sign(args[0], signs[0]),
                UnaryOp::Not => Drift::Any,
            },
            TermOp::Wide(WideOp::Exponent | WideOp::Power) | TermOp::Cast => args[0],
            TermOp::Binary(BinaryOp::Add | BinaryOp::Min | BinaryOp::Max) => args[0].and(args[1]),
            TermOp::Binary(BinaryOp::Sub) => args[0].and(args[1].flip()),
            TermOp::Binary(BinaryOp::Mul) => by_sign(args[0], signs[1]).and(by_sign(args[1], signs[0])),
            TermOp::Binary(BinaryOp::Div) if signs[1].is_nonnegative() || signs[1].is_nonpositive() => {
                by_sign(args[0], signs[1]).and(by_sign(args[1], signs[0]).flip())
            }
            TermOp::Select if args[0] == Drift::None => args[1].and(args[2]),
            TermOp::Select if self.asks_for_nothing(term.args[0]) => args[2],
            _ => Drift::Any,
        }
    }

    /// Whether a condition is that of [`clamp`]: whether an anchor has seen nothing yet.
    fn asks_for_nothing(&self, condition: TermId) -> bool {
        let term = self.terms.get(condition);
        let is_infinite = |t: TermId| matches!(self.terms.get(t).op, TermOp::Literal(v) if v.as_f64().is_infinite());
        matches!(term.op, TermOp::Compare(CmpOp::Eq)) && is_infinite(term.args[1])
    }

    /// A maximum only rises while elements join it, if those seen do not fall; a sum if besides none is negative.
    fn of_reduction(&mut self, op: ReduceOp, body: TermId) -> Drift {
        let (drift, sign) = (self.drift_in(body, true), self.interval(body));
        let rises = matches!(drift, Drift::None | Drift::Up);
        let falls = matches!(drift, Drift::None | Drift::Down);
        match op {
            ReduceOp::Max if rises => Drift::Up,
            ReduceOp::Min if falls => Drift::Down,
            ReduceOp::Sum if rises && sign.is_nonnegative() => Drift::Up,
            ReduceOp::Sum if falls && sign.is_nonpositive() => Drift::Down,
            _ => Drift::Any,
        }
    }
}

/// A term that keeps an anchor's value on one side of a bound. A value of -inf or inf stays, since it is degenerate.
pub fn clamp(terms: &mut Terms, value: TermId, op: BinaryOp, bound: f64) -> TermId {
    let dtype = terms.get(value).dtype;
    let literal = terms.float(bound, dtype);
    let kept = terms.binary(op, value, literal);
    let nothing = if op == BinaryOp::Max { f64::NEG_INFINITY } else { f64::INFINITY };
    let end = terms.float(nothing, dtype);
    let is_nothing = terms.make(TermOp::Compare(CmpOp::Eq), DType::Bool, vec![value, end]);
    let clamped = terms.make(TermOp::Select, dtype, vec![is_nothing, value, kept]);
    let side =
        if op == BinaryOp::Max { Interval::new(bound, f64::INFINITY) } else { Interval::new(f64::NEG_INFINITY, bound) };
    terms.set_interval(clamped, side);
    clamped
}
