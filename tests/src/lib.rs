//! What the tests of this package share: running the checks of a file on one backend, finding the stage at fault, and random
//! kernels.

mod bisect;
mod check;
#[cfg(unix)]
pub mod kernels;

pub use bisect::{bisect, Bound};
pub use check::{check_file, Case};
