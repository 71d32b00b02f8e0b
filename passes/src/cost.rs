//! What the machine pays for a term: streams first, then work.
//!
//! Work is counted per element evaluated, shared subterms once; a loop that an operand does not vary along is not paid for, which is
//! what makes hoisted forms cheaper than those they came from.

use crate::derive::Correction;
use crate::streams::{reduced, Corrected, Streams};
use crate::term::{TermId, TermOp, Terms, WideOp};
use onefold_ir::{AxisDecl, AxisSet, BinaryOp, Extent, UnaryOp};
use std::collections::HashMap;

/// Length assumed of an axis whose size is known only at the call.
const ASSUMED_EXTENT: f64 = 1024.0;

/// Cost of a term; smaller is better, streams before work.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cost {
    /// Streams over all axes.
    pub streams: u32,
    /// Operations, in units of one addition.
    pub work: f64,
}

/// The cost model for one function.
pub struct CostModel {
    /// Whether exponentials are wanted as pairs: a plain one is then a last resort.
    pub prefer_wide: bool,
    extents: Vec<f64>,
    memo: HashMap<TermId, Cost>,
}

impl CostModel {
    /// For a function's axes.
    pub fn new(axes: &[AxisDecl]) -> CostModel {
        let extents = axes
            .iter()
            .map(|a| match a.extent {
                Extent::Fixed(n) => n as f64,
                _ => ASSUMED_EXTENT,
            })
            .collect();
        CostModel { prefer_wide: false, extents, memo: HashMap::new() }
    }

    /// The cost of a term and all below it.
    pub fn cost(&mut self, terms: &mut Terms, streams: &mut Streams, id: TermId) -> Cost {
        if let Some(known) = self.memo.get(&id) {
            return *known;
        }
        let total = streams.total(terms, id);
        let work = terms.reachable(&[id]).into_iter().map(|t| self.work(terms, streams, t)).sum();
        let cost = Cost { streams: total, work };
        self.memo.insert(id, cost);
        cost
    }

    /// Work of one node over all its elements.
    fn work(&self, terms: &Terms, streams: &Streams, id: TermId) -> f64 {
        let term = terms.get(id);
        let looped = reduced(&term.op).map_or(term.axes, |axes| term.axes.union(axes));
        let is_exp = matches!(term.op, TermOp::Unary(UnaryOp::Exp | UnaryOp::Exp2));
        let resort = if self.prefer_wide && is_exp { 1000.0 } else { 0.0 };
        (weight(&term.op) + resort + streams.known_correction(id).map_or(0.0, burden)) * self.elements(looped)
    }

    fn elements(&self, axes: AxisSet) -> f64 {
        axes.iter().map(|a| self.extents.get(a.0 as usize).copied().unwrap_or(ASSUMED_EXTENT)).product()
    }
}

/// What a correction adds for each element: the further sums of its basis, or the movement of an ordered selection; and what each further
/// anchor costs to follow (a division that waits until after the pass needs none).
fn burden(corrected: &Corrected) -> f64 {
    let anchors = corrected.anchors.len().saturating_sub(1) as f64;
    let states = match &corrected.correction {
        Correction::Linear { bodies, .. } => 3.0 * (bodies.len() - 1) as f64,
        Correction::Shift(_) | Correction::Scale(_) => 4.0,
    };
    states + 2.0 * anchors
}

/// Operations of one evaluation, in units of an addition.
fn weight(op: &TermOp) -> f64 {
    match op {
        TermOp::Literal(_) | TermOp::Index(_) | TermOp::Size(_) | TermOp::Seen(_) => 0.01,
        TermOp::State { .. } | TermOp::Anchor(_) | TermOp::AnchorOld(_) => 0.01,
        TermOp::Load { .. } => 1.0,
        TermOp::Unary(op) => match op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Floor | UnaryOp::Round => 1.0,
            UnaryOp::Sqrt | UnaryOp::Rsqrt => 6.0,
            UnaryOp::Exp | UnaryOp::Exp2 => 12.0,
            UnaryOp::Log | UnaryOp::Log2 => 15.0,
            UnaryOp::Tanh | UnaryOp::Erf => 20.0,
        },
        TermOp::Wide(WideOp::Mantissa) => 9.0,
        TermOp::Wide(_) => 2.0,
        TermOp::Binary(BinaryOp::Div | BinaryOp::Rem) => 6.0,
        TermOp::Binary(BinaryOp::Pow) => 40.0,
        TermOp::Binary(_) | TermOp::Compare(_) | TermOp::Select | TermOp::Cast => 1.0,
        TermOp::Reduce(..) => 1.0,
        TermOp::ArgMax(_) | TermOp::TopK { .. } => 2.0,
    }
}
