//! How index terms change along an axis, and what loads look like from it.

use onefold_ir::{AxisId, BinaryOp, Extent, Literal, UnaryOp};
use onefold_passes::convert::same_extent;
use onefold_passes::fold::{ArrayDecl, FoldProgram};
use onefold_passes::term::{ArrayId, Term, TermId, TermOp};

/// Change of an integer term from one position of an axis to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    /// A number; 0 if the term does not vary.
    Const(i64),
    /// The same everywhere, but known only at the call.
    Symbolic,
    /// Not the same everywhere.
    Irregular,
}

/// How a load meets memory along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One element.
    Invariant,
    /// Neighbours.
    Contiguous,
    /// Elements at equal distances.
    Strided,
    /// As the two above but at the ends of the array, where positions are clamped.
    Edged,
    /// Anything else.
    Scattered,
}

impl Slope {
    fn combine(self, other: Slope, f: impl Fn(i64, i64) -> Option<i64>) -> Slope {
        match (self, other) {
            (Slope::Irregular, _) | (_, Slope::Irregular) => Slope::Irregular,
            (Slope::Const(a), Slope::Const(b)) => f(a, b).map_or(Slope::Irregular, Slope::Const),
            _ => Slope::Symbolic,
        }
    }

    fn times(self, factor: Option<i64>) -> Slope {
        match (self, factor) {
            (Slope::Const(0), _) => Slope::Const(0),
            (Slope::Const(a), Some(b)) => a.checked_mul(b).map_or(Slope::Irregular, Slope::Const),
            (Slope::Irregular, _) => Slope::Irregular,
            _ => Slope::Symbolic,
        }
    }
}

/// The slope of an integer term along an axis.
pub fn slope(program: &FoldProgram, id: TermId, axis: AxisId) -> Slope {
    let term = program.terms.get(id);
    if !term.axes.contains(axis) {
        return Slope::Const(0);
    }
    let of = |i: usize| slope(program, term.args[i], axis);
    match &term.op {
        TermOp::Index(_) => Slope::Const(1),
        TermOp::Unary(UnaryOp::Neg) => of(0).times(Some(-1)),
        TermOp::Binary(BinaryOp::Add) => of(0).combine(of(1), i64::checked_add),
        TermOp::Binary(BinaryOp::Sub) => of(0).combine(of(1), i64::checked_sub),
        TermOp::Binary(BinaryOp::Mul) => {
            let varies = |i: usize| program.terms.get(term.args[i]).axes.contains(axis);
            match (varies(0), varies(1)) {
                (true, false) => of(0).times(literal(program, term.args[1])),
                (false, true) => of(1).times(literal(program, term.args[0])),
                _ => Slope::Irregular,
            }
        }
        _ => Slope::Irregular,
    }
}

/// The value of an integer literal.
pub fn literal(program: &FoldProgram, id: TermId) -> Option<i64> {
    match program.terms.get(id).op {
        TermOp::Literal(Literal::Int(n)) => Some(n),
        _ => None,
    }
}

/// The declaration of an array.
pub fn array(program: &FoldProgram, id: ArrayId) -> &ArrayDecl {
    match id {
        ArrayId::Input(n) => &program.inputs[n],
        ArrayId::Intermediate(n) => &program.intermediates[n],
    }
}

/// Operands of a load, each with the number of the array's axis whose stride applies to it. Quotient and remainder of one
/// index by an axis' size, which is how merged axes come out, are that index along the inner axis.
pub fn joined(program: &FoldProgram, decl: &ArrayDecl, args: &[TermId]) -> Vec<(TermId, usize)> {
    let mut parts: Vec<(TermId, usize)> = vec![];
    for (at, arg) in args.iter().enumerate() {
        let whole = parts.last().and_then(|(outer, _)| {
            let (o, i) = (program.terms.get(*outer), program.terms.get(*arg));
            let fits = o.op == TermOp::Binary(BinaryOp::Div)
                && i.op == TermOp::Binary(BinaryOp::Rem)
                && o.args == i.args
                && is_size(program, o.args[1], decl.axes[at]);
            fits.then(|| o.args[0])
        });
        match whole {
            Some(whole) => *parts.last_mut().unwrap_or(&mut (whole, at)) = (whole, at),
            None => parts.push((*arg, at)),
        }
    }
    parts
}

fn is_size(program: &FoldProgram, id: TermId, axis: AxisId) -> bool {
    match (&program.terms.get(id).op, &program.axes[axis.0 as usize].extent) {
        (TermOp::Size(a), _) => *a == axis,
        (TermOp::Literal(Literal::Int(n)), Extent::Fixed(size)) => u64::try_from(*n) == Ok(*size),
        _ => false,
    }
}

/// The number of elements of the axes behind one of an array's, if fixed.
fn fixed_stride(program: &FoldProgram, decl: &ArrayDecl, at: usize) -> Option<i64> {
    decl.axes[at + 1..].iter().try_fold(1i64, |product, axis| match program.axes[axis.0 as usize].extent {
        Extent::Fixed(n) => product.checked_mul(i64::try_from(n).ok()?),
        _ => None,
    })
}

/// The position that a clamped one is if it lies inside an array's axis: what shifts and concatenations make of their index.
pub fn unclamped(program: &FoldProgram, id: TermId, axis: AxisId) -> Option<TermId> {
    let pair = |id: TermId, op: BinaryOp| {
        let term = program.terms.get(id);
        (term.op == TermOp::Binary(op)).then(|| (term.args[0], term.args[1]))
    };
    let either = |(a, b): (TermId, TermId), test: &dyn Fn(TermId) -> bool| {
        if test(b) {
            Some(a)
        } else {
            test(a).then_some(b)
        }
    };
    let last = |id: TermId| {
        let fixed = matches!(program.axes[axis.0 as usize].extent, Extent::Fixed(n) if literal(program, id) == i64::try_from(n).ok().map(|n| n - 1));
        let less_one =
            pair(id, BinaryOp::Sub).is_some_and(|(a, b)| is_size(program, a, axis) && literal(program, b) == Some(1));
        let plus = pair(id, BinaryOp::Add).and_then(|p| either(p, &|t| literal(program, t) == Some(-1)));
        fixed || less_one || plus.is_some_and(|a| is_size(program, a, axis))
    };
    let zero = |id: TermId| literal(program, id) == Some(0);
    let low =
        pair(id, BinaryOp::Min).and_then(|p| either(p, &last)).and_then(|t| either(pair(t, BinaryOp::Max)?, &zero));
    let high =
        || pair(id, BinaryOp::Max).and_then(|p| either(p, &zero)).and_then(|t| either(pair(t, BinaryOp::Min)?, &last));
    low.or_else(high)
}

/// The operands of a load as they are inside the array.
pub fn inside(program: &FoldProgram, load: &Term) -> Vec<TermId> {
    let TermOp::Load { array: id, .. } = load.op else { return load.args.clone() };
    let axes = &array(program, id).axes;
    load.args.iter().zip(axes).map(|(arg, axis)| unclamped(program, *arg, *axis).unwrap_or(*arg)).collect()
}

/// Change of a load's offset from one position of an axis to the next.
pub fn load_slope(program: &FoldProgram, load: &Term, axis: AxisId) -> Slope {
    match is_unsure(program, load, axis) {
        true => Slope::Irregular,
        false => slope_of(program, load, &load.args, axis),
    }
}

/// Whether a load has a position to be checked that varies along an axis: then each element is looked at on its own.
fn is_unsure(program: &FoldProgram, load: &Term, axis: AxisId) -> bool {
    let TermOp::Load { array: id, checked: true } = load.op else { return false };
    let unsure =
        |(arg, of): (&TermId, &AxisId)| program.terms.get(*arg).axes.contains(axis) && !is_inside(program, *arg, *of);
    load.args.iter().zip(&array(program, id).axes).any(unsure)
}

/// Whether a position is inside an axis whatever was picked.
pub fn is_inside(program: &FoldProgram, position: TermId, axis: AxisId) -> bool {
    match (&program.terms.get(position).op, &program.axes[axis.0 as usize].extent) {
        (TermOp::Index(along), _) => same_extent(&program.axes, *along, axis),
        (TermOp::Literal(Literal::Int(n)), Extent::Fixed(size)) => u64::try_from(*n).is_ok_and(|n| n < *size),
        _ => false,
    }
}

fn slope_of(program: &FoldProgram, load: &Term, args: &[TermId], axis: AxisId) -> Slope {
    let TermOp::Load { array: id, .. } = load.op else { return Slope::Irregular };
    let decl = array(program, id);
    joined(program, decl, args).into_iter().fold(Slope::Const(0), |sum, (arg, at)| {
        let part = slope(program, arg, axis).times(fixed_stride(program, decl, at));
        sum.combine(part, i64::checked_add)
    })
}

/// How a load meets memory along an axis.
pub fn access(program: &FoldProgram, load: &Term, axis: AxisId) -> Access {
    if !load.axes.contains(axis) {
        return Access::Invariant;
    }
    if is_unsure(program, load, axis) {
        return Access::Scattered;
    }
    match load_slope(program, load, axis) {
        Slope::Const(1) => Access::Contiguous,
        Slope::Const(_) | Slope::Symbolic => Access::Strided,
        Slope::Irregular => match slope_of(program, load, &inside(program, load), axis) {
            Slope::Irregular => Access::Scattered,
            _ => Access::Edged,
        },
    }
}
