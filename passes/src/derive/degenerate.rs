//! Anchor values at which bodies or coefficients break down: -inf under `exp(x - a)`, 0 under `x / a`.
//!
//! They are found by evaluating terms there. What feeds a term is drawn, all else is evaluated.

use super::anchors_of;
use super::measured::{apply, Measured};
use super::probe::{mix, unit};
use crate::fold::AnchorId;
use crate::term::{TermId, TermOp, Terms};
use onefold_ir::DType;
use std::collections::HashMap;

/// Points at which a value must do no harm.
const POINTS: u64 = 16;

/// A point: values of anchors (new, old) and a seed from which all leaves get theirs.
#[derive(Clone, Debug)]
struct Point {
    new: HashMap<AnchorId, f64>,
    old: HashMap<AnchorId, f64>,
    seed: u64,
}

/// The n-th point for some anchors, which are ordinary and positive there.
fn point(anchors: &[AnchorId], n: u64) -> Point {
    let draw = |at: usize, salt: u64| unit(mix(mix(n * 31 + salt) ^ at as u64)).abs() * 2.5 + 0.1;
    let all = |salt: u64| anchors.iter().enumerate().map(|(at, a)| (*a, draw(at, salt))).collect();
    Point { new: all(1), old: all(2), seed: mix(n) }
}

/// Whether a term is a finite number at a point.
fn is_finite(terms: &Terms, id: TermId, point: &Point) -> bool {
    let mut known: HashMap<TermId, f64> = HashMap::new();
    for below in terms.reachable(&[id]) {
        let term = terms.get(below);
        let anchor = |values: &HashMap<AnchorId, f64>, a: &AnchorId| values.get(a).copied().unwrap_or(f64::NAN);
        let value = match &term.op {
            TermOp::Anchor(a) => anchor(&point.new, a),
            TermOp::AnchorOld(a) => anchor(&point.old, a),
            // What is inside a reduction varies along axes that have no place here.
            TermOp::Load { .. } | TermOp::Reduce(..) => leaf(below, term.dtype, point.seed),
            _ => match apply(term, &|i| Measured::exact(known[&term.args[i]])) {
                Some(found) => found.value,
                None => leaf(below, term.dtype, point.seed),
            },
        };
        known.insert(below, value);
    }
    known.get(&id).is_some_and(|v| v.is_finite())
}

/// A value of what is not evaluated: sometimes exactly zero.
fn leaf(id: TermId, dtype: DType, seed: u64) -> f64 {
    let bits = mix(seed ^ (u64::from(id.0) << 32));
    match dtype {
        DType::Bool => (bits & 1) as f64,
        d if !d.is_float() => (bits % 4) as f64,
        _ if bits.is_multiple_of(7) => 0.0,
        _ => unit(mix(bits)) * 3.0,
    }
}

/// Values of an anchor at which one of the bodies or coefficients is no number although it is at ordinary points, each with an
/// ordinary value to stand in. NaN is always among them: a mean over no elements is one.
pub fn degenerate(terms: &Terms, anchor: AnchorId, bodies: &[TermId], coefficients: &[TermId]) -> Vec<(f64, f64)> {
    let anchors = anchors_of(terms, &[bodies, coefficients].concat());
    let regular = |at: f64| {
        (0..POINTS).all(|n| {
            let ordinary = point(&anchors, n);
            let (mut to, mut from) = (ordinary.clone(), ordinary.clone());
            to.new.insert(anchor, at);
            from.old.insert(anchor, at);
            let body = |b: &TermId| !is_finite(terms, *b, &ordinary) || is_finite(terms, *b, &to);
            let coefficient = |c: &TermId| {
                !is_finite(terms, *c, &ordinary) || (is_finite(terms, *c, &to) && is_finite(terms, *c, &from))
            };
            bodies.iter().all(body) && coefficients.iter().all(coefficient)
        })
    };
    let surrogate = if regular(0.0) { 0.0 } else { 1.0 };
    let candidates = [f64::NEG_INFINITY, f64::INFINITY, 0.0, f64::NAN];
    candidates.into_iter().filter(|c| !regular(*c)).map(|c| (c, surrogate)).collect()
}
