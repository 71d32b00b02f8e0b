//! Any number of threads gives the same bits, whatever the outermost loops of a program are.

use onefold::inspect::{stage, Format, Stage};
use onefold::{Array, Backend, Compiler};

/// Formulas whose values have to be in memory before others can be computed, with the number of their kernels.
const FORMULAS: [(&str, usize); 7] = [
    ("func @row(%x: f32[i]) -> f32[i] {\n  return softmax[i](%x)\n}\n", 2),
    ("func @norm(%x: f32[i]) -> (f32[i], f32) {\n  %m = mean[i](%x)\n  %s = sum[i]((%x - %m) * (%x - %m))\n  return (%x - %m) / sqrt(%s + 1), %m\n}\n", 2),
    ("func @place(%x: f32[i]) -> (f32[i], i64) {\n  %at = argmax[i](%x)\n  return select(index(i) == %at, 0.0, %x), %at\n}\n", 2),
    ("func @running(%x: f32[b, i]) -> f32[b, i] {\n  %c = cumsum[i](%x)\n  return %c / sum[i](abs(%c))\n}\n", 2),
    ("func @order(%x: f32[b, i]) -> (f32[b, i], i64[b, i]) {\n  %y, %at = sort[i](%x)\n  return %y, %at\n}\n", 2),
    ("func @column(%x: f32[b, i]) -> (f32[b, i], f32[i]) {\n  %s = sum[b](%x * %x)\n  return %x / sqrt(%s + 1), %s\n}\n", 1),
    ("func @rows(%x: f32[b, i]) -> f32[b, i] {\n  return softmax[i](%x)\n}\n", 1),
];

/// Numbers of all sizes, as many negative as positive.
fn numbers(shape: &[usize]) -> Array {
    let value = |n: usize| {
        let hash = (n as u32).wrapping_mul(2_654_435_761) >> 8;
        (hash as f32 / 16_777_216.0 - 0.5) * 20.0
    };
    Array::from_vec(shape, (0..shape.iter().product()).map(value).collect()).expect("an array")
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for &backend in Backend::ALL {
        for (text, _) in FORMULAS {
            let kernel =
                Compiler::new().backend(backend).threads(1).compile_text("f.fold", text, None).expect("kernel");
            let rank = if kernel.axes().len() == 1 { 1 } else { 2 };
            for len in [1, 2, 7, 64, 1000, 3000] {
                let shape = if rank == 1 { vec![len] } else { vec![5, len] };
                let x = numbers(&shape);
                let want = kernel.run(&[x.view()]).expect("results");
                for threads in [2, 3, 8] {
                    let found = kernel.with_threads(threads).run(&[x.view()]).expect("results");
                    let same = want.iter().zip(&found).all(|(a, b)| a.bytes() == b.bytes());
                    assert!(same, "{backend}, {threads} threads, {len} elements:\n{text}");
                }
            }
        }
    }
}

#[test]
fn loops_that_stream_again_are_kernels_of_their_own() {
    for (text, count) in FORMULAS {
        let module = onefold::parse("f.fold", text).expect("a module");
        let name = &module.funcs[0].name;
        let loops = stage(&Compiler::new(), &module, name, Stage::Loop, Format::Text).expect("loops");
        assert_eq!(loops.matches("kernel @").count(), count, "{loops}");
    }
}

#[test]
fn what_phases_share_is_counted_as_memory() {
    let bytes = |text: &str, shape: &[usize]| {
        let kernel = Compiler::new().compile_text("f.fold", text, None).expect("kernel");
        kernel.scratch_bytes(&[shape.to_vec()]).expect("shapes")
    };
    // Maximum and sum of one row, whatever its length; all of the running sums.
    assert_eq!(bytes(FORMULAS[0].0, &[1 << 20]), bytes(FORMULAS[0].0, &[16]));
    assert!(bytes(FORMULAS[3].0, &[3, 1000]) >= 3 * 1000 * 4);
}
