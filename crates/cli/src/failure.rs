//! How a command ends when it does not succeed.

use onefold::inspect::InspectError;
use onefold::{CallError, Error};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Why, and with which exit status.
#[derive(Debug)]
pub enum Failure {
    /// The input is at fault: status 1.
    Input(String),
    /// The text of a module is at fault: status 1, with the places.
    Text(Box<onefold::Diagnostics>),
    /// The command was used wrongly: status 2.
    Usage(String),
    /// Results exceed the bounds: status 3.
    Bounds(String),
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Input(_) | Failure::Text(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Bounds(_) => 3,
        })
    }

    /// Say it on stderr.
    pub fn report(&self) {
        match self {
            Failure::Text(diagnostics) => eprint!("{}", diagnostics.render(std::io::stderr().is_terminal())),
            Failure::Input(text) | Failure::Usage(text) | Failure::Bounds(text) => eprintln!("error: {text}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Text(diagnostics) => Failure::Text(Box::new(diagnostics)),
            Error::NoFunction { .. } | Error::WhichFunction { .. } => Failure::Usage(format!("{error} (--func)")),
            _ => Failure::Input(error.to_string()),
        }
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Failure {
        match error {
            InspectError::Compile(error) => error.into(),
            InspectError::NoForm { .. } => Failure::Usage(error.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::Input(error.to_string())
    }
}
