//! Fold programs lowered, compiled and run, against what they mean.

use crate::check::{call, inputs, normal, Check, Fill, Outcome, Random, Way};
use crate::graph::Draft;
use onefold_ir::{BinaryOp, CmpOp, DType, ReduceOp, UnaryOp};
use onefold_passes::term::TermId;
use onefold_passes::{derive_terms, Form, Options};

/// A test of one backend, in one or more ways.
pub type Test = fn(&[Way]);

/// All tests, by name.
pub const TESTS: &[(&str, Test)] = &[
    ("maps_are_vectorised_with_tails", maps_are_vectorised_with_tails),
    ("log_sum_exp_is_one_stream", log_sum_exp_is_one_stream),
    ("weighted_values_of_fixed_width", weighted_values_of_fixed_width),
    ("weighted_values_of_symbolic_width", weighted_values_of_symbolic_width),
    ("causal_rows_may_begin_with_masked_tiles", causal_rows_may_begin_with_masked_tiles),
    ("additive_masks_of_any_kind", additive_masks_of_any_kind),
    ("infinities_and_nan_anywhere", infinities_and_nan_anywhere),
    ("positions_of_maxima", positions_of_maxima),
    ("greatest_elements_of_every_type", greatest_elements_of_every_type),
    ("whole_rows_sorted", whole_rows_sorted),
    ("reductions_of_every_type", reductions_of_every_type),
    ("tables_are_read_at_checked_positions", tables_are_read_at_checked_positions),
    ("index_terms_in_every_role", index_terms_in_every_role),
    ("columns_and_transposed_operands", columns_and_transposed_operands),
    ("kept_states_used_by_later_loops", kept_states_used_by_later_loops),
    ("mean_and_variance", mean_and_variance),
    ("half_precision", half_precision),
    ("integer_products_are_exact", integer_products_are_exact),
    ("long_sums_stay_accurate", long_sums_stay_accurate),
    ("shifted_and_joined_operands", shifted_and_joined_operands),
];

fn maps_are_vectorised_with_tails(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let (x, y) = (d.input("x", "i j"), d.input("y", "j"));
    let s = d.add(x, y);
    let e = d.exp(s);
    let t = d.unary(UnaryOp::Tanh, e);
    d.output("out", "i j", t);
    for n in [0, 1, 3, 4, 5, 15, 16, 17, 33] {
        Check::new(&d.graph, ways).run(&[3, n], &normal);
    }
}

fn log_sum_exp_is_one_stream(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let x = d.input("x", "i j");
    let m = d.max("j", x);
    let shifted = d.sub(x, m);
    let e = d.exp(shifted);
    let total = d.sum("j", e);
    let log = d.unary(UnaryOp::Log, total);
    let out = d.add(m, log);
    d.output("out", "i", out);
    for n in [0, 1, 3, 4, 5, 511, 512, 513, 1500] {
        Check::new(&d.graph, ways).run(&[3, n], &normal);
    }
}

/// Scores, weights and outputs of one head: `out[i, d] = sum_j weight[i, j] v[j, d]`.
fn weighted_values(d: &mut Draft, mask: impl FnOnce(&mut Draft, TermId) -> TermId) {
    let (q, k, v) = (d.input("q", "b h i e"), d.input("k", "b h j e"), d.input("v", "b h j d"));
    let products = d.mul(q, k);
    let scores = d.sum("e", products);
    let size = d.float(0.25);
    let scaled = d.mul(scores, size);
    let scores = mask(d, scaled);
    let weights = d.weights("j", scores);
    let parts = d.mul(weights, v);
    let out = d.sum("j", parts);
    d.output("out", "b h i d", out);
}

fn weighted_values_of_fixed_width(ways: &[Way]) {
    for axes in ["b h i j e=16 d=16", "b h i j e=40 d=80", "b h i j e=1 d=1", "b h i j e=3 d=5"] {
        let mut d = Draft::new(axes);
        weighted_values(&mut d, |_, s| s);
        for n in [1, 5, 63, 64, 65, 200] {
            Check::new(&d.graph, ways).run(&[1, 2, 3, n], &normal);
        }
    }
}

fn weighted_values_of_symbolic_width(ways: &[Way]) {
    let mut d = Draft::new("b h i j e d");
    weighted_values(&mut d, |_, s| s);
    for (e, width) in [(1, 1), (4, 4), (5, 19), (33, 7)] {
        for n in [1, 64, 130] {
            Check::new(&d.graph, ways).run(&[2, 1, 2, n, e, width], &normal);
        }
    }
}

fn causal_rows_may_begin_with_masked_tiles(ways: &[Way]) {
    let mut d = Draft::new("b h i j e=8 d=8");
    weighted_values(&mut d, |d, s| {
        let (i, j) = (d.at("i"), d.at("j"));
        let (n, m) = (d.size("j", DType::I64), d.size("i", DType::I64));
        let offset = d.sub(n, m);
        let last = d.add(i, offset);
        let seen = d.compare(CmpOp::Ge, j, last);
        let masked = d.float(f64::NEG_INFINITY);
        d.select(seen, s, masked)
    });
    for (i, j) in [(1, 1), (3, 200), (130, 130), (5, 3)] {
        Check::new(&d.graph, ways).run(&[1, 2, i, j], &normal);
    }
}

fn additive_masks_of_any_kind(ways: &[Way]) {
    let mut d = Draft::new("b h i j e=8 d=8");
    weighted_values(&mut d, |d, s| {
        let mask = d.input("mask", "i j");
        d.add(s, mask)
    });
    let fills: [&Fill<'_>; 5] = [
        &|name, at, len, r| if name == "mask" && at < len / 2 { f64::NEG_INFINITY } else { r.normal() },
        &|name, _, _, r| if name == "mask" && r.unit() < 0.5 { f64::NEG_INFINITY } else { r.normal() },
        &|name, _, _, r| if name == "mask" { f64::from(f32::MIN) } else { r.normal() },
        &|name, _, _, r| if name == "mask" { f64::NEG_INFINITY } else { r.normal() },
        &|name, at, _, r| if name == "mask" && at == 70 { f64::NAN } else { r.normal() },
    ];
    for fill in fills {
        for j in [3, 64, 200] {
            Check::new(&d.graph, ways).run(&[1, 1, 3, j], fill);
        }
    }
}

fn infinities_and_nan_anywhere(ways: &[Way]) {
    let mut d = Draft::new("i j t=3");
    let x = d.input("x", "i j");
    let w = d.weights("j", x);
    let (top, at) = d.topk("j", "t", w);
    d.output("top", "i t", top);
    d.output("at", "i t", at);
    let lse = {
        let m = d.max("j", x);
        let shifted = d.sub(x, m);
        let e = d.exp(shifted);
        let total = d.sum("j", e);
        let log = d.unary(UnaryOp::Log, total);
        d.add(m, log)
    };
    d.output("lse", "i", lse);
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.4e38, -3.4e38] {
        for share in [0.002, 0.1, 0.9] {
            let fill =
                |_: &str, _: usize, _: usize, r: &mut Random| if r.unit() < share { special } else { r.normal() };
            for n in [3, 7, 600, 1100] {
                Check { forms: &[Form::Fused], ..Check::new(&d.graph, ways) }.run_ordered(&[4, n], &fill, "at");
            }
        }
    }
}

fn positions_of_maxima(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let x = d.input("x", "i j");
    let at = d.argmax("j", x);
    let best = d.max("j", x);
    d.output("at", "i", at);
    d.output("best", "i", best);
    let ties = |_: &str, _: usize, _: usize, r: &mut Random| (r.normal() * 4.0).round();
    let nan = |_: &str, _: usize, _: usize, r: &mut Random| if r.unit() < 0.01 { f64::NAN } else { r.normal() };
    let low = |_: &str, _: usize, _: usize, _: &mut Random| f64::NEG_INFINITY;
    let fills: [&Fill<'_>; 4] = [&normal, &ties, &nan, &low];
    for fill in fills {
        for n in [1, 3, 4, 5, 100, 2047, 2048, 2049, 5000] {
            Check::new(&d.graph, ways).run(&[3, n], fill);
        }
    }
}

fn greatest_elements_of_every_type(ways: &[Way]) {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U8, DType::I64] {
        let mut d = Draft::new("i j t=4");
        let x = d.input_of("x", dtype, "i j");
        let (top, at) = d.topk("j", "t", x);
        let best = d.argmax("j", x);
        d.output("top", "i t", top);
        d.output("at", "i t", at);
        d.output("best", "i", best);
        let fill = |_: &str, _: usize, _: usize, r: &mut Random| (r.unit() * 100.0).floor();
        for n in [4, 5, 63, 2100] {
            Check::new(&d.graph, ways).run(&[3, n], &fill);
        }
    }
}

fn whole_rows_sorted(ways: &[Way]) {
    let mut d = Draft::new("i j t=50");
    let x = d.input("x", "i j");
    let (top, at) = d.topk("j", "t", x);
    d.output("top", "i t", top);
    d.output("at", "i t", at);
    Check::new(&d.graph, ways).run(&[3, 50], &|_, _, _, r| (r.normal() * 3.0).round());
    let mut d = Draft::new("i j t=0");
    let x = d.input("x", "i j");
    let (top, at) = d.topk("j", "t", x);
    d.output("top", "i t", top);
    d.output("at", "i t", at);
    Check::new(&d.graph, ways).run(&[3, 50], &normal);
}

fn reductions_of_every_type(ways: &[Way]) {
    let float = |_: &str, _: usize, _: usize, r: &mut Random| r.normal();
    let int = |_: &str, _: usize, _: usize, r: &mut Random| (r.unit() * 5.0).floor();
    let bit = |_: &str, _: usize, _: usize, r: &mut Random| f64::from(u8::from(r.unit() < 0.02));
    for dtype in DType::ALL {
        if matches!(dtype, DType::I4 | DType::U4) {
            continue;
        }
        let mut d = Draft::new("i j");
        let x = d.input_of("x", dtype, "i j");
        for (name, op) in
            [("max", ReduceOp::Max), ("min", ReduceOp::Min), ("sum", ReduceOp::Sum), ("prod", ReduceOp::Prod)]
        {
            if dtype == DType::Bool && matches!(op, ReduceOp::Sum | ReduceOp::Prod) {
                continue;
            }
            let r = d.reduce(op, "j", x);
            d.output(name, "i", r);
        }
        let fill: &Fill<'_> = if dtype.is_float() {
            &float
        } else if dtype == DType::Bool {
            &bit
        } else {
            &int
        };
        for n in [0, 1, 3, 4, 5, 33, 600] {
            Check::new(&d.graph, ways).run(&[3, n], fill);
        }
    }
}

fn tables_are_read_at_checked_positions(ways: &[Way]) {
    let mut d = Draft::new("i n e");
    let ids = d.input_of("ids", DType::I64, "i");
    let table = d.declare("table", DType::F32, "n e");
    let e = d.at("e");
    let x = d.load(table, DType::F32, vec![ids, e], true);
    d.output("x", "i e", x);
    let total = d.sum("e", x);
    d.output("total", "i", total);
    let fill = |name: &str, _: usize, _: usize, r: &mut Random| {
        if name == "ids" {
            (r.unit() * 10.0).floor()
        } else {
            r.normal()
        }
    };
    Check::new(&d.graph, ways).run(&[7, 10, 9], &fill);
    Check::new(&d.graph, ways).fails(&[7, 4, 9], &fill, onefold_loops::status::GATHER_OUT_OF_RANGE);
    // Along the axis that is contiguous and vectorised, too.
    let mut d = Draft::new("i n");
    let ids = d.input_of("ids", DType::I32, "i");
    let ids = d.cast(ids, DType::I64);
    let table = d.declare("table", DType::F32, "n");
    let x = d.load(table, DType::F32, vec![ids], true);
    let y = d.exp(x);
    d.output("y", "i", y);
    let m = d.max("i", y);
    d.output("m", "", m);
    Check::new(&d.graph, ways).run(&[21, 10], &fill);
    Check::new(&d.graph, ways).fails(&[21, 4], &fill, onefold_loops::status::GATHER_OUT_OF_RANGE);
}

fn index_terms_in_every_role(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let x = d.input("x", "i j");
    let (i, j) = (d.at("i"), d.at("j"));
    let (fi, fj) = (d.index(d.axis("i"), DType::F32), d.index(d.axis("j"), DType::F32));
    let slope = d.sub(fj, fi);
    let eighth = d.float(0.125);
    let bias = d.mul(slope, eighth);
    let y = d.add(x, bias);
    d.output("bias", "i j", y);
    let distance = d.sub(i, j);
    let near = d.int(3);
    let band = d.compare(CmpOp::Lt, distance, near);
    let two = d.int(2);
    let twice = d.mul(j, two);
    let upper = d.compare(CmpOp::Ge, twice, i);
    let both = d.binary(BinaryOp::And, band, upper);
    let third = d.int(3);
    let rest = d.binary(BinaryOp::Rem, j, third);
    let zero = d.int(0);
    let every = d.compare(CmpOp::Eq, rest, zero);
    let kept = d.binary(BinaryOp::Or, both, every);
    let none = d.float(f64::NEG_INFINITY);
    let z = d.select(kept, x, none);
    d.output("z", "i j", z);
    let floats = d.cast(distance, DType::F32);
    d.output("floats", "i j", floats);
    let narrow = d.cast(j, DType::I8);
    d.output("narrow", "i j", narrow);
    d.output("position", "j", j);
    let most = d.max("j", z);
    d.output("most", "i", most);
    for n in [1, 4, 5, 300] {
        Check::new(&d.graph, ways).run(&[5, n], &normal);
    }
}

fn columns_and_transposed_operands(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let x = d.input("x", "i j");
    let down = d.sum("i", x);
    let most = d.max("i", x);
    d.output("down", "j", down);
    d.output("most", "j", most);
    let all = d.sum("i j", x);
    d.output("all", "", all);
    for (i, j) in [(1, 1), (5, 7), (100, 33), (3, 700)] {
        Check::new(&d.graph, ways).run(&[i, j], &normal);
    }
    let mut d = Draft::new("i j k");
    let (a, b) = (d.input("a", "i k"), d.input("b", "k j"));
    let p = d.mul(a, b);
    let c = d.sum("k", p);
    d.output("c", "i j", c);
    d.output("ct", "j i", c);
    for n in [1, 4, 9, 70] {
        Check::new(&d.graph, ways).run(&[5, 11, n], &normal);
    }
}

fn kept_states_used_by_later_loops(ways: &[Way]) {
    // out[i, d] = sum_e q[i, e] (sum_j k[j, e] v[j, d]) / sum_e q[i, e] (sum_j k[j, e])
    for axes in ["b i j e=8 d=12", "b i j e d", "b i j e=3 d=1"] {
        let mut d = Draft::new(axes);
        let (q, k, v) = (d.input("q", "b i e"), d.input("k", "b j e"), d.input("v", "b j d"));
        let kv = d.mul(k, v);
        let state = d.sum("j", kv);
        let total = d.sum("j", k);
        let above = d.mul(q, state);
        let above = d.sum("e", above);
        let below = d.mul(q, total);
        let below = d.sum("e", below);
        let out = d.div(above, below);
        d.output("out", "b i d", out);
        let positive = |_: &str, _: usize, _: usize, r: &mut Random| r.unit() + 0.1;
        for n in [1, 65, 200] {
            let sizes: Vec<i64> = if axes.contains('=') { vec![2, 5, n] } else { vec![2, 5, n, 6, 9] };
            Check::new(&d.graph, ways).run(&sizes, &positive);
        }
    }
}

fn mean_and_variance(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let x = d.input("x", "i j");
    let n = d.size("j", DType::F32);
    let total = d.sum("j", x);
    let mean = d.div(total, n);
    let centred = d.sub(x, mean);
    let square = d.mul(centred, centred);
    let squares = d.sum("j", square);
    let variance = d.div(squares, n);
    d.output("variance", "i", variance);
    let far = |_: &str, _: usize, _: usize, r: &mut Random| 1e4 + r.normal();
    for n in [1, 7, 2048, 2049, 10_000] {
        Check { tolerance: 1e-5, ..Check::new(&d.graph, ways) }.run(&[2, n], &far);
    }
}

fn half_precision(ways: &[Way]) {
    for dtype in [DType::F16, DType::BF16] {
        let mut d = Draft::new("h i j e=20 d=20");
        let (q, k, v) =
            (d.input_of("q", dtype, "h i e"), d.input_of("k", dtype, "h j e"), d.input_of("v", dtype, "h j d"));
        let (q, k, v) = (d.cast(q, DType::F32), d.cast(k, DType::F32), d.cast(v, DType::F32));
        let p = d.mul(q, k);
        let s = d.sum("e", p);
        let w = d.weights("j", s);
        let p = d.mul(w, v);
        let o = d.sum("j", p);
        let o = d.cast(o, dtype);
        d.output("o", "h i d", o);
        let tolerance = if dtype == DType::F16 { 1e-3 } else { 8e-3 };
        Check { tolerance, ..Check::new(&d.graph, ways) }.run(&[2, 3, 70], &normal);
    }
}

fn integer_products_are_exact(ways: &[Way]) {
    let mut d = Draft::new("i j e");
    let (q, k) = (d.input_of("q", DType::U8, "i e"), d.input_of("k", DType::I8, "j e"));
    let (q, k) = (d.cast(q, DType::I32), d.cast(k, DType::I32));
    let p = d.mul(q, k);
    let s = d.sum("e", p);
    let best = d.max("j", s);
    d.output("s", "i j", s);
    d.output("best", "i", best);
    let fill = |name: &str, _: usize, _: usize, r: &mut Random| {
        if name == "q" {
            (r.unit() * 256.0).floor()
        } else {
            (r.unit() * 256.0).floor() - 128.0
        }
    };
    for e in [1, 5, 64, 300] {
        Check::new(&d.graph, ways).run(&[3, 70, e], &fill);
    }
}

fn long_sums_stay_accurate(ways: &[Way]) {
    let n = 1 << 24;
    let check = |d: &Draft, sizes: &[i64], v: f64, want: f64| {
        let program = derive_terms(d.graph.clone(), &Options::default()).unwrap().program;
        let inputs = inputs(&program, sizes, &|name, _, _, _| if name == "one" { 1.0 } else { v });
        for way in ways {
            let kernel = way.kernel(&program);
            let Outcome::Done(got) = call(way, &program, &kernel, sizes, &inputs) else { panic!("failed") };
            for g in &got[0] {
                let error = (g - want) / want;
                assert!(error.abs() <= 1e-6, "{v}: {g} is not {want}, relative {error:e}");
            }
        }
    };
    let mut single = Draft::new("i");
    let x = single.input("x", "i");
    let s = single.sum("i", x);
    single.output("s", "", s);
    let mut exponentials = Draft::new("i");
    let x = exponentials.input("x", "i");
    let e = exponentials.exp(x);
    let s = exponentials.sum("i", e);
    exponentials.output("s", "", s);
    let mut rows = Draft::new("i d=5");
    let x = rows.input("x", "i d");
    let s = rows.sum("i", x);
    rows.output("s", "d", s);
    let mut products = Draft::new("i d=5");
    let (x, y) = (products.input("x", "i d"), products.input("one", "i"));
    let p = products.mul(x, y);
    let s = products.sum("i", p);
    products.output("s", "d", s);
    for v in [0.1, 1.0 / 3.0, 0.7, 1e-3, 12345.678] {
        let v = f64::from(v as f32);
        check(&single, &[n], v, v * n as f64);
        check(&rows, &[n / 16], v, v * (n / 16) as f64);
        check(&products, &[n / 16], v, v * (n / 16) as f64);
    }
    for v in [0.3f32, -0.7] {
        let e = f64::from(f64::from(v).exp() as f32);
        check(&exponentials, &[n], f64::from(v), e * n as f64);
    }
}

/// `x` at a position, clamped to the axis, and whether that is inside.
fn clamped(d: &mut Draft, at: TermId, axis: &str) -> (TermId, TermId) {
    let (zero, one) = (d.int(0), d.int(1));
    let size = d.size(axis, DType::I64);
    let last = d.sub(size, one);
    let (from, to) = (d.compare(CmpOp::Ge, at, zero), d.compare(CmpOp::Lt, at, size));
    let inside = d.binary(BinaryOp::And, from, to);
    let low = d.binary(BinaryOp::Max, at, zero);
    (inside, d.binary(BinaryOp::Min, low, last))
}

fn shifted_and_joined_operands(ways: &[Way]) {
    let mut d = Draft::new("i j n m");
    let (x, fill) = (d.declare("x", DType::F32, "i j"), d.float(0.5));
    let (i, j) = (d.at("i"), d.at("j"));
    for by in [-3i64, -1, 1, 7] {
        let distance = d.int(by);
        let at = d.sub(j, distance);
        let (inside, at) = clamped(&mut d, at, "j");
        let there = d.load(x, DType::F32, vec![i, at], false);
        let y = d.select(inside, there, fill);
        d.output(&format!("shifted{}", by + 10), "i j", y);
        let s = d.sum("j", y);
        d.output(&format!("sum{}", by + 10), "i", s);
    }
    let (a, b) = (d.declare("a", DType::F32, "n"), d.declare("b", DType::F32, "m"));
    let (in_a, at_a) = clamped(&mut d, j, "n");
    let n = d.size("n", DType::I64);
    let rest = d.sub(j, n);
    let (_, at_b) = clamped(&mut d, rest, "m");
    let (a, b) = (d.load(a, DType::F32, vec![at_a], false), d.load(b, DType::F32, vec![at_b], false));
    let joined = d.select(in_a, a, b);
    d.output("joined", "j", joined);
    for (n, m) in [(0, 1), (1, 0), (5, 40), (33, 6), (16, 16)] {
        Check::new(&d.graph, ways).run(&[3, n + m, n, m], &normal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onefold_loops::lower::{lower, Schedule};
    use onefold_loops::Target;

    #[test]
    fn deep_terms_need_no_deep_stack() {
        let mut d = Draft::new("j");
        let x = d.input("x", "j");
        let at = d.at("j");
        let three = d.int(3);
        let early = d.compare(CmpOp::Lt, at, three);
        let mut y = x;
        for n in 0..5000 {
            let c = d.float(if n % 2 == 0 { 0.5 } else { -0.5 });
            let z = d.add(y, c);
            y = if n % 100 == 0 { d.select(early, z, y) } else { z };
        }
        let total = d.sum("j", y);
        d.output("y", "j", y);
        d.output("total", "", total);
        let program =
            derive_terms(d.graph.clone(), &Options { form: Form::Plain, ..Options::default() }).unwrap().program;
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let lowered = small.spawn(move || {
            let kernel = lower(&program, &Target::BASELINE, &Schedule::choose(&program, &Target::BASELINE)).unwrap();
            onefold_loops::verify(&kernel).unwrap();
        });
        lowered.unwrap().join().unwrap();
    }
}
