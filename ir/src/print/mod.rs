//! The canonical text of a module. Reading it gives the module back, and printing that gives the same text.
//!
//! Values that have a name stand on lines of their own, in order of definition; those without one stand where they are used,
//! unless they are used twice or nest too deep: then they get a number. Axes carry their size where a reader needs it.

mod axes;
mod expr;

use crate::{Constant, DType, Func, Module, NodeId, Op, Part};
use axes::AxisNames;
use std::collections::BTreeSet;
use std::fmt;

/// An expression nested deeper than this is cut by numbered names.
const MAX_DEPTH: u32 = 10;

/// The text of a module.
pub fn print(module: &Module) -> String {
    let mut out = String::new();
    for constant in &module.constants {
        print_constant(constant, &mut out);
    }
    for func in &module.funcs {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&print_func(module, func));
    }
    out
}

/// The text of one function of a module.
pub fn print_func(module: &Module, func: &Func) -> String {
    let printer = Printer::new(module, func);
    let mut out = String::new();
    printer.func(&mut out);
    out
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// What is decided about a function before any of it is printed.
struct Printer<'a> {
    module: &'a Module,
    func: &'a Func,
    /// For each node that is not printed in place: its name without `%`.
    names: Vec<Option<String>>,
    /// Nodes that begin a line.
    lines: BTreeSet<u32>,
    live: Vec<bool>,
    axes: AxisNames,
}

impl<'a> Printer<'a> {
    fn new(module: &'a Module, func: &'a Func) -> Printer<'a> {
        let (live, uses) = liveness(func);
        let mut printer = Printer {
            module,
            func,
            names: vec![None; func.nodes.len()],
            lines: BTreeSet::new(),
            live,
            axes: AxisNames::new(func),
        };
        printer.choose_lines(&uses);
        printer
    }

    /// Decides which nodes stand on a line of their own, and numbers those of them that have no name.
    fn choose_lines(&mut self, uses: &[u32]) {
        let mut depth = vec![0u32; self.func.nodes.len()];
        let mut next_number = 0;
        for (id, node) in self.func.nodes.iter().enumerate() {
            if !self.live[id] {
                continue;
            }
            if let Op::Param(n) = node.op {
                self.names[id] = self.func.params.get(n).map(|p| p.name.clone());
                continue;
            }
            let below = node.args.iter().map(|a| depth.get(a.0 as usize).copied().unwrap_or(0)).max().unwrap_or(0);
            let leaf = node.args.is_empty();
            let paired = self.indices_of(id).is_some_and(|i| self.live[i]) || part(&node.op) == Some(Part::Indices);
            if node.name.is_some() || paired || (!leaf && (uses[id] > 1 || below >= MAX_DEPTH)) {
                self.names[id] = Some(node.name.clone().unwrap_or_else(|| {
                    next_number += 1;
                    (next_number - 1).to_string()
                }));
                self.lines.insert(id as u32);
            } else {
                depth[id] = below + 1;
            }
        }
    }

    /// The node of the indices, if this one is the values of a pair.
    fn indices_of(&self, id: usize) -> Option<usize> {
        let (values, indices) = (self.func.nodes.get(id)?, self.func.nodes.get(id + 1)?);
        let pair = part(&values.op) == Some(Part::Values)
            && part(&indices.op) == Some(Part::Indices)
            && values.args == indices.args;
        pair.then_some(id + 1)
    }

    fn func(&self, out: &mut String) {
        let func = self.func;
        let params: Vec<String> = func
            .params
            .iter()
            .enumerate()
            .map(|(n, p)| format!("%{}: {}", p.name, self.axes.param_type(func, n)))
            .collect();
        let types: Vec<String> = func.results.iter().map(|r| self.axes.result_type(func, r)).collect();
        let types = if types.len() == 1 { types.concat() } else { format!("({})", types.join(", ")) };
        out.push_str(&format!("func @{}({}) -> {types} {{\n", func.name, params.join(", ")));
        for id in 0..func.nodes.len() {
            if let Some(targets) = self.targets(id) {
                out.push_str(&format!("  {targets} = {}\n", self.line(NodeId(id as u32))));
            }
        }
        let returned: Vec<String> = func
            .results
            .iter()
            .map(|r| self.operand(r.node, 0, func.nodes.get(r.node.0 as usize).map(|n| n.ty.dtype)))
            .collect();
        out.push_str(&format!("  return {}\n}}\n", returned.join(", ")));
    }

    /// What stands left of `=` on the line that begins with this node.
    fn targets(&self, id: usize) -> Option<String> {
        let name = |id: usize| match self.names.get(id).cloned().flatten() {
            Some(name) if self.live[id] => format!("%{name}"),
            _ => "_".to_string(),
        };
        match self.indices_of(id) {
            Some(indices) if self.live[indices] => Some(format!("{}, {}", name(id), name(indices))),
            _ if part(&self.func.nodes[id].op) == Some(Part::Indices) => None,
            _ => self.lines.contains(&(id as u32)).then(|| name(id)),
        }
    }
}

/// Which half of a pair a node is.
fn part(op: &Op) -> Option<Part> {
    match op {
        Op::TopK { part, .. } | Op::Sort { part, .. } => Some(*part),
        _ => None,
    }
}

/// What results and named values need, and how often each node is used.
fn liveness(func: &Func) -> (Vec<bool>, Vec<u32>) {
    let mut live = vec![false; func.nodes.len()];
    let mut uses = vec![0u32; func.nodes.len()];
    for result in &func.results {
        if let (Some(slot), Some(count)) = (live.get_mut(result.node.0 as usize), uses.get_mut(result.node.0 as usize))
        {
            *slot = true;
            *count += 1;
        }
    }
    for (id, node) in func.nodes.iter().enumerate().rev() {
        live[id] |= node.name.is_some();
        if !live[id] {
            continue;
        }
        for arg in &node.args {
            if let (Some(slot), Some(count)) = (live.get_mut(arg.0 as usize), uses.get_mut(arg.0 as usize)) {
                *slot = true;
                *count += 1;
            }
        }
    }
    (live, uses)
}

fn print_constant(constant: &Constant, out: &mut String) {
    let axes: Vec<String> = constant.axes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let axes = if axes.is_empty() { String::new() } else { format!("[{}]", axes.join(", ")) };
    out.push_str(&format!("const %{}: {}{axes} = ", constant.name, constant.dtype));
    let sizes: Vec<usize> = constant.axes.iter().map(|(_, n)| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    elements(constant.dtype, &constant.data, &sizes, out);
    out.push('\n');
}

fn elements(dtype: DType, data: &[f64], sizes: &[usize], out: &mut String) {
    let Some((n, inner)) = sizes.split_first() else {
        let value = data.first().copied().unwrap_or(0.0);
        out.push_str(&if dtype == DType::Bool { (value != 0.0).to_string() } else { show_float(value) });
        return;
    };
    out.push('[');
    let stride = inner.iter().product::<usize>();
    // Nothing to show in a tensor without elements, however many rows it has.
    let rows = if stride == 0 { 0 } else { *n };
    for row in 0..rows {
        if row > 0 {
            out.push_str(", ");
        }
        elements(dtype, data.get(row * stride..).unwrap_or(&[]), inner, out);
    }
    out.push(']');
}

/// The shortest text that reads back as the number.
pub(crate) fn show_float(value: f64) -> String {
    let text = format!("{value:?}").to_ascii_lowercase();
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}
