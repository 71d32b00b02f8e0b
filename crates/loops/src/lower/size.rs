//! Lengths of axes: fixed, given at the call, or computed from others.

use super::{LowerError, Lowering};
use crate::{BinOp, Count, Reg};
use onefold_ir::{AxisId, Extent, SizeExpr};

/// The length of an axis.
#[derive(Clone, Debug)]
pub struct Length {
    /// If it is a number.
    pub fixed: Option<u64>,
    /// Over the kernel's sizes.
    pub count: Count,
}

/// Lengths of all axes; symbolic ones are the kernel's sizes in order.
pub fn lengths(axes: &[onefold_ir::AxisDecl]) -> Result<Vec<Length>, LowerError> {
    let mut symbolic = 0;
    let mut counts: Vec<Option<Count>> = axes
        .iter()
        .map(|axis| match axis.extent {
            Extent::Fixed(n) => Some(Count::Const(n)),
            Extent::Symbolic => {
                symbolic += 1;
                Some(Count::Size(symbolic - 1))
            }
            Extent::Derived(_) => None,
        })
        .collect();
    // A derived length may stand on another one: as many rounds as there are axes reach the bottom.
    for _ in 0..axes.len() {
        for (at, axis) in axes.iter().enumerate() {
            if let (Extent::Derived(expr), None) = (&axis.extent, &counts[at]) {
                counts[at] = derived(expr, &counts);
            }
        }
    }
    let length = |(count, axis): (Option<Count>, &onefold_ir::AxisDecl)| {
        let count = count.ok_or_else(|| LowerError::internal(format!("axis {} has no length", axis.name)))?;
        let fixed = match count {
            Count::Const(n) => Some(n),
            _ => None,
        };
        Ok(Length { fixed, count })
    };
    counts.into_iter().zip(axes).map(length).collect()
}

fn derived(expr: &SizeExpr, known: &[Option<Count>]) -> Option<Count> {
    let of = |e: &SizeExpr| derived(e, known);
    let pair = |a: &SizeExpr, b: &SizeExpr| Some((Box::new(of(a)?), Box::new(of(b)?)));
    let count = match expr {
        SizeExpr::Const(n) => Count::Const(u64::try_from(*n).ok()?),
        SizeExpr::Axis(AxisId(a)) => known.get(*a as usize)?.clone()?,
        // A negative number is not a count: x + -n is x - n.
        SizeExpr::Add(a, b) => match (&**a, &**b) {
            (x, SizeExpr::Const(n)) | (SizeExpr::Const(n), x) if *n < 0 => {
                Count::Sub(Box::new(of(x)?), Box::new(Count::Const(n.unsigned_abs())))
            }
            _ => {
                let (a, b) = pair(a, b)?;
                Count::Add(a, b)
            }
        },
        SizeExpr::Sub(a, b) => match &**b {
            SizeExpr::Const(n) if *n < 0 => Count::Add(Box::new(of(a)?), Box::new(Count::Const(n.unsigned_abs()))),
            _ => {
                let (a, b) = pair(a, b)?;
                Count::Sub(a, b)
            }
        },
        SizeExpr::Mul(a, b) => {
            let (a, b) = pair(a, b)?;
            Count::Mul(a, b)
        }
        SizeExpr::DivCeil(a, b) => {
            let (a, b) = pair(a, b)?;
            Count::DivCeil(a, b)
        }
        SizeExpr::DivExact(a, b) => {
            let (a, b) = pair(a, b)?;
            Count::DivExact(a, b)
        }
    };
    Some(match count.eval(&[]) {
        Some(n) => Count::Const(n),
        None => count,
    })
}

impl Lowering<'_> {
    /// The length of an axis.
    pub fn extent(&self, axis: AxisId) -> &Length {
        &self.lengths[axis.0 as usize]
    }

    /// The length of an axis as a register. Computed once, before everything else, unless it is a number.
    pub fn size(&mut self, axis: AxisId) -> Result<Reg, LowerError> {
        if let Some(n) = self.extent(axis).fixed {
            let n = i64::try_from(n).map_err(|_| LowerError::unsupported("axes of more than 2^63 elements"))?;
            return Ok(self.emit.int(n));
        }
        if let Some(&reg) = self.size_regs.get(&axis) {
            return Ok(reg);
        }
        let outside = self.enter(super::scope::ScopeId(0));
        let count = self.extent(axis).count.clone();
        let reg = self.count(&count);
        self.enter(outside);
        self.size_regs.insert(axis, reg);
        Ok(reg)
    }

    fn count(&mut self, count: &Count) -> Reg {
        match count {
            Count::Const(n) => self.emit.int(*n as i64),
            Count::Size(n) => self.sizes[*n].reg,
            Count::Mul(a, b) => self.pair(BinOp::Mul, a, b),
            Count::Add(a, b) => self.pair(BinOp::Add, a, b),
            Count::Sub(a, b) => self.pair(BinOp::Sub, a, b),
            Count::DivExact(a, b) => self.quotient_of(a, b, false),
            Count::DivCeil(a, b) => self.quotient_of(a, b, true),
        }
    }

    fn pair(&mut self, op: BinOp, a: &Count, b: &Count) -> Reg {
        let (a, b) = (self.count(a), self.count(b));
        self.emit.bin(op, a, b)
    }

    /// The caller has checked that the divisor is not 0; a guard keeps even a wrong call from trapping.
    fn quotient_of(&mut self, a: &Count, b: &Count, up: bool) -> Reg {
        let (mut a, mut b) = (self.count(a), self.count(b));
        let one = self.emit.int(1);
        b = self.emit.bin(BinOp::Max, b, one);
        if up {
            a = self.emit.add(a, b);
            a = self.emit.sub(a, one);
        }
        self.emit.bin(BinOp::Div, a, b)
    }

    /// A number of elements times the length of an axis.
    pub fn product(&mut self, x: Reg, axis: AxisId) -> Result<Reg, LowerError> {
        let size = self.size(axis)?;
        if self.emit.known(x).is_some() || self.emit.known(size).is_some() {
            return Ok(self.emit.mul(x, size));
        }
        // Products of sizes are the same everywhere: one register for each.
        if let Some(&known) = self.products.get(&(x, size)) {
            return Ok(known);
        }
        let outside = self.enter(super::scope::ScopeId(0));
        let reg = self.emit.mul(x, size);
        self.enter(outside);
        self.products.insert((x, size), reg);
        Ok(reg)
    }

    /// Number of elements along some axes.
    pub fn elements(&self, axes: &[AxisId]) -> Count {
        let of = |axis: &AxisId| self.extent(*axis).count.clone();
        let product = |a: Count, b: Count| match (a, b) {
            (Count::Const(x), Count::Const(y)) => Count::Const(x.saturating_mul(y)),
            (Count::Const(1), c) | (c, Count::Const(1)) => c,
            (a, b) => Count::Mul(Box::new(a), Box::new(b)),
        };
        axes.iter().map(of).fold(Count::Const(1), product)
    }
}
