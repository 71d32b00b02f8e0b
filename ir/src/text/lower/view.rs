//! Calls that work along axes: reductions, orders and views.

use super::call::Form;
use super::func::{Lowered, Lowerer};
use super::scope::Scope;
use crate::builder::BuildError;
use crate::text::ast::{AxisRef, AxisSize, Bracket, Call, Operand};
use crate::text::parse::Reported;
use crate::{AxisId, NodeId};

impl<'a> Lowerer<'a, '_> {
    /// A primitive of one operand (`shift` has a second) along the axes in its brackets.
    pub(super) fn along(&mut self, call: &'a Call, form: Form, x: NodeId, scope: &Scope<'a>) -> Lowered<Vec<NodeId>> {
        let bracket = call.bracket.as_ref().ok_or(Reported)?;
        self.check_bracket(call, bracket, form)?;
        let span = call.span;
        let operands = [(call.args[0].value.span, x)];
        let ty = self.b.func.node(x).ty;
        let made = match form {
            Form::Reduce(op) => {
                let mut axes: Vec<AxisId> = vec![];
                for axis in &bracket.axes {
                    for id in self.axes_of(axis, ty, &call.name, &scope.frame)? {
                        if axes.contains(&id) {
                            self.error(axis.name.span, format!("axis `{}` stands twice", axis.name.text), "here again");
                            return Err(Reported);
                        }
                        axes.push(id);
                    }
                }
                self.b.reduce(op, x, &axes)
            }
            Form::Merge => return self.merge(call, bracket, x, scope).map(|n| vec![n]),
            _ => {
                let axis = self.only_axis(call, bracket, x, scope)?;
                match form {
                    Form::ArgMax => self.b.argmax(x, axis),
                    Form::CumSum => self.b.cumsum(x, axis),
                    Form::Sort => {
                        let made = self.b.sort(x, axis);
                        return self.checked(made, span, &operands).map(|(values, indices)| vec![values, indices]);
                    }
                    Form::TopK => {
                        let to = self.arrow(call, bracket)?;
                        let to = self.new_axis(to, &scope.frame, |_, _| None)?;
                        let made = self.b.topk(x, axis, to);
                        return self.checked(made, span, &operands).map(|(values, indices)| vec![values, indices]);
                    }
                    Form::Rename => {
                        let to = self.arrow(call, bracket)?;
                        let to = self.new_axis(to, &scope.frame, |l, name| Some(l.b.same_length(name, axis)))?;
                        self.b.rename(x, axis, to)
                    }
                    Form::Split => return self.split(call, bracket, x, axis, scope).map(|n| vec![n]),
                    Form::Slice => return self.slice(call, bracket, x, axis, scope).map(|n| vec![n]),
                    Form::Shift => {
                        let Some(Operand::Int(by, _)) = bracket.operand else {
                            self.error(bracket.span, "`shift` needs a distance", "expected `[axis, distance]`");
                            return Err(Reported);
                        };
                        let fill = self.value(&call.args[1].value, scope, Some(ty.dtype))?;
                        self.b.shift(x, fill, axis, by)
                    }
                    _ => return self.unknown_call(call, &[]),
                }
            }
        };
        let operands = Self::operands(&[(&call.args[0].value, x)]);
        self.checked(made, span, &operands).map(|n| vec![n])
    }

    /// That brackets hold nothing that the primitive has no use for.
    fn check_bracket(&mut self, call: &Call, bracket: &Bracket, form: Form) -> Lowered<()> {
        let arrow = matches!(form, Form::TopK | Form::Rename | Form::Split | Form::Merge | Form::Slice | Form::Concat);
        let name = &call.name.text;
        if bracket.arrow.is_some() && !arrow {
            self.error(bracket.span, format!("`{name}` makes no new axis"), "expected `]` in place of `->`");
            return Err(Reported);
        }
        let misplaced = match (&bracket.operand, form) {
            (None, _) | (Some(Operand::Int(..)), Form::Shift) | (Some(Operand::Range { .. }), Form::Slice) => None,
            (Some(Operand::Int(_, span) | Operand::Range { span, .. }), _) => Some(*span),
        };
        if let Some(span) = misplaced {
            self.error(span, format!("`{name}` has no use for this"), "expected an axis");
            return Err(Reported);
        }
        Ok(())
    }

    /// The one axis after `->`.
    fn arrow(&mut self, call: &Call, bracket: &'a Bracket) -> Lowered<&'a AxisRef> {
        match bracket.arrow.as_deref() {
            Some([one]) => Ok(one),
            _ => {
                let message = format!("`{}` makes one new axis", call.name.text);
                self.error(bracket.span, message, "expected `[axis -> new_axis]`");
                Err(Reported)
            }
        }
    }

    fn merge(&mut self, call: &'a Call, bracket: &'a Bracket, x: NodeId, scope: &Scope<'a>) -> Lowered<NodeId> {
        let ty = self.b.func.node(x).ty;
        let mut from = vec![];
        for axis in &bracket.axes {
            from.extend(self.axes_of(axis, ty, &call.name, &scope.frame)?);
        }
        let to = self.arrow(call, bracket)?;
        let to = self.new_axis(to, &scope.frame, |l, name| Some(l.b.merged(name, &from)))?;
        let made = self.b.merge(x, &from, to);
        self.checked(made, call.span, &[(call.args[0].value.span, x)])
    }

    /// `split[x -> (h=12, e)](x)`: one part may be left to follow from the others.
    fn split(
        &mut self,
        call: &'a Call,
        bracket: &'a Bracket,
        x: NodeId,
        from: AxisId,
        scope: &Scope<'a>,
    ) -> Lowered<NodeId> {
        let Some(parts) = bracket.arrow.as_deref().filter(|p| !p.is_empty()) else {
            self.error(bracket.span, "`split` needs the new axes", "expected `[axis -> (a, b)]`");
            return Err(Reported);
        };
        let mut known: Vec<Option<AxisId>> = vec![];
        for part in parts {
            known.push(if self.has_size(part, scope) {
                Some(self.new_axis(part, &scope.frame, |_, _| None)?)
            } else {
                None
            });
        }
        let others: Vec<AxisId> = known.iter().copied().flatten().collect();
        if let Some(second) = known.iter().enumerate().filter(|(_, k)| k.is_none()).map(|(n, _)| n).nth(1) {
            let name = &parts[second].name;
            self.error(
                name.span,
                format!("the size of axis `{}` is not known", name.text),
                "only one part may be left open",
            )
            .help(format!("write `{}=N`", name.text));
            return Err(Reported);
        }
        let mut to = vec![];
        for (part, id) in parts.iter().zip(known) {
            to.push(match id {
                Some(id) => id,
                None => self.new_axis(part, &scope.frame, |l, name| Some(l.b.quotient(name, from, &others)))?,
            });
        }
        let made = self.b.split(x, from, &to);
        self.checked(made, call.span, &[(call.args[0].value.span, x)])
    }

    /// Whether a new axis' size is known without deriving it.
    fn has_size(&self, axis: &AxisRef, scope: &Scope<'a>) -> bool {
        let args = scope.frame.axes.borrow();
        let arg = args.get(&axis.name.text).and_then(|a| a.first());
        let name = arg.map_or(axis.name.text.as_str(), |a| a.name.as_str());
        axis.size.as_ref().is_some_and(|s| !matches!(s, AxisSize::Named(_)))
            || arg.is_some_and(|a| a.size.is_some())
            || self.declared.contains_key(name)
            || self.globals.axes.contains_key(name)
            || self.param_axes.iter().any(|a| self.b.func.axis(*a).name == name)
    }

    /// `slice[j, start..stop..step](x)`; the axis keeps its name unless there is an arrow.
    fn slice(
        &mut self,
        call: &'a Call,
        bracket: &'a Bracket,
        x: NodeId,
        from: AxisId,
        scope: &Scope<'a>,
    ) -> Lowered<NodeId> {
        let Some(Operand::Range { start, stop, step, span }) = &bracket.operand else {
            self.error(bracket.span, "`slice` needs a range", "expected `[axis, start..stop]`");
            return Err(Reported);
        };
        let stop = stop.as_ref().map(|expr| self.size_expr(expr, &scope.frame)).transpose()?;
        let to = match bracket.arrow.as_deref() {
            None => {
                let name = self.b.func.axis(from).name.clone();
                let made = self.b.sliced(&name, from, *start, stop.as_ref(), *step);
                self.checked(made, *span, &[])?
            }
            Some(_) => {
                let to = self.arrow(call, bracket)?;
                let made: Lowered<AxisId> = if self.has_size(to, scope) {
                    self.new_axis(to, &scope.frame, |_, _| None)
                } else {
                    self.new_axis(to, &scope.frame, |l, name| {
                        Some(l.b.sliced(name, from, *start, stop.as_ref(), *step))
                    })
                };
                let id = made?;
                let name = self.b.func.axis(id).name.clone();
                let derived = match &stop {
                    None => Ok(id),
                    Some(stop) => self.b.sliced(&name, from, *start, Some(stop), *step),
                };
                if self.checked(derived, *span, &[])? != id {
                    let got = crate::size::show_extent(id, &self.b.func.axes);
                    self.error(
                        *span,
                        format!("the range does not have as many positions as axis `{name}` ({got})"),
                        "not this many",
                    )
                    .help("leave the end of the range open: `start..`");
                    return Err(Reported);
                }
                id
            }
        };
        let made = self.b.slice(x, from, to, *start, *step);
        self.checked(made, call.span, &[(call.args[0].value.span, x)])
    }

    /// `concat[j](a, b)`, `concat[j -> n](a, b)`, `concat[i, j -> n](a, b)`
    pub(super) fn concat(&mut self, call: &'a Call, scope: &Scope<'a>) -> Lowered<NodeId> {
        let bracket = call.bracket.as_ref().ok_or(Reported)?;
        self.check_bracket(call, bracket, Form::Concat)?;
        let axes = &bracket.axes;
        if call.args.is_empty() || (axes.len() != 1 && axes.len() != call.args.len()) {
            let message = format!("`concat` of {} operands with {} axes", call.args.len(), axes.len());
            self.error(call.span, message, "expected one axis, or one for each operand");
            return Err(Reported);
        }
        // An open operand takes the dtype of the first that has one.
        let mut dtype = None;
        let mut nodes = vec![None; call.args.len()];
        for (slot, arg) in nodes.iter_mut().zip(&call.args) {
            if self.open(&arg.value, scope).is_none() {
                let node = self.value(&arg.value, scope, None)?;
                dtype = dtype.or(Some(self.b.func.node(node).ty.dtype));
                *slot = Some(node);
            }
        }
        let mut parts = vec![];
        for (n, (slot, arg)) in nodes.into_iter().zip(&call.args).enumerate() {
            let node = match slot {
                Some(node) => node,
                None => self.value(&arg.value, scope, dtype)?,
            };
            let axis = axes.get(n).unwrap_or(&axes[0]);
            let ty = self.b.func.node(node).ty;
            parts.push((node, self.axis_of(axis, ty, &call.name, &scope.frame)?));
        }
        let from: Vec<AxisId> = parts.iter().map(|(_, a)| *a).collect();
        let derive = |l: &mut Self, name: &str| -> Option<Result<AxisId, BuildError>> { Some(l.b.joined(name, &from)) };
        let to = match bracket.arrow {
            Some(_) => {
                let to = self.arrow(call, bracket)?;
                self.new_axis(to, &scope.frame, derive)?
            }
            None => {
                let name = self.b.func.axis(from[0]).name.clone();
                let made = self.b.joined(&name, &from);
                self.checked(made, bracket.span, &[])?
            }
        };
        let operands: Vec<_> = call.args.iter().zip(&parts).map(|(a, (n, _))| (a.value.span, *n)).collect();
        let made = self.b.concat(&parts, to);
        self.checked(made, call.span, &operands)
    }
}
