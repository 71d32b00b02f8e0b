//! Deriving folds: how a reduction whose body depends on another reduction's result can still run beside it.
//!
//! The other result is an *anchor* in the body `t(x, a)`. [`rho`] asks the e-graph for a factor or a summand, free of the
//! streamed axes, between `t(x, new)` and `t(x, old)`. Where there is none, [`basis`] looks for a few terms that are closed
//! under the change of anchor. [`probe`] checks every law found by multiplying back at random points, and finds the anchor
//! values at which it breaks down.

pub mod basis;
pub mod probe;
pub mod rho;

use crate::term::TermId;

/// How the old value of a reduction moves to new anchors.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// Of sums: each body in the list is a sum of its own; the first is the one asked for. Row k gives the coefficients with
    /// which the old sums make the new k-th.
    Linear {
        /// Bodies.
        bodies: Vec<TermId>,
        /// For each body, (coefficient, index into `bodies`).
        rows: Vec<Vec<(TermId, usize)>>,
    },
    /// The coefficient is added.
    Shift(TermId),
    /// Multiplied by the coefficient, which is positive.
    Scale(TermId),
}
