//! Calls of kernels: what is checked, what strides may be, what is shared.

use onefold::{Array, ArrayView, ArrayViewMut, Backend, CallError, Compiler, DType, Error, Form, Kernel};

const TEXT: &str = "func @p(%x: f32[b, v], %y: f32[v]) -> (f32[b, v], f32[b]) {
  %p = softmax[v](%x + %y)
  %m = max[v](%x)
  return %p, %m
}
";

fn kernel(backend: Backend) -> Kernel {
    Compiler::new().backend(backend).threads(2).compile_text("p.fold", TEXT, None).expect("kernel")
}

fn ramp(shape: &[usize]) -> Array {
    let values = (0..shape.iter().product()).map(|v| (v % 7) as f32 / 2.0).collect();
    Array::from_vec(shape, values).expect("array")
}

#[test]
fn signatures_say_what_is_taken() {
    let kernel = kernel(Backend::Cranelift);
    assert_eq!(kernel.signature().to_string(), "@p(x: f32[b, v], y: f32[v]) -> (p: f32[b, v], m: f32[b])");
    assert_eq!(kernel.axes(), ["b", "v"]);
    assert!(kernel.code_bytes() > 0);
    assert_eq!(kernel.result_shapes(&[vec![2, 3], vec![3]]).expect("shapes"), [vec![2, 3], vec![2]]);
}

#[test]
fn arrays_of_any_strides_are_read_and_written() {
    let (x, y) = (ramp(&[5, 37]), ramp(&[37]));
    for &backend in Backend::ALL {
        let kernel = kernel(backend);
        let want = kernel.run(&[x.view(), y.view()]).expect("results");
        let want: Vec<&[f32]> = want.iter().map(|a| a.as_slice::<f32>().expect("f32")).collect();

        // x stored by columns and upside down, y every third element backwards.
        let rows = x.as_slice::<f32>().expect("f32");
        let mut turned = vec![0.0f32; 5 * 37];
        for (b, row) in rows.chunks(37).enumerate() {
            for (v, value) in row.iter().enumerate() {
                turned[v * 5 + 4 - b] = *value;
            }
        }
        let mut sparse = vec![9.0f32; 3 * 37];
        for (v, value) in y.as_slice::<f32>().expect("f32").iter().enumerate() {
            sparse[3 * (36 - v)] = *value;
        }
        let x = ArrayView::strided(&turned, 4, &[5, 37], &[-1, 5]).expect("inside");
        let y = ArrayView::strided(&sparse, 108, &[37], &[-3]).expect("inside");

        // p by columns, m every second element; the gaps are left alone.
        let (mut p, mut m) = (vec![7.0f32; 5 * 37], vec![7.0f32; 10]);
        {
            let p = ArrayViewMut::strided(&mut p, 0, &[5, 37], &[1, 5]).expect("inside");
            let m = ArrayViewMut::strided(&mut m, 8, &[5], &[-2]).expect("inside");
            kernel.call(&[x, y], &mut [p, m]).expect("results");
        }
        for b in 0..5 {
            assert_eq!(m[8 - 2 * b], want[1][b], "{backend}");
            assert_eq!(m[9 - 2 * b], 7.0);
            for v in 0..37 {
                assert_eq!(p[v * 5 + b], want[0][b * 37 + v], "{backend}");
            }
        }
    }
}

#[test]
fn repeated_elements_and_shared_inputs() {
    let text = "func @f(%x: f32[i], %y: f32[i]) -> f32 {\n  return sum[i](%x * %y)\n}\n";
    let kernel = Compiler::new().compile_text("f.fold", text, None).expect("kernel");
    let x = ramp(&[100]);
    let square: f32 = x.as_slice::<f32>().expect("f32").iter().map(|v| v * v).sum();
    let got = kernel.run(&[x.view(), x.view()]).expect("result");
    assert!((got[0].to_f64()[0] as f32 - square).abs() < 1e-3);
    let one = [3.0f32];
    let repeated = || ArrayView::strided(&one, 0, &[100], &[0]).expect("inside");
    assert_eq!(kernel.run(&[repeated(), repeated()]).expect("result")[0].to_f64(), [900.0]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let kernel = kernel(Backend::Cranelift);
    let (x, y) = (ramp(&[2, 3]), ramp(&[3]));
    let said = |inputs: &[ArrayView<'_>]| kernel.run(inputs).expect_err("misfit").to_string();
    assert_eq!(said(&[x.view()]), "@p takes 2 inputs, but 1 were given");
    let double = Array::zeros(DType::F64, &[3]).expect("array");
    assert_eq!(said(&[x.view(), double.view()]), "y is f32, but the array given is f64");
    assert!(said(&[x.view(), ramp(&[4]).view()]).contains("axis `v` has size 3 in input `x` but 4 in input `y`"));
    assert!(said(&[y.view(), y.view()]).contains("2 dimensions"));

    let mut outputs = [Array::zeros(DType::F32, &[2, 3]), Array::zeros(DType::F32, &[3])].map(|a| a.expect("array"));
    let [p, m] = &mut outputs;
    let inputs = [x.view(), y.view()];
    let error = kernel.call(&inputs, &mut [p.view_mut(), m.view_mut()]).expect_err("misfit");
    assert_eq!(error.to_string(), "output m has shape [2] for these inputs, but the array given has [3]");
    let error = kernel.call(&inputs, &mut [p.view_mut()]).expect_err("misfit");
    assert_eq!(error.to_string(), "@p takes 2 outputs, but 1 were given");
    let mut narrow = Array::zeros(DType::F16, &[2]).expect("array");
    let error = kernel.call(&inputs, &mut [p.view_mut(), narrow.view_mut()]).expect_err("misfit");
    assert!(matches!(error, CallError::DType { .. }), "{error}");
}

#[test]
fn sizes_that_overflow_are_errors() {
    let text = "func @f(%x: f32[i], %y: f32[j]) -> f32[i, j] {\n  return %x * %y\n}\n";
    let one = [1.0f32];
    let huge = |n: usize| ArrayView::strided(&one, 0, &[n], &[0]).expect("inside");
    for &backend in Backend::ALL {
        let kernel = Compiler::new().backend(backend).compile_text("f.fold", text, None).expect("kernel");
        for n in [1 << 40, 1 << 50, 1 << 60] {
            assert!(kernel.run(&[huge(n), huge(n)]).is_err(), "{backend} {n}");
        }
    }
}

#[test]
fn functions_are_found_by_name() {
    let module = onefold::parse("two.fold", &format!("{TEXT}{}", TEXT.replace("@p", "@q"))).expect("text");
    let compiler = Compiler::new();
    assert!(
        matches!(compiler.compile(&module, "r"), Err(Error::NoFunction { available, .. }) if available == ["p", "q"])
    );
    assert!(matches!(onefold::choose(&module, None), Err(Error::WhichFunction { .. })));
    assert_eq!(compiler.compile(&module, "q").expect("kernel").signature().name, "q");
}

#[test]
fn kernels_are_cached_by_content() {
    let compiler = Compiler::new();
    let compile = |compiler: &Compiler, text: &str| compiler.compile_text("any.fold", text, None).expect("kernel");
    let first = compile(&compiler, TEXT);
    // Comments and spaces do not count; another form, another constant, another compiler do.
    let spaced = compile(&compiler.clone(), &format!("// a comment\n{}", TEXT.replace("  ", "    ")));
    assert!(first.is_same_code(&spaced));
    assert!(!first.is_same_code(&compile(&compiler.clone().form(Form::Plain), TEXT)));
    assert!(!first.is_same_code(&compile(&compiler, &TEXT.replace("%x + %y", "%x + 2 * %y"))));
    assert!(!first.is_same_code(&compile(&Compiler::new(), TEXT)));
}

#[test]
fn kernels_are_shared_by_threads() {
    fn assert_send_and_sync<T: Send + Sync>(_: &T) {}
    let kernel = kernel(Backend::Cranelift);
    assert_send_and_sync(&kernel);
    let (x, y) = (ramp(&[9, 100]), ramp(&[100]));
    let want = kernel.run(&[x.view(), y.view()]).expect("results");
    std::thread::scope(|scope| {
        for threads in 1..5 {
            let (kernel, x, y, want) = (kernel.with_threads(threads), &x, &y, &want);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(&kernel.run(&[x.view(), y.view()]).expect("results"), want);
                }
            });
        }
    });
}

#[test]
fn no_buffer_grows_with_queries_times_keys() {
    let text =
        "func @f(%q: f32[i, e], %k: f32[j, e], %v: f32[j, d]) -> f32[i, d] {\n  return attention(%q, %k, %v)\n}\n";
    let kernel = Compiler::new().compile_text("f.fold", text, None).expect("kernel");
    let bytes = |i: usize, j: usize| kernel.scratch_bytes(&[vec![i, 64], vec![j, 64], vec![j, 64]]).expect("shapes");
    assert_eq!(bytes(32_768, 32_768), bytes(16, 16));
    assert!(bytes(32_768, 32_768) < 1 << 20);
}
