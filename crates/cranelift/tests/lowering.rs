//! Fold programs lowered, compiled and run, against what they mean.

mod lowering {
    pub mod check;
    pub mod graph;
}

use lowering::check::{normal, Check};
use lowering::graph::Draft;
use onefold_ir::UnaryOp;

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
