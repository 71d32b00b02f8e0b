//! Elementary functions, compiled: errors in units in the last place against f64, over the whole range of arguments.

use libtest_mimic::Arguments;
use onefold_backend_tests::math_trials;
use onefold_cranelift::Cranelift;

fn main() {
    let arguments = Arguments::from_args();
    let backend = || -> Box<dyn onefold_loops::Backend> { Box::new(Cranelift::host().expect("a backend")) };
    libtest_mimic::run(&arguments, math_trials("cranelift", true, backend)).exit();
}
