//! An interpreter of loop IR that checks what native code trusts: bounds of every access, counts of tails, registers without a value.
//!
//! Arithmetic is that of the element types, one rounding for each operation, so that native code must agree bit for bit
//! (payloads of NaN aside). Memory of the kernel's own is poisoned at the start.

mod native;
mod scalar;

pub use native::InterpBackend;

use crate::{BufId, BufferKind, Count, Elem, Expr, Kernel, Number, Reg, Stmt, Ty};

/// Why a run stopped: always a bug in whatever made the kernel, or wrong arguments.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum InterpError {
    /// An access outside a buffer.
    #[error("{buffer}[{at}] of {len} elements")]
    OutOfBounds {
        /// The buffer.
        buffer: String,
        /// Element offset.
        at: i64,
        /// Its length.
        len: u64,
    },
    /// A tail that is negative or longer than the vector.
    #[error("a tail of {count} lanes in {lanes}")]
    Tail {
        /// The count.
        count: i64,
        /// Lanes of the vector.
        lanes: u16,
    },
    /// A register without a value.
    #[error("register {0} is read before it is assigned")]
    Unassigned(String),
    /// Arguments that do not fit the kernel.
    #[error("{0}")]
    Arguments(String),
}

/// An array that the caller gives, as bytes.
#[derive(Debug)]
pub enum Array<'a> {
    /// Only read.
    Input(&'a [u8]),
    /// Read and written.
    Output(&'a mut [u8]),
}

/// The most lanes of a register.
const MAX_LANES: usize = 64;

/// Raw bits of each lane.
type Lanes = [u64; MAX_LANES];

enum Memory<'a> {
    Given(Array<'a>),
    Own(Vec<u8>),
}

impl Memory<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Given(Array::Input(b)) => b,
            Memory::Given(Array::Output(b)) => b,
            Memory::Own(b) => b,
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Memory::Given(Array::Input(_)) => None,
            Memory::Given(Array::Output(b)) => Some(b),
            Memory::Own(b) => Some(b),
        }
    }
}

/// Run a kernel on arrays for its inputs and outputs, in order; returns its status.
///
/// # Errors
/// Arguments that do not fit, or a kernel that reads or writes what it must not.
pub fn run(kernel: &Kernel, sizes: &[i64], arrays: Vec<Array<'_>>, begin: i64, end: i64) -> Result<i32, InterpError> {
    if sizes.len() != kernel.sizes.len() {
        return Err(InterpError::Arguments(format!("{} sizes where {} are needed", sizes.len(), kernel.sizes.len())));
    }
    let mut given = arrays.into_iter();
    let mut memory = vec![];
    for buffer in &kernel.buffers {
        let bytes = byte_len(&buffer.len, buffer.elem, sizes)
            .ok_or_else(|| InterpError::Arguments(format!("the length of {} overflows", buffer.name)))?;
        memory.push(match buffer.kind {
            BufferKind::Input | BufferKind::Output => {
                let array = given.next().ok_or_else(|| InterpError::Arguments("an array is missing".to_owned()))?;
                let memory = Memory::Given(array);
                if memory.bytes().len() < bytes {
                    return Err(InterpError::Arguments(format!("{} is too short", buffer.name)));
                }
                memory
            }
            BufferKind::Scratch | BufferKind::Stack => Memory::Own(poison(buffer.elem, bytes)),
        });
    }
    let lens = kernel.buffers.iter().map(|b| b.len.eval(sizes).unwrap_or(0)).collect();
    let regs = vec![[0; MAX_LANES]; kernel.regs.len()];
    let mut machine = Machine { kernel, memory, lens, regs, assigned: vec![false; kernel.regs.len()] };
    for (size, value) in kernel.sizes.iter().zip(sizes) {
        machine.set_int(size.reg, *value);
    }
    if let Some(split) = &kernel.split {
        machine.set_int(split.begin, begin);
        machine.set_int(split.end, end);
    }
    Ok(machine.block(&kernel.body)?.unwrap_or(0))
}

fn byte_len(len: &Count, elem: Elem, sizes: &[i64]) -> Option<usize> {
    usize::try_from(len.eval(sizes)?.checked_mul(u64::from(elem.bytes()))?).ok()
}

/// NaN in floats, an unlikely number elsewhere.
fn poison(elem: Elem, bytes: usize) -> Vec<u8> {
    vec![if elem.is_float() { 0xff } else { 0xaa }; bytes]
}

struct Machine<'a> {
    kernel: &'a Kernel,
    memory: Vec<Memory<'a>>,
    lens: Vec<u64>,
    regs: Vec<Lanes>,
    assigned: Vec<bool>,
}

impl Machine<'_> {
    fn set_int(&mut self, reg: Reg, value: i64) {
        self.regs[reg.0 as usize][0] = value as u64;
        self.assigned[reg.0 as usize] = true;
    }

    fn lanes(&self, reg: Reg) -> Result<&Lanes, InterpError> {
        if !self.assigned[reg.0 as usize] {
            return Err(InterpError::Unassigned(self.kernel.regs[reg.0 as usize].name.clone()));
        }
        Ok(&self.regs[reg.0 as usize])
    }

    fn int(&self, reg: Reg) -> Result<i64, InterpError> {
        Ok(self.lanes(reg)?[0] as i64)
    }

    /// Run statements; `Some` is the status of a failure.
    fn block(&mut self, statements: &[Stmt]) -> Result<Option<i32>, InterpError> {
        for statement in statements {
            if let Some(status) = self.statement(statement)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    fn statement(&mut self, statement: &Stmt) -> Result<Option<i32>, InterpError> {
        match statement {
            Stmt::Comment(_) | Stmt::Prefetch { .. } => {}
            Stmt::Assign(dst, expr) => {
                let value = self.expr(expr, self.kernel.ty(*dst))?;
                self.regs[dst.0 as usize] = value;
                self.assigned[dst.0 as usize] = true;
            }
            Stmt::Store { buf, offset, value, tail, .. } => self.store(*buf, *offset, *value, *tail)?,
            Stmt::For { var, lo, hi, step, body, .. } => {
                let (mut at, hi) = (self.int(*lo)?, self.int(*hi)?);
                while at < hi {
                    self.set_int(*var, at);
                    if let Some(status) = self.block(body)? {
                        return Ok(Some(status));
                    }
                    at += *step as i64;
                }
            }
            Stmt::If { cond, then, els } => {
                let branch = if self.lanes(*cond)?[0] & 1 == 1 { then } else { els };
                return self.block(branch);
            }
            Stmt::Fail { cond, status } => {
                if self.lanes(*cond)?[0] & 1 == 1 {
                    return Ok(Some(*status));
                }
            }
        }
        Ok(None)
    }

    fn tail(&self, tail: Option<Reg>, lanes: u16) -> Result<usize, InterpError> {
        let Some(reg) = tail else { return Ok(lanes as usize) };
        let count = self.int(reg)?;
        if (0..=i64::from(lanes)).contains(&count) {
            Ok(count as usize)
        } else {
            Err(InterpError::Tail { count, lanes })
        }
    }

    /// Byte position of an element.
    fn position(&self, buf: BufId, at: i64) -> Result<usize, InterpError> {
        let len = self.lens[buf.0 as usize];
        match u64::try_from(at) {
            Ok(n) if n < len => Ok(n as usize * self.kernel.buffer(buf).elem.bytes() as usize),
            _ => Err(InterpError::OutOfBounds { buffer: self.kernel.buffer(buf).name.clone(), at, len }),
        }
    }

    fn store(&mut self, buf: BufId, offset: Reg, value: Reg, tail: Option<Reg>) -> Result<(), InterpError> {
        let ty = self.kernel.ty(value);
        let (start, lanes) = (self.int(offset)?, *self.lanes(value)?);
        let bytes = ty.elem.bytes() as usize;
        for (lane, bits) in lanes.iter().enumerate().take(self.tail(tail, ty.lanes)?) {
            let at = self.position(buf, start + lane as i64)?;
            let name = &self.kernel.buffer(buf).name;
            let memory = self.memory[buf.0 as usize]
                .bytes_mut()
                .ok_or_else(|| InterpError::Arguments(format!("input {name} is stored to")))?;
            memory[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        }
        Ok(())
    }

    fn load(&self, buf: BufId, at: i64) -> Result<u64, InterpError> {
        let bytes = self.kernel.buffer(buf).elem.bytes() as usize;
        let at = self.position(buf, at)?;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&self.memory[buf.0 as usize].bytes()[at..at + bytes]);
        let bits = u64::from_le_bytes(word);
        Ok(if self.kernel.buffer(buf).elem == Elem::Bool { u64::from(bits != 0) } else { bits })
    }

    fn expr(&self, expr: &Expr, ty: Ty) -> Result<Lanes, InterpError> {
        let mut result = [0; MAX_LANES];
        let lanes = ty.lanes as usize;
        match expr {
            Expr::Const(_, number) => {
                let bits = match number {
                    Number::Float(v) => scalar::from_f64(ty.elem, *v),
                    Number::Int(v) => scalar::from_i64(ty.elem, *v),
                };
                result[..lanes].fill(bits);
            }
            Expr::Copy(x) => result = *self.lanes(*x)?,
            Expr::Unary(op, x) => self.map(&mut result, lanes, [*x], |[x]| scalar::unary(*op, ty.elem, x))?,
            Expr::Binary(op, x, y) => {
                self.map(&mut result, lanes, [*x, *y], |[x, y]| scalar::binary(*op, ty.elem, x, y))?;
            }
            Expr::Fma(x, y, z) => {
                self.map(&mut result, lanes, [*x, *y, *z], |[x, y, z]| scalar::fma(ty.elem, x, y, z))?;
            }
            Expr::Compare(op, x, y) => {
                let elem = self.kernel.ty(*x).elem;
                self.map(&mut result, lanes, [*x, *y], |[x, y]| u64::from(scalar::compare(*op, elem, x, y)))?;
            }
            Expr::Select(c, x, y) => {
                self.map(&mut result, lanes, [*c, *x, *y], |[c, x, y]| if c & 1 == 1 { x } else { y })?;
            }
            Expr::Convert(_, x) => {
                let from = self.kernel.ty(*x).elem;
                self.map(&mut result, lanes, [*x], |[x]| scalar::convert(from, ty.elem, x))?;
            }
            Expr::Bitcast(_, x) => result = *self.lanes(*x)?,
            Expr::Splat(_, x) => result[..lanes].fill(self.lanes(*x)?[0]),
            Expr::Extract(x, lane) => result[0] = self.lanes(*x)?[*lane as usize],
            Expr::Iota(_) => {
                for (lane, bits) in result.iter_mut().enumerate().take(lanes) {
                    *bits = scalar::from_i64(ty.elem, lane as i64);
                }
            }
            Expr::Reduce(fold, x) => {
                let from = self.kernel.ty(*x);
                result[0] = scalar::reduce(*fold, from.elem, &self.lanes(*x)?[..from.lanes as usize]);
            }
            Expr::Load { buf, offset, stride, tail, .. } => {
                let start = self.int(*offset)?;
                let stride = stride.map_or(Ok(1), |s| self.int(s))?;
                let count = self.tail(tail.map(|t| t.0), ty.lanes)?;
                for (lane, bits) in result.iter_mut().enumerate().take(count) {
                    *bits = self.load(*buf, start + stride * lane as i64)?;
                }
                if let Some((_, fill)) = tail {
                    result[count..lanes].fill(self.lanes(*fill)?[0]);
                }
            }
        }
        Ok(result)
    }

    fn map<const N: usize>(
        &self,
        result: &mut Lanes,
        lanes: usize,
        operands: [Reg; N],
        f: impl Fn([u64; N]) -> u64,
    ) -> Result<(), InterpError> {
        let mut values = [&[0; MAX_LANES]; N];
        for (value, reg) in values.iter_mut().zip(operands) {
            *value = self.lanes(reg)?;
        }
        for (lane, bits) in result.iter_mut().enumerate().take(lanes) {
            *bits = f(values.map(|v| v[lane]));
        }
        Ok(())
    }
}
