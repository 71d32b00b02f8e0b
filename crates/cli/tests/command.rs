//! The command from outside: exit statuses, messages, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with files for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::new().expect("folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).expect("file");
        self.path(name).display().to_string()
    }

    /// Names of all files.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("folder").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

struct Outcome {
    status: i32,
    out: String,
    err: String,
}

fn onefold(args: &[&str]) -> Outcome {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_onefold")).args(args).env("NO_COLOR", "1").output().expect("command");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let outcome = Outcome { status: status.code().expect("no signal"), out: text(stdout), err: text(stderr) };
    assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
    outcome
}

/// The command must fail with that status and say these words, and print nothing else.
#[track_caller]
fn fails(status: i32, words: &[&str], args: &[&str]) {
    let outcome = onefold(args);
    assert_eq!(outcome.status, status, "{}", outcome.err);
    for word in words {
        assert!(outcome.err.contains(word), "`{word}` is missing in:\n{}", outcome.err);
    }
    assert_eq!(outcome.out, "");
}

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    let outcome = onefold(args);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
    outcome.out
}

/// An f32 file of that shape.
fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

const SOFTMAX: &str = "func @p(%x: f32[b, v]) -> f32[b, v] {\n  %p = softmax[v](%x)\n  return %p\n}\n";
const TOPK: &str =
    "func @best(%x: f32[v]) -> (f32[k=5], i64[k=5]) {\n  %top, %at = topk[v -> k](%x)\n  return %top, %at\n}\n";

#[test]
fn check_says_nothing_if_all_is_well() {
    let folder = Folder::new();
    assert_eq!(succeeds(&["check", &folder.write("p.fold", SOFTMAX)]), "");
}

#[test]
fn errors_of_a_text_have_places() {
    let folder = Folder::new();
    let unknown = folder.write("a.fold", "func @f(%x: f32[b, v]) -> f32[b] {\n  return sum[w](%x)\n}\n");
    fails(1, &["a.fold:2:14", "w"], &["check", &unknown]);
    let dtype = folder.write("b.fold", "func @f(%x: f32[b], %y: i32[b]) -> f32[b] {\n  return %x + %y\n}\n");
    fails(1, &["b.fold:2:", "i32"], &["run", &dtype, "--random", "--size", "b=3"]);
    let name = folder.write("c.fold", "func @f(%scores: f32[b]) -> f32[b] {\n  return %scoers\n}\n");
    fails(1, &["c.fold:2:", "scores"], &["check", &name]);
    let heads =
        folder.write("d.fold", "func @f(%q: f32[h=7, e]) -> f32[g=2, r, e] {\n  return split[h -> (g=2, r)](%q)\n}\n");
    fails(1, &["d.fold:2:", "7"], &["check", &heads]);
}

#[test]
fn nonsense_is_an_error() {
    let folder = Folder::new();
    let mut state = 1u32;
    let mut noise = |range: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % range
    };
    let text: String = (0..1 << 20).map(|_| char::from(b' ' + noise(95) as u8)).collect();
    fails(1, &["noise.fold:1:"], &["check", &folder.write("noise.fold", text)]);
    let bytes: Vec<u8> = (0..1 << 20).map(|_| noise(256) as u8).collect();
    fails(1, &["bytes.fold", "UTF-8"], &["check", &folder.write("bytes.fold", bytes)]);
    fails(1, &["empty.fold"], &["run", &folder.write("empty.fold", ""), "--random"]);
    fails(1, &["missing.fold"], &["check", &folder.path("missing.fold").display().to_string()]);
    fails(1, &[], &["check", &folder.0.path().display().to_string()]);
}

#[test]
fn deep_nesting_is_an_error() {
    let folder = Folder::new();
    for (name, open, close) in
        [("paren", "(", ")"), ("minus", "-", ""), ("call", "exp(", ")"), ("select", "select(true, ", ", 1)")]
    {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        let text = format!("func @f(%x: f32[b]) -> f32[b] {{\n  return {open}%x{close}\n}}\n");
        let outcome = onefold(&["check", &folder.write(&format!("{name}.fold"), text)]);
        assert_eq!(outcome.status, 1, "{name}: {}", outcome.err);
    }
    let open = "(".repeat(10_000);
    fails(1, &["open.fold"], &["check", &folder.write("open.fold", open)]);
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
fn arrays_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let whole = npy(&[2, 3], &[1.0; 6]);
    let run = |name: &str, bytes: &[u8]| {
        let input = format!("x={}", folder.write(name, bytes));
        let out = format!("p={}", folder.path("out.npy").display());
        onefold(&["run", &file, "--input", &input, "--out", &out])
    };
    for (name, bytes, word) in [
        ("zero.npy", &b""[..], "empty"),
        ("text.npy", b"hello world, this is no array", "not a .npy file"),
        ("short.npy", &whole[..whole.len() - 1], "truncated"),
        ("header.npy", &whole[..20], "truncated"),
        ("magic.npy", &whole[..7], "not a .npy file"),
        ("long.npy", &[&whole[..], &[0]].concat(), "follow after the last element"),
    ] {
        let outcome = run(name, bytes);
        assert_eq!(outcome.status, 1, "{}", outcome.err);
        assert!(outcome.err.contains(name) && outcome.err.contains(word), "{}", outcome.err);
    }
    let overflow = run("overflow.npy", &npy(&[usize::MAX / 2, 8], &[]));
    assert!(overflow.status == 1 && overflow.err.contains("overflow"), "{}", overflow.err);
    assert!(!folder.path("out.npy").exists(), "nothing is written after an error");
    let missing = format!("x={}", folder.path("none.npy").display());
    fails(1, &["none.npy"], &["run", &file, "--input", &missing]);
}

#[test]
fn sizes_that_do_not_fit() {
    let folder = Folder::new();
    let text = "func @f(%x: f32[b, j], %y: f32[j]) -> f32[b] {\n  return sum[j](%x * %y)\n}\n";
    let file = folder.write("f.fold", text);
    let x = format!("x={}", folder.write("x.npy", npy(&[2, 3], &[0.0; 6])));
    let y = format!("y={}", folder.write("y.npy", npy(&[4], &[0.0; 4])));
    fails(1, &["`j`", "3 in input `x`", "4 in input `y`"], &["run", &file, "--input", &x, "--input", &y]);
    let flat = format!("x={}", folder.write("flat.npy", npy(&[6], &[0.0; 6])));
    fails(1, &["`x`", "2 dimensions", "has 1"], &["run", &file, "--input", &flat, "--input", &y]);
    let best = folder.write("best.fold", TOPK);
    fails(1, &["topk", "5", "3"], &["run", &best, "--random", "--size", "v=3"]);
    for size in ["j=18446744073709551615", "j=4611686018427387904"] {
        fails(1, &["x"], &["run", &file, "--random", "--size", "b=8", "--size", size]);
    }
    fails(1, &["memory"], &["run", &file, "--random", "--size", "b=1000000", "--size", "j=1000000000"]);
    for size in ["j=-1", "j=x", "j=99999999999999999999", "j=1.5"] {
        fails(2, &["is not a size"], &["run", &file, "--random", "--size", "b=1", "--size", size]);
    }
    let grouped = "func @g(%q: f32[h, e]) -> f32[g=2, r, e] {\n  return split[h -> (g=2, r)](%q)\n}\n";
    let grouped = folder.write("grouped.fold", grouped);
    fails(1, &["`h`", "7", "`g` (2)"], &["run", &grouped, "--random", "--size", "h=7", "--size", "e=3"]);
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
