//! The loop nest: what of the fold program's loops stays a loop, and what becomes an axis that states keep.
//!
//! A pass inside a loop over `p` that meets its inputs across the grain (rows of a product's second factor, columns of a
//! sum) reads with strides along what it streams but neighbours along `p`. Then `p` is taken in blocks, the states are
//! arrays along a block, and the pass runs once for all of it. Only passes without anchors: those vary along `p`.

use super::cost::{access_cost, short};
use super::emit::I64;
use super::map::Store;
use super::scope::Bind;
use super::{LowerError, Lowering};
use crate::{BinOp, Count, Reg, Split};
use onefold_ir::AxisId;
use onefold_passes::fold::{FoldProgram, Item, Pass, State, StateOp, Step};
use onefold_passes::schedule::reads::pass_terms;

/// Positions of an axis in a block.
pub const BLOCK: u64 = 256;

/// One dimension of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// The positions of an axis.
    Axis(AxisId),
    /// An axis in blocks of [`BLOCK`] positions.
    Blocks(AxisId),
}

/// A step of the nest.
#[derive(Clone, Debug)]
pub enum Node {
    /// Independent iterations.
    Loop { dims: Vec<Dim>, body: Vec<Node> },
    /// Stores at every position along some axes.
    Map { axes: Vec<AxisId>, stores: Vec<Store> },
    /// A fold.
    Pass(Pass),
    /// A store at the current position.
    Store(Store),
    /// A running sum along an axis is stored.
    Scan(AxisId, Store),
}

/// The nest of a program, and the program with the states that the nest keeps along blocks.
pub fn nest(program: &FoldProgram, lanes: u32) -> (FoldProgram, Vec<Node>) {
    let mut kept = program.clone();
    let nodes = nodes(&program.body, &mut kept, lanes);
    (kept, nodes)
}

fn nodes(steps: &[Step], program: &mut FoldProgram, lanes: u32) -> Vec<Node> {
    let node = |step: &Step, program: &mut FoldProgram| match step {
        Step::Pass(pass) => Node::Pass(pass.clone()),
        Step::Store { target, value } => Node::Store((*target, *value)),
        Step::Scan { axis, target, value } => Node::Scan(*axis, (*target, *value)),
        Step::Loop { axes, body } => {
            if let Some(stores) = stores(body) {
                return Node::Map { axes: axes.clone(), stores };
            }
            let Some(across) = across(program, axes, body, lanes) else {
                let dims = axes.iter().map(|a| Dim::Axis(*a)).collect();
                return Node::Loop { dims, body: nodes(body, program, lanes) };
            };
            let mut dims: Vec<Dim> = axes.iter().filter(|a| **a != across).map(|a| Dim::Axis(*a)).collect();
            // Outside the innermost loop: what a block reads stays near while that loop runs.
            dims.insert(dims.len().saturating_sub(1), Dim::Blocks(across));
            Node::Loop { dims, body: widened(body, across, program) }
        }
    };
    steps.iter().map(|step| node(step, program)).collect()
}

/// The stores of a body that consists of nothing else.
fn stores(body: &[Step]) -> Option<Vec<Store>> {
    let store = |step: &Step| match step {
        Step::Store { target, value } => Some((*target, *value)),
        _ => None,
    };
    body.iter().map(store).collect()
}

/// The axis of a loop that the passes inside should run across, if one is better than what they stream.
fn across(program: &FoldProgram, axes: &[AxisId], body: &[Step], lanes: u32) -> Option<AxisId> {
    let mut passes = vec![];
    for step in body {
        match step {
            Step::Pass(pass) => passes.push(pass),
            Step::Loop { body, .. } => {
                stores(body)?;
            }
            Step::Store { .. } => {}
            Step::Scan { .. } => return None,
        }
    }
    let plain = |item: &Item| match item {
        Item::Anchor(_) => false,
        Item::State(id) => !matches!(program.states[id.0 as usize].op, StateOp::ArgMax | StateOp::TopK { .. }),
    };
    if passes.is_empty() || !passes.iter().all(|p| p.order.iter().all(plain)) {
        return None;
    }
    let cost = |axis: Option<AxisId>| -> u32 {
        let of = |pass: &&Pass| {
            let (roots, _) = pass_terms(program, pass);
            let streamed = pass.axes.last().copied();
            axis.or(streamed).map_or(0, |axis| access_cost(program, &roots, axis, lanes, &|_| false))
        };
        passes.iter().map(of).sum()
    };
    let best = axes.iter().copied().filter(|a| !short(program, *a, lanes)).min_by_key(|a| cost(Some(*a)))?;
    (cost(Some(best)) < cost(None)).then_some(best)
}

/// A body with its states kept along one more axis; what is not a pass runs along that axis.
fn widened(body: &[Step], across: AxisId, program: &mut FoldProgram) -> Vec<Node> {
    let mut nodes = vec![];
    for step in body {
        match step {
            Step::Pass(pass) => {
                for item in &pass.order {
                    if let Item::State(id) = item {
                        let state: &mut State = &mut program.states[id.0 as usize];
                        state.axes.push(across);
                    }
                }
                nodes.push(Node::Pass(pass.clone()));
            }
            Step::Store { target, value } => {
                nodes.push(Node::Map { axes: vec![across], stores: vec![(*target, *value)] });
            }
            Step::Scan { axis, target, value } => nodes.push(Node::Scan(*axis, (*target, *value))),
            Step::Loop { axes, body } => {
                let axes = axes.iter().copied().chain([across]).collect();
                nodes.push(Node::Map { axes, stores: stores(body).unwrap_or_default() });
            }
        }
    }
    nodes
}

impl Lowering<'_> {
    /// Nodes in order, at the current position.
    pub fn nodes(&mut self, nodes: &[Node]) -> Result<(), LowerError> {
        for node in nodes {
            match node {
                Node::Loop { dims, body } => self.loops(dims, &mut |lower| lower.nodes(body))?,
                Node::Map { axes, stores } => self.map(axes, stores, None)?,
                Node::Pass(pass) => self.pass(pass)?,
                Node::Store((target, value)) => self.store(*target, *value)?,
                Node::Scan(axis, store) => self.scan(*axis, *store)?,
            }
        }
        Ok(())
    }

    /// The program's only outermost node: calls may share its iterations.
    pub fn outermost(&mut self, node: &Node) -> Result<(), LowerError> {
        match node {
            Node::Loop { dims, body } => {
                let range = (self.emit.reg(I64, "begin"), self.emit.reg(I64, "end"));
                self.split_loop(dims, range, &mut |lower| lower.nodes(body))
            }
            Node::Map { axes, stores } => {
                let range = (self.emit.reg(I64, "begin"), self.emit.reg(I64, "end"));
                self.map(axes, stores, Some(range))
            }
            other => self.nodes(std::slice::from_ref(other)),
        }
    }

    /// Loops, outermost first.
    pub fn loops(
        &mut self,
        dims: &[Dim],
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        match dims.split_first() {
            None => body(self),
            Some((Dim::Axis(axis), rest)) => self.scalar_loop(*axis, false, &mut |lower| lower.loops(rest, body)),
            Some((Dim::Blocks(axis), rest)) => {
                let (zero, size) = (self.emit.int(0), self.size(*axis)?);
                let (block, outside) = self.open();
                let name = format!("{}_block", self.axis_name(*axis));
                let var = self.emit.reg(I64, &name);
                self.bind_block(*axis, var)?;
                self.loops(rest, body)?;
                self.enter(outside);
                self.emit.push_for(var, zero, size, BLOCK, false, block);
                Ok(())
            }
        }
    }

    /// Restrict an axis to the block that begins at a position.
    fn bind_block(&mut self, axis: AxisId, lo: Reg) -> Result<(), LowerError> {
        let (size, step) = (self.size(axis)?, self.emit.int(BLOCK as i64));
        let end = self.emit.add(lo, step);
        let hi = self.emit.bin(BinOp::Min, end, size);
        self.here().ranges.push((axis, lo, hi));
        Ok(())
    }

    /// One loop over all positions along some dimensions, of which this call runs its share.
    pub fn split_loop(
        &mut self,
        dims: &[Dim],
        (begin, end): (Reg, Reg),
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let count = |lower: &Self, dim: &Dim| match dim {
            Dim::Axis(axis) => lower.extent(*axis).count.clone(),
            Dim::Blocks(axis) => {
                Count::DivCeil(Box::new(lower.extent(*axis).count.clone()), Box::new(Count::Const(BLOCK)))
            }
        };
        let extent = dims.iter().map(|d| count(self, d)).reduce(|a, b| match (a, b) {
            (Count::Const(a), Count::Const(b)) => Count::Const(a.saturating_mul(b)),
            (a, b) => Count::Mul(Box::new(a), Box::new(b)),
        });
        self.split = Some(Split { begin, end, extent: extent.unwrap_or(Count::Const(1)) });
        let sizes: Vec<Reg> = dims.iter().map(|d| self.dim_size(*d)).collect::<Result<_, _>>()?;
        let (block, outside) = self.open();
        let name = match dims {
            [Dim::Axis(axis)] => self.axis_name(*axis).to_owned(),
            _ => "at".to_owned(),
        };
        let var = self.emit.reg(I64, &name);
        let mut rest = var;
        for (n, (dim, size)) in dims.iter().zip(sizes).enumerate().rev() {
            let mut position = rest;
            if n > 0 {
                position = self.emit.bin(BinOp::Rem, rest, size);
                rest = self.emit.bin(BinOp::Div, rest, size);
            }
            match dim {
                Dim::Axis(axis) => self.here().binds.push((*axis, Bind::Scalar(position))),
                Dim::Blocks(axis) => {
                    let length = self.emit.int(BLOCK as i64);
                    let lo = self.emit.mul(position, length);
                    self.bind_block(*axis, lo)?;
                }
            }
        }
        body(self)?;
        self.enter(outside);
        self.emit.push_for(var, begin, end, 1, true, block);
        Ok(())
    }

    fn dim_size(&mut self, dim: Dim) -> Result<Reg, LowerError> {
        match dim {
            Dim::Axis(axis) => self.size(axis),
            Dim::Blocks(axis) => {
                let (size, more) = (self.size(axis)?, self.emit.int(BLOCK as i64 - 1));
                let up = self.emit.add(size, more);
                let length = self.emit.int(BLOCK as i64);
                Ok(self.emit.bin(BinOp::Div, up, length))
            }
        }
    }

    /// Positions of an axis that are at hand: all, or those of a block.
    pub fn range(&mut self, axis: AxisId) -> Result<(Reg, Reg), LowerError> {
        if let Some(range) = self.block_of(axis) {
            return Ok(range);
        }
        Ok((self.emit.int(0), self.size(axis)?))
    }

    /// The block that an axis is restricted to.
    pub fn block_of(&self, axis: AxisId) -> Option<(Reg, Reg)> {
        self.path().find_map(|(_, s)| s.ranges.iter().find(|(a, ..)| *a == axis).map(|(_, lo, hi)| (*lo, *hi)))
    }
}
