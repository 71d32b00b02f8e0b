//! Arithmetic on the lengths of axes: a normal form in which equal extents are equal values, and their text.
//!
//! Extents are kept as polynomials over symbolic sizes, so that a slice of a concatenation finds the axis it came from:
//! `(size(j) + 4) - 4` is `size(j)`. Quotients that do not come out are atoms of the polynomial.

use crate::{AxisDecl, AxisId, Extent, SizeExpr};
use std::collections::BTreeMap;

/// More terms than this, and an expression is left as it was written.
const MAX_TERMS: usize = 64;

/// A factor that is not a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    Axis(AxisId),
    Ceil(Poly, Poly),
    Exact(Poly, Poly),
}

/// A sum of products: from factors (in order) to the coefficient, which is never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Poly(BTreeMap<Vec<Atom>, i64>);

impl Poly {
    pub(crate) fn constant(value: i64) -> Poly {
        Poly::term(vec![], value)
    }

    fn term(factors: Vec<Atom>, coefficient: i64) -> Poly {
        Poly(if coefficient == 0 { BTreeMap::new() } else { BTreeMap::from([(factors, coefficient)]) })
    }

    /// The value, if it does not depend on any axis.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&vec![]).copied(),
            _ => None,
        }
    }

    /// The axis, if it is the size of one.
    pub(crate) fn as_axis(&self) -> Option<AxisId> {
        match self.0.iter().next() {
            Some((factors, 1)) if self.0.len() == 1 => match factors.as_slice() {
                [Atom::Axis(axis)] => Some(*axis),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn add(&self, other: &Poly) -> Option<Poly> {
        let mut sum = self.clone();
        for (factors, coefficient) in &other.0 {
            let entry = sum.0.entry(factors.clone()).or_insert(0);
            *entry = entry.checked_add(*coefficient)?;
        }
        sum.0.retain(|_, c| *c != 0);
        (sum.0.len() <= MAX_TERMS).then_some(sum)
    }

    pub(crate) fn sub(&self, other: &Poly) -> Option<Poly> {
        self.add(&other.mul(&Poly::constant(-1))?)
    }

    pub(crate) fn mul(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        if self.0.len() * other.0.len() > MAX_TERMS {
            return None;
        }
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut factors = [a.as_slice(), b.as_slice()].concat();
                factors.sort();
                product = product.add(&Poly::term(factors, x.checked_mul(*y)?))?;
            }
        }
        Some(product)
    }

    /// The quotient rounded up. What the divisor divides evenly comes out: `ceil((4*n + 3) / 4)` is `n + 1`.
    pub(crate) fn div_ceil(&self, divisor: &Poly) -> Option<Poly> {
        let Some(d) = divisor.as_constant().filter(|d| *d > 0) else {
            return if self == divisor { Some(Poly::constant(1)) } else { Poly::quotient(self, divisor, Atom::Ceil) };
        };
        let (mut whole, mut rest) = (Poly::default(), Poly::default());
        for (factors, coefficient) in &self.0 {
            let part = if coefficient % d == 0 { (&mut whole, coefficient / d) } else { (&mut rest, *coefficient) };
            part.0 .0.insert(factors.clone(), part.1);
        }
        let rounded = match rest.as_constant() {
            Some(r) => Poly::constant(r.div_euclid(d) + i64::from(r.rem_euclid(d) != 0)),
            None => Poly::quotient(&rest, divisor, Atom::Ceil)?,
        };
        whole.add(&rounded)
    }

    /// The quotient where there is no remainder. A common factor cancels; `None` if the numbers do not divide.
    pub(crate) fn div_exact(&self, divisor: &Poly) -> Option<Poly> {
        if let (1, Some((factors, d))) = (divisor.0.len(), divisor.0.iter().next()) {
            let mut quotient = Poly::default();
            for (product, coefficient) in &self.0 {
                let mut left = product.clone();
                let cancels =
                    factors.iter().all(|f| left.iter().position(|g| g == f).map(|at| left.remove(at)).is_some());
                if !cancels || coefficient.checked_rem(*d)? != 0 {
                    return Poly::quotient(self, divisor, Atom::Exact);
                }
                quotient.0.insert(left, coefficient.checked_div(*d)?);
            }
            return Some(quotient);
        }
        if self == divisor {
            return Some(Poly::constant(1));
        }
        Poly::quotient(self, divisor, Atom::Exact)
    }

    fn quotient(dividend: &Poly, divisor: &Poly, atom: fn(Poly, Poly) -> Atom) -> Option<Poly> {
        if divisor.as_constant() == Some(0) || (dividend.as_constant().is_some() && divisor.as_constant().is_some()) {
            return None;
        }
        Some(Poly::term(vec![atom(dividend.clone(), divisor.clone())], 1))
    }

    /// As an expression: axes first, the constant last.
    pub(crate) fn to_expr(&self) -> SizeExpr {
        let mut terms: Vec<(&Vec<Atom>, i64)> = self.0.iter().map(|(f, c)| (f, *c)).collect();
        terms.sort_by_key(|(factors, c)| (*c < 0, factors.is_empty(), factors.len()));
        let mut sum: Option<SizeExpr> = None;
        for (factors, coefficient) in terms {
            let magnitude = coefficient.checked_abs().unwrap_or(i64::MAX);
            let mut product = (magnitude != 1 || factors.is_empty()).then_some(SizeExpr::Const(magnitude));
            for factor in factors {
                let factor = factor.to_expr();
                product = Some(match product {
                    Some(p) => SizeExpr::Mul(Box::new(p), Box::new(factor)),
                    None => factor,
                });
            }
            let term = product.unwrap_or(SizeExpr::Const(1));
            sum = Some(match (sum, coefficient < 0) {
                (None, false) => term,
                (None, true) => SizeExpr::Sub(Box::new(SizeExpr::Const(0)), Box::new(term)),
                (Some(s), false) => SizeExpr::Add(Box::new(s), Box::new(term)),
                (Some(s), true) => SizeExpr::Sub(Box::new(s), Box::new(term)),
            });
        }
        sum.unwrap_or(SizeExpr::Const(0))
    }

    /// With axes numbered otherwise, which changes the order of terms and factors.
    pub(crate) fn renumbered(&self, number: &impl Fn(AxisId) -> AxisId) -> Poly {
        let both = |a: &Poly, b: &Poly| (a.renumbered(number), b.renumbered(number));
        let atom = |atom: &Atom| match atom {
            Atom::Axis(axis) => Atom::Axis(number(*axis)),
            Atom::Ceil(a, b) => {
                let (a, b) = both(a, b);
                Atom::Ceil(a, b)
            }
            Atom::Exact(a, b) => {
                let (a, b) = both(a, b);
                Atom::Exact(a, b)
            }
        };
        let term = |(factors, coefficient): (&Vec<Atom>, &i64)| {
            let mut factors: Vec<Atom> = factors.iter().map(atom).collect();
            factors.sort();
            (factors, *coefficient)
        };
        Poly(self.0.iter().map(term).collect())
    }

    /// The polynomial of an expression; `None` if a number overflows or it has too many terms.
    pub(crate) fn of(expr: &SizeExpr, axes: &[AxisDecl]) -> Option<Poly> {
        let both = |a: &SizeExpr, b: &SizeExpr| Some((Poly::of(a, axes)?, Poly::of(b, axes)?));
        match expr {
            SizeExpr::Const(value) => Some(Poly::constant(*value)),
            SizeExpr::Axis(axis) => Poly::of_axis(*axis, axes),
            SizeExpr::Add(a, b) => both(a, b).and_then(|(a, b)| a.add(&b)),
            SizeExpr::Sub(a, b) => both(a, b).and_then(|(a, b)| a.sub(&b)),
            SizeExpr::Mul(a, b) => both(a, b).and_then(|(a, b)| a.mul(&b)),
            SizeExpr::DivCeil(a, b) => both(a, b).and_then(|(a, b)| a.div_ceil(&b)),
            SizeExpr::DivExact(a, b) => both(a, b).and_then(|(a, b)| a.div_exact(&b)),
        }
    }

    /// The length of an axis, in terms of symbolic ones.
    pub(crate) fn of_axis(axis: AxisId, axes: &[AxisDecl]) -> Option<Poly> {
        match &axes.get(usize::from(axis.0))?.extent {
            Extent::Fixed(n) => Some(Poly::constant(i64::try_from(*n).ok()?)),
            Extent::Symbolic => Some(Poly::term(vec![Atom::Axis(axis)], 1)),
            // Derived axes refer to earlier ones only, so this ends.
            Extent::Derived(expr) if refers_below(expr, axis) => Poly::of(expr, axes),
            Extent::Derived(_) => None,
        }
    }
}

impl Atom {
    fn to_expr(&self) -> SizeExpr {
        match self {
            Atom::Axis(axis) => SizeExpr::Axis(*axis),
            Atom::Ceil(a, b) => SizeExpr::DivCeil(Box::new(a.to_expr()), Box::new(b.to_expr())),
            Atom::Exact(a, b) => SizeExpr::DivExact(Box::new(a.to_expr()), Box::new(b.to_expr())),
        }
    }
}

/// Whether every axis that occurs in the expression stands before that one.
pub(crate) fn refers_below(expr: &SizeExpr, limit: AxisId) -> bool {
    match expr {
        SizeExpr::Const(_) => true,
        SizeExpr::Axis(axis) => *axis < limit,
        SizeExpr::Add(a, b)
        | SizeExpr::Sub(a, b)
        | SizeExpr::Mul(a, b)
        | SizeExpr::DivCeil(a, b)
        | SizeExpr::DivExact(a, b) => refers_below(a, limit) && refers_below(b, limit),
    }
}

/// An expression in the text format, such as `size(j) - 1`.
pub fn show_size(expr: &SizeExpr, axes: &[AxisDecl]) -> String {
    show(expr, axes, 0)
}

fn show(expr: &SizeExpr, axes: &[AxisDecl], outer: u8) -> String {
    let infix = |a: &SizeExpr, symbol: &str, b: &SizeExpr, level: u8| {
        let text = format!("{} {symbol} {}", show(a, axes, level), show(b, axes, level + 1));
        if level < outer {
            format!("({text})")
        } else {
            text
        }
    };
    match expr {
        SizeExpr::Const(value) => value.to_string(),
        SizeExpr::Axis(axis) => match axes.get(usize::from(axis.0)) {
            Some(AxisDecl { extent: Extent::Fixed(n), .. }) => n.to_string(),
            Some(AxisDecl { extent: Extent::Derived(inner), .. }) if refers_below(inner, *axis) => {
                show(inner, axes, outer)
            }
            Some(decl) => format!("size({})", decl.name),
            None => format!("size({axis})"),
        },
        SizeExpr::Add(a, b) => infix(a, "+", b, 1),
        SizeExpr::Sub(a, b) => infix(a, "-", b, 1),
        SizeExpr::Mul(a, b) => infix(a, "*", b, 2),
        SizeExpr::DivExact(a, b) => infix(a, "/", b, 2),
        SizeExpr::DivCeil(a, b) => format!("ceil({} / {})", show(a, axes, 2), show(b, axes, 3)),
    }
}

/// The length of an axis for a message: a number, `size(j)` or `size(j) - 1`.
pub fn show_extent(axis: AxisId, axes: &[AxisDecl]) -> String {
    match axes.get(usize::from(axis.0)).map(|decl| &decl.extent) {
        Some(Extent::Fixed(n)) => n.to_string(),
        Some(Extent::Derived(expr)) if refers_below(expr, axis) => show_size(expr, axes),
        Some(Extent::Symbolic) => show_size(&SizeExpr::Axis(axis), axes),
        _ => "unknown".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<AxisDecl> {
        ["h", "e"].map(|n| AxisDecl { name: n.into(), extent: Extent::Symbolic }).to_vec()
    }

    fn size(axis: u8) -> Poly {
        Poly::of_axis(AxisId(axis), &axes()).expect("declared")
    }

    #[test]
    fn equal_extents_are_equal_values() {
        let (h, e, four) = (size(0), size(1), Poly::constant(4));
        assert_eq!(h.add(&four).and_then(|p| p.sub(&four)), Some(h.clone()));
        assert_eq!(h.mul(&e).and_then(|p| p.div_exact(&e)), Some(h.clone()));
        let p = h.mul(&four).and_then(|p| p.add(&Poly::constant(3))).and_then(|p| p.div_ceil(&four));
        assert_eq!(p, h.add(&Poly::constant(1)));
        assert_eq!(Poly::constant(7).div_ceil(&Poly::constant(2)), Some(four));
        assert_eq!(Poly::constant(7).div_exact(&Poly::constant(2)), None);
    }

    #[test]
    fn expressions_print_as_text() {
        let (h, e) = (size(0), size(1));
        let half = h.sub(&Poly::constant(1)).and_then(|p| p.div_ceil(&Poly::constant(2))).expect("fits");
        assert_eq!(show_size(&half.to_expr(), &axes()), "ceil((size(h) - 1) / 2)");
        let mixed = h.mul(&e).and_then(|p| p.sub(&h)).and_then(|p| p.add(&Poly::constant(2))).expect("fits");
        assert_eq!(show_size(&mixed.to_expr(), &axes()), "size(h) * size(e) + 2 - size(h)");
    }
}
