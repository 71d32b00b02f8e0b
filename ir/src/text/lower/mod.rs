//! From the tree to functions: names are resolved, macros expanded, literals given their dtypes.
//!
//! A macro is expanded by evaluating its body in a scope of its own, with its parameters bound to nodes of the caller. So
//! nothing in it can capture a name of the caller, and nothing of it is left in the function but primitives.

mod axes;
mod call;
mod expand;
mod expr;
mod func;
mod known;
mod scope;
mod view;

use super::ast::{AxisSize, ConstDef, File, MacroDef};
use super::diagnostic::Sink;
use super::{lex, parse, PRELUDE};
use crate::types::int_range;
use crate::{Constant, DType, Module};
use scope::Globals;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use expand::expand_for_builder;
pub use expand::MacroArg;

/// The macros of the prelude, as a tree.
pub(crate) fn prelude() -> File {
    let mut sink = Sink::new(PRELUDE);
    let tokens = lex::lex(PRELUDE, &mut sink);
    let file = parse::parse_tokens(&tokens, &mut sink);
    debug_assert!(sink.is_empty(), "{}", sink.finish("prelude.fold"));
    file
}

/// Names of all macros of the prelude with their definitions.
fn by_name(macros: &[MacroDef]) -> BTreeMap<&str, &MacroDef> {
    macros.iter().map(|m| (m.name.text.as_str(), m)).collect()
}

/// The module of a file. Errors go to the sink; what comes back then is incomplete.
pub(crate) fn lower(file: &File, sink: &mut Sink) -> Module {
    let built_in = prelude();
    let mut globals = Globals {
        axes: BTreeMap::new(),
        consts: BTreeMap::new(),
        constants: vec![],
        macros: BTreeMap::new(),
        prelude: by_name(&built_in.macros),
        poisoned: BTreeSet::new(),
    };
    for (name, size) in &file.axes {
        if globals.axes.insert(&name.text, *size).is_some_and(|before| before != *size) {
            sink.error(
                name.span,
                format!("axis `{}` is declared with another size above", name.text),
                "declared again",
            );
        }
    }
    for definition in &file.macros {
        let name = definition.name.text.as_str();
        if call::is_primitive(name) {
            let message = format!("`{name}` is a primitive and cannot be defined anew");
            sink.error(definition.name.span, message, "expected another name");
        } else if globals.macros.insert(name, definition).is_some() {
            sink.error(definition.name.span, format!("macro `{name}` is already defined"), "defined again");
        }
    }
    for definition in &file.consts {
        let name = definition.name.text.as_str();
        if globals.consts.contains_key(name) || globals.poisoned.contains(name) {
            sink.error(definition.name.span, format!("`%{name}` is already defined"), "defined again");
            continue;
        }
        match constant(definition, &globals.axes, sink) {
            Some(constant) => {
                globals.consts.insert(name, globals.constants.len());
                globals.constants.push(constant);
            }
            None => {
                globals.poisoned.insert(name);
            }
        }
    }
    let mut funcs = vec![];
    let mut names = BTreeSet::new();
    for definition in &file.funcs {
        if sink.is_full() {
            break;
        }
        if !names.insert(definition.name.text.as_str()) {
            let message = format!("function `@{}` is already defined", definition.name.text);
            sink.error(definition.name.span, message, "defined again");
        }
        funcs.extend(func::lower_func(definition, &globals, sink));
    }
    Module { funcs, constants: globals.constants }
}

/// A constant tensor: all sizes known, as many elements as they say, each a value of the dtype.
fn constant(definition: &ConstDef, declared: &BTreeMap<&str, u64>, sink: &mut Sink) -> Option<Constant> {
    let dtype = definition.ty.dtype;
    let mut axes: Vec<(String, u64)> = vec![];
    for axis in &definition.ty.axes {
        let name = &axis.name;
        let size = match &axis.size {
            Some(AxisSize::Fixed(n)) => Some(*n),
            None => declared.get(name.text.as_str()).copied(),
            _ => None,
        };
        let Some(size) = size else {
            let message = format!("the size of axis `{}` of a constant must be known", name.text);
            sink.error(name.span, message, format!("write `{}=N`", name.text));
            return None;
        };
        if axes.iter().any(|(other, _)| *other == name.text) {
            sink.error(name.span, format!("axis `{}` stands twice", name.text), "here again");
            return None;
        }
        axes.push((name.text.clone(), size));
    }
    let count = axes.iter().try_fold(1u64, |count, (_, n)| count.checked_mul(*n));
    if count != Some(definition.data.len() as u64) {
        let wanted = count.map_or_else(|| "more than memory can hold".to_string(), |n| n.to_string());
        let message =
            format!("`%{}` has {} elements, but its type says {wanted}", definition.name.text, definition.data.len());
        sink.error(definition.ty.span, message, "this many");
        return None;
    }
    if let Some(bad) = definition.data.iter().find(|v| !holds(dtype, **v)) {
        sink.error(
            definition.span,
            format!("{bad} is not a value of {dtype}"),
            format!("expected elements of {dtype}"),
        );
        return None;
    }
    Some(Constant { name: definition.name.text.clone(), dtype, axes, data: definition.data.clone() })
}

/// Whether an element of that dtype can have that value (floats round).
pub(crate) fn holds(dtype: DType, value: f64) -> bool {
    match int_range(dtype) {
        Some((lo, hi)) => value.fract() == 0.0 && (lo as f64..=hi as f64).contains(&value),
        None => dtype.is_float() || value == 0.0 || value == 1.0,
    }
}
