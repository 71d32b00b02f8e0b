//! The order of straight-line statements: copies of one computation side by side.
//!
//! Lowering unrolls loops by writing one copy after the other. With code generation that keeps the order, each copy then waits for its own
//! chain of multiply-adds, and constants are loaded for each copy. Sorting a run of statements by distance from its end puts
//! equal operations of the copies next to each other: chains overlap, and a constant loaded once serves all copies before it is forgotten.

use onefold_loops::{BufId, BufferKind, Expr, Kernel, Reg, Stmt};
use std::collections::HashMap;

/// The kernel with its runs of statements sorted.
pub fn interleave(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(&kernel, body);
    kernel
}

fn block(kernel: &Kernel, statements: Vec<Stmt>) -> Vec<Stmt> {
    let mut sorted = vec![];
    let mut run = vec![];
    for statement in statements {
        match statement {
            Stmt::Assign(..) | Stmt::Store { tail: None, .. } | Stmt::Comment(_) => run.push(statement),
            Stmt::For { var, lo, hi, step, parallel, body } => {
                flush(kernel, &mut run, &mut sorted);
                sorted.push(Stmt::For { var, lo, hi, step, parallel, body: block(kernel, body) });
            }
            Stmt::If { cond, then, els } => {
                flush(kernel, &mut run, &mut sorted);
                sorted.push(Stmt::If { cond, then: block(kernel, then), els: block(kernel, els) });
            }
            Stmt::Prefetch { .. } => {}
            Stmt::Store { .. } | Stmt::Fail { .. } => {
                flush(kernel, &mut run, &mut sorted);
                sorted.push(statement);
            }
        }
    }
    flush(kernel, &mut run, &mut sorted);
    sorted
}

/// What a later statement may have to wait for: numbers of earlier statements of the run.
#[derive(Default)]
struct Seen {
    written: HashMap<Reg, usize>,
    read: HashMap<Reg, Vec<usize>>,
    stored: HashMap<BufId, usize>,
    loaded: HashMap<BufId, Vec<usize>>,
}

/// Sort by distance from the end, as late as dependences allow: a load then stands right before its use, and holds no register until then.
fn flush(kernel: &Kernel, run: &mut Vec<Stmt>, sorted: &mut Vec<Stmt>) {
    run.retain(|s| !matches!(s, Stmt::Comment(_)));
    let mut seen = Seen::default();
    let before: Vec<Vec<usize>> =
        run.iter().enumerate().map(|(at, s)| predecessors(kernel, &mut seen, at, s)).collect();
    let mut height = vec![0u32; run.len()];
    for at in (0..run.len()).rev() {
        for b in &before[at] {
            height[*b] = height[*b].max(height[at] + 1);
        }
    }
    let mut keyed: Vec<(u32, Stmt)> = height.into_iter().zip(run.drain(..)).collect();
    keyed.sort_by_key(|(height, _)| std::cmp::Reverse(*height));
    sorted.extend(keyed.into_iter().map(|(_, s)| s));
}

/// Statements of the run that must stand before one.
fn predecessors(kernel: &Kernel, seen: &mut Seen, at: usize, statement: &Stmt) -> Vec<usize> {
    let (reads, writes, load, store) = match statement {
        Stmt::Assign(dst, expr) => (expr.operands(), Some(*dst), loaded(expr), None),
        Stmt::Store { buf, offset, value, .. } => (vec![*offset, *value], None, None, Some(*buf)),
        _ => (vec![], None, None, None),
    };
    let mut before: Vec<usize> = reads.iter().filter_map(|r| seen.written.get(r).copied()).collect();
    if let Some(dst) = writes {
        before.extend(seen.written.get(&dst));
        before.extend(seen.read.remove(&dst).unwrap_or_default());
    }
    // Inputs are never stored to, so their loads wait for nothing.
    if let Some(buf) = load.filter(|b| kernel.buffer(*b).kind != BufferKind::Input) {
        before.extend(seen.stored.get(&buf));
        seen.loaded.entry(buf).or_default().push(at);
    }
    if let Some(buf) = store {
        before.extend(seen.stored.get(&buf));
        before.extend(seen.loaded.remove(&buf).unwrap_or_default());
        seen.stored.insert(buf, at);
    }
    for reg in reads {
        seen.read.entry(reg).or_default().push(at);
    }
    if let Some(dst) = writes {
        seen.written.insert(dst, at);
    }
    before
}

fn loaded(expr: &Expr) -> Option<BufId> {
    match expr {
        Expr::Load { buf, .. } => Some(*buf),
        _ => None,
    }
}
