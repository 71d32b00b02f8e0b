//! Single operations of loop IR, compiled, against the loop interpreter: types that formulas seldom lead to.
#![cfg(unix)]

use onefold_backend_tests::agree::{agree, Call};
use onefold_cranelift::Cranelift;
use onefold_loops::parse;

/// Both sides agree on a result, stored and converted, for whatever `%x` and `%y` of some type are loaded.
#[track_caller]
fn check(operands: &str, result: &str, expr: &str) {
    let elem = |ty: &str| ty.split('x').next().unwrap_or_default().to_owned();
    let lanes: i64 = operands.split('x').nth(1).map_or(1, |n| n.parse().expect("lanes"));
    let (from, to) = (elem(operands), elem(result));
    let text = format!(
        "kernel @op(n %n) {{\n  input x: {from}[n]\n  input y: {from}[n]\n  output r: {to}[n]\n  %zero: i64 = const 0\n  \
         for %i in %zero..%n step {lanes} {{\n    %x: {operands} = load x[%i]\n    %y: {operands} = load y[%i]\n    \
         %r: {result} = {expr}\n    store r[%i] = %r\n  }}\n}}\n"
    );
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let backend = Cranelift::host().expect("a backend");
    for seed in 0..4 {
        let call = Call { sizes: &[256], part: (0, 0), seed };
        agree(&backend, &kernel, call).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

#[test]
fn bytes_without_sign_compare_as_what_they_are() {
    for ty in ["u8", "u8x2", "u8x4", "u8x8", "u8x16"] {
        let bool = ty.replace("u8", "bool");
        for order in ["lt", "le", "gt", "ge", "eq", "ne"] {
            check(ty, &bool, &format!("compare {order} %x, %y"));
        }
        for op in ["min %x, %y", "max %x, %y", "abs %x"] {
            check(ty, ty, op);
        }
    }
}

#[test]
fn true_is_the_larger_truth_value() {
    for ty in ["bool", "boolx2", "boolx4", "boolx8", "boolx16"] {
        for order in ["lt", "le", "gt", "ge"] {
            check(ty, ty, &format!("compare {order} %x, %y"));
        }
    }
}

#[test]
fn bytes_shift_within_their_width() {
    for (elem, lanes) in [("i8", 1), ("i8", 4), ("i8", 16), ("u8", 1), ("u8", 2), ("u8", 16)] {
        let ty = if lanes == 1 { elem.to_owned() } else { format!("{elem}x{lanes}") };
        for op in ["shl", "shr", "ushr"] {
            check(&ty, &ty, &format!("const 3\n    %k: {ty} = const 3\n    %r: {ty} = {op} %x, %k"));
            check(&ty, &ty, &format!("const 7\n    %y: {ty} = and %y, %r\n    %r: {ty} = {op} %x, %y"));
        }
    }
}

#[test]
fn sixteen_bytes_multiply() {
    for ty in ["i8x16", "u8x16"] {
        check(ty, ty, "mul %x, %y");
    }
}

#[test]
fn bits_of_a_byte_are_held_as_its_type_says() {
    for lanes in ["", "x2", "x4", "x8", "x16"] {
        let [i8, u8, bool] = ["i8", "u8", "bool"].map(|elem| format!("{elem}{lanes}"));
        for (from, to) in [(&i8, &u8), (&u8, &i8), (&bool, &i8), (&bool, &u8)] {
            check(from, to, "bitcast %x");
            check(from, to, "convert %x");
        }
        check(&i8, &bool, "convert %x");
    }
}

#[test]
fn two_words_narrow_to_bytes() {
    for (from, byte) in [("i32x2", "i8x2"), ("i32x2", "u8x2"), ("i64x2", "i8x2")] {
        // What is held beside the byte shows in a wider number.
        check(from, "f32x2", &format!("const 0.0\n    %byte: {byte} = convert %x\n    %r: f32x2 = convert %byte"));
    }
    for (from, to) in [("i64x2", "boolx2"), ("i32x4", "boolx4")] {
        check(from, to, "convert %x");
    }
}

#[test]
fn half_floats_convert_in_any_number_of_lanes() {
    for half in ["f16", "bf16"] {
        for (lanes, others) in [("x2", &["f32", "f64", "i64", "u8", "bool"][..]), ("x8", &["i8", "u8", "bool"])] {
            let half = format!("{half}{lanes}");
            for other in others {
                check(&format!("{other}{lanes}"), &half, "convert %x");
            }
        }
        check(&format!("{half}x2"), "f32x2", "convert %x");
        check(&format!("{half}x8"), if half == "f16" { "bf16x8" } else { "f16x8" }, "convert %x");
    }
}

#[test]
fn constants_are_those_of_their_type() {
    for ty in ["f16", "f16x2", "f16x4", "f16x8", "bf16", "bf16x8"] {
        check(ty, ty, "const 0.1");
        check(ty, ty, "const -3");
        check(ty, ty, "iota");
    }
    for ty in ["i8", "u8", "i8x4", "u8x4", "u8x16"] {
        // A wider register shows what a byte's is held as.
        check(
            ty,
            "f32",
            &format!(
                "const 0.0\n    %k: {ty} = const 200\n    %s: {} = reduce max %k\n    %r: f32 = convert %s",
                &ty[..2]
            ),
        );
    }
}
