//! Loads and stores, all of whose elements lie within their buffers.

use super::build::{Builder, I64};
use super::Genes;
use onefold_loops::{BinOp, BufId, BufferKind, Cmp, Count, Elem, Expr, Number, Reg, Stmt, Ty};

/// Where an access begins, and how many lanes it reaches if not all.
struct Access {
    offset: Reg,
    tail: Option<Reg>,
}

fn boxed(n: u64) -> Box<Count> {
    Box::new(Count::Const(n))
}

/// Lengths: of fixed size (the last access of a whole vector then ends at the end), and of any size.
fn length(pick: u8, lanes: u16) -> Count {
    let n = Box::new(Count::Size(usize::from(pick >> 4) % 2));
    match pick % 8 {
        0 => *n,
        1 => Count::Add(n, boxed(lanes.into())),
        2 => Count::Mul(n, boxed(3)),
        3 => Count::DivCeil(n, boxed(2)),
        4 => Count::DivExact(Box::new(Count::Mul(n, boxed(6))), boxed(2)),
        5 => Count::Sub(Box::new(Count::Add(n, boxed(9))), boxed(2)),
        _ => Count::Const(u64::from(lanes) + u64::from(pick >> 5)),
    }
}

/// The least that a length can be.
fn least(len: &Count) -> i64 {
    len.eval(&[0, 0]).map_or(0, |n| n as i64)
}

impl Builder {
    /// The length of a buffer in a register.
    fn len(&mut self, len: &Count) -> Reg {
        let pair = |b: &mut Builder, op: BinOp, x: &Count, y: &Count| {
            let (x, y) = (b.len(x), b.len(y));
            b.binary(op, x, y)
        };
        match len {
            Count::Const(n) => self.int(*n as i64),
            Count::Size(at) => self.kernel.sizes[*at].reg,
            Count::Mul(x, y) => pair(self, BinOp::Mul, x, y),
            Count::Add(x, y) => pair(self, BinOp::Add, x, y),
            Count::Sub(x, y) => pair(self, BinOp::Sub, x, y),
            Count::DivExact(x, y) => pair(self, BinOp::Div, x, y),
            Count::DivCeil(x, y) => {
                let (x, y, one) = (self.len(x), self.len(y), self.int(1));
                let sum = self.binary(BinOp::Add, x, y);
                let sum = self.binary(BinOp::Sub, sum, one);
                self.binary(BinOp::Div, sum, y)
            }
        }
    }

    fn clamp(&mut self, x: Reg, lo: Reg, hi: Reg) -> Reg {
        let x = self.binary(BinOp::Min, x, hi);
        self.binary(BinOp::Max, x, lo)
    }

    /// Somewhere that the buffer has, from any number; with a tail unless the buffer surely has all of the lanes.
    fn access(&mut self, buf: BufId, lanes: u16, stride: i64, g: &Genes) -> Access {
        let count = self.kernel.buffer(buf).len.clone();
        let wish = self.simple(I64, g.picks[0]);
        let len = self.len(&count);
        let reach = i64::from(lanes - 1) * stride;
        let is_whole = !g.picks[1].is_multiple_of(4) && least(&count) > reach.abs();
        if is_whole {
            // A constant behind the rest: backends put it into the address.
            let beyond = i64::from(g.picks[1] / 8) % (least(&count) - reach.abs());
            let lo = self.int((-reach).max(0));
            let span = self.int(reach.max(0) + 1 + beyond);
            let hi = self.binary(BinOp::Sub, len, span);
            let offset = self.clamp(wish, lo, hi);
            if beyond == 0 {
                return Access { offset, tail: None };
            }
            let beyond = self.int(beyond);
            let sum = self.binary(BinOp::Add, offset, beyond);
            if g.picks[0] & 64 != 0 {
                // The sum is that of before.
                self.push(Stmt::Assign(offset, Expr::Copy(wish)));
            }
            return Access { offset: sum, tail: None };
        }
        // Lanes that there are from the offset on: `len - offset` for a stride of 1, and so on.
        let zero = self.int(0);
        let (lowest, hi) = if stride < 0 {
            let one = self.int(1);
            (self.int(-1), self.binary(BinOp::Sub, len, one))
        } else {
            (zero, len)
        };
        let offset = self.clamp(wish, lowest, hi);
        let all = self.int(lanes.into());
        let there = if stride == 1 {
            self.binary(BinOp::Sub, len, offset)
        } else if stride == 0 {
            let rest = self.binary(BinOp::Sub, len, offset);
            self.binary(BinOp::Mul, rest, all)
        } else {
            let step = self.int(stride.abs());
            let rest = if stride < 0 {
                self.binary(BinOp::Add, offset, step)
            } else {
                let (rest, more) = (self.binary(BinOp::Sub, len, offset), self.int(stride - 1));
                self.binary(BinOp::Add, rest, more)
            };
            self.binary(BinOp::Div, rest, step)
        };
        let mut tail = self.binary(BinOp::Min, there, all);
        if g.picks[1] & 2 == 2 {
            let fewer = self.simple(I64, g.picks[1] >> 2);
            tail = self.clamp(fewer, zero, tail);
        }
        Access { offset, tail: Some(tail) }
    }

    /// A load from a buffer.
    pub fn load_from(&mut self, buf: BufId, ty: Ty, g: &Genes) -> Expr {
        let stride = match g.picks[2] % 12 {
            n @ 0..=4 => Some(i64::from(n) - 2),
            _ => None,
        };
        let access = self.access(buf, ty.lanes, stride.unwrap_or(1), g);
        let stride = stride.map(|s| self.int(s));
        let tail = access.tail.map(|count| (count, self.simple(Ty::scalar(ty.elem), g.picks[3])));
        Expr::Load { ty, buf, offset: access.offset, stride, tail }
    }

    /// A buffer that holds such elements: an input, or one that the kernel has written.
    fn source(&mut self, elem: Elem, lanes: u16, pick: u8, only_inputs: bool) -> BufId {
        let fits = |kind: BufferKind| !only_inputs || kind == BufferKind::Input;
        let buffers = self.kernel.buffers.iter().enumerate();
        let found: Vec<usize> = buffers.filter(|(_, b)| b.elem == elem && fits(b.kind)).map(|(at, _)| at).collect();
        if pick % 2 == 1 && !found.is_empty() {
            return BufId(found[usize::from(pick / 2) % found.len()] as u32);
        }
        let name = format!("x{}", self.kernel.buffers.len());
        self.buffer(name, elem, BufferKind::Input, length(pick, lanes))
    }

    /// A load from anywhere.
    pub fn load(&mut self, ty: Ty, g: &Genes) -> Expr {
        let buf = self.source(ty.elem, ty.lanes, g.picks[3], false);
        self.load_from(buf, ty, g)
    }

    /// A load of what no operation has made.
    pub fn load_input(&mut self, ty: Ty, g: &Genes) -> Expr {
        let buf = self.source(ty.elem, ty.lanes, g.picks[3], true);
        self.load_from(buf, ty, g)
    }

    /// Write a value to memory of the kernel's own, from which later steps read.
    pub fn keep(&mut self, value: Reg, g: &Genes) {
        let ty = self.kernel.ty(value);
        let own = |kind: BufferKind| matches!(kind, BufferKind::Scratch | BufferKind::Stack);
        let buffers = self.kernel.buffers.iter().enumerate();
        let found: Vec<usize> = buffers.filter(|(_, b)| b.elem == ty.elem && own(b.kind)).map(|(at, _)| at).collect();
        let buf = match found.first() {
            Some(_) if g.picks[2] % 2 == 1 => BufId(found[usize::from(g.picks[2] / 2) % found.len()] as u32),
            _ => self.own(ty, g.picks[2]),
        };
        let again = g.picks[3] & 2 != 0;
        if again {
            let before = self.load_from(buf, ty, g);
            self.visible(ty, before, 1);
        }
        self.store(buf, value, g);
        if again {
            // What is computed from it must wait for the store, and the store for what was loaded before.
            let after = self.load_from(buf, ty, g);
            self.visible(ty, after, 1);
        }
    }

    /// New memory, with something in it before all else.
    fn own(&mut self, ty: Ty, pick: u8) -> BufId {
        let name = format!("own{}", self.kernel.buffers.len());
        let is_stack = pick.is_multiple_of(4);
        let len = if is_stack { Count::Const(u64::from(ty.lanes) + 3) } else { length(pick / 2, ty.lanes) };
        let kind = if is_stack { BufferKind::Stack } else { BufferKind::Scratch };
        let buf = self.buffer(name, ty.elem, kind, len.clone());
        let filling = self.block(|b| {
            let scalar = Ty::scalar(ty.elem);
            let value = b.hidden(scalar, "fill", Expr::Const(scalar, Number::Int(i64::from(pick & 1))));
            let (zero, len) = (b.int(0), b.len(&len));
            b.looped(zero, len, 1, false, |b| {
                if let Some(offset) = b.find(I64, 0) {
                    b.push(Stmt::Store { buf, offset, value, tail: None, stream: false });
                }
            });
        });
        self.before_all(filling);
        buf
    }

    fn store(&mut self, buf: BufId, value: Reg, g: &Genes) {
        let Access { offset, tail } = self.access(buf, self.kernel.ty(value).lanes, 1, g);
        self.push(Stmt::Store { buf, offset, value, tail, stream: g.picks[3].is_multiple_of(4) });
    }

    /// Write a value to an output.
    pub fn output(&mut self, value: Reg, g: &Genes) {
        let ty = self.kernel.ty(value);
        let name = format!("y{}", self.kernel.buffers.len());
        let buf = self.buffer(name, ty.elem, BufferKind::Output, length(g.picks[2], ty.lanes));
        self.store(buf, value, g);
    }

    /// Write a register as it is to an output of its own.
    pub fn show(&mut self, value: Reg) {
        let ty = self.kernel.ty(value);
        let name = format!("y{}", self.kernel.buffers.len());
        let buf = self.buffer(name, ty.elem, BufferKind::Output, Count::Const(ty.lanes.into()));
        let offset = self.int(0);
        self.push(Stmt::Store { buf, offset, value, tail: None, stream: false });
    }

    /// Leave the kernel where two numbers are equal, which is seldom.
    pub fn fail(&mut self, g: &Genes) {
        let (x, y) = (self.simple(I64, g.picks[0]), self.int(i64::from(g.picks[1])));
        let cond = self.hidden(super::build::BOOL, "bad", Expr::Compare(Cmp::Eq, x, y));
        self.push(Stmt::Fail { cond, status: i32::from(g.picks[2]) - 300 });
    }
}
