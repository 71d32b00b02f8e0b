//! From a formula to a fold program: equality saturation over an algebra of reductions, and the derivation of folds.

pub mod fold;
pub mod interval;
pub mod term;
