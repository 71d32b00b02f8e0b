//! What every stage emits for a few small formulas: the tensor IR, the e-graph, the fold, the loops, the code.
//!
//! Listings are made for a fixed target, so they are the same on every machine. Sizes are fixed and small where that keeps
//! a listing readable.

use onefold::inspect::{stage, Format, Stage};
use onefold::{Compiler, Form};

/// The snapshots of a formula at some stages, under `snapshot/stages/`.
fn check(name: &str, text: &str, stages: &[Stage]) {
    check_form(Form::Fused, name, text, stages);
}

/// The same in another form than the one that is chosen.
fn check_form(form: Form, name: &str, text: &str, stages: &[Stage]) {
    let module = onefold::parse("formula.fold", text).expect("a module");
    let compiler = Compiler::new().threads(1).form(form);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshot/stages");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(text.trim());
    settings.bind(|| {
        for at in stages {
            let listing = stage(&compiler, &module, name, *at, Format::Text).expect("a listing");
            insta::assert_snapshot!(format!("{name}_{}", at.name()), listing);
        }
    });
}

const UP_TO_LOOPS: &[Stage] = &[Stage::Tensor, Stage::Fold, Stage::Loop];

#[test]
fn scale() {
    let text = "func @scale(%x: f32[n]) -> f32[n] {\n  return 2 * %x + 1\n}\n";
    check("scale", text, &[Stage::Tensor, Stage::EGraph, Stage::Fold, Stage::Loop, Stage::Clif]);
}

#[test]
fn log_sum_exp() {
    let text = "func @lse(%x: f32[v=4]) -> f32 {\n  return log(sum[v](exp(%x)))\n}\n";
    check("lse", text, &[Stage::Tensor, Stage::EGraph]);
    let text = "func @row(%x: f32[v=8]) -> f32 {\n  %m = max[v](%x)\n  return %m + log(sum[v](exp(%x - %m)))\n}\n";
    check("row", text, UP_TO_LOOPS);
}

#[test]
fn squares() {
    let text = "func @squares(%x: f32[n]) -> f32 {\n  return sum[n](%x * %x)\n}\n";
    check("squares", text, &[Stage::Fold, Stage::Loop, Stage::Clif]);
}

#[test]
fn weighted_rows() {
    let text = "func @weighted(%s: f32[j=8], %v: f32[j=8, d=4]) -> f32[d] {\n  \
                %w = exp(%s - max[j](%s))\n  return sum[j](%w * %v) / sum[j](%w)\n}\n";
    check("weighted", text, UP_TO_LOOPS);
}

#[test]
fn best_of_few() {
    let text =
        "func @best(%x: f32[v=8]) -> (f32[k=2], i64[k=2]) {\n  %top, %at = topk[v -> k](%x)\n  return %top, %at\n}\n";
    check("best", text, &[Stage::Fold, Stage::Loop]);
}

#[test]
fn running() {
    let text = "func @running(%x: f32[n]) -> f32[n] {\n  return cumsum[n](%x) - sum[n](%x)\n}\n";
    check("running", text, UP_TO_LOOPS);
}

#[test]
fn rectified_attention() {
    let text = "func @rectified(%q: f32[e=4], %k: f32[j=4, e=4], %v: f32[j=4, d=4]) -> f32[d] {\n  \
                %w = max(sum[e](%q * %k), 0)\n  return sum[j](%w * %v)\n}\n";
    check("rectified", text, UP_TO_LOOPS);
}

#[test]
fn nearest_key() {
    let text = "func @nearest(%q: f32[e=4], %k: f32[j=4, e=4]) -> (f32[k=1], i64[k=1]) {\n  \
                %top, %at = topk[j -> k](sum[e](%q * %k))\n  return %top, %at\n}\n";
    check("nearest", text, UP_TO_LOOPS);
}

#[test]
fn mean_and_variance() {
    // In two passes, as it stands: the one that is derived is too long to read.
    let text = "func @spread(%x: f32[n=8]) -> (f32, f32) {\n  %mean = sum[n](%x) / size(n)\n  %d = %x - %mean\n  \
                return %mean, sum[n](%d * %d) / size(n)\n}\n";
    check("spread", text, &[Stage::Tensor, Stage::EGraph]);
    check_form(Form::Plain, "spread", text, &[Stage::Fold, Stage::Loop, Stage::Clif]);
}
