//! Intervals of values: what makes a rewrite safe and a clamp superfluous.
//!
//! A bound speaks of the value *if it is not NaN*. Rounding is outward where it could matter (every bound used by a rule is
//! attained exactly: signs, `exp <= 1`, sizes).

use crate::lang::{Facts, NodeOp};
use crate::term::{TermOp, WideOp};
use onefold_ir::{BinaryOp, DType, ReduceOp, UnaryOp};

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

    /// Not negative.
    pub const NONNEGATIVE: Interval = Interval { lo: 0.0, hi: f64::INFINITY };

    /// Between two bounds; NaN bounds mean that nothing is known.
    pub fn new(lo: f64, hi: f64) -> Interval {
        Interval {
            lo: if lo.is_nan() { f64::NEG_INFINITY } else { lo },
            hi: if hi.is_nan() { f64::INFINITY } else { hi },
        }
    }

    /// One value.
    pub fn point(value: f64) -> Interval {
        Interval::new(value, value)
    }

    /// Both hold.
    pub fn intersect(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// One of them holds.
    pub fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Whether every value is at least 0.
    pub fn is_nonnegative(self) -> bool {
        self.lo >= 0.0
    }

    /// Whether every value is at most 0.
    pub fn is_nonpositive(self) -> bool {
        self.hi <= 0.0
    }

    /// Whether every value is above 0.
    pub fn is_positive(self) -> bool {
        self.lo > 0.0
    }

    /// Of a sum.
    pub fn plus(self, other: Interval) -> Interval {
        Interval::new(exact_sum(self.lo, other.lo), exact_sum(self.hi, other.hi))
    }

    /// Of a product.
    pub fn times(self, other: Interval) -> Interval {
        // 0 times an infinite bound: the bound is not attained by a finite value, so the product's bound there is 0.
        let corner = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let corners = [
            corner(self.lo, other.lo),
            corner(self.lo, other.hi),
            corner(self.hi, other.lo),
            corner(self.hi, other.hi),
        ];
        Interval::new(
            corners.iter().copied().fold(f64::INFINITY, f64::min),
            corners.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        )
    }

    fn recip(self) -> Interval {
        if self.lo >= 0.0 {
            Interval::new(1.0 / self.hi, if self.lo == 0.0 { f64::INFINITY } else { 1.0 / self.lo })
        } else if self.hi < 0.0 {
            Interval::new(1.0 / self.hi, 1.0 / self.lo)
        } else {
            Interval::ANY
        }
    }

    fn monotone(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval::new(f(self.lo), f(self.hi))
    }
}

/// A sum of two numbers, 0 where nothing but the rounding of earlier steps is left of it: constants that cancel in the reals must
/// not leave a tiny number whose sign, or whose reciprocal, would then be taken seriously.
pub fn exact_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum.is_finite() && sum.abs() <= 4.0 * f64::EPSILON * a.abs().max(b.abs()) {
        return 0.0;
    }
    sum
}

/// Bounds of a node from those of its operands.
pub fn of(op: &NodeOp, args: &[&Facts]) -> Interval {
    match op {
        NodeOp::Add(_) => args.iter().map(|a| a.interval).fold(Interval::point(0.0), Interval::plus),
        NodeOp::Mul(_) => args.iter().map(|a| a.interval).fold(Interval::point(1.0), Interval::times),
        NodeOp::Recip(_) => args[0].interval.recip(),
        NodeOp::Opaque(..) => Interval::ANY,
        NodeOp::Prim(op, dtype) => {
            let args: Vec<Interval> = args.iter().map(|a| a.interval).collect();
            of_term(op, *dtype, &args)
        }
    }
}

/// Bounds of a term from those of its operands.
pub fn of_term(op: &TermOp, dtype: DType, args: &[Interval]) -> Interval {
    match op {
        TermOp::Literal(value) => Interval::point(value.as_f64()),
        TermOp::Index(_) | TermOp::Size(_) | TermOp::Seen(_) => Interval::NONNEGATIVE,
        TermOp::Unary(op) => unary(*op, args[0]),
        TermOp::Wide(WideOp::Mantissa) => Interval::new(0.5, 2.0),
        TermOp::Wide(WideOp::Exponent) => args[0].monotone(|x| (x * std::f64::consts::LOG2_E).round_ties_even()),
        TermOp::Wide(WideOp::Power) => args[0].monotone(f64::exp2),
        // Integers wrap.
        TermOp::Binary(op) if dtype.is_float() => binary(*op, args[0], args[1]),
        TermOp::Binary(op @ (BinaryOp::Min | BinaryOp::Max)) => binary(*op, args[0], args[1]),
        TermOp::Select => args[1].union(args[2]),
        TermOp::Cast if dtype.is_float() => args[0],
        TermOp::Reduce(op, _) => reduce(*op, args[0]),
        TermOp::ArgMax(_) => Interval::NONNEGATIVE,
        TermOp::TopK { part: onefold_ir::Part::Values, .. } => args[0],
        _ => Interval::ANY,
    }
}

fn unary(op: UnaryOp, x: Interval) -> Interval {
    match op {
        UnaryOp::Neg => Interval::new(-x.hi, -x.lo),
        UnaryOp::Exp => x.monotone(f64::exp),
        UnaryOp::Exp2 => x.monotone(f64::exp2),
        UnaryOp::Log if x.lo >= 0.0 => x.monotone(f64::ln),
        UnaryOp::Log2 if x.lo >= 0.0 => x.monotone(f64::log2),
        UnaryOp::Tanh => Interval::new(if x.lo >= 0.0 { 0.0 } else { -1.0 }, if x.hi <= 0.0 { 0.0 } else { 1.0 }),
        UnaryOp::Erf => Interval::new(if x.lo >= 0.0 { 0.0 } else { -1.0 }, if x.hi <= 0.0 { 0.0 } else { 1.0 }),
        UnaryOp::Sqrt => Interval::new(x.lo.max(0.0).sqrt(), x.hi.max(0.0).sqrt()),
        UnaryOp::Rsqrt => Interval::NONNEGATIVE,
        UnaryOp::Abs => {
            if x.lo >= 0.0 {
                x
            } else if x.hi <= 0.0 {
                Interval::new(-x.hi, -x.lo)
            } else {
                Interval::new(0.0, x.hi.max(-x.lo))
            }
        }
        UnaryOp::Floor => x.monotone(f64::floor),
        UnaryOp::Round => x.monotone(f64::round_ties_even),
        _ => Interval::ANY,
    }
}

fn binary(op: BinaryOp, a: Interval, b: Interval) -> Interval {
    match op {
        BinaryOp::Min => Interval::new(a.lo.min(b.lo), a.hi.min(b.hi)),
        BinaryOp::Max => Interval::new(a.lo.max(b.lo), a.hi.max(b.hi)),
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.plus(Interval::new(-b.hi, -b.lo)),
        BinaryOp::Mul => a.times(b),
        BinaryOp::Div => a.times(b.recip()),
        BinaryOp::Pow if a.lo >= 0.0 => Interval::NONNEGATIVE,
        _ => Interval::ANY,
    }
}

fn reduce(op: ReduceOp, x: Interval) -> Interval {
    match op {
        // Over nothing the extremes are infinite.
        ReduceOp::Max => Interval::new(f64::NEG_INFINITY, x.hi),
        ReduceOp::Min => Interval::new(x.lo, f64::INFINITY),
        ReduceOp::Sum => Interval::new(
            if x.lo >= 0.0 { 0.0 } else { f64::NEG_INFINITY },
            if x.hi <= 0.0 { 0.0 } else { f64::INFINITY },
        ),
        ReduceOp::Prod if x.lo >= 0.0 => Interval::NONNEGATIVE,
        ReduceOp::Prod => Interval::ANY,
    }
}
