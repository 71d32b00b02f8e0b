//! Fold programs lowered, compiled and run at every level, against what they mean. Each level that this CPU lacks is a test that is
//! counted as ignored.

use libtest_mimic::{Arguments, Trial};
use onefold_backend_tests::check::Way;
use onefold_backend_tests::lowering_trials;
use onefold_llvm::{Level, Llvm};
use onefold_loops::Target;

/// On a level's own vectors; in other tiles on wider ones than it has, with separate multiplication and addition.
fn ways_of(level: Level) -> [Way; 2] {
    let target = level.target();
    let odd = Target { vector_bytes: target.vector_bytes * 2, fma: false, ..target.clone() };
    let ways = [(target, None), (odd, Some(8))];
    ways.map(|(target, tile)| Way::new(Box::new(Llvm::with_level(level)), target, tile))
}

fn ways() -> Vec<Way> {
    Level::ALL.into_iter().filter(|l| l.is_available()).flat_map(ways_of).collect()
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = lowering_trials("llvm", ways);
    for level in Level::ALL {
        let trial = Trial::test(format!("on a CPU of level {level}"), || Ok(()));
        trials.push(trial.with_ignored_flag(!level.is_available()));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
