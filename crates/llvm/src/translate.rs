//! The body of a kernel, in SSA form right away: loop IR is structured, so where values meet is known without any analysis.

use crate::emit::{int_value, kind, Emit, Value};
use crate::level::Level;
use crate::types;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicMetadataTypeEnum, BasicType};
use inkwell::values::{FunctionValue, InstructionValueError, IntValue, PhiValue, PointerValue};
use inkwell::IntPredicate;
use onefold_loops::{BufId, Buffer, BufferKind, Kernel, Reg, Stmt, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// Why a kernel cannot be translated: a bug in lowering or in this crate.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    /// A register that is too wide.
    #[error("no register holds {0}")]
    Type(Ty),
    /// An operation on types that have none.
    #[error("no instruction for {0}")]
    Operation(String),
    /// LLVM lacks an intrinsic.
    #[error("no intrinsic {0}")]
    Intrinsic(String),
    /// A buffer on the stack without a fixed length that a frame can have.
    #[error("buffer {0} does not fit the stack")]
    Stack(String),
    /// A length over a size that the kernel does not have.
    #[error("a length names size {0}, which does not exist")]
    Size(usize),
    /// LLVM refuses an instruction.
    #[error(transparent)]
    Builder(#[from] BuilderError),
    /// LLVM refuses what was set on an instruction.
    #[error("{0}")]
    Instruction(String),
}

/// A kernel's body as a function of its sizes, its share of the split loop, and a pointer for each buffer outside the stack.
pub struct Body<'c> {
    /// The function.
    pub function: FunctionValue<'c>,
    /// Whether it stores past the caches.
    pub streams: bool,
}

/// Translate a kernel's body.
pub fn body<'c>(
    kernel: &Kernel,
    context: &'c Context,
    module: &Module<'c>,
    level: Level,
    named: bool,
) -> Result<Body<'c>, TranslateError> {
    let long: BasicMetadataTypeEnum<'c> = context.i64_type().into();
    let pointer: BasicMetadataTypeEnum<'c> = context.ptr_type(Default::default()).into();
    let outside = kernel.buffers.iter().filter(|b| b.kind != BufferKind::Stack).count();
    let longs = kernel.sizes.len() + 2 * kernel.split.iter().len();
    let params: Vec<_> = std::iter::repeat_n(long, longs).chain(std::iter::repeat_n(pointer, outside)).collect();
    let ty = context.i32_type().fn_type(&params, false);
    let function = module.add_function("body", ty, Some(Linkage::Internal));
    let emit = Emit { context, module, b: context.create_builder(), level };
    let mut translator = Translator {
        kernel,
        e: emit,
        function,
        values: vec![None; kernel.regs.len()],
        buffers: vec![],
        failures: BTreeMap::new(),
        streams: false,
        named,
    };
    translator.prologue()?;
    translator.statements(&kernel.body)?;
    let ok = context.i32_type().const_zero();
    translator.e.b.build_return(Some(&ok))?;
    Ok(Body { function, streams: translator.streams })
}

/// Translation of one kernel.
pub struct Translator<'a, 'm, 'c> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Where instructions go.
    pub e: Emit<'m, 'c>,
    /// Whether a store past the caches was emitted.
    pub streams: bool,
    /// Whether values are called as in loop IR: for people.
    named: bool,
    function: FunctionValue<'c>,
    /// What each register holds here, if anything.
    values: Vec<Option<Value<'c>>>,
    buffers: Vec<PointerValue<'c>>,
    /// Blocks that return a status.
    failures: BTreeMap<i32, BasicBlock<'c>>,
}

impl<'c> Translator<'_, '_, 'c> {
    fn prologue(&mut self) -> Result<(), TranslateError> {
        let entry = self.block();
        self.e.b.position_at_end(entry);
        let mut params = self.function.get_param_iter();
        let kernel = self.kernel;
        let split = kernel.split.iter().flat_map(|s| [s.begin, s.end]);
        for reg in kernel.sizes.iter().map(|s| s.reg).chain(split) {
            let value = params.next().ok_or_else(|| kind("a size"))?;
            value.set_name(&kernel.regs[reg.0 as usize].name);
            self.set(reg, value);
        }
        for buffer in &kernel.buffers {
            let pointer = if buffer.kind == BufferKind::Stack {
                self.stack(buffer)?
            } else {
                let Some(Value::PointerValue(pointer)) = params.next() else { return Err(kind("a buffer")) };
                pointer
            };
            pointer.set_name(&buffer.name);
            self.buffers.push(pointer);
        }
        Ok(())
    }

    fn stack(&self, buffer: &Buffer) -> Result<PointerValue<'c>, TranslateError> {
        let len = buffer.len.eval(&[]).and_then(|n| u32::try_from(n).ok());
        let len = len.ok_or_else(|| TranslateError::Stack(buffer.name.clone()))?;
        let ty = types::memory(self.e.context, buffer.elem);
        let pointer = self.e.b.build_alloca(ty.array_type(len), "")?;
        if let Some(instruction) = pointer.as_instruction() {
            instruction.set_alignment(64).map_err(instruction_error)?;
        }
        Ok(pointer)
    }

    /// A new block at the end of the function.
    pub fn block(&self) -> BasicBlock<'c> {
        self.e.context.append_basic_block(self.function, "")
    }

    /// The block that instructions go to.
    pub fn here(&self) -> Result<BasicBlock<'c>, TranslateError> {
        self.e.b.get_insert_block().ok_or(TranslateError::Builder(BuilderError::UnsetPosition))
    }

    /// A value that comes from several blocks.
    pub fn phi(&self, incoming: &[(Value<'c>, BasicBlock<'c>)]) -> Result<PhiValue<'c>, TranslateError> {
        let [(first, _), ..] = incoming else { return Err(kind("a value from nowhere")) };
        let phi = self.e.b.build_phi(first.get_type(), "")?;
        for (value, block) in incoming {
            phi.add_incoming(&[(value, *block)]);
        }
        Ok(phi)
    }

    /// Address of a buffer's first element.
    pub fn base(&self, buf: BufId) -> PointerValue<'c> {
        self.buffers[buf.0 as usize]
    }

    /// The value of a register.
    pub fn get(&self, reg: Reg) -> Result<Value<'c>, TranslateError> {
        self.values[reg.0 as usize].ok_or_else(|| kind("a register without a value"))
    }

    /// The value of an `i64` scalar.
    pub fn long(&self, reg: Reg) -> Result<IntValue<'c>, TranslateError> {
        int_value(self.get(reg)?)
    }

    fn set(&mut self, reg: Reg, value: Value<'c>) {
        self.values[reg.0 as usize] = Some(value);
    }

    fn statements(&mut self, statements: &[Stmt]) -> Result<(), TranslateError> {
        statements.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<(), TranslateError> {
        match statement {
            Stmt::Comment(_) => Ok(()),
            Stmt::Prefetch { buf, offset } => self.prefetch(*buf, *offset),
            Stmt::Assign(dst, expr) => {
                let value = self.expr(expr, self.kernel.ty(*dst))?;
                if self.named {
                    value.set_name(&self.kernel.regs[dst.0 as usize].name);
                }
                self.set(*dst, value);
                Ok(())
            }
            Stmt::Store { buf, offset, value, tail, stream } => self.store(*buf, *offset, *value, *tail, *stream),
            Stmt::For { var, lo, hi, step, body, .. } => {
                let (lo, hi) = (self.long(*lo)?, self.long(*hi)?);
                self.repeat(*var, lo, hi, *step, body)
            }
            Stmt::If { cond, then, els } => {
                let cond = int_value(self.get(*cond)?)?;
                self.branch(cond, then, els)
            }
            Stmt::Fail { cond, status } => {
                let cond = int_value(self.get(*cond)?)?;
                let fail = self.failure(*status)?;
                let after = self.block();
                self.e.b.build_conditional_branch(cond, fail, after)?;
                self.e.b.position_at_end(after);
                Ok(())
            }
        }
    }

    /// A loop with its test at the bottom, behind a guard. What the body assigns anew meets in phi nodes at its head.
    fn repeat(
        &mut self,
        var: Reg,
        lo: IntValue<'c>,
        hi: IntValue<'c>,
        step: u64,
        statements: &[Stmt],
    ) -> Result<(), TranslateError> {
        let before = self.here()?;
        let [inside, after] = [(); 2].map(|()| self.block());
        let any = self.e.b.build_int_compare(IntPredicate::SLT, lo, hi, "")?;
        self.e.b.build_conditional_branch(any, inside, after)?;
        self.e.b.position_at_end(inside);
        let at = self.phi(&[(lo.into(), before)])?;
        at.as_basic_value().set_name(&self.kernel.regs[var.0 as usize].name);
        let saved = self.values.clone();
        let mut carried = vec![];
        for reg in assigned(statements) {
            if let (Some(value), true) = (saved[reg.0 as usize], reg != var) {
                let phi = self.phi(&[(value, before)])?;
                carried.push((reg, value, phi));
                self.set(reg, phi.as_basic_value());
            }
        }
        self.set(var, at.as_basic_value());
        self.statements(statements)?;
        let latch = self.here()?;
        let step = self.e.i64(step as i64);
        let next = self.e.b.build_int_nsw_add(int_value(at.as_basic_value())?, step, "")?;
        let more = self.e.b.build_int_compare(IntPredicate::SLT, next, hi, "")?;
        self.e.b.build_conditional_branch(more, inside, after)?;
        at.add_incoming(&[(&next, latch)]);
        self.e.b.position_at_end(after);
        let last = std::mem::replace(&mut self.values, saved);
        for (reg, first, phi) in carried {
            let Some(value) = last[reg.0 as usize] else { return Err(kind("a register without a value")) };
            phi.add_incoming(&[(&value, latch)]);
            let phi = self.phi(&[(first, before), (value, latch)])?;
            self.set(reg, phi.as_basic_value());
        }
        Ok(())
    }

    fn branch(&mut self, cond: IntValue<'c>, then: &[Stmt], els: &[Stmt]) -> Result<(), TranslateError> {
        let [yes, no, after] = [(); 3].map(|()| self.block());
        self.e.b.build_conditional_branch(cond, yes, no)?;
        let saved = self.values.clone();
        self.e.b.position_at_end(yes);
        self.statements(then)?;
        let yes = self.here()?;
        self.e.b.build_unconditional_branch(after)?;
        let chosen = std::mem::replace(&mut self.values, saved);
        self.e.b.position_at_end(no);
        self.statements(els)?;
        let no = self.here()?;
        self.e.b.build_unconditional_branch(after)?;
        self.e.b.position_at_end(after);
        let both: Vec<_> = chosen.into_iter().zip(&self.values).map(|(x, y)| x.zip(*y)).collect();
        for (reg, pair) in both.into_iter().enumerate() {
            self.values[reg] = match pair {
                Some((x, y)) if x == y => Some(x),
                Some((x, y)) => Some(self.phi(&[(x, yes), (y, no)])?.as_basic_value()),
                None => None,
            };
        }
        Ok(())
    }

    /// The block that returns a status.
    fn failure(&mut self, status: i32) -> Result<BasicBlock<'c>, TranslateError> {
        if let Some(block) = self.failures.get(&status) {
            return Ok(*block);
        }
        let here = self.here()?;
        let block = self.block();
        self.e.b.position_at_end(block);
        let value = self.e.context.i32_type().const_int(status as u64, true);
        self.e.b.build_return(Some(&value))?;
        self.e.b.position_at_end(here);
        self.failures.insert(status, block);
        Ok(block)
    }
}

/// Registers that statements assign, in order. Loop variables are not among them: after the loop they mean nothing.
fn assigned(statements: &[Stmt]) -> BTreeSet<Reg> {
    fn visit(statements: &[Stmt], found: &mut BTreeSet<Reg>) {
        for statement in statements {
            match statement {
                Stmt::Assign(dst, _) => {
                    found.insert(*dst);
                }
                Stmt::For { body, .. } => visit(body, found),
                Stmt::If { then, els, .. } => {
                    visit(then, found);
                    visit(els, found);
                }
                Stmt::Store { .. } | Stmt::Prefetch { .. } | Stmt::Fail { .. } | Stmt::Comment(_) => {}
            }
        }
    }
    let mut found = BTreeSet::new();
    visit(statements, &mut found);
    found
}

/// What LLVM says of an instruction that cannot be.
pub fn instruction_error(error: InstructionValueError) -> TranslateError {
    TranslateError::Instruction(error.to_string())
}
