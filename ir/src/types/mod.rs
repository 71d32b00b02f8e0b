//! The type rules of the primitives: one function that builder, parser and verifier share.

mod error;
mod names;

pub use error::TypeError;
pub use names::op_name;
pub(crate) use names::show_axes;

use names::axis_name;

use crate::size::{show_extent, Poly};
use crate::{AxisDecl, AxisId, AxisSet, BinaryOp, DType, Extent, Literal, Op, Type, UnaryOp};

/// What the rules look things up in: the axes of the function.
pub(crate) struct Rules<'a> {
    pub(crate) axes: &'a [AxisDecl],
}

impl Rules<'_> {
    /// The type of a primitive's result. `dtype` is the one asked for, where the primitive leaves it open.
    pub(crate) fn result(&self, op: &Op, args: &[Type], dtype: DType) -> Result<Type, TypeError> {
        self.arity(op, args)?;
        let name = op_name(op);
        match op {
            Op::Param(_) | Op::Constant(_) => Ok(Type { dtype, axes: AxisSet::EMPTY }),
            Op::Literal(literal) => check_literal(*literal, dtype).map(|()| Type { dtype, axes: AxisSet::EMPTY }),
            Op::Index(axis) | Op::Size(axis) => {
                self.known(*axis)?;
                if dtype == DType::Bool {
                    return Err(TypeError::Literal { literal: format!("`{name}`"), dtype });
                }
                let axes = if matches!(op, Op::Index(_)) { AxisSet::one(*axis) } else { AxisSet::EMPTY };
                Ok(Type { dtype, axes })
            }
            Op::Unary(unary) => {
                let expected = if *unary == UnaryOp::Not { "bool" } else { "a float" };
                need(name, expected, args[0].dtype, unary.accepts(args[0].dtype))?;
                Ok(args[0])
            }
            Op::Binary(binary) => self.binary(name, *binary, args[0], args[1]),
            Op::Compare(_) => {
                let axes = self.together(name, &[args[0], args[1]])?.axes;
                Ok(Type { dtype: DType::Bool, axes })
            }
            Op::Select => {
                need("select", "a condition of bool", args[0].dtype, args[0].dtype == DType::Bool)?;
                let value = self.together(name, &args[1..])?;
                Ok(Type { dtype: value.dtype, axes: self.join(args[0].axes, value.axes)? })
            }
            Op::Cast => Ok(Type { dtype, axes: args[0].axes }),
            Op::Reduce(reduce, over) => self.reduce(name, *reduce, *over, args[0]),
            Op::ArgMax(axis) => {
                self.has(name, *axis, args[0])?;
                Ok(Type { dtype: DType::I64, axes: args[0].axes.without(*axis) })
            }
            Op::TopK { axis, to, part } => {
                let kept = self.replace(name, &[*axis], &[*to], args[0])?;
                if let (Some(k), Some(n)) = (self.fixed(*to), self.fixed(*axis)) {
                    if k > n {
                        let (to, axis) = (axis_name(*to, self.axes), axis_name(*axis, self.axes));
                        return Err(TypeError::TopK { k, to, axis, n });
                    }
                }
                Ok(part_type(*part, kept))
            }
            Op::Sort { axis, part } => {
                self.has(name, *axis, args[0])?;
                Ok(part_type(*part, args[0]))
            }
            Op::CumSum(axis) => {
                self.has(name, *axis, args[0])?;
                need(name, "a number", args[0].dtype, args[0].dtype != DType::Bool)?;
                Ok(args[0])
            }
            Op::Gather(axis) => {
                self.has(name, *axis, args[0])?;
                need(name, "integer ids", args[1].dtype, args[1].dtype.is_int())?;
                let axes = self.join(args[0].axes.without(*axis), args[1].axes)?;
                Ok(Type { dtype: args[0].dtype, axes })
            }
            Op::Rename { .. } | Op::Split { .. } | Op::Merge { .. } | Op::Slice { .. } => self.view(op, args[0]),
            Op::Concat { from, to } => self.concat(from, *to, args),
            Op::Shift { axis, .. } => {
                self.has(name, *axis, args[0])?;
                self.scalar("fill", args[1])?;
                self.together(name, args)?;
                Ok(args[0])
            }
            Op::Quantize => {
                need(name, "a float", args[0].dtype, args[0].dtype.is_float())?;
                need("quantize<T>", "an integer type T", dtype, dtype.is_int())?;
                let scaled = self.together(name, &args[..2])?.axes;
                same(name, dtype, args[2].dtype)?;
                Ok(Type { dtype, axes: self.join(scaled, args[2].axes)? })
            }
            Op::Dequantize => {
                need(name, "an integer", args[0].dtype, args[0].dtype.is_int())?;
                need(name, "a float scale", args[1].dtype, args[1].dtype.is_float())?;
                same(name, args[0].dtype, args[2].dtype)?;
                same(name, args[1].dtype, args[3].dtype)?;
                let axes = args.iter().try_fold(AxisSet::EMPTY, |axes, a| self.join(axes, a.axes))?;
                Ok(Type { dtype: args[1].dtype, axes })
            }
        }
    }

    fn arity(&self, op: &Op, args: &[Type]) -> Result<(), TypeError> {
        let expected = match op {
            Op::Param(_) | Op::Constant(_) | Op::Literal(_) | Op::Index(_) | Op::Size(_) => 0,
            Op::Binary(_) | Op::Compare(_) | Op::Gather(_) | Op::Shift { .. } => 2,
            Op::Select | Op::Quantize => 3,
            Op::Dequantize => 4,
            Op::Concat { from, .. } => from.len().max(1),
            _ => 1,
        };
        if args.len() == expected {
            Ok(())
        } else {
            Err(TypeError::Arity { op: op_name(op), expected, got: args.len() })
        }
    }

    fn binary(&self, name: &'static str, op: BinaryOp, a: Type, b: Type) -> Result<Type, TypeError> {
        let both = self.together(name, &[a, b])?;
        let d = both.dtype;
        let (expected, fits) = match op {
            BinaryOp::Pow => ("a float", d.is_float()),
            BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => ("an integer", d.is_int()),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => ("bool or an integer", !d.is_float()),
            BinaryOp::Min | BinaryOp::Max => ("a value", true),
            _ => ("a number", d != DType::Bool),
        };
        need(name, expected, d, fits)?;
        Ok(both)
    }

    fn reduce(&self, name: &'static str, op: crate::ReduceOp, over: AxisSet, x: Type) -> Result<Type, TypeError> {
        if over.is_empty() {
            return Err(TypeError::NoAxes(name));
        }
        for axis in over.iter() {
            self.has(name, axis, x)?;
        }
        let sums = matches!(op, crate::ReduceOp::Sum | crate::ReduceOp::Prod);
        need(name, "a number", x.dtype, !(sums && x.dtype == DType::Bool))?;
        Ok(Type { dtype: x.dtype, axes: x.axes.minus(over) })
    }

    fn view(&self, op: &Op, x: Type) -> Result<Type, TypeError> {
        let name = op_name(op);
        match op {
            Op::Rename { from, to } => {
                let ty = self.replace(name, &[*from], &[*to], x)?;
                self.equal_extents(name, *to, self.poly(*from)?)?;
                Ok(ty)
            }
            Op::Split { from, to } => {
                let ty = self.replace(name, &[*from], to, x)?;
                let parts = self.product(to)?;
                if let (Some(whole), Some(parts)) = (self.poly(*from)?.as_constant(), parts.as_constant()) {
                    if whole != parts {
                        return Err(self.not_divisible(*from, to));
                    }
                }
                Ok(ty)
            }
            Op::Merge { from, to } => {
                let ty = self.replace(name, from, &[*to], x)?;
                self.equal_extents(name, *to, self.product(from)?)?;
                Ok(ty)
            }
            Op::Slice { from, to, start, step } => {
                if *start < 0 || *step < 1 {
                    return Err(TypeError::SliceStep { start: *start, step: *step });
                }
                let ty = self.replace(name, &[*from], &[*to], x)?;
                if let (Some(n), Some(size)) = (self.fixed(*to), self.fixed(*from)) {
                    let last = (n.max(1) - 1).saturating_mul(step.unsigned_abs()).saturating_add(start.unsigned_abs());
                    if n > 0 && last >= size {
                        return Err(TypeError::SliceEnd { axis: axis_name(*from, self.axes), last, size });
                    }
                }
                Ok(ty)
            }
            _ => Ok(x),
        }
    }

    fn concat(&self, from: &[AxisId], to: AxisId, args: &[Type]) -> Result<Type, TypeError> {
        let mut sum = Poly::default();
        let mut rest = AxisSet::EMPTY;
        for (axis, ty) in from.iter().zip(args) {
            self.has("concat", *axis, *ty)?;
            same("concat", args[0].dtype, ty.dtype)?;
            rest = self.join(rest, ty.axes.without(*axis))?;
            sum = sum.add(&self.poly(*axis)?).ok_or_else(|| self.out_of_range(to))?;
        }
        if from.is_empty() {
            return Err(TypeError::NoAxes("concat"));
        }
        self.fresh("concat", to, rest)?;
        self.equal_extents("concat", to, sum)?;
        Ok(Type { dtype: args[0].dtype, axes: rest.with(to) })
    }

    /// The operand's type with some axes in place of others.
    fn replace(&self, op: &'static str, from: &[AxisId], to: &[AxisId], x: Type) -> Result<Type, TypeError> {
        if from.is_empty() || to.is_empty() {
            return Err(TypeError::NoAxes(op));
        }
        let mut axes = x.axes;
        for axis in from {
            self.has(op, *axis, x)?;
            if !axes.contains(*axis) {
                return Err(TypeError::Twice { op, axis: axis_name(*axis, self.axes) });
            }
            axes = axes.without(*axis);
        }
        for axis in to {
            self.fresh(op, *axis, axes)?;
            axes = axes.with(*axis);
        }
        Ok(Type { dtype: x.dtype, axes })
    }

    /// That an axis may be added to a value: no axis of that name is there.
    fn fresh(&self, op: &'static str, axis: AxisId, axes: AxisSet) -> Result<(), TypeError> {
        self.known(axis)?;
        let name = axis_name(axis, self.axes);
        if axes.iter().any(|a| axis_name(a, self.axes) == name) {
            return Err(TypeError::AxisTaken { op, axis: name });
        }
        Ok(())
    }

    /// That an axis is as long as needed, as far as this is known before the call.
    fn equal_extents(&self, op: &'static str, to: AxisId, needed: Poly) -> Result<(), TypeError> {
        let got = self.poly(to)?;
        match (got.as_constant(), needed.as_constant()) {
            (Some(a), Some(b)) if a != b => {
                Err(TypeError::Extent { op, to: axis_name(to, self.axes), got: a.to_string(), expected: b.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// What parts do not make up that axis; also the error when the missing part of a split is not whole.
    pub(crate) fn not_divisible(&self, from: AxisId, to: &[AxisId]) -> TypeError {
        let part = |a: &AxisId| format!("`{}` ({})", axis_name(*a, self.axes), show_extent(*a, self.axes));
        TypeError::NotDivisible {
            axis: axis_name(from, self.axes),
            size: show_extent(from, self.axes),
            parts: to.iter().map(part).collect::<Vec<_>>().join(" by "),
        }
    }

    /// The product of several sizes.
    pub(crate) fn product(&self, of: &[AxisId]) -> Result<Poly, TypeError> {
        of.iter().try_fold(Poly::constant(1), |product, axis| {
            product.mul(&self.poly(*axis)?).ok_or_else(|| self.out_of_range(*axis))
        })
    }

    /// The size of an axis as a polynomial.
    pub(crate) fn poly(&self, axis: AxisId) -> Result<Poly, TypeError> {
        self.known(axis)?;
        Poly::of_axis(axis, self.axes).ok_or_else(|| self.out_of_range(axis))
    }

    pub(crate) fn out_of_range(&self, axis: AxisId) -> TypeError {
        TypeError::Size { axis: axis_name(axis, self.axes), size: show_extent(axis, self.axes) }
    }

    fn fixed(&self, axis: AxisId) -> Option<u64> {
        match self.axes.get(usize::from(axis.0))?.extent {
            Extent::Fixed(n) => Some(n),
            _ => None,
        }
    }

    fn known(&self, axis: AxisId) -> Result<(), TypeError> {
        if usize::from(axis.0) < self.axes.len() {
            Ok(())
        } else {
            Err(TypeError::UnknownAxis(axis))
        }
    }

    fn has(&self, op: &'static str, axis: AxisId, ty: Type) -> Result<(), TypeError> {
        self.known(axis)?;
        if ty.axes.contains(axis) {
            return Ok(());
        }
        Err(TypeError::NoSuchAxis { op, axis: axis_name(axis, self.axes), has: show_axes(ty.axes, self.axes) })
    }

    fn scalar(&self, what: &'static str, ty: Type) -> Result<(), TypeError> {
        if ty.axes.is_empty() {
            return Ok(());
        }
        Err(TypeError::NotScalar { what, axes: show_axes(ty.axes, self.axes) })
    }

    /// The union of axes; no two of one name.
    pub(crate) fn join(&self, a: AxisSet, b: AxisSet) -> Result<AxisSet, TypeError> {
        for left in a.minus(b).iter() {
            for right in b.minus(a).iter() {
                let axis = axis_name(left, self.axes);
                if axis == axis_name(right, self.axes) {
                    let (left, right) = (show_extent(left, self.axes), show_extent(right, self.axes));
                    return Err(TypeError::TwoExtents { axis, left, right });
                }
            }
        }
        Ok(a.union(b))
    }

    /// The type of operands taken together: one dtype, the union of axes.
    fn together(&self, op: &'static str, args: &[Type]) -> Result<Type, TypeError> {
        let mut all = args[0];
        for ty in &args[1..] {
            same(op, all.dtype, ty.dtype)?;
            all.axes = self.join(all.axes, ty.axes)?;
        }
        Ok(all)
    }

    /// That the bytes of a value can be counted, as far as its sizes are fixed.
    pub(crate) fn check_bytes(&self, ty: Type) -> Result<(), TypeError> {
        let sizes = ty.axes.iter().filter_map(|a| self.fixed(a));
        let bytes = sizes.filter(|n| *n > 0).try_fold(8u64, u64::checked_mul);
        match bytes {
            Some(n) if n <= i64::MAX as u64 => Ok(()),
            _ => Err(TypeError::TooLarge { axes: show_axes(ty.axes, self.axes) }),
        }
    }
}

fn part_type(part: crate::Part, values: Type) -> Type {
    match part {
        crate::Part::Values => values,
        crate::Part::Indices => Type { dtype: DType::I64, axes: values.axes },
    }
}

fn need(op: &'static str, expected: &str, got: DType, fits: bool) -> Result<(), TypeError> {
    if fits {
        Ok(())
    } else {
        Err(TypeError::Dtype { op, expected: expected.to_string(), got })
    }
}

fn same(op: &'static str, left: DType, right: DType) -> Result<(), TypeError> {
    if left == right {
        Ok(())
    } else {
        Err(TypeError::Mismatch { op, left, right })
    }
}

/// The least and greatest value of an integer type; `None` for the others.
pub(crate) fn int_range(dtype: DType) -> Option<(i64, i64)> {
    Some(match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I4 => (-8, 7),
        DType::U4 => (0, 15),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::I64 => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

fn check_literal(literal: Literal, dtype: DType) -> Result<(), TypeError> {
    let fits = match literal {
        Literal::Float(_) => dtype.is_float(),
        Literal::Int(v) => int_range(dtype).is_some_and(|(lo, hi)| (lo..=hi).contains(&v)),
        Literal::Bool(_) => dtype == DType::Bool,
    };
    let text = match literal {
        Literal::Float(v) => v.to_string(),
        Literal::Int(v) => v.to_string(),
        Literal::Bool(v) => v.to_string(),
    };
    if fits {
        Ok(())
    } else {
        Err(TypeError::Literal { literal: text, dtype })
    }
}
