//! Fold programs as graphs: inputs, passes with their states, outputs.

use super::json;
use onefold_passes::fold::FoldProgram;
use serde_json::Value;
use std::fmt::Write;

/// For Graphviz.
pub fn program(program: &FoldProgram) -> String {
    let facts = json::function(program);
    let mut out = String::from("digraph fold {\n  rankdir=LR;\n  node [fontname=\"monospace\"];\n");
    for array in program.inputs.iter().chain(&program.outputs).chain(&program.intermediates) {
        let axes = program.names().axis_list(array.axes.iter().copied());
        let _ = writeln!(out, "  {:?} [shape=box, label=\"{}: {}[{axes}]\"];", array.name, array.name, array.dtype);
    }
    let words = |v: &Value| -> Vec<String> {
        v.as_array().into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
    };
    for (at, pass) in facts["passes"].as_array().into_iter().flatten().enumerate() {
        let mut label = format!("stream {}\\l", words(&pass["axes"]).join(", "));
        for state in pass["state"].as_array().into_iter().flatten() {
            let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
            let _ = write!(label, "{} = {}", text("name"), text("op"));
            if let Some(correction) = state["correction"].as_str() {
                let _ = write!(label, ", carry {correction}");
            }
            label.push_str("\\l");
        }
        let _ = writeln!(out, "  pass{at} [shape=ellipse, label=\"{label}\"];");
        for name in words(&pass["reads"]) {
            let _ = writeln!(out, "  {name:?} -> pass{at};");
        }
        for name in words(&pass["writes"]) {
            let _ = writeln!(out, "  pass{at} -> {name:?};");
        }
    }
    out.push_str("}\n");
    out
}
