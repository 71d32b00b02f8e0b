//! What the tests of this package share: running the checks of a file on one backend, and
//! finding the stage at fault.

mod bisect;
mod check;

pub use bisect::{bisect, Bound};
pub use check::{check_file, Case};
