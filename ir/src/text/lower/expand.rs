//! Macros: their bodies evaluated in scopes of their own.

use super::func::{Lowered, Lowerer, Site};
use super::scope::{AxisArg, Bound, Frame, Globals, Open, Scope};
use crate::builder::{BuildError, FuncBuilder};
use crate::text::ast::{AxisSize, Call, Expr, ExprKind, MacroDef};
use crate::text::diagnostic::Sink;
use crate::text::parse::Reported;
use crate::text::suggest::did_you_mean;
use crate::{AxisId, DType, Literal, NodeId, Span};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Expansions inside expansions.
const MAX_SITES: usize = 64;

impl<'a> Lowerer<'a, '_> {
    /// The macro of that name, as seen from a scope, and whether it is one of the prelude.
    pub(super) fn macro_named(&self, name: &str, scope: &Scope<'a>) -> Option<(&'a MacroDef, bool)> {
        let user = self.globals.macros.get(name).filter(|_| !scope.frame.prelude);
        let built_in = self.globals.prelude.get(name).filter(|_| scope.frame.prelude || !name.starts_with('_'));
        user.map(|m| (*m, false)).or_else(|| built_in.map(|m| (*m, true)))
    }

    pub(super) fn expand(&mut self, call: &'a Call, scope: &Scope<'a>, want: Option<DType>) -> Lowered<Vec<NodeId>> {
        let Some((definition, prelude)) = self.macro_named(&call.name.text, scope) else {
            let built_in = self.globals.prelude.keys().filter(|name| !name.starts_with('_'));
            let macros: Vec<&str> = self.globals.macros.keys().chain(built_in).copied().collect();
            return self.unknown_call(call, &macros);
        };
        if self.sites.iter().any(|s| std::ptr::eq(s.of, definition)) {
            let message = format!("macro `{}` expands to itself", definition.name.text);
            self.error(call.name.span, message, "recursion is not allowed");
            return Err(Reported);
        }
        if self.sites.len() >= MAX_SITES {
            self.error(call.name.span, format!("macros nest at most {MAX_SITES} levels deep"), "too deep");
            return Err(Reported);
        }
        let axes = RefCell::new(self.axis_arguments(call, definition, scope)?);
        let params = self.arguments(call, definition, scope)?;
        let frame = Rc::new(Frame { params, axes, expands: Some(definition), prelude });
        self.sites.push(Site { of: definition, span: call.span, prelude });
        let returned = self.expand_body(definition, frame, want);
        self.sites.pop();
        returned
    }

    fn expand_body(
        &mut self,
        definition: &'a MacroDef,
        frame: Rc<Frame<'a>>,
        want: Option<DType>,
    ) -> Lowered<Vec<NodeId>> {
        let mut scope = Scope::of(frame);
        self.body(&definition.body, &mut scope)?;
        let several = definition.body.returned.len() > 1;
        let mut nodes = vec![];
        for expr in &definition.body.returned {
            let values = self.values(expr, &scope, want)?;
            nodes.extend(if several { &values[..values.len().min(1)] } else { &values[..] });
        }
        Ok(nodes)
    }

    /// What the macro's axis parameters stand for: positional, named, or by default the axis of that name.
    fn axis_arguments(
        &mut self,
        call: &'a Call,
        definition: &'a MacroDef,
        scope: &Scope<'a>,
    ) -> Lowered<BTreeMap<String, Vec<AxisArg>>> {
        let name = &definition.name.text;
        let mut given: BTreeMap<String, Vec<AxisArg>> = BTreeMap::new();
        let bracket = call.bracket.clone().unwrap_or_default();
        if bracket.operand.is_some() {
            self.error(bracket.span, format!("macro `{name}` takes axes here"), "expected axes");
            return Err(Reported);
        }
        let mut positional = definition.axes.iter();
        for axis in bracket.axes.iter().chain(bracket.arrow.iter().flatten()) {
            let (param, target, size) = match &axis.size {
                Some(AxisSize::Named(target)) => (Some(&axis.name), target, None),
                Some(AxisSize::Fixed(n)) => (None, &axis.name, Some(*n)),
                _ => (None, &axis.name, None),
            };
            let mut args = self.axis_args(target, &scope.frame)?;
            if let (Some(n), [one]) = (size, args.as_mut_slice()) {
                one.size = Some(n);
            }
            let key = match param {
                Some(param) => definition.axes.iter().find(|(p, _)| p.text == param.text).map(|(p, _)| p.text.clone()),
                // A macro of one axis may be given several: `softmax[i, j](x)` is over both.
                None if definition.axes.len() == 1 => Some(definition.axes[0].0.text.clone()),
                None => positional.next().map(|(p, _)| p.text.clone()),
            };
            let Some(key) = key else {
                let list: Vec<&str> = definition.axes.iter().map(|(p, _)| p.text.as_str()).collect();
                let expected = if list.is_empty() {
                    "expected none".to_string()
                } else {
                    format!("expected: {}", list.join(", "))
                };
                self.error(axis.name.span, format!("macro `{name}` has no use for this axis"), expected);
                return Err(Reported);
            };
            given.entry(key).or_default().extend(args);
        }
        for (param, default) in &definition.axes {
            if given.contains_key(&param.text) {
                continue;
            }
            let Some(default) = default else {
                let list: Vec<&str> = definition.axes.iter().map(|(p, _)| p.text.as_str()).collect();
                let label = format!("expected `{name}[{}](…)`", list.join(", "));
                self.error(call.name.span, format!("macro `{name}` needs axis `{}`", param.text), label);
                return Err(Reported);
            };
            given.insert(param.text.clone(), vec![AxisArg { name: default.text.clone(), size: None }]);
        }
        Ok(given)
    }

    /// What the macro's parameters stand for.
    fn arguments(
        &mut self,
        call: &'a Call,
        definition: &'a MacroDef,
        scope: &Scope<'a>,
    ) -> Lowered<BTreeMap<&'a str, Bound<'a>>> {
        let name = definition.name.text.as_str();
        let mut bound: BTreeMap<&'a str, Bound<'a>> = BTreeMap::new();
        if let Some(dtype) = call.dtype {
            self.error(call.name.span, format!("macro `{name}` takes no dtype"), format!("expected no `<{dtype}>`"));
            return Err(Reported);
        }
        let mut outcome = Ok(());
        for (position, arg) in call.args.iter().enumerate() {
            let param = match &arg.name {
                Some(word) => definition.params.iter().find(|p| p.name.text == word.text),
                None => definition.params.get(position),
            };
            let Some(param) = param else {
                let known = definition.params.iter().map(|p| p.name.text.as_str());
                let list: Vec<&str> = known.clone().collect();
                let (span, message) = match &arg.name {
                    Some(word) => (word.span, format!("macro `{name}` has no argument `{}`", word.text)),
                    None => (arg.value.span, format!("too many arguments for macro `{name}`")),
                };
                let help = arg.name.as_ref().and_then(|word| did_you_mean(&word.text, known, ""));
                self.error(span, message, format!("expected: {}", list.join(", "))).maybe_help(help);
                return Err(Reported);
            };
            if bound.contains_key(param.name.text.as_str()) {
                self.error(arg.value.span, format!("`{}` is given twice", param.name.text), "given again");
                return Err(Reported);
            }
            match self.bind(&arg.value, scope) {
                Ok(value) => {
                    bound.insert(&param.name.text, value);
                }
                Err(Reported) => outcome = Err(Reported),
            }
        }
        outcome?;
        for param in &definition.params {
            if bound.contains_key(param.name.text.as_str()) {
                continue;
            }
            let Some(default) = &param.default else {
                let message = format!("macro `{name}` needs `{}`", param.name.text);
                self.error(call.span, message, format!("expected an argument for `{}`", param.name.text));
                return Err(Reported);
            };
            // A default sees nothing but literals.
            let value = self.bind(default, &Scope::default())?;
            bound.insert(&param.name.text, value);
        }
        Ok(bound)
    }

    /// An argument: a value, or an expression whose dtype is settled where it is used.
    fn bind(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Lowered<Bound<'a>> {
        if matches!(expr.kind, ExprKind::None) {
            return Ok(Bound::Absent);
        }
        if let ExprKind::Value(name) = &expr.kind {
            if let Some(bound @ (Bound::Absent | Bound::Open(_))) = scope.get(name) {
                return Ok(bound.clone());
            }
        }
        match self.open(expr, scope) {
            Some(dtype) => Ok(Bound::Open(Rc::new(Open { expr, frame: scope.frame.clone(), dtype }))),
            None => self.value(expr, scope, None).map(Bound::Node),
        }
    }
}

/// An argument of a macro that the builder expands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MacroArg {
    /// A value.
    Node(NodeId),
    /// A literal, of the dtype that its use asks for.
    Literal(Literal),
}

/// A macro of the prelude, expanded into a function under construction.
pub(crate) fn expand_for_builder(
    builder: &mut FuncBuilder,
    name: &str,
    axes: &[(&str, &[AxisId])],
    args: &[(&str, MacroArg)],
) -> Result<Vec<NodeId>, BuildError> {
    let file = super::prelude();
    let globals = Globals {
        axes: BTreeMap::new(),
        consts: BTreeMap::new(),
        constants: vec![],
        macros: BTreeMap::new(),
        prelude: super::by_name(&file.macros),
        poisoned: BTreeSet::new(),
    };
    let Some(definition) = globals.prelude.get(name).copied().filter(|_| !name.starts_with('_')) else {
        return Err(BuildError::Macro(format!("there is no macro `{name}`")));
    };
    let span = Span::default();
    let leaf = |kind| Expr { kind, span, depth: 1 };
    // Literals need a tree to point at.
    let literals: Vec<Option<Expr>> = args
        .iter()
        .map(|(_, arg)| match arg {
            MacroArg::Literal(Literal::Float(v)) => Some(leaf(ExprKind::Float(*v))),
            MacroArg::Literal(Literal::Int(v)) => Some(leaf(ExprKind::Int(*v))),
            MacroArg::Literal(Literal::Bool(v)) => Some(leaf(ExprKind::Bool(*v))),
            MacroArg::Node(_) => None,
        })
        .collect();
    let mut params: BTreeMap<&str, Bound<'_>> = BTreeMap::new();
    for ((name, arg), literal) in args.iter().zip(&literals) {
        let bound = match (arg, literal) {
            (MacroArg::Node(node), _) => {
                builder.ty(*node)?;
                Bound::Node(*node)
            }
            (_, Some(expr)) => {
                let dtype = match expr.kind {
                    ExprKind::Float(_) => DType::F32,
                    ExprKind::Bool(_) => DType::Bool,
                    _ => DType::I64,
                };
                Bound::Open(Rc::new(Open { expr, frame: Rc::new(Frame::default()), dtype }))
            }
            _ => Bound::Absent,
        };
        if !definition.params.iter().any(|p| p.name.text == *name) {
            return Err(BuildError::Macro(format!("macro `{}` has no argument `{name}`", definition.name.text)));
        }
        params.insert(name, bound);
    }
    let mut given: BTreeMap<String, Vec<AxisArg>> = BTreeMap::new();
    for (param, ids) in axes {
        let known = ids.iter().filter_map(|a| builder.func.axes.get(usize::from(a.0)));
        given.insert((*param).to_string(), known.map(|d| AxisArg { name: d.name.clone(), size: None }).collect());
    }
    for (param, default) in &definition.axes {
        match (given.contains_key(&param.text), default) {
            (true, _) => {}
            (false, Some(default)) => {
                given.insert(param.text.clone(), vec![AxisArg { name: default.text.clone(), size: None }]);
            }
            (false, None) => return Err(BuildError::Macro(format!("macro `{name}` needs axis `{}`", param.text))),
        }
    }
    let mut sink = Sink::new("");
    let taken = std::mem::replace(builder, FuncBuilder::new(""));
    let mut lowerer = Lowerer {
        b: taken,
        sink: &mut sink,
        globals: &globals,
        declared: BTreeMap::new(),
        param_axes: vec![],
        sites: vec![Site { of: definition, span, prelude: true }],
        depth: 0,
        steps: 0,
    };
    let mut outcome = Ok(());
    for param in &definition.params {
        if params.contains_key(param.name.text.as_str()) {
            continue;
        }
        match &param.default {
            Some(default) => {
                outcome = outcome.and(lowerer.bind(default, &Scope::default()).map(|value| {
                    params.insert(&param.name.text, value);
                }));
            }
            None => {
                lowerer.error(span, format!("`{}` is missing", param.name.text), "");
                outcome = Err(Reported);
            }
        }
    }
    let frame = Rc::new(Frame { params, axes: RefCell::new(given), expands: Some(definition), prelude: true });
    let nodes = outcome.and_then(|()| lowerer.expand_body(definition, frame, None));
    *builder = lowerer.b;
    nodes.map_err(|Reported| {
        let errors = sink.finish("");
        BuildError::Macro(errors.errors.first().map(|e| e.message.clone()).unwrap_or_default())
    })
}
