//! Schedules: the numbers that shape a kernel.

use crate::Target;
use onefold_ir::AxisId;
use onefold_passes::fold::{FoldProgram, Item, Pass, Step};
use onefold_passes::schedule::reads::pass_terms;
use onefold_passes::term::TermOp;
use std::fmt;

/// How a fold program becomes loops. The same schedule gives the same kernel everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// For each pass, in order of the text, the number of elements of its last axis in a tile.
    pub tiles: Vec<u32>,
    /// Vectors in flight in loops with cheap bodies.
    pub accumulators: u32,
    /// Vectors in flight in loops with expensive bodies.
    pub unroll: u32,
    /// Vectors of a state's row that are summed side by side.
    pub block: u32,
    /// Elements whose inner reductions run side by side.
    pub side: u32,
    /// Whether sums along kept axes carry what rounding takes from them from tile to tile.
    pub compensate: bool,
}

/// Tiles of passes whose states are single values, and of those with arrays or reductions inside.
const LONG_TILE: u32 = 2048;
const SHORT_TILE: u32 = 64;

impl Schedule {
    /// A schedule for a program on a target.
    pub fn choose(program: &FoldProgram, target: &Target) -> Schedule {
        let mut tiles = vec![];
        let mut long = false;
        passes(&program.body, &mut |pass| {
            let (roots, _) = pass_terms(program, pass);
            let reduces =
                program.terms.reachable(&roots).iter().any(|t| matches!(program.terms.get(*t).op, TermOp::Reduce(..)));
            let keeps = pass.order.iter().any(|item| match item {
                Item::State(s) => !program.states[s.0 as usize].axes.is_empty(),
                Item::Anchor(_) => false,
            });
            long |= keeps && !pass.axes.iter().all(|a| is_short(program, *a));
            tiles.push(if reduces || keeps { SHORT_TILE } else { LONG_TILE });
        });
        let many = target.vector_registers >= 32;
        Schedule { tiles, accumulators: 4, unroll: 4, block: if many { 8 } else { 4 }, side: 4, compensate: long }
    }
}

fn is_short(program: &FoldProgram, axis: AxisId) -> bool {
    matches!(program.axes[axis.0 as usize].extent, onefold_ir::Extent::Fixed(n) if n <= 4096)
}

fn passes(steps: &[Step], found: &mut dyn FnMut(&Pass)) {
    for step in steps {
        match step {
            Step::Loop { body, .. } => passes(body, found),
            Step::Pass(pass) => found(pass),
            Step::Store { .. } => {}
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
