//! Steps of a recipe as statements.

use super::build::{Builder, BOOL, I64};
use super::{Genes, Step};
use onefold_loops::{BinOp, Cmp, Elem, Expr, Fold, Number, Reg, Stmt, Ty, UnOp};

const FLOATS: [f64; 12] =
    [0.0, -0.0, 1.0, -1.5, 0.1, 65519.99, 1e-7, 3.4e38, 1e-40, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

const INTEGERS: [i64; 12] = [0, 1, -1, 2, 7, -8, 100, 127, -128, 1 << 31, i64::MAX, i64::MIN];

const COMPARISONS: [Cmp; 7] = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne, Cmp::Uno];

/// One of a list.
pub(super) fn one<T: Copy>(list: &[T], pick: u8) -> T {
    list[usize::from(pick) % list.len()]
}

/// Whether it is stored and converted only.
pub(super) fn is_half(elem: Elem) -> bool {
    matches!(elem, Elem::F16 | Elem::BF16)
}

fn number(elem: Elem, pick: u8) -> Number {
    if elem == Elem::Bool {
        Number::Int(i64::from(pick & 1))
    } else if elem.is_float() && !pick.is_multiple_of(3) {
        Number::Float(one(&FLOATS, pick / 3))
    } else {
        // Of a narrower element the low bits count.
        Number::Int(one(&INTEGERS, pick / 3))
    }
}

impl Builder {
    /// A register of a type, or a constant.
    pub fn simple(&mut self, ty: Ty, pick: u8) -> Reg {
        match self.find(ty, pick / 4) {
            Some(reg) if !pick.is_multiple_of(4) => reg,
            _ => self.hidden(ty, "k", Expr::Const(ty, number(ty.elem, pick / 4))),
        }
    }

    /// A register of a type; one is loaded if there is none, and sometimes if there is.
    pub fn operand(&mut self, ty: Ty, pick: u8, g: &Genes) -> Reg {
        if pick.is_multiple_of(8) {
            return self.simple(ty, pick / 8 * 4);
        }
        match self.find(ty, pick / 8) {
            Some(reg) if pick % 8 != 1 => reg,
            _ => {
                let load = self.load(ty, g);
                let reg = self.hidden(ty, "x", load);
                self.reveal(reg);
                reg
            }
        }
    }

    /// A type that fits, most often one of the palette's.
    fn ty_of(&self, g: &Genes, fits: impl Fn(Ty) -> bool) -> Ty {
        let choices = |types: &[Ty]| types.iter().copied().filter(|ty| fits(*ty)).collect::<Vec<Ty>>();
        let mut fitting = choices(&self.palette);
        if g.ty.is_multiple_of(4) || fitting.is_empty() {
            fitting = choices(&self.types);
        }
        fitting[usize::from(g.ty / 4) % fitting.len()]
    }

    /// One step.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Op(g) => self.op(g),
            Step::Loop(g, body) => self.loop_step(g, body),
            Step::If(g, then, els) => {
                let cond = self.operand(BOOL, g.picks[0], g);
                // A register that is assigned on both paths is there behind them.
                let ty = self.ty_of(g, |_| true);
                let meet = self.reg(ty, "meet");
                let branch = |b: &mut Builder, steps: &[Step], pick: u8| {
                    b.block(|b| {
                        b.steps(steps);
                        let value = b.operand(ty, pick, g);
                        b.push(Stmt::Assign(meet, Expr::Copy(value)));
                    })
                };
                let then = branch(self, then, g.picks[1]);
                let els = branch(self, els, g.picks[2]);
                self.push(Stmt::If { cond, then, els });
                self.reveal(meet);
            }
        }
    }

    fn loop_step(&mut self, g: &Genes, body: &[Step]) {
        let (lo, step) = (i64::from(g.picks[0] % 4), u64::from(g.picks[1] % 4) + 1);
        let lo = if g.picks[0] % 8 == 7 { self.simple(I64, g.picks[3]) } else { self.int(lo) };
        // Few iterations, whatever is counted; none where the start is beyond.
        let most = if self.depth < 2 { 24 } else { 3 };
        let (lowest, most) = (self.int(-4), self.int(most));
        let lo = self.binary(BinOp::Min, lo, most);
        let lo = self.binary(BinOp::Max, lo, lowest);
        let once = g.picks[2].is_multiple_of(8);
        let hi = if once {
            let one = self.int(1);
            self.binary(BinOp::Add, lo, one)
        } else {
            let hi = self.simple(I64, g.picks[2]);
            self.binary(BinOp::Min, hi, most)
        };
        self.looped(lo, hi, step, once, |b| b.steps(body));
    }

    fn op(&mut self, g: &Genes) {
        let [a, b, c, d] = g.picks;
        let any = self.ty_of(g, |_| true);
        let numbers = self.ty_of(g, |ty| ty.elem != Elem::Bool && !is_half(ty.elem));
        let vector = self.ty_of(g, |ty| ty.lanes > 1);
        let (ty, expr) = match g.kind % 32 {
            0..=2 => return self.output_step(any, g),
            3 | 4 => {
                let value = self.operand(any, a, g);
                return self.keep(value, g);
            }
            5 | 6 => (any, self.load(any, g)),
            7 | 8 => self.unary(g),
            9..=12 => self.two_operands(g),
            13 => {
                let ty = self.ty_of(g, |ty| ty.elem.is_float() && !is_half(ty.elem));
                (ty, Expr::Fma(self.operand(ty, a, g), self.operand(ty, b, g), self.operand(ty, c, g)))
            }
            14..=16 => {
                let ty = self.ty_of(g, |ty| !is_half(ty.elem));
                let cmp = one(&COMPARISONS[..if ty.elem.is_float() { 7 } else { 6 }], c);
                (ty.with(Elem::Bool), Expr::Compare(cmp, self.operand(ty, a, g), self.operand(ty, b, g)))
            }
            17 | 18 => {
                let mask = self.operand(any.with(Elem::Bool), a, g);
                (any, Expr::Select(mask, self.operand(any, b, g), self.operand(any, c, g)))
            }
            19..=22 => match self.conversion(any, g) {
                Some(converted) => converted,
                None => return,
            },
            23 => match self.bits(any, g) {
                Some(bits) => bits,
                None => return,
            },
            24 => (vector, Expr::Splat(vector.lanes, self.operand(Ty::scalar(vector.elem), a, g))),
            25 => (Ty::scalar(vector.elem), Expr::Extract(self.operand(vector, a, g), u16::from(b) % vector.lanes)),
            26 => (numbers, Expr::Iota(numbers)),
            27 => (any, Expr::Const(any, number(any.elem, a))),
            28 | 29 => self.reduction(g),
            30 if b.is_multiple_of(4) => return self.fail(g),
            30 => (any, Expr::Copy(self.operand(any, a, g))),
            _ => return self.remark(g),
        };
        let result = self.visible(ty, expr, d);
        if c.is_multiple_of(4) {
            self.output(result, g);
        }
    }

    fn output_step(&mut self, ty: Ty, g: &Genes) {
        let value = self.operand(ty, g.picks[0], g);
        self.output(value, g);
    }

    fn unary(&mut self, g: &Genes) -> (Ty, Expr) {
        let ty = self.ty_of(g, |ty| !is_half(ty.elem));
        let ops: &[UnOp] = match ty.elem {
            Elem::Bool => &[UnOp::Not],
            _ if ty.elem.is_float() => &[UnOp::Neg, UnOp::Abs, UnOp::Sqrt, UnOp::Floor, UnOp::Nearest],
            _ => &[UnOp::Neg, UnOp::Abs, UnOp::Not],
        };
        (ty, Expr::Unary(one(ops, g.picks[1]), self.operand(ty, g.picks[0], g)))
    }

    fn two_operands(&mut self, g: &Genes) -> (Ty, Expr) {
        use BinOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Ushr, Xor};
        let ty = self.ty_of(g, |ty| !is_half(ty.elem));
        let ops: &[BinOp] = match ty.elem {
            Elem::Bool => &[And, Or, Xor],
            _ if ty.elem.is_float() => &[Add, Sub, Mul, Div, Min, Max],
            _ => &[Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr, Ushr],
        };
        let op = one(ops, g.picks[2]);
        let (x, mut y) = (self.operand(ty, g.picks[0], g), self.operand(ty, g.picks[1], g));
        match op {
            Div | Rem if !ty.elem.is_float() => {
                let (zero, one) = (self.same(ty, 0), self.same(ty, 1));
                let bad = self.hidden(ty.with(Elem::Bool), "bad", Expr::Compare(Cmp::Eq, y, zero));
                y = self.hidden(ty, "divisor", Expr::Select(bad, one, y));
            }
            Shl | Shr | Ushr => {
                let most = i64::from(ty.elem.bytes()) * 8 - 1;
                // Lowering shifts by constants, which backends know.
                y = if g.picks[3].is_multiple_of(2) {
                    self.same(ty, i64::from(g.picks[1]) & most)
                } else {
                    let most = self.same(ty, most);
                    self.binary(And, y, most)
                };
            }
            _ => {}
        }
        (ty, Expr::Binary(op, x, y))
    }

    /// A hidden constant of some type.
    pub fn same(&mut self, ty: Ty, value: i64) -> Reg {
        self.hidden(ty, "c", Expr::Const(ty, Number::Int(value)))
    }

    fn reduction(&mut self, g: &Genes) -> (Ty, Expr) {
        use Fold::{Add, All, Any, Count, First, Max, Min, Mul};
        let ty = self.ty_of(g, |ty| !is_half(ty.elem));
        let folds: &[Fold] = match ty.elem {
            Elem::Bool if ty.lanes == 1 => &[Any, All],
            Elem::Bool => &[Any, All, Count, First],
            _ => &[Add, Mul, Min, Max],
        };
        let fold = one(folds, g.picks[1]);
        (Ty::scalar(fold.result(ty.elem)), Expr::Reduce(fold, self.operand(ty, g.picks[0], g)))
    }

    /// What computes nothing.
    fn remark(&mut self, g: &Genes) {
        if g.picks[0].is_multiple_of(2) || self.kernel.buffers.is_empty() {
            return self.push(Stmt::Comment(format!("remark {}", g.picks[1])));
        }
        let buf = onefold_loops::BufId(u32::from(g.picks[1]) % self.kernel.buffers.len() as u32);
        let offset = self.simple(I64, g.picks[2]);
        self.push(Stmt::Prefetch { buf, offset });
    }
}
