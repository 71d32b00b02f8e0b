//! Modules made by hand and by the builder: what the verifier refuses, what sizes a call may have.

use onefold_ir::interp::{run, EvalError, Tensor};
use onefold_ir::*;

fn good() -> Module {
    let text = "func @f(%x: f32[i, j]) -> (f32[i], i64[i, t=2]) {\n  %m = max[j](%x)\n  %v, %at = topk[j -> t](%x - %m)\n  return sum[t](%v), %at\n}";
    parse("good", text).unwrap_or_else(|e| panic!("{e}"))
}

/// The first complaint about the module after a change.
fn complaint(change: impl FnOnce(&mut Module)) -> String {
    let mut module = good();
    verify(&module).expect("well formed before");
    change(&mut module);
    verify(&module).expect_err("the change breaks it").to_string().lines().next().unwrap_or_default().to_string()
}

fn node<'m>(module: &'m mut Module, name: &str) -> &'m mut Node {
    let found = module.funcs[0].nodes.iter_mut().find(|n| n.name.as_deref() == Some(name));
    found.expect("named node")
}

#[test]
fn the_verifier_refuses_what_is_not_well_formed() {
    type Change = Box<dyn FnOnce(&mut Module)>;
    let cases: Vec<(&str, Change)> = vec![
        ("@f: %m: `max` gives f32[i], but the node says f64[i]", Box::new(|m| node(m, "m").ty.dtype = DType::F64)),
        ("@f: %m: operand 7 is not defined before its use", Box::new(|m| node(m, "m").args = vec![NodeId(7)])),
        ("@f: %m: `max` takes 1 operands, not 0", Box::new(|m| node(m, "m").args.clear())),
        (
            "@f: %m: `max` needs at least one axis",
            Box::new(|m| node(m, "m").op = Op::Reduce(ReduceOp::Max, AxisSet::EMPTY)),
        ),
        (
            "@f: %m: there is no axis #9",
            Box::new(|m| node(m, "m").op = Op::Reduce(ReduceOp::Max, AxisSet::one(AxisId(9)))),
        ),
        ("@f: %x: the name `x` is given twice", Box::new(|m| node(m, "m").name = Some("x".into()))),
        ("@f: %a b: `a b` is not a name", Box::new(|m| node(m, "m").name = Some("a b".into()))),
        (
            "@f: %v: the values and the indices of `topk` must stand next to each other",
            Box::new(|m| node(m, "at").args = vec![NodeId(0)]),
        ),
        (
            "@f: axis `j` is declared twice with one extent",
            Box::new(|m| m.funcs[0].axes.push(AxisDecl { name: "j".into(), extent: Extent::Symbolic })),
        ),
        (
            "@f: axis `u` is symbolic, but no parameter has it",
            Box::new(|m| m.funcs[0].axes.push(AxisDecl { name: "u".into(), extent: Extent::Symbolic })),
        ),
        (
            "@f: the extent of axis `u` must refer to earlier axes that are fixed or symbolic",
            Box::new(|m| {
                let extent = Extent::Derived(SizeExpr::Axis(AxisId(3)));
                m.funcs[0].axes.push(AxisDecl { name: "u".into(), extent });
            }),
        ),
        (
            "@f: parameter `%x` must have exactly one node",
            Box::new(|m| m.funcs[0].nodes[0].op = Op::Literal(Literal::Float(0.0))),
        ),
        ("@f: the function has no results", Box::new(|m| m.funcs[0].results.clear())),
        ("@f: result `out0` leaves out axis `i` of its value", Box::new(|m| m.funcs[0].results[0].axes.clear())),
        ("@f: result `y` must be called `out0`", Box::new(|m| m.funcs[0].results[0].name = "y".into())),
        ("the name `f` is given twice", Box::new(|m| m.funcs.push(m.funcs[0].clone()))),
        (
            "constant `%c` has 1 elements, but its shape has 4",
            Box::new(|m| {
                m.constants.push(Constant {
                    name: "c".into(),
                    dtype: DType::F32,
                    axes: vec![("a".into(), 4)],
                    data: vec![0.0],
                })
            }),
        ),
        (
            "constant `%c`: 0.5 is not a value of i8",
            Box::new(|m| {
                m.constants.push(Constant { name: "c".into(), dtype: DType::I8, axes: vec![], data: vec![0.5] })
            }),
        ),
    ];
    for (expected, change) in cases {
        assert_eq!(complaint(change), expected);
    }
}

#[test]
fn printing_never_panics_on_what_is_not_well_formed() {
    let mut module = good();
    module.funcs[0].nodes[1].args = vec![NodeId(99)];
    module.funcs[0].results[0].node = NodeId(77);
    module.funcs[0].axes.truncate(1);
    let _ = print(&module);
}

#[test]
fn the_builder_says_what_is_wrong() {
    let mut f = FuncBuilder::new("f");
    let (i, j) = (f.symbolic("i").expect("new"), f.symbolic("j").expect("new"));
    let x = f.param("x", DType::F32, &[i, j]).expect("new");
    let n = f.param("n", DType::I64, &[]).expect("new");
    let message = |made: Result<NodeId, BuildError>| made.expect_err("wrong").to_string();
    assert_eq!(message(f.add(x, n)), "operands of `+` must have one dtype, but they are f32 and i64");
    assert_eq!(message(f.exp(n)), "`exp` needs a float, but its operand is i64");
    let e = f.fixed("e", 4).expect("new");
    assert_eq!(message(f.sum(x, &[e])), "the operand of `sum` has no axis `e`; it has i, j");
    assert_eq!(message(f.exp(NodeId(99))), "there is no node 99");
    let shorter = f.fixed("j", 3).expect("new");
    let y = f.slice(x, j, shorter, 0, 1).expect("fits");
    assert_eq!(message(f.param("y", DType::F32, &[])), "parameters must be declared before other nodes");
    assert_eq!(message(f.add(x, y)), "axis `j` has two extents here: size(j) and 3");
    assert_eq!(f.name(y, "x").expect_err("taken").to_string(), "`x` is already defined");
    assert_eq!(
        f.result(x, &[i]).expect_err("wrong").to_string(),
        "the result varies along `j`, which its order of axes leaves out"
    );
    assert_eq!(f.clone().finish().expect_err("wrong").to_string(), "the function has no results");
    let missing = f.expand("softmax", &[], &[("x", MacroArg::Node(x))]);
    assert_eq!(missing.expect_err("wrong").to_string(), "macro `softmax` needs axis `j`");
    assert!(f.expand("convolution", &[], &[]).is_err());
}

#[test]
fn the_builder_expands_macros_as_the_text_does() {
    let mut f = FuncBuilder::new("f");
    let axes: Vec<AxisId> = ["i", "j", "e", "d"].iter().map(|n| f.symbolic(n).expect("new")).collect();
    let (i, j, e, d) = (axes[0], axes[1], axes[2], axes[3]);
    let q = f.param("q", DType::F32, &[i, e]).expect("new");
    let k = f.param("k", DType::F32, &[j, e]).expect("new");
    let v = f.param("v", DType::F32, &[j, d]).expect("new");
    let args = [
        ("q", MacroArg::Node(q)),
        ("k", MacroArg::Node(k)),
        ("v", MacroArg::Node(v)),
        ("causal", MacroArg::Literal(Literal::Bool(true))),
        ("scale", MacroArg::Literal(Literal::Float(0.5))),
    ];
    let out = f.expand("attention", &[], &args).expect("fits");
    f.result(out[0], &[i, d]).expect("fits");
    let built = Module { funcs: vec![f.finish().expect("fits")], constants: vec![] };
    let text = "func @f(%q: f32[i, e], %k: f32[j, e], %v: f32[j, d]) -> f32[i, d] { return attention(%q, %k, %v, causal = true, scale = 0.5) }";
    assert_eq!(print(&built), print(&parse("text", text).unwrap_or_else(|e| panic!("{e}"))));
    verify(&built).expect("well formed");
}

#[test]
fn sizes_that_overflow_are_refused_at_the_call() {
    let module =
        parse("f", "func @f(%x: f32[i], %y: f32[j]) -> f32[i, j] { return %x * %y }").unwrap_or_else(|e| panic!("{e}"));
    let sizes = bind_sizes(&module.funcs[0], &[[1usize << 31], [1 << 31]]);
    assert!(matches!(sizes, Err(SizeError::TooLarge { .. })), "{sizes:?}");
    assert_eq!(bind_sizes(&module.funcs[0], &[[3usize], [0]]), Ok(vec![3, 0]));
    // What fits into an address but not into memory is an error, too.
    let inputs = [Tensor::f32(&[1 << 20], &vec![0.0; 1 << 20]), Tensor::f32(&[1 << 20], &vec![0.0; 1 << 20])];
    let outcome = bind_sizes(&module.funcs[0], &[&inputs[0].shape, &inputs[1].shape]);
    assert!(outcome.is_ok());
    let product = SizeExpr::Mul(Box::new(SizeExpr::Axis(AxisId(0))), Box::new(SizeExpr::Axis(AxisId(0))));
    assert_eq!(eval_size(&product, &[1 << 40]), Err(SizeValueError::OutOfRange));
    let difference = SizeExpr::Sub(Box::new(SizeExpr::Const(1)), Box::new(SizeExpr::Axis(AxisId(0))));
    assert_eq!(eval_size(&difference, &[3]), Err(SizeValueError::Negative(-2)));
    let quotient = SizeExpr::DivExact(Box::new(SizeExpr::Axis(AxisId(0))), Box::new(SizeExpr::Const(0)));
    assert_eq!(eval_size(&quotient, &[3]), Err(SizeValueError::OutOfRange));
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let module = parse("f", "func @f(%x: f32[j], %n: i8[j]) { return %x, %n }").unwrap_or_else(|e| panic!("{e}"));
    let x = Tensor::f32(&[2], &[0.0, 1.0]);
    let message = |inputs: &[Tensor]| run(&module, "f", inputs).expect_err("wrong").to_string();
    assert_eq!(message(std::slice::from_ref(&x)), "@f takes 2 inputs, not 1");
    assert_eq!(message(&[x.clone(), x.clone()]), "input `n` must be i8, but is f32");
    let big = Tensor::int(DType::I8, &[2], &[1, 200]);
    assert_eq!(message(&[x.clone(), big]), "input `n`: its elements do not fit its shape and dtype");
    let short = Tensor { shape: vec![3], ..x.clone() };
    assert_eq!(
        message(&[short, Tensor::int(DType::I8, &[3], &[0; 3])]),
        "input `x`: its elements do not fit its shape and dtype"
    );
    assert_eq!(run(&module, "g", &[]), Err(EvalError::NoFunction("g".into())));
}

#[test]
fn long_sums_keep_their_digits() {
    let module =
        parse("f", "func @f(%x: f32[j]) -> f64 { return sum[j](cast<f64>(%x)) }").unwrap_or_else(|e| panic!("{e}"));
    let n = 1 << 20;
    let out = run(&module, "f", &[Tensor::f32(&[n], &vec![0.1; n])]).expect("fits");
    let exact = f64::from(0.1f32) * n as f64;
    assert!((out[0].to_f64()[0] - exact).abs() <= exact * 1e-15, "{:?}", out[0]);
}

#[test]
fn attention_over_a_paragraph_takes_no_time() {
    let text = "func @f(%q: f32[b, h, i, e], %k: f32[b, h, j, e], %v: f32[b, h, j, d]) -> f32[b, h, i, d] { return attention(%q, %k, %v) }";
    let module = parse("f", text).unwrap_or_else(|e| panic!("{e}"));
    let shape = [1, 12, 255, 32];
    let data: Vec<f32> = (0..12 * 255 * 32).map(|n| ((n * 7919 % 1000) as f32 - 500.0) / 300.0).collect();
    let x = Tensor::f32(&shape, &data);
    let start = std::time::Instant::now();
    let out = run(&module, "f", &[x.clone(), x.clone(), x]).expect("fits");
    assert_eq!(out[0].shape, shape);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
