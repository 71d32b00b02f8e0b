//! Kernels touch nothing outside their arrays: each array lies against a page that must not be touched, at its end and then at
//! its beginning.
#![cfg(unix)]

use onefold::{ArrayView, ArrayViewMut, Backend, Compiler, Form};
use onefold_backend_tests::guard::Guarded;
use std::sync::LazyLock;

/// Remembers kernels from shape to shape.
static COMPILER: LazyLock<Compiler> = LazyLock::new(Compiler::new);

/// Run on arrays of these shapes, each against a guard.
fn run(text: &str, form: Form, shapes: &[Vec<usize>]) {
    for backend in [Backend::Cranelift, Backend::Llvm].into_iter().filter(|b| Backend::ALL.contains(b)) {
        run_on(backend, text, form, shapes);
    }
}

fn run_on(backend: Backend, text: &str, form: Form, shapes: &[Vec<usize>]) {
    let compiler = COMPILER.clone().backend(backend).form(form).threads(2);
    let kernel = compiler.compile_text("guard.fold", text, None).expect("kernel");
    let results = kernel.result_shapes(shapes).expect("shapes");
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    for at_end in [true, false] {
        let mut inputs: Vec<Guarded> = shapes.iter().map(|s| Guarded::new(4 * count(s))).collect();
        let mut outputs: Vec<Guarded> = results.iter().map(|s| Guarded::new(4 * count(s))).collect();
        let views: Vec<ArrayView<'_>> = inputs
            .iter_mut()
            .zip(shapes)
            .map(|(memory, shape)| {
                let floats = memory.floats(count(shape), at_end);
                floats.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 13) as f32 / 4.0 - 1.0);
                ArrayView::new(shape, floats).expect("view")
            })
            .collect();
        let mut into: Vec<ArrayViewMut<'_>> = outputs
            .iter_mut()
            .zip(&results)
            .map(|(memory, shape)| ArrayViewMut::new(shape, memory.floats(count(shape), at_end)).expect("view"))
            .collect();
        kernel.call(&views, &mut into).expect("results");
    }
}

const SIZES: [usize; 14] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 33, 65, 513];

#[test]
fn rows_and_columns() {
    let text = "func @f(%x: f32[b, v]) -> (f32[b, v], f32[b], f32[v]) {
  %p = softmax[v](%x)
  %lse = logsumexp[v](%x)
  %columns = logsumexp[b](%x)
  return %p, %lse, %columns
}
";
    for form in Form::ALL {
        for n in SIZES {
            for rows in [1, 3, 6] {
                run(text, form, &[vec![rows, n]]);
            }
        }
    }
}

#[test]
fn queries_and_keys() {
    let text = "func @f(%q: f32[h, i, e], %k: f32[h, j, e], %v: f32[h, j, d]) -> f32[h, i, d] {
  return attention(%q, %k, %v, causal = true)
}
";
    for form in [Form::Fused, Form::Staged, Form::Plain] {
        for n in SIZES {
            for (e, d) in [(1, 1), (3, 5), (8, 8), (17, 33), (32, 64)] {
                run(text, form, &[vec![2, 3, e], vec![2, n, e], vec![2, n, d]]);
            }
        }
    }
}
