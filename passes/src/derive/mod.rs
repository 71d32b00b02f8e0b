//! Deriving folds: how a reduction whose body depends on another reduction's result can still run beside it.
//!
//! The other result is an *anchor* in the body `t(x, a)`. [`rho`] asks the e-graph for a factor or a summand, free of the
//! streamed axes, between `t(x, new)` and `t(x, old)`. Where there is none, [`basis`] looks for a few terms that are closed
//! under the change of anchor. [`probe`] checks every law found by multiplying back on rows of numbers, [`prefix`] decides whether
//! bodies and states stay in range while a row is being streamed, and [`degenerate`] finds the anchor values at which a law breaks down.

pub mod basis;
pub mod degenerate;
mod measured;
pub mod prefix;
pub mod probe;
mod refusal;
pub mod rho;

use crate::fold::AnchorId;
use crate::term::{TermId, TermOp, Terms};

pub use refusal::Refusal;

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

impl Correction {
    /// All coefficients.
    pub fn coefficients(&self) -> Vec<TermId> {
        match self {
            Correction::Linear { rows, .. } => rows.iter().flatten().map(|(c, _)| *c).collect(),
            Correction::Shift(c) | Correction::Scale(c) => vec![*c],
        }
    }
}

/// The anchors that some terms mention, ascending.
pub fn anchors_of(terms: &Terms, roots: &[TermId]) -> Vec<AnchorId> {
    let mut found: Vec<AnchorId> = terms
        .reachable(roots)
        .into_iter()
        .filter_map(|t| match terms.get(t).op {
            TermOp::Anchor(a) | TermOp::AnchorOld(a) => Some(a),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a term mentions an anchor.
pub fn mentions_anchor(terms: &Terms, id: TermId) -> bool {
    terms.reachable(&[id]).iter().any(|t| matches!(terms.get(*t).op, TermOp::Anchor(_)))
}
