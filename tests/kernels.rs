//! Random kernels of loop IR: native code gives what the interpreter gives, bit for bit, and text reads back to itself.
//! `PROPTEST_CASES=100000 PROPTEST_RNG_SEED=7` looks further.
#![cfg(unix)]

use onefold_cranelift::Cranelift;
use onefold_loops::{parse, verify};
use onefold_tests::kernels::{cases, Case};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

/// The same kernels everywhere.
const SEED: u64 = 12;

/// Bytes of Cranelift's vector registers.
const CRANELIFT: u32 = 16;

fn config() -> ProptestConfig {
    let asked = |name: &str| std::env::var_os(name).is_some();
    let mut config = ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() };
    if !asked("PROPTEST_CASES") {
        config.cases = 600;
    }
    if !asked("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config
}

/// Every random kernel passes a test; the failure is shown with the kernel's text, shrunk.
fn every(register_bytes: u32, test: impl Fn(&Case) -> Result<(), String>) {
    let test = |case: Case| test(&case).map_err(TestCaseError::fail);
    TestRunner::new(config()).run(&cases(register_bytes), test).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn cranelift_agrees_with_the_interpreter() {
    let backend = Cranelift::host().expect("a backend");
    every(CRANELIFT, |case| case.check(&backend));
}

#[test]
fn text_reads_back_to_itself() {
    every(64, |case| {
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
