//! A kernel under construction: registers in scope, buffers, statements.

use super::{Recipe, Step};
use onefold_loops::{
    BinOp, BufId, Buffer, BufferKind, Count, Elem, Expr, Kernel, Number, Reg, RegDecl, SizeParam, Split, Stmt, Ty,
};

/// Elements of memory and registers.
pub(super) const ELEMS: [Elem; 9] =
    [Elem::F32, Elem::F64, Elem::F16, Elem::BF16, Elem::I8, Elem::U8, Elem::I32, Elem::I64, Elem::Bool];

/// One scalar `i64`.
pub(super) const I64: Ty = Ty::scalar(Elem::I64);

/// One truth value.
pub(super) const BOOL: Ty = Ty::scalar(Elem::Bool);

/// Makes a kernel.
pub(super) struct Builder {
    /// What is made; buffers are in the order of their first use until the end.
    pub kernel: Kernel,
    /// Every type that fits a register.
    pub types: Vec<Ty>,
    /// The types that most steps are on.
    pub palette: Vec<Ty>,
    /// Registers that may be read, and whether they may be assigned.
    scope: Vec<(Reg, bool)>,
    /// Variables of loops that are over.
    spare: Vec<Reg>,
    /// Statements of the blocks that are open.
    blocks: Vec<Vec<Stmt>>,
    /// Nesting of loops.
    pub depth: usize,
}

/// The kernel of a recipe.
pub(super) fn kernel(recipe: &Recipe, register_bytes: u32) -> Kernel {
    let mut types = vec![];
    for elem in ELEMS {
        let lanes = (0..7).map(|n| 1u16 << n).filter(|n| *n == 1 || u32::from(*n) * elem.bytes() <= register_bytes);
        types.extend(lanes.map(|lanes| Ty { elem, lanes }));
    }
    let kernel =
        Kernel { name: "random".into(), sizes: vec![], buffers: vec![], regs: vec![], split: None, body: vec![] };
    let chosen: Vec<Ty> = recipe.palette.iter().map(|n| types[usize::from(*n) % types.len()]).collect();
    let mut palette = vec![I64];
    for ty in &chosen {
        palette.extend([*ty, Ty::scalar(ty.elem), ty.with(Elem::Bool)]);
        // What they convert to in as many lanes.
        palette.extend(chosen.iter().map(|other| ty.with(other.elem)).filter(|ty| types.contains(ty)));
    }
    let mut b = Builder { kernel, types, palette, scope: vec![], spare: vec![], blocks: vec![vec![]], depth: 0 };
    for name in ["n", "m"] {
        let reg = b.reg(I64, name);
        b.kernel.sizes.push(SizeParam { name: name.into(), reg });
        b.scope.push((reg, false));
    }
    if recipe.is_split {
        let (begin, end) = (b.reg(I64, "begin"), b.reg(I64, "end"));
        b.kernel.split = Some(Split { begin, end, extent: Count::Size(0) });
        b.scope.extend([(begin, false), (end, false)]);
        b.looped(begin, end, 1, false, |b| b.steps(&recipe.steps));
    } else {
        b.steps(&recipe.steps);
    }
    // What was computed on the way shows in the end.
    for (reg, _) in b.scope.clone() {
        b.show(reg);
    }
    let body = b.blocks.pop().unwrap_or_default();
    finish(b.kernel, body)
}

impl Builder {
    /// A new register, out of scope.
    pub fn reg(&mut self, ty: Ty, name: &str) -> Reg {
        self.kernel.regs.push(RegDecl { ty, name: name.into() });
        Reg(self.kernel.regs.len() as u32 - 1)
    }

    /// Append a statement.
    pub fn push(&mut self, statement: Stmt) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    /// A value that later steps do not see.
    pub fn hidden(&mut self, ty: Ty, name: &str, expr: Expr) -> Reg {
        let reg = self.reg(ty, name);
        self.push(Stmt::Assign(reg, expr));
        reg
    }

    /// A hidden constant.
    pub fn int(&mut self, value: i64) -> Reg {
        self.hidden(I64, "c", Expr::Const(I64, Number::Int(value)))
    }

    /// A hidden result of two operands.
    pub fn binary(&mut self, op: BinOp, x: Reg, y: Reg) -> Reg {
        self.hidden(self.kernel.ty(x), "t", Expr::Binary(op, x, y))
    }

    /// A value that later steps see: a new register, or one that is there already, as accumulators are.
    pub fn visible(&mut self, ty: Ty, expr: Expr, choice: u8) -> Reg {
        let fits = |(reg, free): &&(Reg, bool)| *free && self.kernel.ty(*reg) == ty;
        let old: Vec<Reg> = self.scope.iter().filter(fits).map(|(reg, _)| *reg).collect();
        if choice.is_multiple_of(2) && !old.is_empty() {
            let reg = old[usize::from(choice / 2) % old.len()];
            self.push(Stmt::Assign(reg, expr));
            return reg;
        }
        let reg = self.hidden(ty, "r", expr);
        self.scope.push((reg, true));
        reg
    }

    /// Bring a register into scope.
    pub fn reveal(&mut self, reg: Reg) {
        self.scope.push((reg, true));
    }

    /// A register in scope of some type, the latest ones first.
    pub fn find(&self, ty: Ty, pick: u8) -> Option<Reg> {
        let fits = |(reg, _): &&(Reg, bool)| self.kernel.ty(*reg) == ty;
        let found: Vec<Reg> = self.scope.iter().rev().filter(fits).map(|(reg, _)| *reg).collect();
        (!found.is_empty()).then(|| found[usize::from(pick) % found.len()])
    }

    /// Statements in a block of their own; what they define is out of scope behind it.
    pub fn block(&mut self, inside: impl FnOnce(&mut Builder)) -> Vec<Stmt> {
        let visible = self.scope.len();
        self.blocks.push(vec![]);
        inside(self);
        self.scope.truncate(visible);
        self.blocks.pop().unwrap_or_default()
    }

    /// A loop.
    pub fn looped(&mut self, lo: Reg, hi: Reg, step: u64, parallel: bool, inside: impl FnOnce(&mut Builder)) {
        let spare = self.spare.pop();
        let var = spare.unwrap_or_else(|| self.reg(I64, "i"));
        self.depth += 1;
        let body = self.block(|b| {
            b.scope.push((var, false));
            inside(b);
        });
        self.depth -= 1;
        self.spare.push(var);
        self.push(Stmt::For { var, lo, hi, step, parallel, body });
    }

    /// All steps of a block.
    pub fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    /// A new buffer.
    pub fn buffer(&mut self, name: String, elem: Elem, kind: BufferKind, len: Count) -> BufId {
        self.kernel.buffers.push(Buffer { name, elem, kind, len });
        BufId(self.kernel.buffers.len() as u32 - 1)
    }

    /// A kernel's first block, which runs before everything.
    pub fn before_all(&mut self, statements: Vec<Stmt>) {
        self.blocks[0].splice(0..0, statements);
    }
}

/// Buffers in the order that callers pass them in, memory of the kernel's own behind.
fn finish(mut kernel: Kernel, body: Vec<Stmt>) -> Kernel {
    let mut order: Vec<usize> = (0..kernel.buffers.len()).collect();
    order.sort_by_key(|at| kernel.buffers[*at].kind as u8);
    let mut place = vec![BufId(0); order.len()];
    for (new, old) in order.iter().enumerate() {
        place[*old] = BufId(new as u32);
    }
    kernel.buffers = order.iter().map(|old| kernel.buffers[*old].clone()).collect();
    kernel.body = body;
    renumber(&mut kernel.body, &place);
    kernel
}

fn renumber(statements: &mut [Stmt], place: &[BufId]) {
    let new = |buf: &mut BufId| *buf = place[buf.0 as usize];
    for statement in statements {
        match statement {
            Stmt::Assign(_, Expr::Load { buf, .. }) | Stmt::Store { buf, .. } | Stmt::Prefetch { buf, .. } => new(buf),
            Stmt::For { body, .. } => renumber(body, place),
            Stmt::If { then, els, .. } => {
                renumber(then, place);
                renumber(els, place);
            }
            _ => {}
        }
    }
}
