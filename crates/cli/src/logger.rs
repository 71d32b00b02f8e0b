//! Stages with timings on stderr, for `ONEFOLD_LOG=debug` or `trace`, or `-v`.

use log::{LevelFilter, Log, Metadata, Record};

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Of the libraries below us only our own speak: Cranelift's traces are not of interest here.
        metadata.target().starts_with("onefold")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}: {}", record.level().as_str().to_lowercase(), record.args());
        }
    }

    fn flush(&self) {}
}

/// Speak as the environment says, or at least about stages if `verbose`.
pub fn start(verbose: bool) {
    let asked = std::env::var("ONEFOLD_LOG").ok().and_then(|v| v.parse::<LevelFilter>().ok());
    let level = asked.unwrap_or(if verbose { LevelFilter::Debug } else { LevelFilter::Warn });
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(level);
    }
}
