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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

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

    #[test]
    fn nonsense_never_panics(text in "[%@a-c0-9(){}\\[\\]<>=+*/,.:\n -]{0,200}|(func|return|%x|:|f32|\\[|\\]|j|=|\\(|\\)|\\{|\\}|->|,|sum|max|topk|if|else|macro|1|\n| ){0,60}") {
        let _ = parse("nonsense", &text).map_err(|e| e.to_string());
    }
}
