//! Elementwise operators, lowered, compiled and run, against what they mean: every dtype, the ends of their ranges.

use crate::check::{Check, Random, Way};
use crate::graph::Draft;
use crate::lowering::Test;
use onefold_ir::{BinaryOp, CmpOp, DType, UnaryOp};

/// All tests, by name.
pub const TESTS: &[(&str, Test)] = &[
    ("casts_between_every_pair_of_types", casts_between_every_pair_of_types),
    ("integer_arithmetic_wraps_and_never_traps", integer_arithmetic_wraps_and_never_traps),
    ("truth_values", truth_values),
    ("every_function", every_function),
    ("powers", powers),
];

fn casts_between_every_pair_of_types(ways: &[Way]) {
    let values =
        [0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 200.0, -200.0, 300.0, 7e4, -7e4, 3e9, -3e9, 1e19, 1e300, f64::NAN];
    let special = [f64::INFINITY, f64::NEG_INFINITY, 2147483520.0, -2147483648.0, 65504.0, 65520.0, 1e-7, -0.0];
    let all: Vec<f64> = values.into_iter().chain(special).collect();
    for from in DType::ALL {
        for to in DType::ALL {
            if [from, to].iter().any(|d| matches!(d, DType::I4 | DType::U4)) || from == to {
                continue;
            }
            let mut d = Draft::new("j");
            let x = d.input_of("x", from, "j");
            let y = d.cast(x, to);
            d.output("y", "j", y);
            let pick = |_: &str, at: usize, _: usize, _: &mut Random| {
                let v = all[at % all.len()];
                if from.is_float() {
                    v
                } else if from == DType::Bool {
                    f64::from(u8::from(v > 0.0))
                } else {
                    (v.rem_euclid(200.0) - 40.0).floor().max(if from == DType::U8 { 0.0 } else { -128.0 })
                }
            };
            Check { tolerance: 0.0, ..Check::new(&d.graph, ways) }.run(&[all.len() as i64 + 2], &pick);
        }
    }
}

fn integer_arithmetic_wraps_and_never_traps(ways: &[Way]) {
    use onefold_ir::BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
    for dtype in [DType::I8, DType::U8, DType::I32, DType::I64] {
        let mut d = Draft::new("j");
        let (x, y) = (d.input_of("x", dtype, "j"), d.input_of("y", dtype, "j"));
        for (n, op) in [Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr].into_iter().enumerate() {
            let z = d.binary(op, x, y);
            d.output(&format!("z{n}"), "j", z);
        }
        for (n, op) in [CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge, CmpOp::Eq, CmpOp::Ne].into_iter().enumerate() {
            let z = d.compare(op, x, y);
            d.output(&format!("c{n}"), "j", z);
        }
        if dtype != DType::U8 {
            for (n, op) in [UnaryOp::Neg, UnaryOp::Abs].into_iter().enumerate() {
                let z = d.unary(op, x);
                d.output(&format!("u{n}"), "j", z);
            }
        }
        let fill = |_: &str, at: usize, _: usize, r: &mut Random| match (dtype, at % 5) {
            (DType::U8, _) => (r.unit() * 256.0).floor(),
            (DType::I32, 0) => f64::from(i32::MIN),
            (DType::I8, 0) => -128.0,
            (_, 1) => -1.0,
            (_, 2) => 0.0,
            _ => (r.normal() * 40.0).floor().clamp(-128.0, 127.0),
        };
        Check::new(&d.graph, ways).run(&[203], &fill);
    }
}

fn truth_values(ways: &[Way]) {
    let mut d = Draft::new("i j");
    let (a, b) = (d.input_of("a", DType::Bool, "i j"), d.input_of("b", DType::Bool, "j"));
    for (n, op) in [BinaryOp::And, BinaryOp::Or, BinaryOp::Xor].into_iter().enumerate() {
        let z = d.binary(op, a, b);
        d.output(&format!("z{n}"), "i j", z);
    }
    for (n, op) in [CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge, CmpOp::Eq, CmpOp::Ne].into_iter().enumerate() {
        let z = d.compare(op, a, b);
        d.output(&format!("c{n}"), "i j", z);
    }
    let not = d.unary(UnaryOp::Not, a);
    let picked = d.select(not, b, a);
    d.output("picked", "i j", picked);
    let count = d.cast(picked, DType::F32);
    let count = d.sum("j", count);
    d.output("count", "i", count);
    for n in [1, 4, 7, 130] {
        Check::new(&d.graph, ways).run(&[2, n], &|_, _, _, r| f64::from(u8::from(r.unit() < 0.5)));
    }
}

fn every_function(ways: &[Way]) {
    use UnaryOp::{Abs, Erf, Exp, Exp2, Floor, Log, Log2, Neg, Round, Rsqrt, Sqrt, Tanh};
    for dtype in [DType::F32, DType::F64] {
        for op in [Abs, Erf, Exp, Exp2, Floor, Log, Log2, Neg, Round, Rsqrt, Sqrt, Tanh] {
            let mut d = Draft::new("j");
            let x = d.input_of("x", dtype, "j");
            let y = d.unary(op, x);
            d.output("y", "j", y);
            let small = |_: &str, at: usize, _: usize, r: &mut Random| {
                [0.0, -0.0, 0.5, 1.5, 2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
                    .get(at)
                    .copied()
                    .unwrap_or_else(|| r.normal() * 3.0)
            };
            Check { tolerance: 5e-7, ..Check::new(&d.graph, ways) }.run(&[51], &small);
        }
    }
}

fn powers(ways: &[Way]) {
    let bases = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 9.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let exponents = [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for dtype in [DType::F32, DType::F64] {
        let mut d = Draft::new("i=11 j=11");
        let (x, y) = (d.input_of("x", dtype, "i"), d.input_of("y", dtype, "j"));
        let z = d.binary(BinaryOp::Pow, x, y);
        d.output("z", "i j", z);
        Check::new(&d.graph, ways).run(&[], &|name, at, _, _| if name == "x" { bases[at] } else { exponents[at] });
    }
}
