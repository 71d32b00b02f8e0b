//! Statements and registers as they are made: blocks that are open at the same time, constants, arithmetic on offsets.
//!
//! Unlike a list that only grows at its end, an open block outside the current one can still be appended to: that is how
//! what does not depend on a loop gets in front of it.

use crate::{BinOp, BufId, Buffer, BufferKind, Cmp, Count, Elem, Expr, Fold, Number, Reg, RegDecl, Stmt, Ty, UnOp};
use std::collections::HashMap;

/// A list of statements under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(usize);

/// Registers, buffers and open blocks of a kernel.
#[derive(Debug, Default)]
pub struct Emit {
    /// Declared so far.
    pub regs: Vec<RegDecl>,
    /// Declared so far.
    pub buffers: Vec<Buffer>,
    blocks: Vec<Vec<Stmt>>,
    current: usize,
    /// `i64` registers whose value is known.
    known: HashMap<Reg, i64>,
    constants: HashMap<(usize, Ty, u64), Reg>,
}

pub const I64: Ty = Ty::scalar(Elem::I64);
pub const BOOL: Ty = Ty::scalar(Elem::Bool);

impl Emit {
    /// A new block; does not become current.
    pub fn block(&mut self) -> Block {
        self.blocks.push(vec![]);
        Block(self.blocks.len() - 1)
    }

    /// Make a block current; returns the one that was.
    pub fn enter(&mut self, block: Block) -> Block {
        Block(std::mem::replace(&mut self.current, block.0))
    }

    /// The statements of a finished block.
    pub fn take(&mut self, block: Block) -> Vec<Stmt> {
        std::mem::take(&mut self.blocks[block.0])
    }

    /// Append a statement to the current block.
    pub fn push(&mut self, stmt: Stmt) {
        self.blocks[self.current].push(stmt);
    }

    /// A remark.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Stmt::Comment(text.into()));
    }

    /// A register without a value yet.
    pub fn reg(&mut self, ty: Ty, name: &str) -> Reg {
        self.regs.push(RegDecl { ty, name: name.to_owned() });
        Reg(self.regs.len() as u32 - 1)
    }

    /// Type of a register.
    pub fn ty(&self, reg: Reg) -> Ty {
        self.regs[reg.0 as usize].ty
    }

    /// A register assigned once.
    pub fn let_(&mut self, ty: Ty, name: &str, expr: Expr) -> Reg {
        let reg = self.reg(ty, name);
        self.push(Stmt::Assign(reg, expr));
        reg
    }

    /// Assign to a register that exists.
    pub fn assign(&mut self, reg: Reg, expr: Expr) {
        self.push(Stmt::Assign(reg, expr));
    }

    /// Copy to a register that exists.
    pub fn copy(&mut self, to: Reg, from: Reg) {
        if to != from {
            self.push(Stmt::Assign(to, Expr::Copy(from)));
        }
    }

    /// A constant in every lane, once per block.
    pub fn constant(&mut self, ty: Ty, value: Number) -> Reg {
        let bits = match value {
            Number::Float(v) => v.to_bits(),
            Number::Int(v) => v as u64,
        };
        if let Some(&reg) = self.constants.get(&(self.current, ty, bits)) {
            return reg;
        }
        let reg = self.let_(ty, "c", Expr::Const(ty, value));
        self.constants.insert((self.current, ty, bits), reg);
        if let (Number::Int(v), true) = (value, ty == I64) {
            self.known.insert(reg, v);
        }
        reg
    }

    /// An `i64` constant.
    pub fn int(&mut self, value: i64) -> Reg {
        self.constant(I64, Number::Int(value))
    }

    /// A float constant.
    pub fn float(&mut self, ty: Ty, value: f64) -> Reg {
        self.constant(ty, Number::Float(value))
    }

    /// The value of an `i64` register, if it is a constant.
    pub fn known(&self, reg: Reg) -> Option<i64> {
        self.known.get(&reg).copied()
    }

    /// Two operands of one type.
    pub fn bin(&mut self, op: BinOp, a: Reg, b: Reg) -> Reg {
        let ty = self.ty(a);
        if ty == I64 {
            if let Some(reg) = self.fold(op, a, b) {
                return reg;
            }
        }
        self.let_(ty, "v", Expr::Binary(op, a, b))
    }

    /// Arithmetic on offsets where an operand is known.
    fn fold(&mut self, op: BinOp, a: Reg, b: Reg) -> Option<Reg> {
        match (op, self.known(a), self.known(b)) {
            (BinOp::Add, Some(x), Some(y)) => Some(self.int(x.wrapping_add(y))),
            (BinOp::Sub, Some(x), Some(y)) => Some(self.int(x.wrapping_sub(y))),
            (BinOp::Mul, Some(x), Some(y)) => Some(self.int(x.wrapping_mul(y))),
            (BinOp::Min, Some(x), Some(y)) => Some(self.int(x.min(y))),
            (BinOp::Max, Some(x), Some(y)) => Some(self.int(x.max(y))),
            (BinOp::And, Some(x), Some(y)) => Some(self.int(x & y)),
            (BinOp::Add, Some(0), _) | (BinOp::Mul, Some(1), _) => Some(b),
            (BinOp::Add | BinOp::Sub, _, Some(0)) | (BinOp::Mul | BinOp::Div, _, Some(1)) => Some(a),
            (BinOp::Mul, Some(0), _) | (BinOp::Mul, _, Some(0)) => Some(self.int(0)),
            _ => None,
        }
    }

    /// `a + b`.
    pub fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.bin(BinOp::Add, a, b)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Reg, b: Reg) -> Reg {
        self.bin(BinOp::Sub, a, b)
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.bin(BinOp::Mul, a, b)
    }

    /// One operand.
    pub fn un(&mut self, op: UnOp, a: Reg) -> Reg {
        let ty = self.ty(a);
        self.let_(ty, "v", Expr::Unary(op, a))
    }

    /// A comparison.
    pub fn cmp(&mut self, op: Cmp, a: Reg, b: Reg) -> Reg {
        let ty = self.ty(a).with(Elem::Bool);
        self.let_(ty, "p", Expr::Compare(op, a, b))
    }

    /// One of two values by a mask.
    pub fn select(&mut self, mask: Reg, yes: Reg, no: Reg) -> Reg {
        let ty = self.ty(yes);
        self.let_(ty, "v", Expr::Select(mask, yes, no))
    }

    /// Conversion of the element.
    pub fn convert(&mut self, elem: Elem, a: Reg) -> Reg {
        let ty = self.ty(a);
        if ty.elem == elem {
            return a;
        }
        if let (Some(v), Elem::F32 | Elem::F64) = (self.known(a), elem) {
            // Constants are exact or rounded as a conversion would round them.
            return self.float(ty.with(elem), v as f64);
        }
        self.let_(ty.with(elem), "v", Expr::Convert(elem, a))
    }

    /// A scalar in every lane; vectors stay.
    pub fn splat(&mut self, lanes: u16, a: Reg) -> Reg {
        let ty = self.ty(a);
        if ty.lanes == lanes {
            return a;
        }
        self.let_(Ty { lanes, ..ty }, "s", Expr::Splat(lanes, a))
    }

    /// All lanes into a scalar; scalars stay.
    pub fn fold_lanes(&mut self, fold: Fold, a: Reg) -> Reg {
        let ty = self.ty(a);
        if ty.lanes == 1 {
            return a;
        }
        self.let_(Ty::scalar(ty.elem), "r", Expr::Reduce(fold, a))
    }

    /// The number of true lanes of a mask, or the first of them.
    pub fn lanes_of_mask(&mut self, fold: Fold, mask: Reg) -> Reg {
        self.let_(I64, if fold == Fold::Count { "count" } else { "first" }, Expr::Reduce(fold, mask))
    }

    /// Load one element or several neighbours.
    pub fn load(&mut self, lanes: u16, buf: BufId, offset: Reg, name: &str) -> Reg {
        let ty = Ty { elem: self.buffers[buf.0 as usize].elem, lanes };
        self.let_(ty, name, Expr::Load { ty, buf, offset, stride: None, tail: None })
    }

    /// Store all lanes.
    pub fn store(&mut self, buf: BufId, offset: Reg, value: Reg) {
        self.push(Stmt::Store { buf, offset, value, tail: None, stream: false });
    }

    /// A buffer of the kernel's own.
    pub fn buffer(&mut self, name: &str, elem: Elem, kind: BufferKind, len: Count) -> BufId {
        let mut unique = name.to_owned();
        let mut n = 1;
        while self.buffers.iter().any(|b| b.name == unique) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        self.buffers.push(Buffer { name: unique, elem, kind, len });
        BufId(self.buffers.len() as u32 - 1)
    }

    /// Close a loop: its body becomes a statement of the current block.
    pub fn push_for(&mut self, var: Reg, lo: Reg, hi: Reg, step: u64, parallel: bool, body: Block) {
        let body = self.take(body);
        self.push(Stmt::For { var, lo, hi, step, parallel, body });
    }

    /// Close a branch.
    pub fn push_if(&mut self, cond: Reg, then: Block) {
        let then = self.take(then);
        self.push(Stmt::If { cond, then, els: vec![] });
    }

    /// Ask for an element's line.
    pub fn prefetch(&mut self, buf: BufId, offset: Reg) {
        self.push(Stmt::Prefetch { buf, offset });
    }

    /// One of two branches.
    pub fn push_either(&mut self, cond: Reg, then: Block, els: Block) {
        let (then, els) = (self.take(then), self.take(els));
        self.push(Stmt::If { cond, then, els });
    }

    /// A branch taken where the condition is false.
    pub fn push_unless(&mut self, cond: Reg, els: Block) {
        let els = self.take(els);
        self.push(Stmt::If { cond, then: vec![], els });
    }
}
