//! How axes are written: by name alone where the reader can tell which is meant, with their size elsewhere.

use crate::size::{show_size, Poly};
use crate::types::Rules;
use crate::{AxisDecl, AxisId, AxisSet, Extent, Func, ResultDecl};
use std::collections::BTreeMap;

/// Which names say enough.
pub(super) struct AxisNames {
    /// For each name among the parameters' axes, those axes in order.
    params: BTreeMap<String, Vec<AxisId>>,
    /// Names to which the result types give a size, and the axis; `None` if to more than one.
    declared: BTreeMap<String, Option<AxisId>>,
    /// All axes, the parameters' first and in their order: in that order they stand in sizes.
    order: Vec<AxisId>,
    /// Their declarations in that order.
    ordered: Vec<AxisDecl>,
}

impl AxisNames {
    pub(super) fn new(func: &Func) -> AxisNames {
        let mut params: BTreeMap<String, Vec<AxisId>> = BTreeMap::new();
        for axis in func.params.iter().flat_map(|p| &p.axes) {
            let Some(decl) = func.axes.get(usize::from(axis.0)) else { continue };
            let same = params.entry(decl.name.clone()).or_default();
            if !same.contains(axis) {
                same.push(*axis);
            }
        }
        let mut declared: BTreeMap<String, Option<AxisId>> = BTreeMap::new();
        for axis in func.results.iter().flat_map(|r| &r.axes) {
            let Some(decl) = func.axes.get(usize::from(axis.0)) else { continue };
            if matches!(decl.extent, Extent::Fixed(_)) && !params.contains_key(&decl.name) {
                declared
                    .entry(decl.name.clone())
                    .and_modify(|known| *known = known.filter(|k| k == axis))
                    .or_insert(Some(*axis));
            }
        }
        let ids = (0..func.axes.len() as u8).map(AxisId);
        let mut order: Vec<AxisId> = vec![];
        for axis in func.params.iter().flat_map(|p| p.axes.iter().copied()).chain(ids) {
            if !order.contains(&axis) && usize::from(axis.0) < func.axes.len() {
                order.push(axis);
            }
        }
        let ordered = order.iter().map(|a| func.axis(*a).clone()).collect();
        AxisNames { params, declared, order, ordered }
    }

    /// A size as text.
    pub(super) fn show(&self, size: &Poly) -> String {
        let number = |axis: AxisId| self.order.iter().position(|a| *a == axis).map_or(axis, |n| AxisId(n as u8));
        show_size(&size.renumbered(&number).to_expr(), &self.ordered)
    }

    /// The type of the n-th parameter. A size is given once, or at each axis of a name that several share.
    pub(super) fn param_type(&self, func: &Func, n: usize) -> String {
        let param = &func.params[n];
        let before = |axis: &AxisId| func.params[..n].iter().any(|p| p.axes.contains(axis));
        let axes = param.axes.iter().map(|axis| {
            let several = self.params.get(name(func, *axis)).is_some_and(|same| same.len() > 1);
            match func.axes.get(usize::from(axis.0)).map(|d| &d.extent) {
                Some(Extent::Fixed(_)) if several || !before(axis) => self.sized(func, *axis),
                Some(Extent::Symbolic) if several => self.sized(func, *axis),
                _ => name(func, *axis).to_string(),
            }
        });
        type_text(param.dtype.name(), axes)
    }

    /// The type of a result. Names mean the axes of the value; sizes are given to axes that no parameter has.
    pub(super) fn result_type(&self, func: &Func, result: &ResultDecl) -> String {
        let node = func.nodes.get(result.node.0 as usize);
        let own = node.map_or(AxisSet::EMPTY, |n| n.ty.axes);
        let axes = result.axes.iter().map(|axis| {
            let is_fixed = matches!(func.axes.get(usize::from(axis.0)).map(|d| &d.extent), Some(Extent::Fixed(_)));
            let of_params = self.params.contains_key(name(func, *axis));
            match own.contains(*axis) {
                true if is_fixed && !of_params => self.sized(func, *axis),
                true => name(func, *axis).to_string(),
                false if is_fixed && !of_params => self.sized(func, *axis),
                false => self.reference(func, *axis),
            }
        });
        type_text(node.map_or("f32", |n| n.ty.dtype.name()), axes)
    }

    /// An axis where no operand says which is meant: in `index`, in `size`.
    pub(super) fn reference(&self, func: &Func, axis: AxisId) -> String {
        if self.is_plain(func, axis) {
            name(func, axis).to_string()
        } else {
            self.sized(func, axis)
        }
    }

    /// A new axis; `derived` is the size that it has if nothing is said.
    pub(super) fn introduced(&self, func: &Func, axis: AxisId, derived: Option<Poly>) -> String {
        let word = name(func, axis);
        let free = !self.params.contains_key(word) && !self.declared.contains_key(word);
        let follows = derived.is_some() && Poly::of_axis(axis, &func.axes) == derived;
        if self.is_plain(func, axis) || (free && follows) {
            word.to_string()
        } else {
            self.sized(func, axis)
        }
    }

    /// Where an axis stands among several whose order has no meaning: as the parameters have it, then by name.
    pub(super) fn rank(&self, func: &Func, axis: AxisId) -> (usize, String) {
        let place = func.params.iter().flat_map(|p| &p.axes).position(|a| *a == axis);
        (place.unwrap_or(usize::MAX), name(func, axis).to_string())
    }

    /// Whether the name alone means this axis: it is a parameter's, or a result type says it.
    pub(super) fn is_plain(&self, func: &Func, axis: AxisId) -> bool {
        let word = name(func, axis);
        match self.params.get(word) {
            Some(same) => same.first() == Some(&axis),
            None => self.declared.get(word).copied().flatten() == Some(axis),
        }
    }

    /// An axis with its size.
    fn sized(&self, func: &Func, axis: AxisId) -> String {
        let word = name(func, axis);
        match func.axes.get(usize::from(axis.0)).map(|d| &d.extent) {
            Some(Extent::Fixed(n)) => format!("{word}={n}"),
            Some(Extent::Derived(expr)) => match Poly::of(expr, &func.axes) {
                Some(size) => format!("{word}={}", self.show(&size)),
                None => format!("{word}={}", show_size(expr, &func.axes)),
            },
            _ => format!("{word}=?"),
        }
    }
}

/// The name of an axis.
pub(super) fn name(func: &Func, axis: AxisId) -> &str {
    func.axes.get(usize::from(axis.0)).map_or("?", |d| d.name.as_str())
}

/// The product of sizes, if it can be said.
pub(super) fn product(func: &Func, axes: &[AxisId]) -> Option<Poly> {
    Rules { axes: &func.axes }.product(axes).ok()
}

fn type_text(dtype: &str, axes: impl Iterator<Item = String>) -> String {
    let axes: Vec<String> = axes.collect();
    if axes.is_empty() {
        dtype.to_string()
    } else {
        format!("{dtype}[{}]", axes.join(", "))
    }
}
