//! Axes of a function being built: declared ones, and those whose length follows from others.

use super::{is_identifier, BuildError, FuncBuilder};
use crate::size::Poly;
use crate::types::{Rules, TypeError};
use crate::{AxisDecl, AxisId, Extent, SizeExpr, MAX_AXES};

impl FuncBuilder {
    /// The axis of that name whose length is known at the call only.
    pub fn symbolic(&mut self, name: &str) -> Result<AxisId, BuildError> {
        self.axis(name, Extent::Symbolic)
    }

    /// The axis of that name and length.
    pub fn fixed(&mut self, name: &str, size: u64) -> Result<AxisId, BuildError> {
        if i64::try_from(size).is_err() {
            return Err(TypeError::Size { axis: name.to_string(), size: size.to_string() }.into());
        }
        self.axis(name, Extent::Fixed(size))
    }

    /// The axis of that name whose length is the value of an expression.
    pub fn derived(&mut self, name: &str, size: &SizeExpr) -> Result<AxisId, BuildError> {
        let poly = Poly::of(size, &self.func.axes);
        self.axis_of(name, poly.ok_or_else(|| bad_size(name, size, &self.func.axes))?)
    }

    /// The axis of that name as long as another.
    pub fn same_length(&mut self, name: &str, as_long_as: AxisId) -> Result<AxisId, BuildError> {
        let poly = self.rules().poly(as_long_as)?;
        self.axis_of(name, poly)
    }

    /// The axis that several make when they are laid out as one.
    pub fn merged(&mut self, name: &str, parts: &[AxisId]) -> Result<AxisId, BuildError> {
        let poly = self.rules().product(parts)?;
        self.axis_of(name, poly)
    }

    /// The axis that is left when an axis is cut into some known ones and this one.
    pub fn quotient(&mut self, name: &str, whole: AxisId, known: &[AxisId]) -> Result<AxisId, BuildError> {
        let rules = self.rules();
        let poly = rules.poly(whole)?.div_exact(&rules.product(known)?);
        let poly = poly.ok_or_else(|| rules.not_divisible(whole, known))?;
        self.axis_of(name, poly)
    }

    /// The axis that several make one after the other.
    pub fn joined(&mut self, name: &str, parts: &[AxisId]) -> Result<AxisId, BuildError> {
        let rules = self.rules();
        let sum = parts.iter().try_fold(Poly::default(), |sum, axis| {
            sum.add(&rules.poly(*axis)?).ok_or_else(|| rules.out_of_range(*axis))
        });
        self.axis_of(name, sum?)
    }

    /// The axis that `start..stop..step` leaves; to the end if there is no stop.
    pub fn sliced(
        &mut self,
        name: &str,
        from: AxisId,
        start: i64,
        stop: Option<&SizeExpr>,
        step: i64,
    ) -> Result<AxisId, BuildError> {
        if start < 0 || step < 1 {
            return Err(TypeError::SliceStep { start, step }.into());
        }
        let rules = self.rules();
        let stop = match stop {
            Some(expr) => Poly::of(expr, &self.func.axes).ok_or_else(|| bad_size(name, expr, &self.func.axes))?,
            None => rules.poly(from)?,
        };
        let count = stop.sub(&Poly::constant(start)).and_then(|n| n.div_ceil(&Poly::constant(step)));
        let count = count.ok_or_else(|| rules.out_of_range(from))?;
        // A slice that ends before it starts is empty.
        let count = if count.as_constant().is_some_and(|n| n < 0) { Poly::constant(0) } else { count };
        self.axis_of(name, count)
    }

    /// The axes of that name, in order of declaration.
    pub fn axes_named(&self, name: &str) -> Vec<AxisId> {
        let ids = (0..self.func.axes.len() as u8).map(AxisId);
        ids.filter(|a| self.func.axis(*a).name == name).collect()
    }

    fn rules(&self) -> Rules<'_> {
        Rules { axes: &self.func.axes }
    }

    fn axis_of(&mut self, name: &str, size: Poly) -> Result<AxisId, BuildError> {
        if let Some(n) = size.as_constant() {
            let fixed =
                u64::try_from(n).map_err(|_| TypeError::Size { axis: name.to_string(), size: n.to_string() })?;
            return self.axis(name, Extent::Fixed(fixed));
        }
        match size.as_axis() {
            Some(same) if self.func.axis(same).name == name => Ok(same),
            _ => self.axis(name, Extent::Derived(size.to_expr())),
        }
    }

    fn axis(&mut self, name: &str, extent: Extent) -> Result<AxisId, BuildError> {
        if !is_identifier(name) {
            return Err(BuildError::BadName(name.to_string()));
        }
        let decl = AxisDecl { name: name.to_string(), extent };
        if let Some(known) = self.func.axes.iter().position(|a| *a == decl) {
            return Ok(AxisId(known as u8));
        }
        if self.func.axes.len() >= MAX_AXES {
            return Err(BuildError::TooManyAxes);
        }
        self.func.axes.push(decl);
        Ok(AxisId(self.func.axes.len() as u8 - 1))
    }
}

fn bad_size(name: &str, size: &SizeExpr, axes: &[AxisDecl]) -> BuildError {
    TypeError::Size { axis: name.to_string(), size: crate::size::show_size(size, axes) }.into()
}
