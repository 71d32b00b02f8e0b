//! Fold programs lowered, compiled and run, against what they mean.

use libtest_mimic::Arguments;
use onefold_backend_tests::check::Way;
use onefold_backend_tests::lowering_trials;
use onefold_cranelift::Cranelift;
use onefold_loops::Target;

fn ways() -> Vec<Way> {
    let separate = Target { fma: false, ..Target::BASELINE };
    let ways = [(Target::BASELINE, None), (separate, Some(8))];
    ways.map(|(target, tile)| Way::new(Box::new(Cranelift::host().expect("a backend")), target, tile)).into()
}

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, lowering_trials("cranelift", ways)).exit();
}
