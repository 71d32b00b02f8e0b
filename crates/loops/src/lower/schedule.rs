//! Schedules: the numbers that shape a kernel.

use super::nest::{nest, Node};
use crate::Target;
use onefold_ir::{AxisId, AxisSet, Extent};
use onefold_passes::fold::{FoldProgram, Item, Pass};
use onefold_passes::schedule::reads::pass_terms;
use onefold_passes::term::TermOp;
use std::fmt;

/// How a fold program becomes loops. The same schedule gives the same kernel everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// For each pass, in order of the text, the number of elements of its last axis in a tile: 1 to [`MAX_TILE`]. Passes beyond the
    /// list have tiles of 64.
    pub tiles: Vec<u32>,
    /// Vectors in flight in loops with cheap bodies: 1 to [`MAX_IN_FLIGHT`].
    pub accumulators: u32,
    /// Vectors in flight in loops with expensive bodies: 1 to [`MAX_IN_FLIGHT`].
    pub unroll: u32,
    /// Vectors of a state's row that are summed side by side: 1 to [`MAX_IN_FLIGHT`].
    pub block: u32,
    /// Elements whose inner reductions run side by side: 1 to [`MAX_IN_FLIGHT`].
    pub side: u32,
    /// Whether sums along kept axes carry what rounding takes from them from tile to tile.
    pub compensate: bool,
}

/// Tiles of passes whose states are single values: as long as the cache near the core holds, since each costs a carry.
const LONG: u32 = 2048;
/// Tiles of passes with arrays or reductions inside: no more elements than may be added up one after the other.
const SHORT: u32 = 64;
/// Tiles of passes that only stream rows into arrays: few enough rows for the prefetcher to follow.
const ROWS: u32 = 16;

/// The longest tile: what is kept of one lies on the stack.
pub const MAX_TILE: u32 = 1 << 14;
/// The most copies of a loop's body: beyond, values are spilled and code only grows.
pub const MAX_IN_FLIGHT: u32 = 32;

/// A number of a schedule that no kernel can be made with.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("schedule: `{field}` is {value}, but must be from 1 to {largest}")]
pub struct ScheduleError {
    /// Which, as it is written: `side`, `tiles[1]`.
    pub field: String,
    /// What it is.
    pub value: u32,
    /// What it may be at most.
    pub largest: u32,
}

impl Schedule {
    /// Whether kernels can be made with these numbers.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let Schedule { tiles, accumulators, unroll, block, side, compensate: _ } = self;
        let tiles = tiles.iter().enumerate().map(|(at, tile)| (format!("tiles[{at}]"), *tile, MAX_TILE));
        let others = [("accumulators", accumulators), ("unroll", unroll), ("block", block), ("side", side)];
        let others = others.map(|(name, value)| (name.to_owned(), *value, MAX_IN_FLIGHT));
        for (field, value, largest) in tiles.chain(others) {
            if !(1..=largest).contains(&value) {
                return Err(ScheduleError { field, value, largest });
            }
        }
        Ok(())
    }

    /// A schedule for a program on a target.
    pub fn choose(program: &FoldProgram, target: &Target) -> Schedule {
        let (program, nodes) = nest(program, (target.vector_bytes / 4).max(1));
        let mut tiles = vec![];
        let mut compensate = false;
        passes(&nodes, &mut |pass| {
            let kept = kept_axes(&program, pass);
            compensate |= !kept.is_empty() && !pass.axes.iter().all(|a| is_short(&program, *a));
            tiles.push(tile(&program, pass, kept));
        });
        // Eight sums in flight keep two multiply-add units busy.
        Schedule { tiles, accumulators: 4, unroll: 4, block: 8, side: 8, compensate }
    }
}

fn tile(program: &FoldProgram, pass: &Pass, kept: AxisSet) -> u32 {
    let (roots, _) = pass_terms(program, pass);
    let below = program.terms.reachable(&roots);
    let reduces = below.iter().any(|t| matches!(program.terms.get(*t).op, TermOp::Reduce(..)));
    if kept.is_empty() {
        return if reduces { SHORT } else { LONG };
    }
    let reuses = below.iter().any(|t| {
        let term = program.terms.get(*t);
        matches!(term.op, TermOp::Load { .. }) && term.axes.intersect(kept).is_empty()
    });
    if reduces || reuses {
        SHORT
    } else {
        ROWS
    }
}

fn kept_axes(program: &FoldProgram, pass: &Pass) -> AxisSet {
    let mut kept = AxisSet::EMPTY;
    for item in &pass.order {
        if let Item::State(id) = item {
            kept = program.states[id.0 as usize].axes.iter().fold(kept, |set, a| set.with(*a));
        }
    }
    kept
}

fn is_short(program: &FoldProgram, axis: AxisId) -> bool {
    matches!(program.axes[axis.0 as usize].extent, Extent::Fixed(n) if n <= 4096)
}

fn passes(nodes: &[Node], found: &mut dyn FnMut(&Pass)) {
    for node in nodes {
        match node {
            Node::Loop { body, .. } => passes(body, found),
            Node::Pass(pass) => found(pass),
            Node::Store(_) | Node::Scan(..) | Node::Map { .. } => {}
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles: Vec<String> = self.tiles.iter().map(u32::to_string).collect();
        write!(f, "tiles [{}]", tiles.join(", "))?;
        write!(f, ", accumulators {}, unroll {}", self.accumulators, self.unroll)?;
        write!(f, ", block {}, side {}", self.block, self.side)?;
        f.write_str(if self.compensate { ", compensated sums" } else { "" })
    }
}
