//! Elementary functions, compiled at every level: errors in units in the last place against f64, over the whole range of arguments.
//! Levels that this CPU lacks are counted as ignored.

use libtest_mimic::Arguments;
use onefold_backend_tests::math_trials;
use onefold_llvm::{Level, Llvm};
use onefold_loops::Backend;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![];
    for level in Level::ALL {
        let backend = move || -> Box<dyn Backend> { Box::new(Llvm::with_level(level)) };
        trials.extend(math_trials(level.name(), level.is_available(), backend));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
