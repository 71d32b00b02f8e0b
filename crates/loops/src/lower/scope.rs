//! Scopes: which axes are bound to what, and at which loop a term can be computed.
//!
//! A scope is a point of the loop nest where something becomes known: the position along an axis, the final value of a
//! state, a tile. A term is computed once, in the innermost scope that knows something it depends on, and remembered there.

use super::emit::Block;
use super::place::{Place, StatePlace};
use super::{LowerError, Lowering};
use crate::Reg;
use onefold_ir::{AxisId, AxisSet};
use onefold_passes::fold::{AnchorId, StateId};
use onefold_passes::term::{TermId, TermOp, Terms};
use std::collections::HashMap;
use std::rc::Rc;

/// A scope: an index into [`Lowering::scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeId(pub usize);

/// What an axis is bound to.
#[derive(Clone, Copy, Debug)]
pub enum Bind {
    /// One position.
    Scalar(Reg),
    /// Neighbouring positions, one in each lane.
    Vector(Lanes),
}

/// A vectorised axis.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Position of the first lane.
    pub base: Reg,
    /// How many.
    pub lanes: u16,
    /// Whether elements are 8 bytes wide instead of up to 4.
    pub wide: bool,
    /// If given, only so many lanes (`i64`) are positions of the axis.
    pub tail: Option<Reg>,
}

/// Where a later copy of an unrolled body stands: so far behind the first copy.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    /// The first copy.
    pub first: ScopeId,
    /// The axis along which copies stand side by side.
    pub axis: AxisId,
    /// Positions between the two.
    pub distance: i64,
}

/// Registers of an anchor.
#[derive(Clone, Copy, Debug)]
pub struct AnchorRegs {
    /// Current value, surrogates put in.
    pub new: Reg,
    /// Value before the tile.
    pub old: Reg,
}

/// The number of elements that a pass has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Streamed axes, outermost first.
    pub axes: Vec<AxisId>,
    /// Elements so far, `i64`.
    pub elements: Reg,
}

/// How a term's value is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As it is: a scalar, or a vector along the vectorised axis.
    Value,
    /// A scalar in every lane.
    Splat,
    /// The value in the first lane.
    First,
    /// Of a load, the sum of the first parts of its offset.
    Offset(u8),
    /// The same of a store; the term is the number of its target.
    Store(u8),
    /// Of a term in a tile buffer, its offset there.
    Place,
}

/// See the module.
#[derive(Debug)]
pub struct Scope {
    pub parent: Option<ScopeId>,
    pub block: Block,
    pub binds: Vec<(AxisId, Bind)>,
    /// Axes that a reduction inside a term is about to bind; they hide loops of the same name.
    pub hides: AxisSet,
    /// Whether this is one of several copies of a body: scopes inside may be shared by all of them.
    pub copy: bool,
    /// Of a copy that is not the first.
    pub twin: Option<Twin>,
    pub states: Vec<(StateId, Rc<StatePlace>)>,
    pub anchors: Vec<(AnchorId, AnchorRegs)>,
    pub seen: Option<Seen>,
    pub places: Vec<(TermId, Place)>,
    /// Axes restricted to a block of positions `lo..hi`.
    pub ranges: Vec<(AxisId, Reg, Reg)>,
    /// By term, mode and the copy (see [`Lowering::copy_above`]) that the value belongs to.
    pub memo: HashMap<(TermId, Mode, Option<ScopeId>), Reg>,
}

impl Scope {
    /// The scope around everything.
    pub fn root(block: Block) -> Scope {
        Scope {
            parent: None,
            block,
            binds: vec![],
            hides: AxisSet::EMPTY,
            copy: false,
            twin: None,
            states: vec![],
            anchors: vec![],
            seen: None,
            places: vec![],
            ranges: vec![],
            memo: HashMap::new(),
        }
    }
}

/// What a term depends on besides axes.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    pub states: Vec<StateId>,
    pub anchors: Vec<AnchorId>,
    pub seen: bool,
}

/// Number of levels of all terms.
pub fn heights(terms: &Terms) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::with_capacity(terms.len());
    for id in 0..terms.len() as u32 {
        let below = terms.get(TermId(id)).args.iter().map(|a| all[a.0 as usize]).max();
        all.push(below.map_or(0, |h| h.saturating_add(1)));
    }
    all
}

/// The leaves of all terms.
pub fn leaves(terms: &Terms) -> Vec<Leaves> {
    let mut all: Vec<Leaves> = Vec::with_capacity(terms.len());
    for id in 0..terms.len() as u32 {
        let term = terms.get(TermId(id));
        let mut mine = Leaves::default();
        match term.op {
            TermOp::State { state, .. } => mine.states.push(state),
            TermOp::Anchor(a) | TermOp::AnchorOld(a) => mine.anchors.push(a),
            TermOp::Seen(_) => mine.seen = true,
            _ => {}
        }
        for arg in &term.args {
            let below = &all[arg.0 as usize];
            mine.states.extend(&below.states);
            mine.anchors.extend(&below.anchors);
            mine.seen |= below.seen;
        }
        mine.states.sort_unstable();
        mine.states.dedup();
        mine.anchors.sort_unstable();
        mine.anchors.dedup();
        all.push(mine);
    }
    all
}

impl Lowering<'_> {
    /// A scope inside the current one, with a block of its own or sharing the current one's. Does not become current.
    pub fn scope(&mut self, block: Option<Block>) -> ScopeId {
        let block = block.unwrap_or(self.scopes[self.current.0].block);
        self.scopes.push(Scope { parent: Some(self.current), ..Scope::root(block) });
        ScopeId(self.scopes.len() - 1)
    }

    /// A block of statements of its own, entered with its scope; and the scope to return to.
    pub fn open(&mut self) -> (Block, ScopeId) {
        let block = self.emit.block();
        let scope = self.scope(Some(block));
        let outside = self.enter(scope);
        (block, outside)
    }

    /// Make a scope and its block current; returns the scope that was.
    pub fn enter(&mut self, scope: ScopeId) -> ScopeId {
        self.emit.enter(self.scopes[scope.0].block);
        std::mem::replace(&mut self.current, scope)
    }

    /// The current scope's record.
    pub fn here(&mut self) -> &mut Scope {
        &mut self.scopes[self.current.0]
    }

    /// The current scope and those around it, innermost first.
    pub fn path(&self) -> impl Iterator<Item = (ScopeId, &Scope)> + '_ {
        let mut next = Some(self.current);
        std::iter::from_fn(move || {
            let id = next?;
            let scope = &self.scopes[id.0];
            next = scope.parent;
            Some((id, scope))
        })
    }

    /// What an axis is bound to, and where.
    pub fn binding(&self, axis: AxisId) -> Option<(ScopeId, Bind)> {
        self.path().find_map(|(id, scope)| scope.binds.iter().find(|(a, _)| *a == axis).map(|(_, bind)| (id, *bind)))
    }

    /// Position along an axis; of the first lane if it is vectorised.
    pub fn position(&self, axis: AxisId) -> Result<Reg, LowerError> {
        match self.binding(axis) {
            Some((_, Bind::Scalar(reg))) => Ok(reg),
            Some((_, Bind::Vector(lanes))) => Ok(lanes.base),
            None => Err(LowerError::internal(format!("axis {} is not bound", self.axis_name(axis)))),
        }
    }

    /// The vectorised axis among some, where it was bound, and its lanes.
    pub fn vector_among(&self, axes: AxisSet) -> Option<(AxisId, ScopeId, Lanes)> {
        axes.iter().find_map(|axis| match self.binding(axis) {
            Some((scope, Bind::Vector(lanes))) => Some((axis, scope, lanes)),
            _ => None,
        })
    }

    /// The copy around a scope that a term with some axes belongs to. Copies may share the scope, but not such values.
    pub fn copy_above(&self, level: ScopeId, axes: AxisSet) -> Option<ScopeId> {
        self.path()
            .skip_while(|(id, _)| *id != level)
            .skip(1)
            .find(|(_, scope)| scope.copy && scope.binds.iter().any(|(a, _)| axes.contains(*a)))
            .map(|(id, _)| id)
    }

    /// Run as one of several copies: scopes from here out to the `group` that the copies stand in are inside that copy.
    pub fn with_copy<T>(&mut self, group: ScopeId, copy: ScopeId, f: impl FnOnce(&mut Self) -> T) -> T {
        let shared = self.path().find(|(_, scope)| scope.parent == Some(group)).map(|(id, _)| id);
        let Some(shared) = shared else {
            let outside = self.enter(copy);
            let result = f(self);
            self.enter(outside);
            return result;
        };
        self.scopes[shared.0].parent = Some(copy);
        let result = f(self);
        self.scopes[shared.0].parent = Some(group);
        result
    }

    /// The innermost scope that knows something a term depends on.
    pub fn level(&self, id: TermId) -> ScopeId {
        let axes = self.program.terms.get(id).axes;
        let leaves = &self.leaves[id.0 as usize];
        let matters = |scope: &Scope| {
            scope.binds.iter().any(|(a, _)| axes.contains(*a))
                || leaves.states.iter().any(|s| scope.states.iter().any(|(t, _)| s == t))
                || leaves.anchors.iter().any(|a| scope.anchors.iter().any(|(b, _)| a == b))
                || leaves.seen && scope.seen.is_some()
        };
        let root = ScopeId(0);
        self.path().find(|(_, scope)| matters(scope)).map_or(root, |(id, _)| id)
    }

    /// The tile buffer that holds a term, if one does here.
    pub fn place_of(&self, id: TermId) -> Option<Place> {
        let axes = self.program.terms.get(id).axes;
        for (_, scope) in self.path() {
            if let Some((_, place)) = scope.places.iter().find(|(t, _)| *t == id) {
                return Some(*place);
            }
            if !scope.hides.intersect(axes).is_empty() {
                return None;
            }
        }
        None
    }

    /// Where a state's value is.
    pub fn state_place(&self, id: StateId) -> Result<Rc<StatePlace>, LowerError> {
        self.path()
            .find_map(|(_, scope)| scope.states.iter().find(|(s, _)| *s == id).map(|(_, place)| place.clone()))
            .ok_or_else(|| LowerError::internal(format!("state {} is read before its pass", self.state_name(id))))
    }

    /// An anchor's registers.
    pub fn anchor_regs(&self, id: AnchorId) -> Result<AnchorRegs, LowerError> {
        self.path()
            .find_map(|(_, scope)| scope.anchors.iter().find(|(a, _)| *a == id).map(|(_, regs)| *regs))
            .ok_or_else(|| LowerError::internal("an anchor is read outside its pass"))
    }

    /// Name of an axis for registers and messages.
    pub fn axis_name(&self, axis: AxisId) -> &str {
        self.program.axes.get(axis.0 as usize).map_or("?", |a| &a.name)
    }

    fn state_name(&self, id: StateId) -> &str {
        self.program.states.get(id.0 as usize).map_or("?", |s| &s.name)
    }
}
