//! What every backend must compute, as tests that backends run on themselves.
//!
//! Each backend's crate has two test programs, `lowering` and `math`, which hand its code generators to [`lowering_trials`] and [`math_trials`].

#[cfg(unix)]
pub mod agree;
pub mod bits;
pub mod check;
pub mod elementwise;
pub mod graph;
#[cfg(unix)]
pub mod guard;
pub mod lowering;
pub mod math;

use check::Way;
use libtest_mimic::Trial;
use onefold_loops::Backend;

/// The tests of [`lowering`] and [`elementwise`] for one backend.
pub fn lowering_trials(kind: &str, ways: fn() -> Vec<Way>) -> Vec<Trial> {
    let all = [lowering::TESTS, elementwise::TESTS].concat();
    trials(kind, true, &all, move |test| test(&ways()))
}

/// The tests of [`math`] for one backend; ignored, and counted so, where this machine cannot run its code.
pub fn math_trials(
    kind: &str,
    is_available: bool,
    backend: impl Fn() -> Box<dyn Backend> + Copy + Send + 'static,
) -> Vec<Trial> {
    trials(kind, is_available, math::TESTS, move |test| test(&*backend()))
}

fn trials<T: Copy + Send + Sync + 'static>(
    kind: &str,
    is_available: bool,
    tests: &[(&str, T)],
    run: impl Fn(T) + Copy + Send + 'static,
) -> Vec<Trial> {
    let trial = |(name, test): &(&str, T)| {
        let test = *test;
        let trial = Trial::test(*name, move || {
            run(test);
            Ok(())
        });
        trial.with_kind(kind).with_ignored_flag(!is_available)
    };
    tests.iter().map(trial).collect()
}
