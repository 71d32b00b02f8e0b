//! Random kernels of loop IR: native code gives what the interpreter gives, bit for bit, and text reads back to itself.
//! `PROPTEST_CASES=100000 PROPTEST_RNG_SEED=7` looks further.
#![cfg(unix)]

use onefold_cranelift::Cranelift;
use onefold_loops::{parse, verify, Expr, Kernel, Stmt};
use onefold_tests::kernels::{cases, Case};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The same kernels everywhere.
const SEED: u64 = 12;

/// Bytes of Cranelift's vector registers.
const CRANELIFT: u32 = 16;

/// Bytes of the widest vector registers that there are.
const WIDEST: u32 = 64;

fn config(cases: u32) -> ProptestConfig {
    let asked = |name: &str| std::env::var_os(name).is_some();
    let mut config = ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() };
    if !asked("PROPTEST_CASES") {
        config.cases = cases;
    }
    if !asked("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config
}

/// Every random kernel passes a test; the failure is shown with the kernel's text, shrunk.
fn every(count: u32, register_bytes: u32, test: impl Fn(&Case) -> Result<(), String>) {
    let test = |case: Case| test(&case).map_err(TestCaseError::fail);
    TestRunner::new(config(count)).run(&cases(register_bytes), test).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn cranelift_agrees_with_the_interpreter() {
    let backend = Cranelift::host().expect("a backend");
    every(1200, CRANELIFT, |case| case.check(&backend));
}

/// At every level that this CPU has, in registers of any width: those that are wider than the CPU's are taken apart.
#[cfg(feature = "llvm")]
#[test]
fn llvm_agrees_with_the_interpreter() {
    use onefold_llvm::{Level, Llvm};
    let levels: Vec<Llvm> = Level::ALL.into_iter().filter(|l| l.is_available()).map(Llvm::with_level).collect();
    every(100, WIDEST, |case| levels.iter().try_for_each(|backend| case.check(backend)));
}

#[test]
fn text_reads_back_to_itself() {
    every(600, WIDEST, |case| {
        let text = case.kernel.to_string();
        let again = parse(&text).map_err(|e| e.to_string())?;
        verify(&again).map_err(|e| e.to_string())?;
        let second = again.to_string();
        let differs = text.lines().zip(second.lines()).find(|(a, b)| a != b);
        match differs {
            Some((a, b)) => Err(format!("`{a}` reads back as `{b}`")),
            None if text.len() != second.len() => Err("lines are missing".to_owned()),
            None => Ok(()),
        }
    });
}

/// What a kernel does: each operation with the types of its first operand and its result, each other statement, each buffer.
fn forms(kernel: &Kernel, statements: &[Stmt], found: &mut BTreeSet<String>) {
    found.extend(kernel.buffers.iter().map(|b| format!("buffer {:?} {:?}", b.kind, b.elem)));
    for statement in statements {
        let form = match statement {
            Stmt::Assign(dst, expr) => {
                let of = expr.operands().first().map_or(String::new(), |r| kernel.ty(*r).to_string());
                let (kind, what) = match expr {
                    Expr::Const(..) => ("Const", String::new()),
                    Expr::Copy(_) => ("Copy", String::new()),
                    Expr::Unary(op, _) => ("Unary", format!("{op:?}")),
                    Expr::Binary(op, ..) => ("Binary", format!("{op:?}")),
                    Expr::Fma(..) => ("Fma", String::new()),
                    Expr::Compare(cmp, ..) => ("Compare", format!("{cmp:?}")),
                    Expr::Select(..) => ("Select", String::new()),
                    Expr::Convert(..) => ("Convert", String::new()),
                    Expr::Bitcast(..) => ("Bitcast", String::new()),
                    Expr::Splat(..) => ("Splat", String::new()),
                    // Of vectors of any length.
                    Expr::Extract(..) => {
                        found.insert(format!("Extract {}", kernel.ty(*dst)));
                        continue;
                    }
                    Expr::Iota(_) => ("Iota", String::new()),
                    Expr::Reduce(fold, _) => ("Reduce", format!("{fold:?}")),
                    Expr::Load { stride, tail, .. } => ("Load", format!("{} {}", stride.is_some(), tail.is_some())),
                };
                format!("{kind} {what} {of} -> {}", kernel.ty(*dst))
            }
            Stmt::Store { tail, stream, .. } => format!("Store {} {stream}", tail.is_some()),
            Stmt::For { step, parallel, body, .. } => {
                forms(kernel, body, found);
                format!("For {step} {parallel}")
            }
            Stmt::If { then, els, .. } => {
                forms(kernel, then, found);
                forms(kernel, els, found);
                "If".to_owned()
            }
            Stmt::Fail { .. } => "Fail".to_owned(),
            Stmt::Prefetch { .. } => "Prefetch".to_owned(),
            Stmt::Comment(_) => "Comment".to_owned(),
        };
        found.insert(form);
    }
}

/// A generator that has stopped making something finds no bugs in it: all operations on all types that there are, in registers
/// of 16 bytes. (As often as it takes to meet each once; nothing is compiled.)
#[test]
fn every_operation_on_every_type_occurs() {
    let found = RefCell::new(BTreeSet::new());
    let config = ProptestConfig { cases: 6000, rng_seed: RngSeed::Fixed(SEED), ..ProptestConfig::default() };
    let note = |case: Case| {
        forms(&case.kernel, &case.kernel.body, &mut found.borrow_mut());
        Ok(())
    };
    TestRunner::new(config).run(&cases(CRANELIFT), note).unwrap_or_else(|e| panic!("{e}"));
    let found = found.into_inner();
    let numbers = [
        ("Binary", 240),
        ("Bitcast", 71),
        ("Compare", 155),
        ("Const", 33),
        ("Convert", 240),
        ("Copy", 33),
        ("Extract", 9),
        ("Fma", 5),
        ("Iota", 20),
        ("Load", 132),
        ("Reduce", 98),
        ("Select", 33),
        ("Splat", 24),
        ("Store", 4),
        ("Unary", 75),
        ("For", 8),
        ("If", 1),
        ("Fail", 1),
        ("Prefetch", 1),
        ("buffer", 4 * 9),
    ];
    for (kind, number) in numbers {
        let of_kind: Vec<&String> = found.iter().filter(|f| f.split(' ').next() == Some(kind)).collect();
        assert_eq!(of_kind.len(), number, "{of_kind:#?}");
    }
}
