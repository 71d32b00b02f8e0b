//! Fold programs lowered, compiled and run at every level, against what they mean. Levels that this CPU lacks are counted as ignored.

use libtest_mimic::Arguments;
use onefold_backend_tests::check::Way;
use onefold_backend_tests::lowering_trials;
use onefold_llvm::{Level, Llvm};
use onefold_loops::Target;

/// On the level's own vectors; on wider ones than it has in other tiles, with separate multiplication and addition.
fn ways(level: Level) -> Vec<Way> {
    let target = level.target();
    let odd = Target { vector_bytes: target.vector_bytes * 2, fma: false, ..target.clone() };
    let ways = [(target, None), (odd, Some(8))];
    ways.map(|(target, tile)| Way { backend: Box::new(Llvm::with_level(level)), target, tile }).into()
}

fn main() {
    let arguments = Arguments::from_args();
    let kinds: [(Level, fn() -> Vec<Way>); 4] = [
        (Level::Sse2, || ways(Level::Sse2)),
        (Level::Avx2, || ways(Level::Avx2)),
        (Level::Avx512, || ways(Level::Avx512)),
        (Level::Neon, || ways(Level::Neon)),
    ];
    let mut trials = vec![];
    for (level, ways) in kinds {
        trials.extend(lowering_trials(level.name(), level.is_available(), ways));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
