//! What names mean at a point of the text.

use crate::text::ast::{Expr, MacroDef};
use crate::{Constant, DType, NodeId, Span};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What the whole text declares.
pub(super) struct Globals<'a> {
    pub(super) axes: BTreeMap<&'a str, u64>,
    pub(super) consts: BTreeMap<&'a str, usize>,
    pub(super) constants: Vec<Constant>,
    pub(super) macros: BTreeMap<&'a str, &'a MacroDef>,
    pub(super) prelude: BTreeMap<&'a str, &'a MacroDef>,
    /// Constants whose definition is in error.
    pub(super) poisoned: BTreeSet<&'a str>,
}

/// What a name of a value stands for.
#[derive(Clone)]
pub(super) enum Bound<'a> {
    /// A value.
    Node(NodeId),
    /// An argument of a macro that takes its dtype from where it is used.
    Open(Rc<Open<'a>>),
    /// An optional argument that is not given.
    Absent,
}

/// An expression of literals, positions and sizes, and where its names are to be looked up.
pub(super) struct Open<'a> {
    pub(super) expr: &'a Expr,
    pub(super) frame: Rc<Frame<'a>>,
    /// The dtype it has by itself.
    pub(super) dtype: DType,
}

/// An axis that a macro's axis parameter stands for.
#[derive(Clone, Debug)]
pub(super) struct AxisArg {
    pub(super) name: String,
    /// If the call says it, as in `best[v -> t=5](%x)`.
    pub(super) size: Option<u64>,
}

/// A body: of the function, or of one expansion of a macro.
#[derive(Default)]
pub(super) struct Frame<'a> {
    pub(super) params: BTreeMap<&'a str, Bound<'a>>,
    /// Axis parameters, and axes that the macro's body has introduced.
    pub(super) axes: RefCell<BTreeMap<String, Vec<AxisArg>>>,
    /// `None` for the function itself.
    pub(super) expands: Option<&'a MacroDef>,
    /// Whether the macro is one of the prelude, which sees no other macros.
    pub(super) prelude: bool,
}

/// The names that statements so far have defined.
#[derive(Clone, Default)]
pub(super) struct Scope<'a> {
    pub(super) frame: Rc<Frame<'a>>,
    pub(super) values: BTreeMap<&'a str, (Bound<'a>, Span)>,
    pub(super) poisoned: BTreeSet<&'a str>,
}

impl<'a> Scope<'a> {
    /// The scope in which nothing but the parameters of a frame is defined.
    pub(super) fn of(frame: Rc<Frame<'a>>) -> Scope<'a> {
        Scope { frame, values: BTreeMap::new(), poisoned: BTreeSet::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Bound<'a>> {
        self.values.get(name).map(|(bound, _)| bound).or_else(|| self.frame.params.get(name))
    }
}
