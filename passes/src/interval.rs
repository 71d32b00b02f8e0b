//! Intervals of values: what makes a rewrite safe and a clamp superfluous.

/// Closed bounds on a value, if it is not NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound; -inf if none is known or the value may be -inf.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
}

impl Interval {
    /// Nothing known.
    pub const ANY: Interval = Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY };

    /// Between two bounds.
    pub fn new(lo: f64, hi: f64) -> Interval {
        Interval { lo, hi }
    }
}
