//! Whether a module is well formed: every node has the type its primitive gives, names are unique, sizes make sense.
//!
//! The parser and the builder make only such modules; whatever changes a module is checked against this.

mod error;

pub use error::{VerifyError, VerifyErrorKind, VerifyErrors};

use crate::builder::{is_identifier, is_value_name, result_name};
use crate::size::refers_below;
use crate::types::{op_name, Rules, TypeError};
use crate::{AxisId, AxisSet, Constant, Extent, Func, Literal, Module, Node, NodeId, Op, Part, SizeExpr, MAX_AXES};
use std::collections::{BTreeMap, BTreeSet};

/// Checks a module.
///
/// # Errors
/// Everything that is wrong with it, in order.
pub fn verify(module: &Module) -> Result<(), VerifyErrors> {
    let mut errors = vec![];
    let mut names = BTreeSet::new();
    for constant in &module.constants {
        let found = check_constant(constant, &mut names);
        errors.extend(found.into_iter().map(|kind| VerifyError { func: None, node: None, kind }));
    }
    let mut funcs = BTreeSet::new();
    for func in &module.funcs {
        if !funcs.insert(func.name.as_str()) {
            let kind = VerifyErrorKind::DuplicateName(func.name.clone());
            errors.push(VerifyError { func: None, node: None, kind });
        }
        Checker { module, func, constants: &names, errors: &mut errors }.check();
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(VerifyErrors(errors))
    }
}

fn check_constant(constant: &Constant, names: &mut BTreeSet<String>) -> Vec<VerifyErrorKind> {
    let mut errors = vec![];
    let name = &constant.name;
    if !is_value_name(name) {
        errors.push(VerifyErrorKind::BadName(name.clone()));
    }
    if !names.insert(name.clone()) {
        errors.push(VerifyErrorKind::DuplicateName(name.clone()));
    }
    let mut axes = BTreeSet::new();
    for (axis, _) in &constant.axes {
        if !is_identifier(axis) {
            errors.push(VerifyErrorKind::BadName(axis.clone()));
        }
        if !axes.insert(axis) {
            errors.push(VerifyErrorKind::DuplicateAxis(axis.clone()));
        }
    }
    let expected = constant.axes.iter().try_fold(1u64, |n, (_, size)| n.checked_mul(*size));
    if expected != Some(constant.data.len() as u64) {
        let expected = expected.map_or_else(|| "too many".to_string(), |n| n.to_string());
        errors.push(VerifyErrorKind::ConstantLength { name: name.clone(), got: constant.data.len(), expected });
    }
    if let Some(value) = constant.data.iter().find(|v| !crate::text::holds(constant.dtype, **v)) {
        errors.push(VerifyErrorKind::ConstantValue { name: name.clone(), value: *value, dtype: constant.dtype });
    }
    errors
}

struct Checker<'a> {
    module: &'a Module,
    func: &'a Func,
    constants: &'a BTreeSet<String>,
    errors: &'a mut Vec<VerifyError>,
}

impl Checker<'_> {
    fn report(&mut self, node: Option<usize>, kind: VerifyErrorKind) {
        let node = node.map(|id| (NodeId(id as u32), self.func.nodes[id].name.clone()));
        self.errors.push(VerifyError { func: Some(self.func.name.clone()), node, kind });
    }

    fn check(&mut self) {
        if !is_identifier(&self.func.name) {
            self.report(None, VerifyErrorKind::BadName(self.func.name.clone()));
        }
        let before = self.errors.len();
        self.check_axes();
        // With wrong axes nothing that follows can be told.
        if self.errors.len() > before {
            return;
        }
        self.check_params();
        self.check_names();
        for id in 0..self.func.nodes.len() {
            if let Err(kind) = self.check_node(id) {
                self.report(Some(id), kind);
            }
        }
        self.check_results();
    }

    fn check_axes(&mut self) {
        let func = self.func;
        if func.axes.len() > MAX_AXES {
            self.report(None, VerifyErrorKind::TooManyAxes(func.axes.len()));
            return;
        }
        let bound: AxisSet =
            func.params.iter().flat_map(|p| p.axes.iter().copied()).filter(|a| usize::from(a.0) < MAX_AXES).collect();
        for (n, decl) in func.axes.iter().enumerate() {
            let id = AxisId(n as u8);
            let name = || decl.name.clone();
            if !is_identifier(&decl.name) {
                self.report(None, VerifyErrorKind::BadName(name()));
            }
            if func.axes[..n].contains(decl) {
                self.report(None, VerifyErrorKind::DuplicateAxis(name()));
            }
            match &decl.extent {
                Extent::Fixed(size) if i64::try_from(*size).is_err() => {
                    let error = TypeError::Size { axis: name(), size: size.to_string() };
                    self.report(None, error.into());
                }
                Extent::Symbolic if !bound.contains(id) => self.report(None, VerifyErrorKind::Unbound(name())),
                Extent::Derived(expr) if !refers_below(expr, id) || !self.refers_to_roots(expr) => {
                    self.report(None, VerifyErrorKind::BadExtent(name()));
                }
                _ => {}
            }
        }
    }

    fn refers_to_roots(&self, expr: &SizeExpr) -> bool {
        match expr {
            SizeExpr::Const(_) => true,
            SizeExpr::Axis(axis) => {
                self.func.axes.get(usize::from(axis.0)).is_some_and(|d| !matches!(d.extent, Extent::Derived(_)))
            }
            SizeExpr::Add(a, b)
            | SizeExpr::Sub(a, b)
            | SizeExpr::Mul(a, b)
            | SizeExpr::DivCeil(a, b)
            | SizeExpr::DivExact(a, b) => self.refers_to_roots(a) && self.refers_to_roots(b),
        }
    }

    fn check_params(&mut self) {
        let func = self.func;
        let mut nodes: BTreeMap<usize, usize> = BTreeMap::new();
        for node in &func.nodes {
            if let Op::Param(n) = node.op {
                *nodes.entry(n).or_default() += 1;
            }
        }
        for (n, param) in func.params.iter().enumerate() {
            if nodes.get(&n) != Some(&1) {
                self.report(None, VerifyErrorKind::ParamNodes(param.name.clone()));
            }
            if let Err(error) = self.axis_list(&param.axes) {
                self.report(None, error.into());
            }
        }
    }

    fn check_names(&mut self) {
        let mut seen = self.constants.clone();
        let func = self.func;
        for param in &func.params {
            if !is_value_name(&param.name) {
                self.report(None, VerifyErrorKind::BadName(param.name.clone()));
            }
            if !seen.insert(param.name.clone()) {
                self.report(None, VerifyErrorKind::DuplicateName(param.name.clone()));
            }
        }
        for (id, node) in func.nodes.iter().enumerate() {
            let (Some(name), false) = (&node.name, matches!(node.op, Op::Param(_))) else { continue };
            if !is_value_name(name) || crate::builder::is_anonymous(name) {
                self.report(Some(id), VerifyErrorKind::BadName(name.clone()));
            }
            if !seen.insert(name.clone()) {
                self.report(Some(id), VerifyErrorKind::DuplicateName(name.clone()));
            }
        }
    }

    /// The axes of a parameter or a result as a set.
    fn axis_list(&self, axes: &[AxisId]) -> Result<AxisSet, TypeError> {
        let rules = Rules { axes: &self.func.axes };
        let mut set = AxisSet::EMPTY;
        for axis in axes {
            rules.poly(*axis)?;
            if set.contains(*axis) {
                return Err(TypeError::Twice { op: "type", axis: self.func.axis(*axis).name.clone() });
            }
            set = rules.join(set, AxisSet::one(*axis))?;
        }
        Ok(set)
    }

    fn check_node(&self, id: usize) -> Result<(), VerifyErrorKind> {
        let func = self.func;
        let node = &func.nodes[id];
        if let Some(late) = node.args.iter().find(|a| a.0 as usize >= id) {
            return Err(VerifyErrorKind::UseBeforeDefinition(*late));
        }
        let args: Vec<_> = node.args.iter().map(|a| func.node(*a).ty).collect();
        let rules = Rules { axes: &func.axes };
        let mut expected = rules.result(&node.op, &args, node.ty.dtype)?;
        match &node.op {
            Op::Param(n) => {
                let param = func.params.get(*n).ok_or(VerifyErrorKind::OutOfRange { what: "parameter", index: *n })?;
                expected.dtype = param.dtype;
                expected.axes = self.axis_list(&param.axes)?;
                if node.name.as_ref() != Some(&param.name) {
                    return Err(VerifyErrorKind::ParamNodes(param.name.clone()));
                }
            }
            Op::Constant(n) => {
                let constant =
                    self.module.constants.get(*n).ok_or(VerifyErrorKind::OutOfRange { what: "constant", index: *n })?;
                expected.dtype = constant.dtype;
                expected.axes = self.constant_axes(constant, node)?;
            }
            Op::Quantize | Op::Dequantize => {
                if let Op::Literal(Literal::Float(scale)) = func.node(node.args[1]).op {
                    if !(scale.is_finite() && scale > 0.0) {
                        return Err(TypeError::Scale(scale).into());
                    }
                }
            }
            Op::TopK { .. } | Op::Sort { .. } => self.check_pair(id)?,
            _ => {}
        }
        if expected != node.ty {
            let show = |ty: crate::Type| format!("{}[{}]", ty.dtype, crate::types::show_axes(ty.axes, &func.axes));
            let (expected, got) = (show(expected), show(node.ty));
            return Err(VerifyErrorKind::WrongType { op: op_name(&node.op), expected, got });
        }
        rules.check_bytes(expected)?;
        Ok(())
    }

    /// The axes of the function that a constant's are.
    fn constant_axes(&self, constant: &Constant, node: &Node) -> Result<AxisSet, VerifyErrorKind> {
        let mut axes = AxisSet::EMPTY;
        for (name, size) in &constant.axes {
            let found = (0..self.func.axes.len() as u8).map(AxisId).find(|a| {
                let decl = self.func.axis(*a);
                decl.name == *name && decl.extent == Extent::Fixed(*size)
            });
            match found {
                Some(axis) => axes = axes.with(axis),
                None => {
                    let (expected, got) =
                        (format!("axis {name}={size}"), crate::types::show_axes(node.ty.axes, &self.func.axes));
                    return Err(VerifyErrorKind::WrongType { op: "const", expected, got });
                }
            }
        }
        Ok(axes)
    }

    fn check_pair(&self, id: usize) -> Result<(), VerifyErrorKind> {
        let nodes = &self.func.nodes;
        let other = |part: Part| match &nodes[id].op {
            Op::TopK { axis, to, .. } => Op::TopK { axis: *axis, to: *to, part },
            Op::Sort { axis, .. } => Op::Sort { axis: *axis, part },
            op => op.clone(),
        };
        let is_values = nodes[id].op == other(Part::Values);
        let neighbour = if is_values { nodes.get(id + 1) } else { id.checked_sub(1).and_then(|i| nodes.get(i)) };
        let wanted = other(if is_values { Part::Indices } else { Part::Values });
        match neighbour {
            Some(node) if node.op == wanted && node.args == nodes[id].args => Ok(()),
            _ => Err(VerifyErrorKind::Unpaired(op_name(&nodes[id].op))),
        }
    }

    fn check_results(&mut self) {
        let func = self.func;
        if func.results.is_empty() {
            self.report(None, VerifyErrorKind::NoResults);
        }
        let mut taken = BTreeSet::new();
        for (position, result) in func.results.iter().enumerate() {
            let Some(node) = func.nodes.get(result.node.0 as usize) else {
                self.report(None, VerifyErrorKind::UseBeforeDefinition(result.node));
                continue;
            };
            match self.axis_list(&result.axes) {
                Err(error) => self.report(None, error.into()),
                Ok(axes) => {
                    if let Some(missing) = node.ty.axes.minus(axes).iter().next() {
                        let axis = func.axes.get(usize::from(missing.0)).map(|d| d.name.clone()).unwrap_or_default();
                        self.report(None, VerifyErrorKind::ResultAxes { result: result.name.clone(), axis });
                    }
                }
            }
            let expected = result_name(node, position, &taken);
            if result.name != expected {
                self.report(None, VerifyErrorKind::ResultName { got: result.name.clone(), expected: expected.clone() });
            }
            taken.insert(expected);
        }
    }
}
