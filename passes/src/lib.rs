//! From a formula to a fold program: equality saturation over an algebra of reductions, and the derivation of folds.

pub mod convert;
pub mod cost;
pub mod derive;
mod emit;
mod error;
pub mod eval;
pub mod explain;
pub mod extract;
mod finite;
pub mod fold;
mod insert;
pub mod interp;
pub mod interval;
pub mod lang;
pub mod laws;
mod order;
pub mod phases;
pub mod pipeline;
pub mod print;
pub mod saturate;
pub mod schedule;
mod show;
pub mod streams;
pub mod term;

pub use error::PassError;
pub use pipeline::{derive, derive_terms, Derived, Form, Options};
