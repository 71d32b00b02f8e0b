//! What nothing reads is left out, and registers are numbered in the order in which they are assigned.

use crate::{Expr, Kernel, Reg, RegDecl, Stmt};
use std::collections::HashMap;

/// The kernel without assignments that nothing depends on.
pub fn tidy(mut kernel: Kernel) -> Kernel {
    loop {
        let mut read = vec![false; kernel.regs.len()];
        visit(&kernel.body, &mut |reg| read[reg.0 as usize] = true);
        if !prune(&mut kernel.body, &read) {
            break;
        }
    }
    renumber(&mut kernel);
    kernel
}

/// Every register that is read, except by assignments to itself alone.
fn visit(body: &[Stmt], found: &mut dyn FnMut(Reg)) {
    for stmt in body {
        match stmt {
            Stmt::Assign(dst, expr) => {
                expr.operands().into_iter().filter(|reg| reg != dst).for_each(&mut *found);
            }
            Stmt::Store { offset, value, tail, .. } => {
                [Some(*offset), Some(*value), *tail].into_iter().flatten().for_each(&mut *found)
            }
            Stmt::For { lo, hi, body, .. } => {
                found(*lo);
                found(*hi);
                visit(body, found);
            }
            Stmt::If { cond, then, els } => {
                found(*cond);
                visit(then, found);
                visit(els, found);
            }
            Stmt::Fail { cond, .. } => found(*cond),
            Stmt::Prefetch { offset, .. } => found(*offset),
            Stmt::Comment(_) => {}
        }
    }
}

/// Remove assignments to registers that are not read, and loops and branches that are left empty.
fn prune(body: &mut Vec<Stmt>, read: &[bool]) -> bool {
    let before = body.len();
    body.retain(|stmt| !matches!(stmt, Stmt::Assign(dst, _) if !read[dst.0 as usize]));
    let mut changed = body.len() != before;
    for stmt in body.iter_mut() {
        match stmt {
            Stmt::For { body, .. } => changed |= prune(body, read),
            Stmt::If { then, els, .. } => changed |= prune(then, read) | prune(els, read),
            _ => {}
        }
    }
    let idle = |body: &[Stmt]| body.iter().all(|s| matches!(s, Stmt::Comment(_)));
    let before = body.len();
    body.retain(|stmt| match stmt {
        Stmt::For { body, .. } => !idle(body),
        Stmt::If { then, els, .. } => !(idle(then) && idle(els)),
        _ => true,
    });
    changed | (body.len() != before)
}

/// Number registers in order of appearance and drop those that do not appear.
fn renumber(kernel: &mut Kernel) {
    let mut map: HashMap<Reg, Reg> = HashMap::new();
    let mut regs: Vec<RegDecl> = vec![];
    let old = std::mem::take(&mut kernel.regs);
    let mut number = |reg: &mut Reg| {
        let new = *map.entry(*reg).or_insert_with(|| {
            regs.push(old[reg.0 as usize].clone());
            Reg(regs.len() as u32 - 1)
        });
        *reg = new;
    };
    kernel.sizes.iter_mut().for_each(|size| number(&mut size.reg));
    if let Some(split) = &mut kernel.split {
        number(&mut split.begin);
        number(&mut split.end);
    }
    rename(&mut kernel.body, &mut number);
    kernel.regs = regs;
}

fn rename(body: &mut [Stmt], number: &mut dyn FnMut(&mut Reg)) {
    for stmt in body {
        match stmt {
            Stmt::Assign(dst, expr) => {
                rename_operands(expr, number);
                number(dst);
            }
            Stmt::Store { offset, value, tail, .. } => {
                number(offset);
                number(value);
                tail.iter_mut().for_each(&mut *number);
            }
            Stmt::For { var, lo, hi, body, .. } => {
                number(lo);
                number(hi);
                number(var);
                rename(body, number);
            }
            Stmt::If { cond, then, els } => {
                number(cond);
                rename(then, number);
                rename(els, number);
            }
            Stmt::Fail { cond, .. } => number(cond),
            Stmt::Prefetch { offset, .. } => number(offset),
            Stmt::Comment(_) => {}
        }
    }
}

fn rename_operands(expr: &mut Expr, number: &mut dyn FnMut(&mut Reg)) {
    match expr {
        Expr::Const(..) | Expr::Iota(_) => {}
        Expr::Copy(a)
        | Expr::Unary(_, a)
        | Expr::Convert(_, a)
        | Expr::Bitcast(_, a)
        | Expr::Splat(_, a)
        | Expr::Extract(a, _)
        | Expr::Reduce(_, a) => number(a),
        Expr::Binary(_, a, b) | Expr::Compare(_, a, b) => {
            number(a);
            number(b);
        }
        Expr::Fma(a, b, c) | Expr::Select(a, b, c) => {
            number(a);
            number(b);
            number(c);
        }
        Expr::Load { offset, stride, tail, .. } => {
            number(offset);
            stride.iter_mut().for_each(&mut *number);
            if let Some((count, fill)) = tail {
                number(count);
                number(fill);
            }
        }
    }
}
