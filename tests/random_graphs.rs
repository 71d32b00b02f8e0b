//! Random functions through every stage: tensor IR, fold program, loop IR, native code. A failure names the stage at which
//! results part and prints the function, shrunk by proptest.

use onefold::{Array, Form};
use onefold_tests::{bisect, Bound};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::fmt::Write;

/// The same graphs everywhere; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look further.
const SEED: u64 = 20;

/// One step: what it does, to which values, along which axes.
#[derive(Clone, Copy, Debug)]
struct Gene {
    op: u8,
    a: u8,
    b: u8,
    axes: u8,
}

/// Inputs: name and axes.
const INPUTS: [(&str, &str); 5] = [("x", "ij"), ("y", "j"), ("z", "ik"), ("w", "jk"), ("u", "i")];

/// A value under construction: its axes in order.
#[derive(Clone, Debug)]
struct Value {
    name: String,
    axes: String,
}

fn union(a: &str, b: &str) -> String {
    "ijk".chars().filter(|c| a.contains(*c) || b.contains(*c)).collect()
}

fn rest_of(axes: &str, axis: char) -> String {
    axes.replace(axis, "")
}

/// Axes of a value chosen by bits, at least one.
fn some_axes(axes: &str, bits: u8) -> Vec<char> {
    let chosen: Vec<char> = axes.chars().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, c)| c).collect();
    if chosen.is_empty() {
        axes.chars().take(1).collect()
    } else {
        chosen
    }
}

/// The text of a function. Values stay moderate, and branches depend on inputs and positions only, so that rounding can
/// neither blow up nor flip one.
fn text(genes: &[Gene], outputs: usize) -> String {
    let mut values: Vec<Value> = INPUTS.iter().map(|(n, a)| Value { name: (*n).into(), axes: (*a).into() }).collect();
    let mut lines: Vec<String> = vec![];
    for gene in genes {
        let a = values[usize::from(gene.a) % values.len()].clone();
        let b = values[usize::from(gene.b) % values.len()].clone();
        let both = union(&a.axes, &b.axes);
        let (va, vb) = (format!("%{}", a.name), format!("%{}", b.name));
        let reduced = some_axes(&a.axes, gene.axes);
        let list: Vec<String> = reduced.iter().map(char::to_string).collect();
        let list = list.join(", ");
        let rest: String = a.axes.chars().filter(|c| !reduced.contains(c)).collect();
        let one = reduced.first().copied();
        let scalar = a.axes.is_empty();
        let input = INPUTS[usize::from(gene.b) % INPUTS.len()];
        let (expression, axes) = match gene.op % 24 {
            0 => (format!("{va} + {vb}"), both),
            1 => (format!("{va} - {vb}"), both),
            2 => (format!("tanh({va}) * {vb}"), both),
            3 => (format!("{va} / (1 + abs({vb}))"), both),
            4 => (format!("max({va}, {vb})"), both),
            5 => (format!("min({va}, 0.5 * {vb})"), both),
            6 => (format!("exp(min({va}, 2))"), a.axes),
            7 => (format!("log(1 + abs({va}))"), a.axes),
            8 => (format!("sqrt(abs({va}))"), a.axes),
            9 => (format!("select(%{} > 0, {va}, {vb})", input.0), union(&both, input.1)),
            10 => (format!("sigmoid({va})"), a.axes),
            11 if !scalar => (format!("sum[{list}](tanh({va}))"), rest),
            12 if !scalar => (format!("max[{list}]({va})"), rest),
            13 if !scalar => (format!("min[{list}]({va})"), rest),
            14 | 15 if !scalar => {
                let axis = one.unwrap_or('i');
                (format!("softmax[{axis}]({va})"), a.axes)
            }
            16 if !scalar => {
                let axis = one.unwrap_or('i');
                (format!("logsumexp[{axis}]({va})"), a.axes.replace(axis, ""))
            }
            17 if a.axes.contains('j') => (format!("sum[j](softmax[j]({va}) * tanh({vb}))"), both.replace('j', "")),
            18 if !scalar => (format!("sum[{list}]({va} * {va}) / 16"), rest),
            19 if !scalar => {
                let axis = one.unwrap_or('i');
                (format!("select(index({axis}) >= 2, {va}, 0.25 * {va})"), a.axes)
            }
            20 if !scalar => {
                let (axis, by) = (one.unwrap_or('i'), i32::from(gene.b % 5) - 2);
                (format!("shift[{axis}, {by}]({va}, 0.5)"), a.axes)
            }
            21 if !scalar => {
                let axis = one.unwrap_or('i');
                let masked = format!("select(index({axis}) > 1, {va}, -inf)");
                (format!("max(logsumexp[{axis}]({masked}), -4)"), a.axes.replace(axis, ""))
            }
            22 => {
                let axis = some_axes(input.1, gene.axes)[0];
                (format!("cast<f32>(argmax[{axis}](%{})) / 8", input.0), input.1.replace(axis, ""))
            }
            23 if !scalar => {
                let axis = one.unwrap_or('i');
                (
                    format!("sum[{axis}]({va} * {va}) - sum[{axis}]({va}) * sum[{axis}]({va}) / size({axis})"),
                    rest_of(&a.axes, axis),
                )
            }
            _ => (format!("0.5 * {va} - 1"), a.axes),
        };
        let name = format!("v{}", values.len());
        lines.push(format!("  %{name} = {expression}\n"));
        values.push(Value { name, axes });
    }
    let results: Vec<&Value> = values.iter().rev().take(outputs.max(1)).collect();
    let shape = |axes: &str| axes.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(", ");
    let typed = |axes: &str| if axes.is_empty() { "f32".to_owned() } else { format!("f32[{}]", shape(axes)) };
    let inputs: Vec<String> = INPUTS.iter().map(|(n, a)| format!("%{n}: {}", typed(a))).collect();
    let types: Vec<String> = results.iter().map(|v| typed(&v.axes)).collect();
    let mut body = used(&lines, &results.iter().map(|v| format!("%{}", v.name)).collect::<Vec<_>>());
    // A parameter cannot be returned twice under one name: results are named afresh.
    let mut names = vec![];
    for (at, value) in results.iter().enumerate() {
        let _ = writeln!(body, "  %r{at} = %{} + 0", value.name);
        names.push(format!("%r{at}"));
    }
    let (inputs, types, names) = (inputs.join(", "), types.join(", "), names.join(", "));
    format!("func @random({inputs}) -> ({types}) {{\n{body}  return {names}\n}}\n")
}

/// The lines that these names need, in order.
fn used(lines: &[String], names: &[String]) -> String {
    let word = |c: char| !(c.is_alphanumeric() || c == '%');
    let mut needed: Vec<String> = names.to_vec();
    let mut kept = vec![];
    for line in lines.iter().rev() {
        let mut words = line.split(word).filter(|w| w.starts_with('%'));
        if words.next().is_some_and(|name| needed.iter().any(|n| n == name)) {
            needed.extend(words.map(str::to_owned));
            kept.push(line.as_str());
        }
    }
    kept.reverse();
    kept.concat()
}

fn genes() -> impl Strategy<Value = Vec<Gene>> {
    let gene = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>());
    prop::collection::vec(gene.prop_map(|(op, a, b, axes)| Gene { op, a, b, axes }), 1..9)
}

/// Uniform in -2 to 2.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 * 4.0 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

fn arrays(sizes: [usize; 3]) -> Vec<Array> {
    let size = |c: char| sizes["ijk".find(c).unwrap_or(0)];
    let array = |(seed, (_, axes)): (usize, &(&str, &str))| {
        let shape: Vec<usize> = axes.chars().map(size).collect();
        Array::from_vec(&shape, numbers(shape.iter().product(), seed as u64 + 1)).expect("array")
    };
    INPUTS.iter().enumerate().map(array).collect()
}

fn config() -> ProptestConfig {
    let asked = |name: &str| std::env::var_os(name).is_some();
    let mut config = ProptestConfig { max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() };
    if !asked("PROPTEST_CASES") {
        config.cases = 96;
    }
    if !asked("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_stage_agrees(
        genes in genes(),
        outputs in 1..4usize,
        sizes in prop::array::uniform3(prop::sample::select(vec![1usize, 2, 3, 4, 5, 8, 9, 17, 33, 70])),
    ) {
        let text = text(&genes, outputs);
        let module = match onefold::parse("random.fold", &text) {
            Ok(module) => module,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        let inputs = arrays(sizes);
        for form in [Form::Fused, Form::Staged, Form::Plain] {
            let verdict = bisect(&module, "random", &inputs, form, Bound(1e-4));
            prop_assert!(verdict.is_ok(), "form {}, sizes {sizes:?}: {}\n{text}", form.name(), verdict.unwrap_err());
        }
    }
}
