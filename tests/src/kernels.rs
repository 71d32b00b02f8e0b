//! Random kernels of loop IR, all of whose results are defined, and running them on a backend against the interpreter.
//!
//! A [`Recipe`] is what proptest makes and shrinks: a tree of steps that are nothing but numbers. Every recipe gives a kernel
//! that verifies: a step takes its operands from the registers in scope, makes those that are missing, and guards what would
//! be undefined (divisors, shift amounts, floats beyond an integer's range, offsets, tails). So shrinking drops steps freely.

mod build;
mod convert;
mod memory;
mod steps;

use onefold_backend_tests::agree::{agree, Call};
use onefold_loops::{Backend, Kernel};
use proptest::prelude::*;
use std::fmt;

/// Numbers that one operation is chosen by.
#[derive(Clone, Copy, Debug)]
pub struct Genes {
    /// Which operation.
    pub kind: u8,
    /// On which type.
    pub ty: u16,
    /// Which operands, and what else the operation has to choose.
    pub picks: [u8; 4],
}

/// A step of a recipe.
#[derive(Clone, Debug)]
pub enum Step {
    /// An operation, a load, a store or a failure.
    Op(Genes),
    /// A loop around steps.
    Loop(Genes, Vec<Step>),
    /// A branch.
    If(Genes, Vec<Step>, Vec<Step>),
}

/// What a kernel is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its statements.
    pub steps: Vec<Step>,
    /// Whether it may be called for a part of its iterations.
    pub is_split: bool,
    /// Which types most of its steps are on: of few, so that results become operands.
    pub palette: [u8; 2],
}

/// A kernel and what it is called with.
#[derive(Clone)]
pub struct Case {
    /// The kernel.
    pub kernel: Kernel,
    /// Its sizes.
    pub sizes: [i64; 2],
    /// First iteration of a split loop, and one past the last.
    pub part: (i64, i64),
    /// What inputs are filled from.
    pub seed: u64,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sizes {:?}, part {:?}, seed {}\n{}", self.sizes, self.part, self.seed, self.kernel)
    }
}

impl Case {
    /// The backend's code gives what the interpreter gives.
    ///
    /// # Errors
    /// What differs first.
    pub fn check(&self, backend: &dyn Backend) -> Result<(), String> {
        agree(backend, &self.kernel, Call { sizes: &self.sizes, part: self.part, seed: self.seed })
    }
}

fn genes() -> impl Strategy<Value = Genes> {
    (any::<u8>(), any::<u16>(), any::<[u8; 4]>()).prop_map(|(kind, ty, picks)| Genes { kind, ty, picks })
}

fn step() -> impl Strategy<Value = Step> {
    genes().prop_map(Step::Op).prop_recursive(3, 24, 6, |inner| {
        let steps = || prop::collection::vec(inner.clone(), 0..6);
        prop_oneof![
            4 => genes().prop_map(Step::Op),
            1 => (genes(), steps()).prop_map(|(g, body)| Step::Loop(g, body)),
            1 => (genes(), steps(), steps()).prop_map(|(g, then, els)| Step::If(g, then, els)),
        ]
    })
}

/// Kernels whose registers have at most so many bytes (as elements have them in memory), with sizes and data.
pub fn cases(register_bytes: u32) -> impl Strategy<Value = Case> {
    let steps = prop::collection::vec(step(), 1..20);
    let sizes = [0..20i64, 0..20i64];
    let shape = (any::<bool>(), any::<[u8; 2]>());
    (steps, shape, sizes, any::<u64>()).prop_map(move |(steps, (is_split, palette), sizes, seed)| {
        let kernel = build::kernel(&Recipe { steps, is_split, palette }, register_bytes);
        let part = if is_split { (sizes[0] / 4, sizes[0] - sizes[0] / 3) } else { (0, 0) };
        Case { kernel, sizes, part, seed }
    })
}
