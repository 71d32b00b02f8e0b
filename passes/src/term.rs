//! Terms: a hash-consed graph of primitives without views.
//!
//! Views (rename, split, merge, slice, shift, concat) and gathers are gone: they are index arithmetic on the leaves, since a
//! [`TermOp::Load`] takes one integer term per axis of its array. What is left is elementwise work, reductions and leaves,
//! all equally plain to the e-graph and to the lowering.

use onefold_ir::{AxisId, AxisSet, BinaryOp, CmpOp, DType, Literal, Part, ReduceOp, UnaryOp};
use std::collections::HashMap;

use crate::fold::{AnchorId, StateId};
use crate::interval::Interval;

/// A term: an index into [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// An array that terms read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArrayId {
    /// The n-th input of the fold program: parameters, then constants.
    Input(usize),
    /// The n-th intermediate of the fold program.
    Intermediate(usize),
}

/// What a term computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TermOp {
    /// A literal of the term's dtype.
    Literal(Literal),
    /// Position along an axis, in the term's dtype.
    Index(AxisId),
    /// Length of an axis, in the term's dtype.
    Size(AxisId),
    /// An element of an array; one `i64` operand for each axis of the array, outermost first. The operands are within bounds
    /// unless `checked`, in which case kernels test them and fail with `GATHER_OUT_OF_RANGE`.
    Load {
        /// Which array.
        array: ArrayId,
        /// Whether an operand was picked by an id and may be out of bounds.
        checked: bool,
    },
    /// Elementwise, one operand.
    Unary(UnaryOp),
    /// Elementwise, one operand: a part of an exponential carried as mantissa and exponent.
    Wide(WideOp),
    /// Elementwise, two operands of the term's dtype.
    Binary(BinaryOp),
    /// Elementwise, to `bool`.
    Compare(CmpOp),
    /// Condition, value if true, value if false.
    Select,
    /// Conversion to the term's dtype.
    Cast,
    /// Reduction along axes. In a fold program: computed on the spot, inside whatever loop needs it.
    Reduce(ReduceOp, AxisSet),
    /// Position of the largest element. Not in fold programs, where it is a state.
    ArgMax(AxisId),
    /// The largest elements. Not in fold programs, where it is a state.
    TopK {
        /// Axis searched.
        axis: AxisId,
        /// New axis.
        to: AxisId,
        /// Values or indices.
        part: Part,
    },
    /// Fold programs only: a state. Of a state of an earlier pass, its final value; inside the state's own pass, its value
    /// over the elements seen so far, the current tile included. A `TopK` state has its axis `to`.
    State {
        /// Which one.
        state: StateId,
        /// Of pairs, which half; `Values` otherwise.
        part: Part,
    },
    /// Fold programs only: an anchor's current value.
    Anchor(AnchorId),
    /// Fold programs only, in corrections: the anchor's value before the current tile.
    AnchorOld(AnchorId),
    /// Fold programs only, in anchors: the number of elements of the streamed axis seen so far, the current tile included, in the term's dtype.
    Seen(AxisId),
}

/// Parts of `exp(x) = mantissa(x) * 2^exponent(x)`, whose exponent is a float and so cannot overflow (Dukhan and Ablavatski, "Two-pass
/// softmax algorithm", 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WideOp {
    /// `exp(x) / 2^exponent(x)`, between 2^-1/2 and 2^1/2; 1 where x is -inf, NaN where it is inf.
    Mantissa,
    /// `x * log2(e)` to the nearest integer, half to even, as a float.
    Exponent,
    /// `2^n` for an integral n <= 0, 0 where that is below the normal range.
    Power,
}

impl WideOp {
    /// Name for printing.
    pub fn name(self) -> &'static str {
        match self {
            WideOp::Mantissa => "mantissa",
            WideOp::Exponent => "exponent",
            WideOp::Power => "power",
        }
    }
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// What it computes.
    pub op: TermOp,
    /// From what.
    pub args: Vec<TermId>,
    /// Dtype of the result.
    pub dtype: DType,
    /// Free axes.
    pub axes: AxisSet,
}

/// All terms of one function. Operands stand before the terms that use them.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<Term>,
    intervals: Vec<Interval>,
    index: HashMap<Term, TermId>,
}

impl Terms {
    /// The term, made if it is new.
    pub fn add(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.index.get(&term) {
            return id;
        }
        let id = TermId(self.nodes.len() as u32);
        self.index.insert(term.clone(), id);
        self.nodes.push(term);
        self.intervals.push(Interval::ANY);
        id
    }

    /// A term with the free axes that follow from its operator and operands. States and anchors need [`Terms::add`].
    pub fn make(&mut self, op: TermOp, dtype: DType, args: Vec<TermId>) -> TermId {
        let of_args = args.iter().fold(AxisSet::EMPTY, |set, a| set.union(self.get(*a).axes));
        let axes = match &op {
            TermOp::Index(axis) => AxisSet::one(*axis),
            TermOp::Reduce(_, axes) => of_args.minus(*axes),
            TermOp::ArgMax(axis) => of_args.without(*axis),
            TermOp::TopK { axis, to, .. } => of_args.without(*axis).with(*to),
            _ => of_args,
        };
        self.add(Term { op, args, dtype, axes })
    }

    /// The node of that id.
    pub fn get(&self, id: TermId) -> &Term {
        &self.nodes[id.0 as usize]
    }

    /// Bounds on the term's value if it is not NaN.
    pub fn interval(&self, id: TermId) -> Interval {
        self.intervals[id.0 as usize]
    }

    /// Record bounds.
    pub fn set_interval(&mut self, id: TermId, interval: Interval) {
        self.intervals[id.0 as usize] = interval;
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A float literal.
    pub fn float(&mut self, value: f64, dtype: DType) -> TermId {
        self.make(TermOp::Literal(Literal::Float(value)), dtype, vec![])
    }

    /// An `i64` literal.
    pub fn int(&mut self, value: i64) -> TermId {
        self.make(TermOp::Literal(Literal::Int(value)), DType::I64, vec![])
    }

    /// A binary operation of the dtype of its first operand.
    pub fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        let dtype = self.get(a).dtype;
        self.make(TermOp::Binary(op), dtype, vec![a, b])
    }

    /// A unary operation.
    pub fn unary(&mut self, op: UnaryOp, a: TermId) -> TermId {
        let dtype = self.get(a).dtype;
        self.make(TermOp::Unary(op), dtype, vec![a])
    }

    /// A term with one term in it replaced by another of the same dtype; bounds are kept.
    pub fn replace(&mut self, root: TermId, from: TermId, to: TermId) -> TermId {
        let mut made: HashMap<TermId, TermId> = HashMap::from([(from, to)]);
        for id in self.reachable(&[root]) {
            if made.contains_key(&id) {
                continue;
            }
            let term = self.get(id).clone();
            let args: Vec<TermId> = term.args.iter().map(|a| made[a]).collect();
            let new = if args == term.args { id } else { self.add(Term { args, ..term }) };
            if new != id {
                self.set_interval(new, self.interval(id));
            }
            made.insert(id, new);
        }
        made[&root]
    }

    /// All terms below and including some roots, operands first.
    pub fn reachable(&self, roots: &[TermId]) -> Vec<TermId> {
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id.0 as usize], true) {
                stack.extend(&self.get(id).args);
            }
        }
        (0..self.nodes.len() as u32).map(TermId).filter(|id| seen[id.0 as usize]).collect()
    }
}
