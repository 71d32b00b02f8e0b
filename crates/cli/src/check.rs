//! `onefold check`: parse and verify.

use crate::args::Check;
use crate::failure::Failure;
use crate::source;

/// Nothing on stdout if all is well.
pub fn check(args: &Check) -> Result<(), Failure> {
    let module = source::read(&args.file)?;
    onefold::verify(&module).map_err(|e| Failure::Input(format!("{}: {e}", args.file.display())))
}
