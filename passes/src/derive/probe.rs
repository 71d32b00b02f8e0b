//! Laws checked by multiplying back at random points, and the anchor values at which terms break down.
//!
//! A correction is found by cancelling factors that may be zero and by laws that hold for one sign only. So each one is
//! evaluated in f64 at points that include zeros and negative values, and is rejected if it fails at any where both sides are
//! numbers.

use crate::eval;
use crate::fold::AnchorId;
use crate::term::{TermId, TermOp, Terms};
use onefold_ir::{AxisSet, DType};
use std::collections::HashMap;

/// A point: values of anchors (new, old) and a seed from which every subterm without anchors gets its value.
#[derive(Clone, Debug)]
pub struct Point {
    /// New values.
    pub new: HashMap<AnchorId, f64>,
    /// Old values.
    pub old: HashMap<AnchorId, f64>,
    seed: u64,
}

/// Number of points at which a law is tried, and of those at which both sides must be numbers.
const POINTS: u64 = 64;
const MIN_VALID: usize = 12;

/// Evaluate a term at a point, its anchors at the new values, or with `old` at the old ones. Shared subterms are evaluated once.
pub fn value(terms: &Terms, id: TermId, point: &Point, old: bool) -> f64 {
    // For each term its value, and whether it depends on anchors.
    let mut known: HashMap<TermId, (f64, bool)> = HashMap::new();
    for below in terms.reachable(&[id]) {
        let found = evaluate(terms, below, point, old, &known);
        known.insert(below, found);
    }
    known.get(&id).map_or(f64::NAN, |(v, _)| *v)
}

fn evaluate(terms: &Terms, id: TermId, point: &Point, old: bool, known: &HashMap<TermId, (f64, bool)>) -> (f64, bool) {
    let term = terms.get(id);
    match &term.op {
        TermOp::Literal(v) => return (v.as_f64(), false),
        TermOp::Anchor(a) => {
            let values = if old { &point.old } else { &point.new };
            return (values.get(a).copied().unwrap_or(f64::NAN), true);
        }
        TermOp::AnchorOld(a) => return (point.old.get(a).copied().unwrap_or(f64::NAN), true),
        _ => {}
    }
    let args: Vec<(f64, bool)> = term.args.iter().map(|a| known[a]).collect();
    if !args.iter().any(|(_, depends)| *depends) {
        return (opaque(id, term.dtype, point.seed), false);
    }
    let v = |i: usize| args[i].0;
    let truth = |b: bool| f64::from(u8::from(b));
    let value = match &term.op {
        TermOp::Unary(op) if term.dtype == DType::Bool => truth(v(0) == 0.0 && *op == onefold_ir::UnaryOp::Not),
        TermOp::Unary(op) => eval::unary(*op, v(0)).unwrap_or(f64::NAN),
        TermOp::Wide(op) => eval::wide(*op, v(0)),
        TermOp::Binary(op) => eval::binary(*op, v(0), v(1)).unwrap_or(f64::NAN),
        TermOp::Compare(op) => truth(eval::compare(*op, v(0), v(1))),
        TermOp::Select => {
            if v(0) != 0.0 {
                v(1)
            } else {
                v(2)
            }
        }
        TermOp::Cast => v(0),
        _ => f64::NAN,
    };
    (value, true)
}

/// A value for a subterm without anchors: normal-like, sometimes exactly zero.
fn opaque(id: TermId, dtype: DType, seed: u64) -> f64 {
    let bits = mix(seed ^ (u64::from(id.0) << 32));
    if dtype == DType::Bool {
        return (bits & 1) as f64;
    }
    if bits.is_multiple_of(7) {
        return 0.0;
    }
    unit(mix(bits)) * 3.0
}

/// A number in (-1, 1).
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn mix(mut x: u64) -> u64 {
    // splitmix64
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The n-th point for some anchors. Half of the points have positive anchors only, since many laws need that.
pub fn point(anchors: &[AnchorId], n: u64) -> Point {
    let mut p = Point { new: HashMap::new(), old: HashMap::new(), seed: mix(n) };
    for (i, a) in anchors.iter().enumerate() {
        let draw = |salt: u64| {
            let x = unit(mix(mix(n * 31 + salt) ^ i as u64)) * 2.5;
            if n.is_multiple_of(2) {
                x.abs() + 0.1
            } else {
                x
            }
        };
        p.new.insert(*a, draw(1));
        p.old.insert(*a, draw(2));
    }
    p
}

/// The anchors that some terms mention, ascending.
pub fn anchors_of(terms: &Terms, roots: &[TermId]) -> Vec<AnchorId> {
    let mut found: Vec<AnchorId> = terms
        .reachable(roots)
        .into_iter()
        .filter_map(|t| match terms.get(t).op {
            TermOp::Anchor(a) | TermOp::AnchorOld(a) => Some(a),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether `combine(u(old), coefficients) = u(new)` at every point where both are numbers.
pub fn holds(terms: &Terms, anchors: &[AnchorId], sides: impl Fn(&Point) -> (f64, f64)) -> bool {
    let _ = terms;
    let mut valid = 0;
    for n in 0..POINTS {
        let (found, wanted) = sides(&point(anchors, n));
        if !found.is_finite() || !wanted.is_finite() {
            continue;
        }
        if (found - wanted).abs() > 1e-9 * (1.0 + found.abs().max(wanted.abs())) {
            return false;
        }
        valid += 1;
    }
    valid >= MIN_VALID
}

/// Values of an anchor at which one of the bodies or coefficients is no number although it is at ordinary points, each with an
/// ordinary value to stand in. NaN is always among them: a mean over no elements is one.
pub fn degenerate(terms: &Terms, anchor: AnchorId, bodies: &[TermId], coefficients: &[TermId]) -> Vec<(f64, f64)> {
    let anchors = anchors_of(terms, &[bodies, coefficients].concat());
    let regular = |at: f64| {
        (0..16).all(|n| {
            let ordinary = point(&anchors, n * 2);
            let (mut to, mut from) = (ordinary.clone(), ordinary.clone());
            to.new.insert(anchor, at);
            from.old.insert(anchor, at);
            let body_ok = |b: &TermId| {
                !value(terms, *b, &ordinary, false).is_finite() || value(terms, *b, &to, false).is_finite()
            };
            let coefficient_ok = |c: &TermId| {
                !value(terms, *c, &ordinary, false).is_finite()
                    || (value(terms, *c, &to, false).is_finite() && value(terms, *c, &from, false).is_finite())
            };
            bodies.iter().all(body_ok) && coefficients.iter().all(coefficient_ok)
        })
    };
    let surrogate = if regular(0.0) { 0.0 } else { 1.0 };
    [f64::NEG_INFINITY, f64::INFINITY, 0.0, f64::NAN]
        .into_iter()
        .filter(|c| !regular(*c))
        .map(|c| (c, surrogate))
        .collect()
}

/// Bounds of an anchor outside which a part of a body that is free of the streamed axes leaves its dtype's range (`exp(-a)` under
/// `|exp(x - a) - exp(-a)|`), though other anchors serve as well. Infinite where there is no bound.
pub fn range(terms: &Terms, anchor: AnchorId, bodies: &[TermId], axes: AxisSet) -> (f64, f64) {
    const MAGNITUDES: [f64; 8] = [1.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1e4];
    let anchors = anchors_of(terms, bodies);
    let parts: Vec<TermId> = terms
        .reachable(bodies)
        .into_iter()
        .filter(|t| terms.get(*t).axes.intersect(axes).is_empty() && terms.get(*t).dtype.is_float())
        .filter(|t| !matches!(terms.get(*t).op, TermOp::Anchor(_)) && anchors_of(terms, &[*t]).contains(&anchor))
        .collect();
    let regular = |part: TermId, at: f64| {
        let largest = match terms.get(part).dtype {
            DType::F64 => f64::MAX,
            DType::F16 => 65504.0,
            _ => f64::from(f32::MAX),
        };
        let mut p = point(&anchors, 0);
        p.new.insert(anchor, at);
        value(terms, part, &p, false).abs() <= largest
    };
    let bound = |sign: f64| {
        let bounds = parts.iter().filter(|p| regular(**p, sign)).map(|part| {
            let first = MAGNITUDES.iter().position(|m| !regular(*part, sign * m));
            first.map_or(f64::INFINITY, |i| MAGNITUDES[i - 1])
        });
        sign * bounds.fold(f64::INFINITY, f64::min)
    };
    (bound(-1.0), bound(1.0))
}
