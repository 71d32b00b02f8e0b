//! Conversions and bits of values that they are defined for.

use super::build::{Builder, ELEMS};
use super::steps::{is_half, one};
use super::Genes;
use onefold_loops::{BinOp, Cmp, Elem, Expr, Number, Reg, Ty};

/// The least and the largest number of an integer type that floats of a type hold. What is converted from half floats to
/// wide integers is within 16 bits, which both kinds of half floats hold.
fn range(from: Elem, to: Elem) -> (f64, f64) {
    match to {
        Elem::I8 => (-128.0, 127.0),
        Elem::U8 => (0.0, 255.0),
        // The lowest bit of a number.
        Elem::Bool => (-1.0, 1.0),
        _ if is_half(from) => (-32768.0, 32512.0),
        Elem::I32 => (-2_147_483_648.0, if from == Elem::F32 { 2_147_483_520.0 } else { 2_147_483_647.0 }),
        _ if from == Elem::F32 => (-9_223_372_036_854_775_808.0, 9_223_371_487_098_961_920.0),
        _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
    }
}

impl Builder {
    fn fits(&self, ty: Ty) -> bool {
        self.types.contains(&ty)
    }

    /// A conversion from a type to another one.
    pub fn conversion(&mut self, from: Ty, g: &Genes) -> Option<(Ty, Expr)> {
        let palette: Vec<Elem> = self.palette.iter().filter(|ty| ty.lanes == from.lanes).map(|ty| ty.elem).collect();
        let elem = if g.ty.is_multiple_of(3) || palette.is_empty() { &ELEMS[..] } else { &palette };
        let to = from.with(one(elem, g.picks[1]));
        if !self.fits(to) {
            return None;
        }
        let is_integer = |elem: Elem| !elem.is_float() && elem != Elem::Bool;
        let x = if from.elem.is_float() && !to.elem.is_float() {
            self.in_range(from, to, g)?
        } else if to.elem == Elem::Bool && !is_integer(from.elem) {
            return None;
        } else {
            self.operand(from, g.picks[0], g)
        };
        Some((to, Expr::Convert(to.elem, x)))
    }

    /// Floats that an integer type has numbers for.
    fn in_range(&mut self, from: Ty, to: Ty, g: &Genes) -> Option<Reg> {
        let wide = if is_half(from.elem) { from.with(Elem::F32) } else { from };
        if !self.fits(wide) {
            // No register for the comparisons: numbers that were integers before.
            let byte = if to.elem.bytes() == 1 { to.elem } else { Elem::I8 };
            let x = self.operand(to.with(byte), g.picks[0], g);
            return Some(self.hidden(from, "whole", Expr::Convert(from.elem, x)));
        }
        let mut x = self.operand(from, g.picks[0], g);
        if wide != from {
            x = self.hidden(wide, "wide", Expr::Convert(wide.elem, x));
        }
        let (lo, hi) = range(from.elem, to.elem);
        let [lo, hi] = [lo, hi].map(|v| self.hidden(wide, "c", Expr::Const(wide, Number::Float(v))));
        // Of NaN the second operand.
        x = self.binary(BinOp::Min, x, hi);
        x = self.binary(BinOp::Max, x, lo);
        if wide != from {
            x = self.hidden(from, "narrow", Expr::Convert(from.elem, x));
        }
        Some(x)
    }

    /// Bits as another type of the same width. Which NaN an operation gives is not defined, so none of those is looked at; nor
    /// are bytes truth values that are neither 0 nor 1.
    pub fn bits(&mut self, from: Ty, g: &Genes) -> Option<(Ty, Expr)> {
        let same_width =
            |to: &&Elem| to.bytes() == from.elem.bytes() && (**to != Elem::Bool || from.elem == Elem::Bool);
        let targets: Vec<Elem> = ELEMS.iter().filter(same_width).copied().collect();
        let to = from.with(one(&targets, g.picks[1]));
        let mut x = if is_half(from.elem) {
            let load = self.load_input(from, g);
            self.hidden(from, "x", load)
        } else {
            self.operand(from, g.picks[0], g)
        };
        if from.elem.is_float() && !is_half(from.elem) {
            let nan = self.hidden(from.with(Elem::Bool), "nan", Expr::Compare(Cmp::Uno, x, x));
            let other = self.same(from, 1);
            x = self.hidden(from, "number", Expr::Select(nan, other, x));
        }
        Some((to, Expr::Bitcast(to.elem, x)))
    }
}
