//! Our own regressions: kernels of the usual formulas on arrays in and out of cache, and how long making them takes.
//!
//! `cargo bench -p onefold --features llvm`. Throughput is counted in elements of the input that is streamed. One thread: what is
//! compared is code. Times mean something beside those of another commit on the same machine, nowhere else.

use criterion::{BenchmarkId, Criterion, Throughput};
use onefold::{Array, Backend, Compiler};

/// A name, a formula, and the shapes of its inputs.
type Case = (&'static str, &'static str, &'static [&'static [usize]]);

const SOFTMAX: &str = "func @f(%x: f32[b, i]) -> f32[b, i] {\n  return softmax[i](%x)\n}\n";
const ATTENTION: &str = "func @f(%q: f32[h, i, e], %k: f32[h, j, e], %v: f32[h, j, d]) -> f32[h, i, d] {\n  \
    return attention(%q, %k, %v)\n}\n";

const CASES: [Case; 7] = [
    ("softmax 65536x64", SOFTMAX, &[&[65_536, 64]]),
    ("softmax 4096x1024", SOFTMAX, &[&[4096, 1024]]),
    ("softmax 1x4194304", SOFTMAX, &[&[1, 4_194_304]]),
    (
        "log-sum-exp 400x25000",
        "func @f(%x: f32[b, i]) -> f32[b] {\n  %m = max[i](%x)\n  return %m + log(sum[i](exp(%x - %m)))\n}\n",
        &[&[400, 25_000]],
    ),
    (
        "softmax, topk 5 of 400x25000",
        "func @f(%x: f32[b, i]) -> (f32[b, k=5], i64[b, k=5]) {\n  %y, %at = topk[i -> k](softmax[i](%x))\n  \
         return %y, %at\n}\n",
        &[&[400, 25_000]],
    ),
    (
        "layer norm 4096x1024",
        "func @f(%x: f32[b, i]) -> f32[b, i] {\n  %c = %x - mean[i](%x)\n  return %c / sqrt(mean[i](%c * %c) + 1e-5)\n}\n",
        &[&[4096, 1024]],
    ),
    ("attention 4x256x256x64", ATTENTION, &[&[4, 256, 64], &[4, 256, 64], &[4, 256, 64]]),
];

/// Backends that make native code.
fn native() -> impl Iterator<Item = Backend> {
    Backend::ALL.iter().copied().filter(|b| !matches!(b, Backend::Loops | Backend::Interp))
}

/// Numbers between -8 and 8 in no order.
fn numbers(shape: &[usize]) -> Array {
    let value = |n: usize| ((n as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 1_048_576.0 - 8.0;
    Array::from_vec(shape, (0..shape.iter().product()).map(value).collect()).expect("an array")
}

fn kernels(c: &mut Criterion) {
    for (name, text, shapes) in CASES {
        let mut group = c.benchmark_group(name);
        let inputs: Vec<Array> = shapes.iter().map(|s| numbers(s)).collect();
        let views: Vec<_> = inputs.iter().map(Array::view).collect();
        group.throughput(Throughput::Elements(shapes[shapes.len() - 1].iter().product::<usize>() as u64));
        for backend in native() {
            let kernel =
                Compiler::new().backend(backend).threads(1).compile_text("f.fold", text, None).expect("a kernel");
            let mut outputs = kernel.run(&views).expect("results");
            group.bench_function(BenchmarkId::from_parameter(backend), |b| {
                b.iter(|| {
                    let mut into: Vec<_> = outputs.iter_mut().map(Array::view_mut).collect();
                    kernel.call(&views, &mut into).expect("results");
                });
            });
        }
        group.finish();
    }
}

fn compilation(c: &mut Criterion) {
    for (name, text) in [("compile softmax", SOFTMAX), ("compile attention", ATTENTION)] {
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        for backend in native() {
            group.bench_function(BenchmarkId::from_parameter(backend), |b| {
                // A new compiler: an old one remembers.
                b.iter(|| Compiler::new().backend(backend).compile_text("f.fold", text, None).expect("a kernel"));
            });
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    kernels(&mut criterion);
    compilation(&mut criterion);
    criterion.final_summary();
}
