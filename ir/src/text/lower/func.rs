//! Functions: signature, statements, results.

use super::scope::{Bound, Frame, Globals, Scope};
use crate::builder::{BuildError, FuncBuilder};
use crate::text::ast::{AxisRef, AxisSize, Body, Expr, FuncDef, MacroDef, Name, Statement, TypeRef};
use crate::text::diagnostic::{Entry, Sink};
use crate::text::parse::Reported;
use crate::{AxisId, Extent, Func, NodeId, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(super) type Lowered<T> = Result<T, Reported>;

/// An expansion under way.
pub(super) struct Site<'a> {
    pub(super) of: &'a MacroDef,
    pub(super) span: Span,
    pub(super) prelude: bool,
}

/// Turns one function's tree into nodes.
pub(super) struct Lowerer<'a, 's> {
    pub(super) b: FuncBuilder,
    pub(super) sink: &'s mut Sink,
    pub(super) globals: &'a Globals<'a>,
    /// Sizes that the result types state for axes which are not the parameters'.
    pub(super) declared: BTreeMap<String, u64>,
    /// Axes of the parameters.
    pub(super) param_axes: Vec<AxisId>,
    /// Expansions that we are inside of, outermost first.
    pub(super) sites: Vec<Site<'a>>,
    /// Levels of recursion, over all expansions.
    pub(super) depth: u32,
    /// Expressions evaluated so far.
    pub(super) steps: u32,
}

/// The function of a definition, or nothing if it has errors.
pub(super) fn lower_func<'a>(definition: &'a FuncDef, globals: &'a Globals<'a>, sink: &mut Sink) -> Option<Func> {
    let mut lowerer = Lowerer {
        b: FuncBuilder::new(&definition.name.text),
        sink,
        globals,
        declared: BTreeMap::new(),
        param_axes: vec![],
        sites: vec![],
        depth: 0,
        steps: 0,
    };
    lowerer.func(definition).ok()?;
    let Lowerer { b, sink, .. } = lowerer;
    match b.finish() {
        Ok(func) => Some(func),
        Err(error) => {
            sink.error(definition.name.span, error.to_string(), "in this function");
            None
        }
    }
}

impl<'a> Lowerer<'a, '_> {
    fn func(&mut self, definition: &'a FuncDef) -> Lowered<()> {
        self.globals.constants.iter().for_each(|c| self.b.reserve(&c.name));
        let mut scope = Scope::of(Rc::new(Frame::default()));
        let params = self.params(definition, &mut scope);
        if let Some(results) = &definition.results {
            self.declare_result_sizes(results);
        }
        let body = self.body(&definition.body, &mut scope);
        params?;
        let results = self.results(definition, &scope);
        body?;
        results?;
        if definition.body.broken {
            return Err(Reported);
        }
        Ok(())
    }

    fn params(&mut self, definition: &'a FuncDef, scope: &mut Scope<'a>) -> Lowered<()> {
        // One fixed size given anywhere in the parameters holds for the name wherever it stands plainly.
        let mut sizes: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for axis in definition.params.iter().flat_map(|(_, ty)| &ty.axes) {
            if let Some(AxisSize::Fixed(n)) = axis.size {
                sizes.entry(&axis.name.text).or_default().insert(n);
            }
        }
        let mut outcome = Ok(());
        for (name, ty) in &definition.params {
            if self.param(name, ty, &sizes, scope).is_err() {
                scope.poisoned.insert(&name.text);
                outcome = Err(Reported);
            }
        }
        outcome
    }

    fn param(
        &mut self,
        name: &'a Name,
        ty: &TypeRef,
        sizes: &BTreeMap<&str, BTreeSet<u64>>,
        scope: &mut Scope<'a>,
    ) -> Lowered<()> {
        let mut axes = vec![];
        for axis in &ty.axes {
            let word = axis.name.text.as_str();
            let only = sizes.get(word).filter(|s| s.len() == 1).and_then(|s| s.first());
            let id = match &axis.size {
                Some(AxisSize::Fixed(n)) => self.b.fixed(word, *n),
                Some(AxisSize::Symbolic) => self.b.symbolic(word),
                None => match self.globals.axes.get(word).or(only) {
                    Some(n) => self.b.fixed(word, *n),
                    None => self.b.symbolic(word),
                },
                Some(_) => {
                    let label = format!("expected `{word}`, `{word}=N` or `{word}=?`");
                    self.error(axis.name.span, "the size of a parameter's axis is a number", label);
                    return Err(Reported);
                }
            };
            axes.push(self.checked(id, axis.name.span, &[])?);
        }
        if self.globals.consts.contains_key(name.text.as_str()) {
            let message = format!("`%{}` is a constant of this text", name.text);
            self.error(name.span, message, "expected another name");
            return Err(Reported);
        }
        self.b.at(name.span);
        let node = self.b.param(&name.text, ty.dtype, &axes);
        let node = self.checked(node, ty.span, &[])?;
        for axis in axes {
            if !self.param_axes.contains(&axis) {
                self.param_axes.push(axis);
            }
        }
        scope.values.insert(&name.text, (Bound::Node(node), name.span));
        Ok(())
    }

    /// `-> i64[b, t=5]` says how long `t` is wherever the body introduces it.
    fn declare_result_sizes(&mut self, results: &[TypeRef]) {
        let mut conflicting = BTreeSet::new();
        for AxisRef { name, size } in results.iter().flat_map(|ty| &ty.axes) {
            let of_params = self.param_axes.iter().any(|a| self.b.func.axis(*a).name == name.text);
            if let (Some(AxisSize::Fixed(n)), false) = (size, of_params) {
                if self.declared.insert(name.text.clone(), *n).is_some_and(|before| before != *n) {
                    conflicting.insert(name.text.clone());
                }
            }
        }
        // Two sizes for one name say nothing about which is meant in the body.
        self.declared.retain(|name, _| !conflicting.contains(name));
    }

    /// Statements in order. An error in one does not keep the others from being checked.
    pub(super) fn body(&mut self, body: &'a Body, scope: &mut Scope<'a>) -> Lowered<()> {
        scope.poisoned.extend(body.poisoned.iter().map(String::as_str));
        let mut outcome = if body.broken { Err(Reported) } else { Ok(()) };
        for statement in &body.statements {
            if self.sink.is_full() {
                return Err(Reported);
            }
            if self.statement(statement, scope).is_err() {
                scope.poisoned.extend(statement.targets.iter().flatten().map(|n| n.text.as_str()));
                outcome = Err(Reported);
            }
        }
        outcome
    }

    fn statement(&mut self, statement: &'a Statement, scope: &mut Scope<'a>) -> Lowered<()> {
        let nodes = self.values(&statement.value, scope, None)?;
        let wanted = statement.targets.len();
        if wanted > 1 && nodes.len() != wanted {
            let message = format!("{wanted} names for {} values", nodes.len());
            self.error(statement.span, message, format!("this yields {}", nodes.len()));
            return Err(Reported);
        }
        for (target, node) in statement.targets.iter().zip(nodes) {
            if let Some(name) = target {
                self.define(name, node, scope)?;
            }
        }
        Ok(())
    }

    fn define(&mut self, name: &'a Name, node: NodeId, scope: &mut Scope<'a>) -> Lowered<()> {
        let text = name.text.as_str();
        if let Some((_, before)) = scope.values.get(text) {
            let before = *before;
            self.error(name.span, format!("`%{text}` is already defined"), "defined again")
                .related(before, "defined here first");
            return Err(Reported);
        }
        if scope.frame.expands.is_some() {
            if scope.frame.params.contains_key(text) {
                self.error(name.span, format!("`%{text}` is a parameter of the macro"), "defined again");
                return Err(Reported);
            }
            self.b.hint(node, text);
        } else {
            if self.globals.consts.contains_key(text) {
                self.error(name.span, format!("`%{text}` is a constant of this text"), "defined again");
                return Err(Reported);
            }
            let named = self.b.name(node, text);
            self.checked(named, name.span, &[])?;
        }
        scope.values.insert(text, (Bound::Node(node), name.span));
        Ok(())
    }

    fn results(&mut self, definition: &'a FuncDef, scope: &Scope<'a>) -> Lowered<()> {
        let returned = &definition.body.returned;
        let types = definition.results.as_deref();
        if let Some(types) = types.filter(|t| t.len() != returned.len() && !definition.body.broken) {
            let message = format!(
                "`@{}` must return {} values, but returns {}",
                definition.name.text,
                types.len(),
                returned.len()
            );
            self.error(definition.body.span, message, format!("expected {}", types.len()));
            return Err(Reported);
        }
        let mut outcome = Ok(());
        for (position, expr) in returned.iter().enumerate() {
            if self.one_result(expr, types.and_then(|t| t.get(position)), scope).is_err() {
                outcome = Err(Reported);
            }
        }
        outcome
    }

    fn one_result(&mut self, expr: &'a Expr, declared: Option<&TypeRef>, scope: &Scope<'a>) -> Lowered<()> {
        let node = self.value(expr, scope, declared.map(|ty| ty.dtype))?;
        let ty = self.b.func.node(node).ty;
        let Some(declared) = declared else {
            let axes: Vec<AxisId> = ty.axes.iter().collect();
            let added = self.b.result(node, &axes);
            return self.checked(added, expr.span, &[]);
        };
        if ty.dtype != declared.dtype {
            let message = format!("the value returned is {}, but the type says {}", ty.dtype, declared.dtype);
            self.error(expr.span, message, format!("this is {}", self.show_type(ty)))
                .related(declared.span, format!("expected {}", declared.dtype))
                .help(format!("convert it: `cast<{}>(…)`", declared.dtype));
            return Err(Reported);
        }
        let mut axes = vec![];
        for axis in &declared.axes {
            axes.push(self.result_axis(axis, node, expr.span)?);
        }
        let added = self.b.result(node, &axes);
        if let Err(BuildError::ResultAxes(missing)) = &added {
            let message = format!("the value returned varies along `{missing}`, which its type leaves out");
            let note = format!("this is {}", self.show_type(ty));
            self.error(declared.span, message, format!("expected `{missing}` among the axes")).related(expr.span, note);
            return Err(Reported);
        }
        self.checked(added, declared.span, &[])
    }

    fn result_axis(&mut self, axis: &AxisRef, node: NodeId, span: Span) -> Lowered<AxisId> {
        let name = axis.name.text.as_str();
        let has = self.b.func.node(node).ty.axes.iter().find(|a| self.b.func.axis(*a).name == name);
        let Some(id) = has else { return self.repeated_axis(axis) };
        if let (Some(AxisSize::Fixed(n)), extent) = (&axis.size, &self.b.func.axis(id).extent) {
            if *extent != Extent::Fixed(*n) {
                let got = crate::size::show_extent(id, &self.b.func.axes);
                self.error(
                    axis.name.span,
                    format!("axis `{name}` of the result has size {got}, not {n}"),
                    format!("expected {got}"),
                )
                .related(span, "of this value");
                return Err(Reported);
            }
        }
        Ok(id)
    }

    /// An axis of a result along which the value does not vary: it repeats.
    fn repeated_axis(&mut self, axis: &AxisRef) -> Lowered<AxisId> {
        let name = axis.name.text.as_str();
        let id = match &axis.size {
            Some(AxisSize::Fixed(n)) => self.b.fixed(name, *n),
            Some(AxisSize::Symbolic) => self.b.symbolic(name),
            Some(AxisSize::Expr(expr)) => {
                let size = self.size_expr(expr, &Frame::default())?;
                self.b.derived(name, &size)
            }
            _ => match (self.b.axes_named(name).first(), self.globals.axes.get(name)) {
                (Some(id), _) => Ok(*id),
                (None, Some(n)) => self.b.fixed(name, *n),
                (None, None) => {
                    self.unknown_axis(&axis.name, self.b.func.axes.clone().iter().map(|a| a.name.as_str()).collect());
                    return Err(Reported);
                }
            },
        };
        self.checked(id, axis.name.span, &[])
    }

    /// Whether what is being evaluated stands in the prelude.
    pub(super) fn in_prelude(&self) -> bool {
        self.sites.iter().any(|s| s.prelude)
    }

    /// Reports an error where it can be seen: in the text, not in the prelude.
    pub(super) fn error(&mut self, span: Span, message: impl Into<String>, label: impl Into<String>) -> Entry<'_> {
        let (mut message, label) = (message.into(), label.into());
        if let Some(site) = self.sites.iter().find(|s| s.prelude) {
            message = format!("in `{}`: {message}", site.of.name.text);
            return self.sink.error(site.span, message, "in this expansion");
        }
        let outermost = self.sites.first().map(|s| (s.span, s.of.name.text.clone()));
        let entry = self.sink.error(span, message, label);
        match outermost {
            Some((site, name)) => entry.related(site, format!("in this expansion of `{name}`")),
            None => entry,
        }
    }
}
