//! The command `onefold`.

mod args;
mod bench;
mod check;
mod explain;
mod failure;
mod fill;
mod inspect;
mod limit;
mod logger;
mod npy;
mod run;
mod source;
mod summary;
mod verify;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

/// Terms nest as deep as the user's formula: passes get a stack that no text of reasonable size exhausts.
const STACK: usize = 1 << 28;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = error.exit_code();
            let _ = error.print();
            return ExitCode::from(status as u8);
        }
    };
    logger::start(cli.verbose);
    let quiet = cli.quiet;
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || dispatch(&cli));
    let outcome = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        // The panic's message is on stderr already.
        Ok(Err(_)) => Err(Failure::Input("internal error, this is a bug in onefold".to_owned())),
        Err(error) => Err(Failure::Input(format!("no thread: {error}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !(quiet && matches!(failure, Failure::Bounds(_))) {
                failure.report();
            }
            failure.status()
        }
    }
}

fn dispatch(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Check(args) => check::check(args),
        Command::Run(args) => run::run(args, cli.quiet),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Explain(args) => explain::explain(args),
        Command::Bench(args) => bench::bench(args, cli.quiet),
        Command::Compile(_) => Err(unavailable("compile")),
        Command::Calibrate(_) => Err(unavailable("calibrate")),
        Command::Import(_) => Err(unavailable("import")),
    }
}

fn unavailable(command: &str) -> Failure {
    Failure::Usage(format!("onefold {command} is not available in this version"))
}

/// Write to stdout. A reader that went away (`| head`) is no error.
fn emit(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Input(format!("stdout: {error}"))),
        _ => Ok(()),
    }
}
