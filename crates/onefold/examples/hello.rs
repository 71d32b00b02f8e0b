//! A softmax and its best entries from a Rust program.
//!
//! `cargo run -p onefold --example hello`

use onefold::{Array, ArrayView, Compiler};

const FORMULA: &str = "
func @best(%x: f32[b, v]) -> (f32[b, k=3], i64[b, k=3]) {
  %p = exp(%x - max[v](%x)) / sum[v](exp(%x - max[v](%x)))
  %top, %at = topk[v -> k](%p)
  return %top, %at
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kernel = Compiler::new().compile_text("best.fold", FORMULA, None)?;
    println!("{}", kernel.signature());

    // Any slice will do; the kernel serves every size.
    let scores: Vec<f32> = (0..2 * 1000).map(|i| ((i * 7919) % 1000) as f32 / 100.0).collect();
    let results: Vec<Array> = kernel.run(&[ArrayView::new(&[2, 1000], &scores)?])?;
    for row in 0..2 {
        for k in 0..3 {
            let at = row * 3 + k;
            println!("row {row}: {:.6} at {}", results[0].to_f64()[at], results[1].to_i64()[at]);
        }
    }
    Ok(())
}
