//! E-graphs: every class with its facts and the terms that are known to be equal.

use egg::{Id, Language};
use onefold_passes::convert::Graph;
use onefold_passes::lang::{Facts, Node};
use onefold_passes::saturate::Saturated;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Classes in order of their number, with numbers of their own: egg's are not dense.
fn classes(saturated: &Saturated) -> (Vec<Id>, BTreeMap<Id, usize>) {
    let mut ids: Vec<Id> = saturated.egraph.classes().map(|c| c.id).collect();
    ids.sort_unstable();
    let numbers = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    (ids, numbers)
}

fn nodes(saturated: &Saturated, id: Id) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = saturated.egraph[id].nodes.iter().collect();
    nodes.sort();
    nodes
}

fn show(source: &Graph, node: &Node) -> String {
    // Loads print by number; people know names.
    let text = node.to_string();
    let name = text.strip_prefix("in").and_then(|n| n.parse::<usize>().ok()).and_then(|n| source.inputs.get(n));
    name.map_or(text, |input| input.name.clone())
}

fn facts(source: &Graph, facts: &Facts) -> String {
    let axes: Vec<&str> =
        facts.axes.iter().map(|a| source.axes.get(usize::from(a.0)).map_or("?", |decl| decl.name.as_str())).collect();
    let mut text = format!("{}[{}]", facts.dtype, axes.join(", "));
    if let Some(constant) = facts.constant {
        let _ = write!(text, " = {}", constant.as_f64());
    } else {
        let _ = write!(text, " in {}..{}", facts.interval.lo, facts.interval.hi);
        if facts.finite && facts.dtype.is_float() {
            text.push_str(", finite");
        }
    }
    text
}

/// One class a paragraph.
pub fn text(source: &Graph, saturated: &Saturated) -> String {
    let (ids, numbers) = classes(saturated);
    let number = |id: Id| numbers.get(&saturated.egraph.find(id)).copied().unwrap_or(0);
    let total: usize = ids.iter().map(|id| saturated.egraph[*id].nodes.len()).sum();
    let mut out =
        format!("egraph @{}: {} classes, {total} nodes, {} rounds\n", source.name, ids.len(), saturated.iterations);
    for (n, root) in saturated.roots.iter().enumerate() {
        let _ = writeln!(out, "{} = c{}", source.decl(n).name, number(*root));
    }
    for id in &ids {
        let _ = writeln!(out, "c{}: {}", number(*id), facts(source, &saturated.egraph[*id].data));
        for node in nodes(saturated, *id) {
            let args: Vec<String> = node.children().iter().map(|a| format!("c{}", number(*a))).collect();
            let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
            let _ = writeln!(out, "  {}{args}", show(source, node));
        }
    }
    out
}

/// For Graphviz: a box for each class.
pub fn dot(source: &Graph, saturated: &Saturated) -> String {
    let (ids, numbers) = classes(saturated);
    let number = |id: Id| numbers.get(&saturated.egraph.find(id)).copied().unwrap_or(0);
    let mut out = String::from("digraph egraph {\n  compound=true;\n  node [fontname=\"monospace\", shape=box];\n");
    let mut edges = String::new();
    for id in &ids {
        let class = number(*id);
        let label = facts(source, &saturated.egraph[*id].data);
        let _ = writeln!(out, "  subgraph cluster_{class} {{\n    label=\"c{class}: {label}\";");
        for (at, node) in nodes(saturated, *id).into_iter().enumerate() {
            let _ = writeln!(out, "    n{class}_{at} [label={:?}];", show(source, node));
            for arg in node.children() {
                let to = number(*arg);
                let _ = writeln!(edges, "  n{class}_{at} -> n{to}_0 [lhead=cluster_{to}];");
            }
        }
        out.push_str("  }\n");
    }
    out + &edges + "}\n"
}
