//! Fold programs lowered, compiled and run, against what they mean.

mod lowering {
    pub mod check;
    pub mod graph;
}

use lowering::check::{normal, Check, Fill, Random};
use lowering::graph::Draft;
use onefold_ir::{CmpOp, DType, UnaryOp};
use onefold_passes::term::TermId;
use onefold_passes::Form;

#[test]
fn maps_are_vectorised_with_tails() {
    let mut d = Draft::new("i j");
    let (x, y) = (d.input("x", "i j"), d.input("y", "j"));
    let s = d.add(x, y);
    let e = d.exp(s);
    let t = d.unary(UnaryOp::Tanh, e);
    d.output("out", "i j", t);
    for n in [0, 1, 3, 4, 5, 15, 16, 17, 33] {
        Check::new(&d.graph).run(&[3, n], &normal);
    }
}

#[test]
fn log_sum_exp_is_one_stream() {
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
        Check::new(&d.graph).run(&[3, n], &normal);
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

#[test]
fn weighted_values_of_fixed_width() {
    for axes in ["b h i j e=16 d=16", "b h i j e=40 d=80", "b h i j e=1 d=1", "b h i j e=3 d=5"] {
        let mut d = Draft::new(axes);
        weighted_values(&mut d, |_, s| s);
        for n in [1, 5, 63, 64, 65, 200] {
            Check::new(&d.graph).run(&[1, 2, 3, n], &normal);
        }
    }
}

#[test]
fn weighted_values_of_symbolic_width() {
    let mut d = Draft::new("b h i j e d");
    weighted_values(&mut d, |_, s| s);
    for (e, width) in [(1, 1), (4, 4), (5, 19), (33, 7)] {
        for n in [1, 64, 130] {
            Check::new(&d.graph).run(&[2, 1, 2, n, e, width], &normal);
        }
    }
}

#[test]
fn causal_rows_may_begin_with_masked_tiles() {
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
        Check::new(&d.graph).run(&[1, 2, i, j], &normal);
    }
}

#[test]
fn additive_masks_of_any_kind() {
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
            Check::new(&d.graph).run(&[1, 1, 3, j], fill);
        }
    }
}

#[test]
fn infinities_and_nan_anywhere() {
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
                Check { forms: &[Form::Fused], ..Check::new(&d.graph) }.run_ordered(&[4, n], &fill, "at");
            }
        }
    }
}
