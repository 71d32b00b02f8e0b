//! Texts and what becomes of them: the canonical print of good ones, the diagnostics of bad ones.

use insta::{assert_snapshot, Settings};
use onefold_ir::{parse, print, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn texts(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path()).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().expect("name").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).expect("text"))).collect()
}

fn snapshots(of: &str, check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(format!("../../snapshot/ir/{of}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(check);
}

#[test]
fn good_texts_print_canonically() {
    snapshots("print", || {
        for (name, text) in texts("good") {
            let module = parse(&format!("{name}.fold"), &text).unwrap_or_else(|e| panic!("{e}"));
            verify(&module).unwrap_or_else(|e| panic!("{name}: {e}"));
            let printed = print(&module);
            assert_snapshot!(name.as_str(), printed);
            let again = parse("printed", &printed).unwrap_or_else(|e| panic!("{printed}\n{e}"));
            verify(&again).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(print(&again), printed);
        }
    });
}

#[test]
fn bad_texts_are_explained() {
    snapshots("diagnostics", || {
        for (name, text) in texts("bad") {
            match parse(&format!("{name}.fold"), &text) {
                Ok(module) => panic!("{name} is accepted:\n{}", print(&module)),
                Err(errors) => assert_snapshot!(name.as_str(), format!("{text}\n{errors}")),
            }
        }
    });
}

#[test]
fn errors_can_be_read_by_programs() {
    let errors = parse("f.fold", "func @f(%x: f32[j]) {\n  return sofmax[j](%x)\n}").expect_err("wrong");
    let [error] = errors.errors.as_slice() else { panic!("{errors}") };
    assert_eq!((error.line, error.column), (2, 10));
    assert_eq!(&errors.text[error.span.start as usize..error.span.end as usize], "sofmax");
    assert_eq!(error.message, "unknown function `sofmax`");
    assert_eq!(error.help.as_deref(), Some("did you mean `softmax`?"));
    assert!(errors.to_string().contains("f.fold:2:10"));
    assert!(!errors.to_string().contains('\u{1b}'));
}

#[test]
fn nonsense_is_refused_quickly() {
    let alphabets =
        ["abc %@(){}[]<>=+-*/,.:;0123456789\n\"'$#\\", "é$ ", "func @a(", "return ", "(", "-", "[%x", "a b ", "not "];
    for alphabet in alphabets {
        let (mut text, mut state) = (String::new(), 1u64);
        let chars: Vec<char> = alphabet.chars().collect();
        while text.len() < 1_000_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = if chars.len() > 10 { (state >> 33) as usize } else { text.len() };
            text.push(chars[at % chars.len()]);
        }
        let start = std::time::Instant::now();
        let errors = parse("nonsense", &text).expect_err("nonsense");
        assert!(errors.errors.len() <= onefold_ir::text::MAX_ERRORS);
        assert!(errors.to_string().len() < 50_000);
        // A second is far above what it takes; this guards against quadratic behaviour, not against slow machines.
        assert!(start.elapsed().as_secs() < 10, "{alphabet:?}: {:?}", start.elapsed());
    }
}

#[test]
fn deep_nesting_is_refused_and_the_limit_needs_little_stack() {
    let nested = |n: usize, open: &str, close: &str| {
        format!("func @f(%x: f32, %m: bool) {{\n  return {}%x{}\n}}\n", open.repeat(n), close.repeat(n))
    };
    let forms = [("(", ")"), ("-(", ")"), ("exp(", ")"), ("max(0, ", ")"), ("1 + (", ")"), ("relu(", ")"), ("- ", "")];
    let run = move || {
        for (open, close) in forms {
            for n in [10, 60, 120, 126, 127, 128, 129, 10_000] {
                let outcome = parse("deep", &nested(n, open, close));
                assert!(n > 100 || outcome.is_ok(), "{open} {n}: {outcome:?}");
                assert!(n < 10_000 || outcome.is_err_and(|e| e.errors[0].message.contains("deep")), "{open} {n}");
            }
        }
        let chain = format!("func @f(%x: f32) {{\n  return %x{}\n}}\n", " + %x".repeat(10_000));
        assert!(parse("chain", &chain).is_err());
        // Macros of macros, each nested as deep as is allowed.
        let mut text = String::from("macro m0(%x) {\n  return %x\n}\n");
        for n in 1..100 {
            let (open, close) = ("exp(".repeat(100), ")".repeat(100));
            text.push_str(&format!("macro m{n}(%x) {{\n  return {open}m{}(%x){close}\n}}\n", n - 1));
        }
        text.push_str("func @f(%x: f32) {\n  return m99(%x)\n}\n");
        assert!(parse("macros", &text).is_err());
    };
    // Half of what a thread of Rust's standard library has.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("thread");
    thread.join().expect("no overflow");
}

#[test]
fn expansion_without_end_is_refused() {
    let mut text = String::from("macro m0(%x) {\n  return %x + %x\n}\n");
    for n in 1..40 {
        text.push_str(&format!("macro m{n}(%x) {{\n  return m{0}(m{0}(%x))\n}}\n", n - 1));
    }
    text.push_str("func @f(%x: f32) {\n  return m39(%x), m39(1)\n}\n");
    assert!(parse("doubling", &text).is_err());
}
