//! Loop IR of real formulas: it verifies, its text reads back to the same text, and what is wrong in a text is said with its place.

use onefold_loops::lower::{lower, Schedule};
use onefold_loops::{parse, verify, Kernel, Stmt, Target};
use onefold_passes::{derive, Form, Options};
use std::path::Path;

fn kernels() -> Vec<Kernel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../passes/tests/formulas");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("formulas").map(|e| e.expect("a file").path()).collect();
    files.sort();
    let mut kernels = vec![];
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a formula");
        let module = onefold_ir::parse("formula", &text).expect("a module");
        for form in Form::ALL {
            let options = Options { form, ..Options::default() };
            let program = derive(&module, &module.funcs[0], &options).expect("a program").program;
            let schedule = Schedule::choose(&program, &Target::BASELINE);
            kernels.push(lower(&program, &Target::BASELINE, &schedule).expect("a kernel"));
        }
    }
    assert!(kernels.len() > 80);
    kernels
}

#[test]
fn kernels_verify() {
    for kernel in kernels() {
        verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    }
}

#[test]
fn printing_and_parsing_are_inverse() {
    for kernel in kernels() {
        let text = kernel.to_string();
        let again = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again.to_string(), text);
        verify(&again).unwrap_or_else(|e| panic!("{e}\n{again}"));
    }
}

#[test]
fn truncated_texts_are_errors() {
    let text = kernels()[0].to_string();
    // The last characters close the kernel; without them it is not whole.
    for end in (0..text.len() - 2).step_by(37) {
        let error = parse(&text[..end]).expect_err("part of a kernel");
        assert!(error.line >= 1 && error.column >= 1, "{error}");
    }
}

#[test]
fn errors_have_places() {
    let cases = [
        ("kernel @f() {\n  %a: f32 = const 1.0\n  %b: f32 = frob %a\n}", "3:12: expected an operation"),
        ("kernel @f() {\n  %a: f32 = load x[%i]\n}", "2:19: expected the name of a buffer"),
        ("kernel @f(n %n) {\n  input x: f32[m]\n}", "2:17: expected the name of a size"),
        ("kernel @f() {\n  %a: f99 = const 1.0\n}", "2:7: expected a type such as f32x4"),
        ("kernel @f() {\n} tail", "2:3: expected the end of the text"),
    ];
    for (text, message) in cases {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&message[..3]), "{error}, not {message}");
        assert!(error.ends_with(message.split_once("expected ").expect("a message").1), "{error}, not {message}");
    }
    let deep = format!("kernel @f(n %n) {{\n{}", "if %c {\n".repeat(10_000));
    assert!(parse(&deep).is_err());
}

#[test]
fn verification_finds_what_is_wrong() {
    let bad = [
        ("%c: bool = const 1\nif %c {\n%a: f32 = const 1.0\n}\n%b: f32 = neg %a", "is read before it is assigned"),
        ("%a: f32 = const 1.0\n%b: f64 = neg %a", "where f64 is needed"),
        ("%i: i64 = const 0\n%a: f32 = const 1.0\nstore x[%i] = %a", "is stored to"),
        ("%i: i64 = const 0\nfor %j in %i..%n step 1 {\n%a: f32 = const 1.0\n}\n%b: f32 = neg %a", "is read before"),
        ("%i: i64 = const 0\nfor %j in %i..%n step 0 {\n}", "step 0"),
        ("%a: f32 = const 1.0\n%b: f32x4 = splat %a\n%c: f32 = fma %a, %a, %b", "f32x4 where f32 is needed"),
        ("%a: f32 = const 1.0\n%c: bool = reduce any %a", "a mask exactly for any, all, count and first"),
        ("%a: bool = const 1\n%c: i64 = reduce count %a", "a vector for count and first"),
        ("%a: f16 = const 1.0\n%b: f16 = add %a, %a", "f16 where an element that the operation is defined for"),
        ("%a: bf16x4 = iota\n%b: boolx4 = compare lt %a, %a", "bf16x4 where an element"),
        ("%a: f16x4 = iota\n%b: f16 = reduce add %a", "f16x4 where an element"),
        ("%a: boolx4 = iota", "boolx4 where a number"),
        ("%n: i64 = const 1", "is assigned"),
    ];
    for (body, message) in bad {
        let text = format!("kernel @f(n %n) {{\ninput x: f32[n]\n{body}\n}}");
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let error = verify(&kernel).expect_err(body).to_string();
        assert!(error.contains(message), "{error}, not {message}");
    }
}

#[test]
fn stack_frames_are_bounded() {
    let text = |len: u64| format!("kernel @f() {{\nstack a: f32[{len}]\nstack b: f64[1]\n}}");
    let most = (onefold_loops::MAX_FRAME - 64) / 4;
    verify(&parse(&text(most)).expect("a kernel")).expect("a frame that fits");
    for len in [most + 1, 1 << 32, 1 << 62] {
        let error = verify(&parse(&text(len)).expect("a kernel")).expect_err("too much").to_string();
        assert!(error.contains("the stack buffers exceed"), "{error}");
    }
}

#[test]
fn lowering_is_deterministic() {
    let kernels = kernels();
    for (first, second) in kernels.iter().zip(self::kernels()) {
        assert!(first.to_string() == second.to_string(), "@{} comes out in two ways", first.name);
    }
    let is_comment = |s: &Stmt| matches!(s, Stmt::Comment(_));
    let names_passes =
        |k: &Kernel| k.body.iter().any(|s| matches!(s, Stmt::For { body, .. } if body.iter().any(is_comment)));
    assert!(kernels.iter().any(names_passes), "passes are named in the text");
}
