//! The command from outside: exit statuses, messages, files.

mod support;

use std::path::Path;
use support::{fails, npy, onefold, succeeds, Folder, SOFTMAX, TOPK};

#[test]
fn check_says_nothing_if_all_is_well() {
    let folder = Folder::new();
    assert_eq!(succeeds(&["check", &folder.write("p.fold", SOFTMAX)]), "");
}

#[test]
fn long_chains_compile_or_say_why_not() {
    let folder = Folder::new();
    let lines: String = (0..400).map(|i| format!("  %x{} = %x{i} + 1\n", i + 1)).collect();
    let text = format!("func @f(%x0: f32[b]) -> f32[b] {{\n{lines}  return %x400\n}}\n");
    let file = folder.write("chain.fold", text);
    let out = succeeds(&["run", &file, "--random", "--size", "b=3", "--verify"]);
    assert!(out.contains("largest error"), "{out}");
}

#[test]
fn code_is_for_the_cpu_asked_for() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let size = ["--size", "b=2", "--size", "v=9"];
    let run = |more: &[&str]| onefold(&[&["run", &file, "--random", "--verify"], &size[..], more].concat());
    assert_eq!(run(&["--cpu", "native"]).status, 0);
    for (cpu, word) in [("avx2", "--backend llvm"), ("baseline", "listings")] {
        let outcome = run(&["--cpu", cpu]);
        assert!(outcome.status == 1 && outcome.err.contains(word), "{}", outcome.err);
    }
    assert_eq!(run(&["--cpu", "pentium"]).status, 2);
    let asm = |cpu: &str| onefold(&["inspect", &file, "--stage", "asm", "--backend", "llvm", "--cpu", cpu]);
    if cfg!(feature = "llvm") {
        assert!(asm("avx512").out.contains("zmm"));
        assert!(asm("avx2").out.contains("ymm") && !asm("avx2").out.contains("zmm"));
        assert!(asm("neon").out.contains(".4s"));
        assert_eq!(run(&["--backend", "llvm"]).status, 0);
    }
}

#[test]
fn wrong_usage() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    fails(2, &["input x"], &["run", &file]);
    fails(2, &["--size b=N"], &["run", &file, "--random"]);
    fails(2, &["no input y", "x"], &["run", &file, "--input", "y=a.npy"]);
    fails(2, &["NAME=VALUE"], &["run", &file, "--input", "a.npy"]);
    fails(2, &["no output q", "p"], &["run", &file, "--random", "--size", "b=1", "--size", "v=1", "--out", "q=a.npy"]);
    fails(2, &["no axis w"], &["run", &file, "--random", "--size", "b=1", "--size", "v=1", "--size", "w=1"]);
    fails(2, &["unrecognized"], &["frobnicate"]);
    fails(2, &["--stage"], &["inspect", &file]);
    for command in ["compile", "calibrate", "import"] {
        fails(2, &["not available in this version"], &[command, &file, "-o", "x"]);
    }
    let two = folder.write("two.fold", format!("{SOFTMAX}{TOPK}"));
    fails(2, &["@p", "@best", "--func"], &["run", &two, "--random"]);
    fails(2, &["@nope", "@p"], &["run", &two, "--func", "nope", "--random"]);
    assert!(onefold(&["run", "--help"]).out.contains("--input"));
    assert!(!onefold(&["--help"]).out.contains("calibrate"));
}

#[cfg(not(feature = "llvm"))]
#[test]
fn builds_without_llvm_say_so() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let why = "built without the feature `llvm`";
    fails(2, &[why], &["run", &file, "--random", "--size", "b=1", "--size", "v=1", "--backend", "llvm"]);
    fails(2, &[why], &["inspect", &file, "--stage", "llvm"]);
    fails(2, &[why], &["inspect", &file, "--stage", "asm", "--backend", "llvm"]);
}

#[cfg(feature = "llvm")]
#[test]
fn llvm_runs_and_is_shown() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let size = ["--size", "b=3", "--size", "v=1000"];
    let run = [&["run", &file, "--random", "--backend", "llvm", "--verify"], &size[..]].concat();
    assert_eq!(onefold(&run).status, 0);
    let ir = onefold(&["inspect", &file, "--stage", "llvm"]).out;
    assert!(ir.contains("define internal i32 @body(") && ir.contains("llvm.fma.v8f32"), "{ir}");
    assert!(!ir.contains("target triple"), "{ir}");
    let asm = onefold(&["inspect", &file, "--stage", "asm", "--backend", "llvm"]).out;
    assert!(asm.contains("vfmadd") && asm.contains("%ymm"), "{asm}");
}

#[test]
fn outputs_are_summarised_or_written() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let x = format!("x={}", folder.write("x.npy", npy(&[1, 4], &[2.0, 1.0, 0.0, -1.0])));
    let out = succeeds(&["run", &file, "--input", &x]);
    assert_eq!(out, "p: f32[b=1, v=4] [0.643914, 0.236883, 0.0871443, 0.0320586] min 0.0320586 max 0.643914 sum 1\n");
    let place = format!("0={}", folder.path("p.npy").display());
    assert_eq!(succeeds(&["run", &file, "--input", &x, "--out", &place]), "");
    assert_eq!(folder.names(), ["p.fold", "p.npy", "x.npy"]);
    let again = format!("x={}", folder.path("p.npy").display());
    assert!(succeeds(&["run", &file, "--input", &again]).contains("f32[b=1, v=4]"));
    assert_eq!(succeeds(&["run", &file, "--input", &x, "-q"]), "");
    let nowhere = format!("0={}", folder.path("no/such/folder.npy").display());
    fails(1, &["folder.npy"], &["run", &file, "--input", &x, "--out", &nowhere]);
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_backend_and_threads() {
    let folder = Folder::new();
    let file = folder.write("best.fold", TOPK);
    let run = |more: &[&str]| succeeds(&[&["run", &file, "--random", "--size", "v=1000"], more].concat());
    let first = run(&[]);
    assert_eq!(first, run(&["--threads", "3"]));
    assert_eq!(first, run(&["--backend", "loops"]));
    assert_eq!(first, run(&["--backend", "interp"]));
    assert_eq!(first, run(&["--form", "plain"]));
    assert_ne!(first, run(&["--seed", "1"]));
}

#[test]
fn verification_has_a_verdict() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let args = ["run", &file, "--random", "--size", "b=3", "--size", "v=100", "--verify"];
    let fine = onefold(&args);
    assert!(fine.status == 0 && fine.out.contains("ULP"), "{}{}", fine.out, fine.err);
    let place = format!("0={}", folder.path("p.npy").display());
    let strict = onefold(&[&args[..], &["--tolerance", "0", "--out", &place]].concat());
    assert!(strict.status == 3 && strict.err.contains("bounds"), "{}", strict.err);
    assert_eq!(folder.names(), ["p.fold"], "nothing is written beyond the bound");
}

#[test]
fn stages_print() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let inspect = |stage: &str, more: &[&str]| succeeds(&[&["inspect", &file, "--stage", stage], more].concat());
    assert!(inspect("tensor", &[]).starts_with("func @p("));
    assert!(inspect("egraph", &[]).starts_with("egraph @p: "));
    assert!(inspect("egraph", &["--format", "dot"]).starts_with("digraph"));
    assert!(inspect("fold", &[]).contains("streams: x 2"));
    assert!(inspect("fold", &["--format", "dot"]).starts_with("digraph"));
    assert!(inspect("loop", &[]).contains("p"));
    assert!(inspect("clif", &[]).contains("function"));
    assert!(inspect("asm", &[]).contains("mov"));
    let json = inspect("fold", &["--format", "json"]);
    let facts: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let function = &facts["functions"][0];
    assert_eq!(function["name"], "p");
    assert_eq!(function["reads"]["x"], 2);
    assert_eq!(function["intermediates"], serde_json::json!([]));
    assert_eq!(function["passes"][0]["axes"], serde_json::json!(["v"]));
    assert_eq!(function["passes"][0]["reads"], serde_json::json!(["x"]));
    assert_eq!(function["passes"][0]["state"][0]["op"], "max");
    assert!(function["passes"][0]["state"][1]["correction"].as_str().is_some_and(|c| c.contains("exp")), "{json}");
    assert!(function["passes"].as_array().is_some_and(|p| p.iter().any(|p| p["writes"][0] == "p")), "{json}");
    fails(2, &["no form as json"], &["inspect", &file, "--stage", "asm", "--format", "json"]);
    assert!(succeeds(&["explain", &file]).contains("exp"));
}

#[test]
fn benchmarks_report_json() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let args = ["bench", &file, "--size", "b=4", "--size", "v=1000", "--reps", "3", "--form", "all", "--json"];
    let out = succeeds(&args);
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    for (line, form) in lines.iter().zip(["fused", "wide", "staged", "plain"]) {
        assert_eq!(line["form"], form);
        assert_eq!(line["func"], "p");
        assert_eq!(line["sizes"]["v"], 1000);
        assert!(line["median_ms"].as_f64().is_some_and(|v| v >= 0.0), "{line}");
        assert!(line["limit"]["value"].as_f64().is_some_and(|v| v > 0.0), "{line}");
    }
    assert_eq!(lines[0]["bytes"], 3 * 16_000);
    fails(2, &["--size v=N"], &["bench", &file, "--size", "b=4"]);
    let x = folder.write("x.npy", npy(&[2, 3], &[1.0; 6]));
    let out = succeeds(&["bench", &file, "--input", &format!("x={x}"), "--reps", "1", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(line["bytes"], 3 * 24);
    fails(2, &["no input y"], &["bench", &file, "--input", &format!("x={x}"), "--input", &format!("y={x}")]);
}

#[test]
fn examples_are_fine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).expect("folder").flatten() {
        if entry.path().extension().is_some_and(|e| e == "fold") {
            let file = entry.path().display().to_string();
            succeeds(&["check", &file]);
            succeeds(&["inspect", &file, "--stage", "fold"]);
        }
    }
}
