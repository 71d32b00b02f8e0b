//! Derived fold programs compute what the formula says: each is run in f64, in tiles of several sizes, against the same formula
//! without laws or corrections, on rows that begin with -inf, hold NaN or zeros, or lie far from zero.

use onefold_ir::{DType, Extent, Literal};
use onefold_passes::fold::FoldProgram;
use onefold_passes::interp::{extents, run};
use onefold_passes::saturate::Limits;
use onefold_passes::term::TermOp;
use onefold_passes::{derive, Form, Options};
use std::path::{Path, PathBuf};

/// What the numbers of the inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Ordinary,
    MaskedPrefix,
    MaskedHereAndThere,
    NanHereAndThere,
    ZerosFirst,
    FarFromZero,
    LowFirst,
}

const DATA: [Data; 7] = [
    Data::Ordinary,
    Data::MaskedPrefix,
    Data::MaskedHereAndThere,
    Data::NanHereAndThere,
    Data::ZerosFirst,
    Data::FarFromZero,
    Data::LowFirst,
];

/// splitmix64
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The number at a position of a row; every third row is without a prefix of its own, but for masks, where it is one throughout.
fn number(data: Data, at: usize, row: usize, state: &mut u64) -> f64 {
    let third = at / row % 3 == 2;
    let in_prefix = at % row < row / 2;
    let ordinary = (next(state) + next(state) + next(state) - 1.5) * 4.0;
    let rare = next(state) < 0.04;
    match data {
        Data::MaskedPrefix if in_prefix || third => f64::NEG_INFINITY,
        Data::MaskedHereAndThere if rare || at % 5 == 2 => f64::NEG_INFINITY,
        Data::NanHereAndThere if rare => f64::NAN,
        Data::ZerosFirst if in_prefix => 0.0,
        Data::FarFromZero => ordinary + 500.0,
        Data::LowFirst if in_prefix && !third => ordinary - 500.0,
        _ => ordinary,
    }
}

fn derive_both(text: &str) -> (FoldProgram, FoldProgram) {
    let module = match onefold_ir::parse("formula", text) {
        Ok(module) => module,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    let program = |form| {
        derive(&module, &module.funcs[0], &Options { form, ..Options::default() }).expect("a fold program").program
    };
    (program(Form::Fused), program(Form::Plain))
}

/// Whether an input may hold values that are not numbers: an infinite value of a product meets the reassociation of sums,
/// where `inf - inf` may appear in one order and not in the other.
fn takes_specials(program: &FoldProgram, input: usize) -> bool {
    let name = program.inputs[input].name.as_str();
    matches!(name, "x" | "s" | "t" | "mask")
}

fn check(name: &str, text: &str) {
    let (fused, plain) = derive_both(text);
    compare(name, &fused, &plain);
}

fn compare(name: &str, fused: &FoldProgram, plain: &FoldProgram) {
    let mut state = 1;
    for data in DATA {
        for n in [5, 8, 17] {
            let size = |axis: &str| if matches!(axis, "j" | "v") { n } else { 2 };
            let symbolic: Vec<i64> =
                fused.axes.iter().filter(|a| a.extent == Extent::Symbolic).map(|a| size(&a.name)).collect();
            let sizes = extents(fused, &symbolic).expect("sizes");
            let inputs: Vec<Vec<f64>> = (0..fused.inputs.len())
                .map(|i| {
                    let len = fused.inputs[i].axes.iter().map(|a| sizes[a.0 as usize] as usize).product();
                    let data = if takes_specials(fused, i) { data } else { Data::Ordinary };
                    let row = fused.inputs[i].axes.last().map_or(1, |a| sizes[a.0 as usize] as usize);
                    let index = fused.inputs[i].dtype == DType::I64;
                    (0..len).map(|at| if index { (at % 3) as f64 } else { number(data, at, row, &mut state) }).collect()
                })
                .collect();
            let want = run(plain, &symbolic, &inputs, 64).expect("the plain form runs");
            for tile in [1, 3, 64] {
                let got = run(fused, &symbolic, &inputs, tile).expect("the fused form runs");
                for (output, (got, want)) in got.iter().zip(&want).enumerate() {
                    // Positions in a row of NaN are those of the order before the function: docs/design/numerics.md.
                    if data == Data::NanHereAndThere && fused.outputs[output].dtype == DType::I64 {
                        continue;
                    }
                    for (at, (g, w)) in got.iter().zip(want).enumerate() {
                        let same = g.is_nan() && w.is_nan() || g == w;
                        let close = (g - w).abs() <= 1e-7 * (g.abs() + w.abs()) + 1e-9;
                        assert!(
                            same || close,
                            "{name}, {data:?}, {n} elements in tiles of {tile}: {} [{at}] is {g}, not {w}\n{fused}",
                            fused.outputs[output].name
                        );
                    }
                }
            }
        }
    }
}

fn formulas() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formulas");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the formulas").map(|e| e.expect("a file").path()).collect();
    files.sort();
    files
}

#[test]
fn folds_agree_with_formulas() {
    let files = formulas();
    assert!(files.len() > 20);
    for file in files {
        let name = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        let text = std::fs::read_to_string(&file).expect("a formula");
        // The interpreter is slow: short heads do.
        check(&name, &text.replace("axis e = 64", "axis e = 3").replace("axis d = 64", "axis d = 2"));
    }
}

#[test]
fn anchors_are_regular_before_the_first_element() {
    for file in formulas() {
        let text = std::fs::read_to_string(&file).expect("a formula");
        let (fused, _) = derive_both(&text);
        for anchor in &fused.anchors {
            let stands_for: Vec<f64> = anchor.degenerate.iter().map(|(v, _)| *v).collect();
            assert!(stands_for.iter().any(|v| v.is_nan()), "{}: {}", file.display(), anchor.name);
            assert!(anchor.degenerate.iter().all(|(_, s)| s.is_finite()));
            let is_literal = matches!(fused.terms.get(anchor.value).op, TermOp::Literal(Literal::Float(_)));
            assert!(!is_literal, "an anchor depends on the data");
        }
    }
}

#[test]
fn bounded_saturation_warns_and_stays_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formulas/difference.fold");
    let text = std::fs::read_to_string(path).expect("a formula").replace("axis d = 64", "axis d = 2");
    let module = onefold_ir::parse("formula", &text).expect("a module");
    let (_, plain) = derive_both(&text);
    for limits in [Limits { iterations: 1, ..Limits::default() }, Limits { nodes: 5, ..Limits::default() }] {
        let options = Options { limits, ..Options::default() };
        let derived = derive(&module, &module.funcs[0], &options).expect("the best so far");
        assert_eq!(derived.warnings.len(), 1, "{:?}", derived.warnings);
        compare("difference, cut short", &derived.program, &plain);
    }
}
