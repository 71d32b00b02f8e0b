//! Real numbers: the attention of a sentence encoder, layer by layer, and scores over its vocabulary.

use onefold::{Array, ArrayView, Backend, Compiler, Kernel};
use onefold_ir::DType;
use std::path::Path;

/// Error of an attention output as a share of the sum of `p * abs(v)`.
const BOUND: f64 = 2e-6;

/// What f32 scores add to it, as a share of the largest: half a unit in the last place. A weight is off by as much as its
/// score, and no arithmetic on the stored score can mend that. In layer 0 scores reach 72, which is worth 4.3e-6.
const HALF_UNIT: f64 = 1.0 / (1 << 24) as f64;

/// The largest magnitude among the scores.
const LARGEST: &str = "func @largest(%q: f32[b, h, i, e], %k: f32[b, h, j, e]) -> f32 {
  return max[b, h, i, j](abs(sum[e](%q * %k) / sqrt(size(e))))
}
";

const ATTENTION: &str = include_str!("../examples/attention.fold");
const TOPK: &str = include_str!("../examples/softmax_topk.fold");

/// An f32 file as NumPy writes it, version 1.
fn load(name: &str) -> Array {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/minilm").join(name);
    let bytes = std::fs::read(file).expect("file");
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).expect("header");
    assert!(header.contains("'<f4'") && header.contains("'fortran_order': False"), "{header}");
    let shape = header.split('(').nth(1).and_then(|s| s.split(')').next()).expect("shape");
    let shape: Vec<usize> = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    Array::from_bytes(DType::F32, &shape, &bytes[10 + header_len..]).expect("elements")
}

fn attention() -> Kernel {
    Compiler::new().compile_text("attention.fold", ATTENTION, None).expect("kernel")
}

/// In f64: outputs and sums of `p * abs(v)`.
fn reference(q: &Array, k: &Array, v: &Array) -> (Vec<f64>, Vec<f64>) {
    let module = onefold::parse("attention.fold", ATTENTION).expect("text");
    let of = |v: &Array| {
        let views = [q, k, v].map(Array::view);
        onefold::evaluate(&module, "attention", &views).expect("values").remove(0)
    };
    let magnitudes: Vec<f32> = v.as_slice::<f32>().expect("f32").iter().map(|x| x.abs()).collect();
    (of(v), of(&Array::from_vec(v.shape(), magnitudes).expect("array")))
}

fn largest_score(q: &Array, k: &Array) -> f64 {
    let module = onefold::parse("largest.fold", LARGEST).expect("text");
    onefold::evaluate(&module, "largest", &[q.view(), k.view()]).expect("value")[0][0]
}

#[test]
fn every_layer_is_within_its_bound() {
    let kernel = attention();
    let mut report = String::new();
    let mut fine = true;
    for layer in 0..6 {
        let [q, k, v, context] = ["q", "k", "v", "context"].map(|n| load(&format!("layer{layer}_{n}.npy")));
        let views: Vec<ArrayView<'_>> = [&q, &k, &v].map(Array::view).to_vec();
        let got = kernel.run(&views).expect("results").remove(0);
        let (want, magnitude) = reference(&q, &k, &v);
        let share = |a: &[f64]| {
            a.iter().zip(&want).zip(&magnitude).map(|((a, w), m)| ((a - w).abs() - 1e-37) / m).fold(0.0, f64::max)
        };
        let (ours, theirs) = (share(&got.to_f64()), share(&context.to_f64()));
        // What PyTorch computed carries an error of its own.
        let pairs = got.to_f64().into_iter().zip(context.to_f64()).zip(&magnitude);
        let between = pairs.map(|((a, b), m)| (a - b).abs() / m).fold(0.0, f64::max);
        let bound = BOUND + HALF_UNIT * largest_score(&q, &k);
        fine &= ours <= bound && between <= bound + theirs;
        report.push_str(&format!(
            "layer {layer}: {ours:.2e} of {bound:.2e} (PyTorch {theirs:.2e}, apart {between:.2e})\n"
        ));
    }
    println!("{report}");
    assert!(fine, "beyond the bound:\n{report}");
}

#[test]
fn the_best_scores_are_those_of_an_f64_sort() {
    let logits = load("logits.npy");
    for &backend in Backend::ALL.iter().filter(|b| **b != Backend::Loops) {
        let kernel = Compiler::new().backend(backend).compile_text("topk.fold", TOPK, None);
        let results = kernel.expect("kernel").run(&[logits.view()]).expect("results");
        let (top, at) = (results[0].to_f64(), results[1].as_slice::<i64>().expect("positions"));
        for (row, logits) in logits.to_f64().chunks(30522).enumerate() {
            let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logits.iter().map(|x| (x - largest).exp()).sum();
            let mut order: Vec<usize> = (0..logits.len()).collect();
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
            for k in 0..5 {
                assert_eq!(at[row * 5 + k], order[k] as i64, "row {row}, place {k}, {backend}");
                let want = (logits[order[k]] - largest).exp() / total;
                let got = top[row * 5 + k];
                // Eight units in the last place.
                assert!((got - want).abs() <= 8.0 * want * 2f64.powi(-23), "row {row}, place {k}: {got} for {want}");
            }
        }
    }
}
