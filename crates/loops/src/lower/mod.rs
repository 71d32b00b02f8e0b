//! From fold programs to loop IR: loops, tiles, vectors, registers.
//!
//! [`Schedule`] says how (it is data, and prints); the rest is two layers. Statements decide which axis is vectorised, tiled
//! or blocked: `map` for loops that only store, `pass` and what it is made of for folds. Terms become registers in
//! `expr` and below, whatever the statements decided: a term is a vector if it varies along the axis that is vectorised
//! here, and it is computed in the outermost loop that knows all it depends on.

mod affine;
mod anchor;
mod argmax;
mod blocked;
mod carry;
mod contract;
mod cost;
mod edge;
mod emit;
mod expr;
mod functions;
mod heap;
mod kept;
mod load;
mod map;
mod nest;
mod number;
mod ops;
mod pass;
mod place;
mod plan;
mod power;
mod reduce;
mod schedule;
mod scope;
mod size;
mod state;
mod tidy;
mod topk;
mod vector;

pub use schedule::{Schedule, ScheduleError, MAX_IN_FLIGHT, MAX_TILE};

use crate::{BufId, BufferKind, Elem, Kernel, Reg, SizeParam, Split, Target};
use emit::{Emit, I64};
use onefold_ir::{AxisId, Extent};
use onefold_passes::fold::{ArrayDecl, FoldProgram};
use onefold_passes::phases;
use scope::{Leaves, Scope, ScopeId};
use size::Length;
use std::collections::HashMap;

/// Why a fold program has no kernel.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LowerError {
    /// The interpreter runs it, kernels do not yet.
    #[error("{what} are not supported in compiled kernels yet (the interpreter runs it: --backend interp)")]
    Unsupported {
        /// What is not.
        what: String,
    },
    /// The schedule has a number that no kernel can be made with.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// What is kept of the tiles does not fit the stack.
    #[error(
        "the kernel's stack frame would have {bytes} bytes of at most {}: it needs shorter `tiles`",
        crate::MAX_FRAME
    )]
    Frame {
        /// Bytes of all buffers on the stack.
        bytes: u64,
    },
    /// A bug of ours.
    #[error("internal error, this is a bug in onefold: {what}")]
    Internal {
        /// What went wrong.
        what: String,
    },
}

impl LowerError {
    pub(crate) fn unsupported(what: impl Into<String>) -> LowerError {
        LowerError::Unsupported { what: what.into() }
    }

    pub(crate) fn internal(what: impl Into<String>) -> LowerError {
        LowerError::Internal { what: what.into() }
    }
}

/// A lowering in progress.
pub(crate) struct Lowering<'p> {
    program: &'p FoldProgram,
    target: &'p Target,
    schedule: &'p Schedule,
    emit: Emit,
    scopes: Vec<Scope>,
    current: ScopeId,
    /// Whether values wanted now are those of the first lane.
    first: bool,
    leaves: Vec<Leaves>,
    heights: Vec<u32>,
    lengths: Vec<Length>,
    sizes: Vec<SizeParam>,
    size_regs: HashMap<AxisId, Reg>,
    products: HashMap<(Reg, Reg), Reg>,
    inputs: Vec<BufId>,
    outputs: Vec<BufId>,
    intermediates: Vec<BufId>,
    /// Mantissas and exponents of exponentials.
    parts: HashMap<Reg, (Reg, Reg)>,
    /// Tile buffers of the pass at hand, and of those that are over.
    tile_buffers: Vec<BufId>,
    free_buffers: Vec<BufId>,
    /// Through which vectors pass that are computed lane by lane.
    lane_buffers: HashMap<(Elem, u16), BufId>,
    split: Option<Split>,
    passes_done: usize,
}

/// The kernel of a fold program. Its buffers are the inputs, the outputs, then its own; its sizes are the symbolic axes in
/// order; it splits over the outermost loop if it has just one.
///
/// # Errors
/// The schedule is out of range, or the program uses what kernels do not support yet or is malformed.
pub fn lower(program: &FoldProgram, target: &Target, schedule: &Schedule) -> Result<Kernel, LowerError> {
    phase(program, target, schedule, None)
}

/// The kernels of a program's phases (see [`phases::phases`]), to be run one after the other; each splits over its outermost
/// loop. If there are several, all of them take the intermediates behind the outputs: arrays that live as long as the call.
///
/// # Errors
/// As [`lower`].
pub fn lower_phases(program: &FoldProgram, target: &Target, schedule: &Schedule) -> Result<Vec<Kernel>, LowerError> {
    let phases = phases::phases(program);
    if phases.len() < 2 {
        return Ok(vec![lower(program, target, schedule)?]);
    }
    let mut kernels = vec![];
    let mut passes_before = 0;
    for (at, program) in phases.iter().enumerate() {
        let kernel = phase(program, target, schedule, Some(passes_before))?;
        passes_before += phases::passes(&program.body);
        kernels.push(Kernel { name: format!("{}_{}", kernel.name, at + 1), ..kernel });
    }
    Ok(kernels)
}

/// The kernel of a program, or of one of its phases: then intermediates are parameters, and so many passes came before.
fn phase(
    program: &FoldProgram,
    target: &Target,
    schedule: &Schedule,
    passes_before: Option<usize>,
) -> Result<Kernel, LowerError> {
    schedule.check()?;
    let (program, tree) = nest::nest(program, (target.vector_bytes / 4).max(1));
    let program = &program;
    let mut emit = Emit::default();
    let root = emit.block();
    emit.enter(root);
    let mut sizes = vec![];
    for axis in program.axes.iter().filter(|a| a.extent == Extent::Symbolic) {
        sizes.push(SizeParam { name: axis.name.clone(), reg: emit.reg(I64, &axis.name) });
    }
    let mut lowering = Lowering {
        program,
        target,
        schedule,
        emit,
        scopes: vec![],
        current: ScopeId(0),
        first: false,
        leaves: scope::leaves(&program.terms),
        heights: scope::heights(&program.terms),
        lengths: size::lengths(&program.axes)?,
        sizes,
        size_regs: HashMap::new(),
        products: HashMap::new(),
        inputs: vec![],
        outputs: vec![],
        intermediates: vec![],
        parts: HashMap::new(),
        tile_buffers: vec![],
        free_buffers: vec![],
        lane_buffers: HashMap::new(),
        split: None,
        passes_done: passes_before.unwrap_or(0),
    };
    lowering.scopes.push(Scope::root(root));
    lowering.inputs = lowering.arrays(&program.inputs, BufferKind::Input)?;
    lowering.outputs = lowering.arrays(&program.outputs, BufferKind::Output)?;
    let stored = phases::stored(&program.body);
    for (at, decl) in program.intermediates.iter().enumerate() {
        let kind = match passes_before {
            None => BufferKind::Scratch,
            Some(_) if stored.contains(&at) => BufferKind::Output,
            Some(_) => BufferKind::Input,
        };
        let buffer = lowering.arrays(std::slice::from_ref(decl), kind)?;
        lowering.intermediates.extend(buffer);
    }
    match &tree[..] {
        [node] => lowering.outermost(node)?,
        nodes => lowering.nodes(nodes)?,
    }
    let body = lowering.emit.take(root);
    let Lowering { emit, sizes, split, .. } = lowering;
    let kernel = Kernel { name: program.name.clone(), sizes, buffers: emit.buffers, regs: emit.regs, split, body };
    match crate::frame_bytes(&kernel) {
        Some(bytes) if bytes <= crate::MAX_FRAME => Ok(tidy::tidy(kernel)),
        bytes => Err(LowerError::Frame { bytes: bytes.unwrap_or(u64::MAX) }),
    }
}

impl Lowering<'_> {
    fn arrays(&mut self, decls: &[ArrayDecl], kind: BufferKind) -> Result<Vec<BufId>, LowerError> {
        let mut buffers = vec![];
        for decl in decls {
            let len = self.elements(&decl.axes);
            buffers.push(self.emit.buffer(&decl.name, number::mem_elem(decl.dtype)?, kind, len));
        }
        Ok(buffers)
    }
}
