//! Statements: loops, branches, assignments.

use crate::types;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, types as clif, AbiParam, Block, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind,
    UserFuncName, Value,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use onefold_loops::{BinOp, BufId, BufferKind, Count, Elem, Expr, Kernel, Number, Reg, Stmt, Ty};
use std::collections::VecDeque;

/// Why a kernel cannot be translated: a bug in lowering, or a type wider than this backend's registers.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TranslateError {
    /// A register that does not fit.
    #[error("no register holds {0}")]
    Type(Ty),
    /// An operation on types that have none.
    #[error("no instruction for {0}")]
    Operation(String),
}

/// Parameters: sizes, buffers, scratch, begin, end; result: status.
fn signature(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([clif::I64; 5].map(AbiParam::new));
    signature.returns.push(AbiParam::new(clif::I32));
    signature
}

/// The function of a kernel.
pub fn function(kernel: &Kernel, isa: &dyn TargetIsa) -> Result<ir::Function, TranslateError> {
    let mut function = ir::Function::with_name_signature(UserFuncName::user(0, 0), signature(isa));
    let mut context = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut function, &mut context);
    let mut translator = Translator::new(kernel, builder)?;
    translator.is_x86 = matches!(isa.triple().architecture, target_lexicon::Architecture::X86_64);
    translator.statements(&kernel.body)?;
    let ok = translator.b.ins().iconst(clif::I32, 0);
    translator.b.ins().return_(&[ok]);
    translator.b.seal_all_blocks();
    translator.b.finalize(isa.frontend_config());
    Ok(function)
}

/// Translation of one kernel.
pub struct Translator<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Where instructions go.
    pub b: FunctionBuilder<'a>,
    /// Whether x86 instructions may be used.
    pub is_x86: bool,
    vars: Vec<Variable>,
    /// Registers that hold one constant: made where they are used, since a load from the constant pool is cheaper than a spill.
    constants: Vec<Option<(Ty, Number)>>,
    /// Registers that are another one plus a constant, both assigned once: in addresses the constant costs nothing.
    displaced: Vec<Option<(Reg, i64)>>,
    buffers: Vec<Value>,
    /// The constants made last, in the block they were made in: what stands side by side shares them.
    recent: VecDeque<(Block, Reg, Value)>,
}

/// How many constants are remembered; more would have to be spilled.
const RECENT: usize = 3;

impl<'a> Translator<'a> {
    fn new(kernel: &'a Kernel, mut b: FunctionBuilder<'a>) -> Result<Translator<'a>, TranslateError> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let mut vars = vec![];
        for reg in &kernel.regs {
            let ty = types::of(reg.ty).ok_or(TranslateError::Type(reg.ty))?;
            vars.push(b.declare_var(ty));
        }
        let (constants, displaced) = constants(kernel);
        let mut translator = Translator {
            kernel,
            b,
            is_x86: false,
            vars,
            constants,
            displaced,
            buffers: vec![],
            recent: VecDeque::new(),
        };
        translator.prologue(entry);
        Ok(translator)
    }

    fn prologue(&mut self, entry: Block) {
        let params = self.b.block_params(entry).to_vec();
        let flags = trusted();
        let mut sizes = vec![];
        for (i, size) in self.kernel.sizes.iter().enumerate() {
            let value = self.b.ins().load(clif::I64, flags, params[0], 8 * i as i32);
            self.set(size.reg, value);
            sizes.push(value);
        }
        if let Some(split) = &self.kernel.split {
            self.set(split.begin, params[3]);
            self.set(split.end, params[4]);
        }
        let mut given = 0;
        let mut scratch = params[2];
        for buffer in &self.kernel.buffers {
            let pointer = match buffer.kind {
                BufferKind::Input | BufferKind::Output => {
                    given += 1;
                    self.b.ins().load(clif::I64, flags, params[1], 8 * (given - 1))
                }
                BufferKind::Scratch => {
                    let here = scratch;
                    let count = self.count(&buffer.len, &sizes);
                    let bytes = self.b.ins().imul_imm_s(count, i64::from(buffer.elem.bytes()));
                    let bytes = self.b.ins().iadd_imm_s(bytes, 63);
                    let bytes = self.b.ins().band_imm_s(bytes, -64);
                    scratch = self.b.ins().iadd(scratch, bytes);
                    here
                }
                BufferKind::Stack => {
                    let bytes = buffer.len.eval(&[]).unwrap_or(0) * u64::from(buffer.elem.bytes());
                    // Room to align by hand: the ABI aligns the stack to 16 only.
                    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes as u32 + 64, 4);
                    let slot = self.b.create_sized_stack_slot(slot);
                    let address = self.b.ins().stack_addr(clif::I64, slot, 0);
                    let address = self.b.ins().iadd_imm_s(address, 63);
                    self.b.ins().band_imm_s(address, -64)
                }
            };
            self.buffers.push(pointer);
        }
    }

    fn count(&mut self, count: &Count, sizes: &[Value]) -> Value {
        match count {
            Count::Const(n) => self.b.ins().iconst(clif::I64, *n as i64),
            Count::Size(i) => sizes[*i],
            Count::Mul(x, y) => {
                let (x, y) = (self.count(x, sizes), self.count(y, sizes));
                self.b.ins().imul(x, y)
            }
            Count::Add(x, y) => {
                let (x, y) = (self.count(x, sizes), self.count(y, sizes));
                self.b.ins().iadd(x, y)
            }
            Count::Sub(x, y) => {
                let (x, y) = (self.count(x, sizes), self.count(y, sizes));
                self.b.ins().isub(x, y)
            }
            // The caller has evaluated the same counts: divisors are not zero.
            Count::DivExact(x, y) => {
                let (x, y) = (self.count(x, sizes), self.count(y, sizes));
                self.b.ins().sdiv(x, y)
            }
            Count::DivCeil(x, y) => {
                let (x, y) = (self.count(x, sizes), self.count(y, sizes));
                let sum = self.b.ins().iadd(x, y);
                let sum = self.b.ins().iadd_imm_s(sum, -1);
                self.b.ins().sdiv(sum, y)
            }
        }
    }

    /// Address of a buffer's first element.
    pub fn base(&self, buf: BufId) -> Value {
        self.buffers[buf.0 as usize]
    }

    /// A register as another one and a constant.
    pub fn displacement(&self, reg: Reg) -> (Reg, i64) {
        let (mut reg, mut sum) = (reg, 0i64);
        while let Some((base, n)) = self.displaced[reg.0 as usize] {
            let Some(next) = sum.checked_add(n).filter(|n| n.abs() < 1 << 24) else { break };
            (reg, sum) = (base, next);
        }
        (reg, sum)
    }

    /// The value of a register.
    pub fn get(&mut self, reg: Reg) -> Value {
        match self.constants[reg.0 as usize] {
            Some((ty, number)) if ty.lanes > 1 => {
                let block = self.b.current_block().unwrap_or(Block::from_u32(0));
                if let Some((_, _, value)) = self.recent.iter().find(|(b, r, _)| *b == block && *r == reg) {
                    return *value;
                }
                let value = self.constant(ty, number);
                self.recent.truncate(RECENT - 1);
                self.recent.push_front((block, reg, value));
                value
            }
            Some((ty, number)) => self.constant(ty, number),
            None => self.b.use_var(self.vars[reg.0 as usize]),
        }
    }

    fn set(&mut self, reg: Reg, value: Value) {
        self.b.def_var(self.vars[reg.0 as usize], value);
    }

    fn statements(&mut self, statements: &[Stmt]) -> Result<(), TranslateError> {
        statements.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<(), TranslateError> {
        match statement {
            // Cranelift has no such instruction.
            Stmt::Comment(_) | Stmt::Prefetch { .. } => {}
            Stmt::Assign(dst, _) if self.constants[dst.0 as usize].is_some() => {}
            Stmt::Assign(dst, expr) => {
                let value = self.expr(expr, self.kernel.ty(*dst))?;
                self.set(*dst, value);
            }
            Stmt::Store { buf, offset, value, tail, .. } => self.store(*buf, *offset, *value, *tail)?,
            Stmt::For { var, lo, hi, step, body, .. } => {
                let (lo, hi) = (self.get(*lo), self.get(*hi));
                self.set(*var, lo);
                let [head, inside, after] = [(); 3].map(|()| self.b.create_block());
                self.b.ins().jump(head, &[]);
                self.b.switch_to_block(head);
                let at = self.get(*var);
                let more = self.b.ins().icmp(IntCC::SignedLessThan, at, hi);
                self.b.ins().brif(more, inside, &[], after, &[]);
                self.b.switch_to_block(inside);
                self.statements(body)?;
                let at = self.get(*var);
                let next = self.b.ins().iadd_imm_s(at, *step as i64);
                self.set(*var, next);
                self.b.ins().jump(head, &[]);
                self.b.switch_to_block(after);
            }
            Stmt::If { cond, then, els } => {
                let cond = self.get(*cond);
                let [yes, no, after] = [(); 3].map(|()| self.b.create_block());
                self.b.ins().brif(cond, yes, &[], no, &[]);
                self.b.switch_to_block(yes);
                self.statements(then)?;
                self.b.ins().jump(after, &[]);
                self.b.switch_to_block(no);
                self.statements(els)?;
                self.b.ins().jump(after, &[]);
                self.b.switch_to_block(after);
            }
            Stmt::Fail { cond, status } => {
                let cond = self.get(*cond);
                let [fail, after] = [(); 2].map(|()| self.b.create_block());
                self.b.ins().brif(cond, fail, &[], after, &[]);
                self.b.switch_to_block(fail);
                let status = self.b.ins().iconst(clif::I32, i64::from(*status));
                self.b.ins().return_(&[status]);
                self.b.switch_to_block(after);
            }
        }
        Ok(())
    }
}

/// Flags of accesses that lowering has shown to be in bounds.
pub fn trusted() -> MemFlagsData {
    let mut flags = MemFlagsData::new();
    flags.set_notrap();
    flags
}

/// Registers assigned once in the whole kernel, by a constant.
/// Per register a constant, or another register and a constant.
type Known = (Vec<Option<(Ty, Number)>>, Vec<Option<(Reg, i64)>>);

fn constants(kernel: &Kernel) -> Known {
    fn visit<'k>(statements: &'k [Stmt], seen: &mut dyn FnMut(Reg, Option<&'k Expr>)) {
        for statement in statements {
            match statement {
                Stmt::Assign(dst, expr) => seen(*dst, Some(expr)),
                Stmt::For { var, body, .. } => {
                    seen(*var, None);
                    visit(body, seen);
                }
                Stmt::If { then, els, .. } => {
                    visit(then, seen);
                    visit(els, seen);
                }
                Stmt::Store { .. } | Stmt::Prefetch { .. } | Stmt::Fail { .. } | Stmt::Comment(_) => {}
            }
        }
    }
    let mut times = vec![0u32; kernel.regs.len()];
    let mut found = vec![None; kernel.regs.len()];
    visit(&kernel.body, &mut |reg, expr| {
        times[reg.0 as usize] += 1;
        found[reg.0 as usize] = expr;
    });
    let once = |reg: Reg| found[reg.0 as usize].filter(|_| times[reg.0 as usize] == 1);
    let constant = |reg: Reg| match once(reg) {
        Some(Expr::Const(ty, number)) => Some((*ty, *number)),
        _ => None,
    };
    let displaced = |reg: Reg| match once(reg) {
        Some(Expr::Binary(BinOp::Add, x, y)) if kernel.ty(reg) == Ty::scalar(Elem::I64) => match constant(*y) {
            Some((_, Number::Int(n))) if times[x.0 as usize] == 1 => Some((*x, n)),
            _ => None,
        },
        _ => None,
    };
    let regs = || (0..kernel.regs.len() as u32).map(Reg);
    (regs().map(constant).collect(), regs().map(displaced).collect())
}
