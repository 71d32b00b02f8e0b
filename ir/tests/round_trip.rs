//! Printing and reading back: the text stays the same, and so does what the function computes.

mod support;

use onefold_ir::interp::{run, Data, EvalError, Tensor};
use onefold_ir::{parse, print, verify, DType, Func};
use proptest::prelude::*;

/// Small inputs for a function whose symbolic sizes are all 4.
fn inputs(func: &Func) -> Vec<Tensor> {
    func.params
        .iter()
        .map(|p| {
            let shape: Vec<usize> = p
                .axes
                .iter()
                .map(|a| match func.axis(*a).extent {
                    onefold_ir::Extent::Fixed(n) => n as usize,
                    _ => 4,
                })
                .collect();
            let count: usize = shape.iter().product();
            let value = |n: usize| ((n * 37 + p.name.len() * 11) % 17) as i64 - 8;
            match p.dtype {
                DType::Bool => Tensor::int(p.dtype, &shape, &(0..count).map(|n| value(n) & 1).collect::<Vec<_>>()),
                d if d.is_float() => {
                    Tensor::float(d, &shape, &(0..count).map(|n| value(n) as f64 / 4.0).collect::<Vec<_>>())
                }
                d => Tensor::int(d, &shape, &(0..count).map(value).collect::<Vec<_>>()),
            }
        })
        .collect()
}

/// Equal in every bit, but for which NaN it is.
fn same(a: &Result<Vec<Tensor>, EvalError>, b: &Result<Vec<Tensor>, EvalError>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            let elements = |t: &Tensor| match &t.data {
                Data::Float(v) => v.iter().map(|v| if v.is_nan() { 1 } else { v.to_bits() }).collect::<Vec<u64>>(),
                Data::Int(v) => v.iter().map(|v| *v as u64).collect(),
            };
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| a.dtype == b.dtype && a.shape == b.shape && elements(a) == elements(b))
        }
        // What nothing uses and has no name is not printed; only such a node's sizes can be the matter then.
        (Err(_), _) => true,
        _ => false,
    }
}

/// A thousand cases; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The texts that other tests read.
fn good_texts() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut paths: Vec<_> = ["good", "variants", "numerics"]
        .iter()
        .flat_map(|f| std::fs::read_dir(folder.join(f)).expect("folder").map(|e| e.expect("entry").path()))
        .collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read_to_string(p).expect("text")).collect()
}

/// A text as words, spaces and marks.
fn pieces(text: &str) -> Vec<String> {
    let code = text.lines().filter(|l| !l.starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut pieces: Vec<String> = vec![];
    for c in code.chars() {
        let word = c.is_ascii_alphanumeric() || c == '_';
        match pieces.last_mut() {
            Some(last) if word && last.ends_with(|l: char| l.is_ascii_alphanumeric() || "_%@".contains(l)) => {
                last.push(c)
            }
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn print_then_parse_is_the_identity(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let module = support::random_module(&bytes);
        prop_assert!(verify(&module).is_ok(), "{:?}\n{}", verify(&module), print(&module));
        let text = print(&module);
        let again = match parse("printed", &text) {
            Ok(again) => again,
            Err(errors) => return Err(TestCaseError::fail(format!("{text}\n{errors}"))),
        };
        prop_assert!(verify(&again).is_ok(), "{:?}\n{text}", verify(&again));
        prop_assert_eq!(print(&again), text.clone());
        let values = inputs(&module.funcs[0]);
        let (before, after) = (run(&module, "random", &values), run(&again, "random", &values));
        prop_assert!(same(&before, &after), "{}\n{:?}\n{:?}", text, before, after);
    }

    /// Good texts with pieces of others put in, taken out or exchanged: refused, or as good as any.
    #[test]
    fn whatever_is_accepted_is_well_formed(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..6),
    ) {
        let texts = good_texts();
        let all: Vec<String> = texts.iter().flat_map(|t| pieces(t)).collect();
        let mut own = pieces(&texts[which.index(texts.len())]);
        for (at, from, kind) in edits {
            let at = at.index(own.len());
            match kind {
                0 => own[at] = all[from.index(all.len())].clone(),
                1 => own.insert(at, all[from.index(all.len())].clone()),
                2 => own[at] = own[from.index(own.len())].clone(),
                _ => own[at].clear(),
            }
        }
        let text = own.concat();
        match parse("mutated", &text) {
            Err(errors) => prop_assert!(!errors.to_string().is_empty()),
            Ok(module) => {
                prop_assert!(verify(&module).is_ok(), "{:?}\n{text}", verify(&module));
                let printed = print(&module);
                let again = parse("printed", &printed);
                prop_assert!(again.is_ok(), "{text}\n{printed}\n{}", again.err().map_or(String::new(), |e| e.to_string()));
                prop_assert_eq!(print(&again.unwrap_or_default()), printed);
                for func in &module.funcs {
                    // Sizes of 4 may not fit; then that must be said, and no more.
                    let _ = run(&module, &func.name, &inputs(func));
                }
            }
        }
    }

    #[test]
    fn nonsense_never_panics(text in "[%@a-c0-9(){}\\[\\]<>=+*/,.:\n -]{0,200}|(func|return|%x|:|f32|\\[|\\]|j|=|\\(|\\)|\\{|\\}|->|,|sum|max|topk|if|else|macro|1|\n| ){0,60}") {
        let _ = parse("nonsense", &text).map_err(|e| e.to_string());
    }
}
