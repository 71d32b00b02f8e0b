//! The accuracy budgets, f32 against f64, at sizes and magnitudes that provoke cancellation.

use onefold::{evaluate, Array, Compiler, DType, Kernel, Module};

fn compile(text: &str) -> (Kernel, Module) {
    let module = onefold::parse("accuracy.fold", text).expect("text");
    let name = module.funcs[0].name.clone();
    (Compiler::new().compile(&module, &name).expect("kernel"), module)
}

/// Numbers between -scale and scale.
fn numbers(shape: &[usize], scale: f32, seed: u64) -> Array {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
    };
    Array::from_vec(shape, (0..shape.iter().product()).map(|_| next()).collect()).expect("array")
}

/// Outputs of a kernel and of the formula.
fn both(text: &str, inputs: &[Array]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let (kernel, module) = compile(text);
    let views: Vec<_> = inputs.iter().map(Array::view).collect();
    let got = kernel.run(&views).expect("results");
    let want = evaluate(&module, &module.funcs[0].name, &views).expect("results");
    got.iter().map(Array::to_f64).zip(want).collect()
}

/// Distance of f32 neighbours.
fn ulp(v: f64) -> f64 {
    let exponent = if v == 0.0 { -126 } else { (v.abs().log2().floor() as i32).max(-126) };
    2f64.powi(exponent - 23)
}

/// The largest error in units in the last place, of what is off by more than 1e-37.
fn ulps(pairs: &(Vec<f64>, Vec<f64>)) -> f64 {
    let error = |(got, want): (&f64, &f64)| {
        let error = (got - want).abs();
        if error <= 1e-37 {
            0.0
        } else {
            error / ulp(*want)
        }
    };
    pairs.0.iter().zip(&pairs.1).map(error).fold(0.0, f64::max)
}

/// Eight units in the last place, and what rounding `x - max` to f32 does to its exponential: half a unit of that difference,
/// relative. Below a difference of 8 that is nothing to speak of; at 80 it is 3.8e-6, whatever comes after.
#[test]
fn softmax_and_its_logarithm() {
    let text = "func @f(%x: f32[b, v]) -> (f32[b, v], f32[b, v]) {
  %p = softmax[v](%x)
  %l = log_softmax[v](%x)
  return %p, %l
}
";
    for scale in [1.0, 4.0, 10.0, 80.0] {
        let x = numbers(&[8, 3001], scale, 1);
        let outputs = both(text, &[x]);
        let (got, want) = &outputs[0];
        for at in 0..got.len() {
            let difference = outputs[1].1[at];
            let allowed = 8.0 * ulp(want[at]) + want[at] * ulp(difference) / 2.0 + 1e-37;
            let error = (got[at] - want[at]).abs();
            assert!(error <= allowed, "softmax at {scale}: {:.1} ULP of {}", error / ulp(want[at]), want[at]);
        }
        assert!(ulps(&outputs[1]) <= 8.0, "log-softmax at {scale}: {} ULP", ulps(&outputs[1]));
    }
}

#[test]
fn logistic_and_hyperbolic() {
    let text = "func @f(%x: f32[v]) -> (f32[v], f32[v]) {
  %s = sigmoid(%x)
  %t = tanh(%x)
  return %s, %t
}
";
    for scale in [1e-3, 1.0, 10.0, 100.0] {
        for (at, pair) in both(text, &[numbers(&[100_000], scale, 2)]).iter().enumerate() {
            assert!(ulps(pair) <= 8.0, "output {at} at {scale}: {} ULP", ulps(pair));
        }
    }
}

#[test]
fn log_sum_exp() {
    let text = "func @f(%x: f32[b, v]) -> (f32[b], f32[b]) {
  %l = logsumexp[v](%x)
  %m = max[v](%x)
  return %l, %m
}
";
    for (rows, length) in [(50, 7), (20, 1000), (4, 100_001)] {
        for scale in [1e-3, 1.0, 30.0, 1e4] {
            let outputs = both(text, &[numbers(&[rows, length], scale, 3)]);
            for row in 0..rows {
                // Four units of the maximum; over many elements the result is larger than that, and cannot be closer than it is
                // itself stored.
                let allowed = (4.0 * ulp(outputs[1].1[row].abs().max(1.0))).max(ulp(outputs[0].1[row]));
                let error = (outputs[0].0[row] - outputs[0].1[row]).abs();
                assert!(error <= allowed, "{length} elements of {scale}: {error:e}, allowed {allowed:e}");
            }
        }
    }
}

#[test]
fn sixteen_million_equal_terms() {
    let (kernel, _) = compile("func @f(%x: f32[v]) -> (f32, f32) {\n  return sum[v](%x), logsumexp[v](%x)\n}\n");
    let n = 1 << 24;
    let x = Array::from_vec(&[n], vec![0.1f32; n]).expect("array");
    let got = kernel.run(&[x.view()]).expect("results");
    let want = f64::from(0.1f32) * n as f64;
    let relative = (got[0].to_f64()[0] - want).abs() / want;
    assert!(relative <= 1e-6, "sum: {relative:e}");
    let want = f64::from(0.1f32) + (n as f64).ln();
    assert!((got[1].to_f64()[0] - want).abs() <= 4.0 * ulp(want));
}

#[test]
fn normalisation_far_from_zero() {
    let text = "func @f(%x: f32[b, d]) -> (f32[b, d], f32[b]) {
  %c = %x - sum[d](%x) / size(d)
  %v = sum[d](%c * %c) / size(d)
  return %c / sqrt(%v), %v
}
";
    let x = numbers(&[16, 4096], 1.0, 4).to_f64();
    let far: Vec<f64> = x.iter().map(|v| v + 1e4).collect();
    let outputs = both(text, &[Array::from_f64(DType::F32, &[16, 4096], &far).expect("array")]);
    for (got, want) in outputs[1].0.iter().zip(&outputs[1].1) {
        assert!((got - want).abs() <= 1e-5 * want, "variance {got} for {want}");
    }
    // The normalised values: the mean is an f32 number near 1e4, known to a unit in its last place, and that is 1.7e-3 of a
    // deviation. The formula says so; only a mean of two words would do better.
    let deviation = outputs[1].1[0].sqrt();
    for (got, want) in outputs[0].0.iter().zip(&outputs[0].1) {
        assert!((got - want).abs() <= ulp(1e4) / deviation + 1e-5, "{got} for {want}");
    }
}

#[test]
fn attention_within_its_budget() {
    let formula = "%s = sum[e](%q * %k) / sqrt(size(e))\n  return sum[j](softmax[j](%s) * %v)";
    for (dtype, bound) in [(DType::F32, 2e-6), (DType::BF16, 2f64.powi(-7)), (DType::F16, 2f64.powi(-10))] {
        let t = dtype.name();
        let text = format!("func @f(%q: {t}[i, e], %k: {t}[j, e], %v: {t}[j, d]) -> {t}[i, d] {{\n  {formula}\n}}\n");
        for (keys, scale) in [(1, 1.0), (77, 1.0), (1000, 2.0), (5000, 0.5)] {
            let cast = |a: Array| Array::from_f64(dtype, a.shape(), &a.to_f64()).expect("array");
            let q = cast(numbers(&[9, 64], scale, 5));
            let k = cast(numbers(&[keys, 64], scale, 6));
            let v = cast(numbers(&[keys, 40], 1.0, 7));
            let magnitudes: Vec<f64> = v.to_f64().iter().map(|x| x.abs()).collect();
            let m = Array::from_f64(dtype, v.shape(), &magnitudes).expect("array");
            // In f64 throughout, so that the reference is not rounded on its way.
            let wide = |a: &Array| Array::from_f64(DType::F64, a.shape(), &a.to_f64()).expect("array");
            let exact = both(&text.replace(t, "f64"), &[wide(&q), wide(&k), wide(&v)]);
            let allowed = both(&text.replace(t, "f64"), &[wide(&q), wide(&k), wide(&m)]);
            let got = both(&text, &[q, k, v]);
            for at in 0..got[0].0.len() {
                let error = (got[0].0[at] - exact[0].1[at]).abs();
                let allowed = bound * allowed[0].1[at] + 1e-37;
                assert!(error <= allowed, "{t}, {keys} keys of {scale}: {error:e}, allowed {allowed:e}");
            }
        }
    }
}
