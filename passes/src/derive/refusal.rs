//! Why a reduction does not run beside those that it depends on.

use super::anchors_of;
use crate::print::Names;
use crate::term::{Term, TermId, TermOp, Terms};

/// The reason for which a reduction takes a stream of its own. Terms are over anchors, so [`Refusal::tell`] needs their names.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// What the body needs is known only after the stream: it varies along the streamed axes, or comes from a reduction over others.
    NotAnAnchor,
    /// An anchor has axes along which the reduction adds up: it is not one value for all elements of a state.
    NotScalar(TermId),
    /// The operation has no carry (products, integers).
    NoCarry,
    /// No factor and no summand, free of the streamed axes, relates this term at new anchors to itself at old ones.
    NoLaw(TermId),
    /// A law was found, but where the term is `wanted` it gives `found`.
    Fails {
        /// The term.
        term: TermId,
        /// By the law.
        found: f64,
        /// The term's value.
        wanted: f64,
    },
    /// A law was found, but there are hardly any numbers at which it says something.
    Untested(TermId),
    /// The coefficient by which an extremum would be multiplied is not known to be positive.
    Sign(TermId),
    /// The terms that are closed under the change of anchors are too many.
    BasisTooLarge,
    /// Nothing bounds this term at the anchors that a prefix of the row has.
    Unbounded(TermId),
}

impl Refusal {
    /// The same with what anchors stand for in their place, so that it can be read without a list of them. Coefficients, in which old
    /// anchors stand beside new ones, stay as they are.
    pub fn over(&self, terms: &mut Terms, anchors: &[TermId]) -> Refusal {
        let mut plain = |id: TermId| {
            let mut id = id;
            if terms.reachable(&[id]).iter().any(|t| matches!(terms.get(*t).op, TermOp::AnchorOld(_))) {
                return id;
            }
            for anchor in anchors_of(terms, &[id]) {
                let value = anchors[anchor.0 as usize];
                let leaf = Term { op: TermOp::Anchor(anchor), args: vec![], ..terms.get(value).clone() };
                let leaf = terms.add(leaf);
                id = terms.replace(id, leaf, value);
            }
            id
        };
        match *self {
            Refusal::NotScalar(id) => Refusal::NotScalar(plain(id)),
            Refusal::NoLaw(id) => Refusal::NoLaw(plain(id)),
            Refusal::Fails { term, found, wanted } => Refusal::Fails { term: plain(term), found, wanted },
            Refusal::Untested(id) => Refusal::Untested(plain(id)),
            Refusal::Sign(id) => Refusal::Sign(plain(id)),
            Refusal::Unbounded(id) => Refusal::Unbounded(plain(id)),
            Refusal::NotAnAnchor | Refusal::NoCarry | Refusal::BasisTooLarge => self.clone(),
        }
    }

    /// The reason in words.
    pub fn tell(&self, names: &Names<'_>, terms: &Terms) -> String {
        let show = |id: &TermId| names.term(terms, *id);
        match self {
            Refusal::NotAnAnchor => "what it needs is known only after the stream".to_owned(),
            Refusal::NotScalar(a) => format!("the anchor `{}` is not one value for all that a state adds up", show(a)),
            Refusal::NoCarry => "an operation without a carry".to_owned(),
            Refusal::NoLaw(t) => format!("no law moves `{}` to new anchors", show(t)),
            Refusal::Fails { term, found, wanted } => {
                format!("the law found for `{}` fails: it gives {found:?} where {wanted:?} is right", show(term))
            }
            Refusal::Untested(t) => format!("the law found for `{}` holds at hardly any numbers", show(t)),
            Refusal::Sign(c) => format!("the scale `{}` is not known to be positive", show(c)),
            Refusal::BasisTooLarge => "its closed basis is too large".to_owned(),
            Refusal::Unbounded(t) => format!("`{}` is unbounded at a prefix", show(t)),
        }
    }

    /// How much a reason says: of several attempts the one that came furthest is told.
    pub fn rank(&self) -> u8 {
        match self {
            Refusal::NotAnAnchor | Refusal::NoCarry => 0,
            Refusal::NotScalar(_) => 1,
            Refusal::NoLaw(_) => 2,
            Refusal::BasisTooLarge => 3,
            Refusal::Untested(_) => 4,
            Refusal::Fails { .. } => 5,
            Refusal::Sign(_) => 6,
            Refusal::Unbounded(_) => 7,
        }
    }
}
