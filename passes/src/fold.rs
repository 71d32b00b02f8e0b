//! Fold programs: loops over independent axes, and inside them passes that stream axes once while they keep a state.
//!
//! # How a pass runs
//!
//! A [`Pass`] streams its axes in tiles of any size. For a tile, its [`Pass::order`] is followed item by item:
//!
//! * A state: first, if it has a [`Carry`], its old value is carried from the old to the new values of the anchors that its body
//!   mentions; then the bodies of the tile's elements, evaluated at the *new* anchors, are folded in.
//! * An anchor: its new value is computed from the states so far ([`TermOp::State`] and [`TermOp::Seen`] in it speak of the
//!   elements up to and including the tile); a degenerate value is replaced by its surrogate. Before the first tile anchors
//!   have the value that follows from the states' identities, likewise replaced, with 0 elements seen.
//!
//! **Degenerate anchors.** For some values of an anchor ([`Anchor::degenerate`]) terms or corrections are undefined: -inf under
//! `exp(x - a)`. The law `body(x, new) = body(x, old) * rho(old, new)` holds for every regular anchor, so a regular one,
//! the surrogate, stands in: the elements seen so far then contribute what they contribute at any anchor. Since the surrogate has
//! nothing to do with the data, a coefficient of a carry from it may overflow, so *if the old anchor stood in for a
//! degenerate value, coefficients are clamped to the finite range* (0 times them is then 0, as it is in the reals).
//!
//! **Closing.** After the last tile, if at least one element was seen and an anchor stands for a degenerate value, the states
//! that mention it are carried once more, from the surrogate to the true value and without the clamp: this yields what the
//! formula gives (NaN for a row of -inf).
//!
//! Two partial states combine in the same way, by carrying both to a common anchor.

use crate::term::{TermId, Terms};
use onefold_ir::{AxisDecl, AxisId, DType};

#[allow(unused_imports)] // for the links in the text above
use crate::term::TermOp;

/// A state: an index into [`FoldProgram::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// An anchor: an index into [`FoldProgram::anchors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnchorId(pub u32);

/// A function as loops and folds.
#[derive(Clone, Debug)]
pub struct FoldProgram {
    /// Name of the function.
    pub name: String,
    /// Its axes.
    pub axes: Vec<AxisDecl>,
    /// Parameters, then constants.
    pub inputs: Vec<ArrayDecl>,
    /// Results.
    pub outputs: Vec<ArrayDecl>,
    /// Arrays that are stored and read back.
    pub intermediates: Vec<ArrayDecl>,
    /// All terms.
    pub terms: Terms,
    /// All states.
    pub states: Vec<State>,
    /// All anchors.
    pub anchors: Vec<Anchor>,
    /// What is done, in order.
    pub body: Vec<Step>,
    /// Reductions that depend on others over the same axes and could not join their pass.
    pub refused: Vec<Refused>,
}

/// A reduction that takes a stream of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// As people write it.
    pub reduction: String,
    /// The reason, in words.
    pub why: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} needs a stream of its own: {}", self.reduction, self.why)
    }
}

/// An array in memory, dense and row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayDecl {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Axes, outermost first.
    pub axes: Vec<AxisId>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The body for every position along the axes (outermost first); iterations are independent.
    Loop {
        /// Axes; they are bound in the body.
        axes: Vec<AxisId>,
        /// Steps.
        body: Vec<Step>,
    },
    /// Fold over axes.
    Pass(Pass),
    /// Store a value at the current position. All axes of the array are bound, and all free axes of the value.
    Store {
        /// Where to.
        target: Target,
        /// What.
        value: TermId,
    },
    /// Store the running sum of a value along an axis, at the current position of the array's other axes.
    Scan {
        /// Along which.
        axis: AxisId,
        /// Where to.
        target: Target,
        /// What is summed.
        value: TermId,
    },
}

/// What is stored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The n-th output.
    Output(usize),
    /// The n-th intermediate.
    Intermediate(usize),
}

/// A fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Axes streamed, outermost first.
    pub axes: Vec<AxisId>,
    /// States and anchors in the order in which a tile updates them.
    pub order: Vec<Item>,
}

/// An entry of [`Pass::order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A state.
    State(StateId),
    /// An anchor.
    Anchor(AnchorId),
}

/// A value that a pass accumulates.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Name for people, unique in the program.
    pub name: String,
    /// How elements are accumulated.
    pub op: StateOp,
    /// Axes kept besides those of the enclosing loops: the state is an array along them. Not bound in the body's loops.
    pub axes: Vec<AxisId>,
    /// Dtype of the value (of `ArgMax` and `TopK`, of the elements compared).
    pub dtype: DType,
    /// The element: a term over inputs, final states of earlier passes and anchors of this one.
    pub body: TermId,
    /// How the old value moves when anchors do.
    pub carry: Carry,
}

/// How elements are accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateOp {
    /// Sum, from 0.
    Sum,
    /// Product, from 1.
    Prod,
    /// Maximum (NaN if any element is), from -inf or the dtype's lowest.
    Max,
    /// Minimum (NaN if any element is), from inf or the dtype's highest.
    Min,
    /// Position of the largest along the one streamed axis; the lower among equals; NaN counts as largest. Part `Indices` is the position, `Values` the element.
    ArgMax,
    /// The largest `size(to)` elements along the one streamed axis in descending order with their positions; order as `ArgMax`.
    TopK {
        /// The axis of the result.
        to: AxisId,
    },
}

/// How a state's old value moves when the anchors that its body mentions do. Coefficients are terms over
/// [`TermOp::Anchor`] (new) and [`TermOp::AnchorOld`], free of the streamed axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Carry {
    /// The body mentions no anchor.
    Keep,
    /// Of a sum: the new value is the sum of coefficient times *old* value over states of the same pass and the same axes.
    Linear(Vec<(TermId, StateId)>),
    /// Of `Max`, `Min`, `ArgMax`, `TopK` (its values): the coefficient is added.
    Shift(TermId),
    /// Of `Max`, `Min`, `ArgMax`, `TopK` (its values): multiplied by the coefficient, which is positive.
    Scale(TermId),
}

/// A value computed from the states so far, at which bodies are evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// Name for people, unique in the program.
    pub name: String,
    /// Dtype.
    pub dtype: DType,
    /// Its value, over states so far of the same pass, final states of earlier passes, and inputs along enclosing loops.
    pub value: TermId,
    /// Degenerate values and their surrogates; NaN is among the values of every anchor, since a prefix may have none.
    pub degenerate: Vec<(f64, f64)>,
}
