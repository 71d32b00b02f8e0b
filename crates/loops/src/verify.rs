//! Whether a kernel is well formed: types agree, registers are assigned before they are read, only outputs and memory of the kernel's own are stored to.

use crate::{BinOp, BufId, BufferKind, Cmp, Elem, Expr, Kernel, Number, Reg, Stmt, Ty, UnOp};

/// What is wrong with a kernel. Always a bug in whatever made it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum VerifyError {
    /// A register or buffer that is not declared.
    #[error("{what} number {index} does not exist")]
    Unknown {
        /// Register or buffer.
        what: &'static str,
        /// Its number.
        index: u32,
    },
    /// Types that do not go together.
    #[error("{place}: {found} where {expected} is needed")]
    Type {
        /// The statement.
        place: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A register may be read before it has a value.
    #[error("register {name} (number {index}) is read before it is assigned")]
    Unassigned {
        /// Its name.
        name: String,
        /// Its number.
        index: u32,
    },
    /// A rule of the declarations.
    #[error("{0}")]
    Declaration(String),
}

/// Whether elements are computed with; others are stored and converted only.
fn is_arithmetic(elem: Elem) -> bool {
    !matches!(elem, Elem::F16 | Elem::BF16)
}

const I64: Ty = Ty::scalar(Elem::I64);
const BOOL: Ty = Ty::scalar(Elem::Bool);

/// Check a kernel.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify(kernel: &Kernel) -> Result<(), VerifyError> {
    let mut checker = Checker { kernel, assigned: vec![false; kernel.regs.len()] };
    checker.declarations()?;
    checker.block(&kernel.body)
}

struct Checker<'a> {
    kernel: &'a Kernel,
    assigned: Vec<bool>,
}

impl Checker<'_> {
    fn declarations(&mut self) -> Result<(), VerifyError> {
        let declaration = |text: String| Err(VerifyError::Declaration(text));
        for reg in &self.kernel.regs {
            if !reg.ty.lanes.is_power_of_two() {
                return declaration(format!("register {} has {} lanes", reg.name, reg.ty.lanes));
            }
        }
        let mut names: Vec<&str> = self.kernel.buffers.iter().map(|b| b.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
            return declaration(format!("two buffers are called {}", twice[0]));
        }
        for buffer in &self.kernel.buffers {
            if buffer.kind == BufferKind::Stack && buffer.len.eval(&[]).is_none() {
                return declaration(format!("stack buffer {} has no fixed length", buffer.name));
            }
        }
        if crate::frame_bytes(self.kernel).is_none_or(|bytes| bytes > crate::MAX_FRAME) {
            return declaration(format!("the stack buffers exceed {} bytes", crate::MAX_FRAME));
        }
        let split = self.kernel.split.iter().flat_map(|s| [s.begin, s.end]);
        for reg in self.kernel.sizes.iter().map(|s| s.reg).chain(split).collect::<Vec<_>>() {
            self.expect("a size", self.declared(reg)?, I64)?;
            self.assigned[reg.0 as usize] = true;
        }
        Ok(())
    }

    fn declared(&self, reg: Reg) -> Result<Ty, VerifyError> {
        let found = self.kernel.regs.get(reg.0 as usize);
        found.map(|r| r.ty).ok_or(VerifyError::Unknown { what: "register", index: reg.0 })
    }

    fn buffer(&self, buf: BufId) -> Result<Elem, VerifyError> {
        let found = self.kernel.buffers.get(buf.0 as usize);
        found.map(|b| b.elem).ok_or(VerifyError::Unknown { what: "buffer", index: buf.0 })
    }

    /// Type of a register that is read.
    fn read(&self, reg: Reg) -> Result<Ty, VerifyError> {
        let ty = self.declared(reg)?;
        if !self.assigned[reg.0 as usize] {
            let name = self.kernel.regs[reg.0 as usize].name.clone();
            return Err(VerifyError::Unassigned { name, index: reg.0 });
        }
        Ok(ty)
    }

    fn expect(&self, place: impl ToString, found: Ty, expected: Ty) -> Result<(), VerifyError> {
        if found == expected {
            return Ok(());
        }
        let (found, expected) = (found.to_string(), expected.to_string());
        Err(VerifyError::Type { place: place.to_string(), found, expected })
    }

    fn need(&self, ok: bool, place: &str, found: Ty, expected: &str) -> Result<(), VerifyError> {
        if ok {
            return Ok(());
        }
        Err(VerifyError::Type { place: place.to_owned(), found: found.to_string(), expected: expected.to_owned() })
    }

    fn is_fixed(&self, reg: Reg) -> bool {
        self.kernel.sizes.iter().any(|s| s.reg == reg)
            || self.kernel.split.as_ref().is_some_and(|s| s.begin == reg || s.end == reg)
    }

    fn assign(&mut self, reg: Reg, ty: Ty) -> Result<(), VerifyError> {
        self.expect("assignment", ty, self.declared(reg)?)?;
        if self.is_fixed(reg) {
            return Err(VerifyError::Declaration(format!("size register {} is assigned", reg.0)));
        }
        self.assigned[reg.0 as usize] = true;
        Ok(())
    }

    fn block(&mut self, statements: &[Stmt]) -> Result<(), VerifyError> {
        statements.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<(), VerifyError> {
        match statement {
            Stmt::Comment(_) => Ok(()),
            Stmt::Prefetch { buf, offset } => {
                self.buffer(*buf)?;
                self.expect("offset", self.read(*offset)?, I64)
            }
            Stmt::Assign(dst, expr) => {
                let ty = self.expr(expr)?;
                self.assign(*dst, ty)
            }
            Stmt::Store { buf, offset, value, tail, .. } => {
                let elem = self.buffer(*buf)?;
                if self.kernel.buffer(*buf).kind == BufferKind::Input {
                    return Err(VerifyError::Declaration(format!(
                        "input {} is stored to",
                        self.kernel.buffer(*buf).name
                    )));
                }
                self.expect("offset", self.read(*offset)?, I64)?;
                let value = self.read(*value)?;
                self.expect("stored value", value, value.with(elem))?;
                tail.iter().try_for_each(|t| self.expect("tail", self.read(*t)?, I64))
            }
            Stmt::For { var, lo, hi, step, body, .. } => {
                self.expect("loop bound", self.read(*lo)?, I64)?;
                self.expect("loop bound", self.read(*hi)?, I64)?;
                if *step == 0 {
                    return Err(VerifyError::Declaration("a loop has step 0".to_owned()));
                }
                // The body may not run at all: what it assigns is not assigned after it.
                let before = self.assigned.clone();
                self.assign(*var, I64)?;
                self.block(body)?;
                self.assigned = before;
                Ok(())
            }
            Stmt::If { cond, then, els } => {
                self.expect("condition", self.read(*cond)?, BOOL)?;
                let before = self.assigned.clone();
                self.block(then)?;
                let after_then = std::mem::replace(&mut self.assigned, before);
                self.block(els)?;
                self.assigned.iter_mut().zip(after_then).for_each(|(a, b)| *a &= b);
                Ok(())
            }
            Stmt::Fail { cond, status } => {
                if *status == 0 {
                    return Err(VerifyError::Declaration("status 0 is no failure".to_owned()));
                }
                self.expect("condition", self.read(*cond)?, BOOL)
            }
        }
    }

    /// The type of an expression.
    fn expr(&self, expr: &Expr) -> Result<Ty, VerifyError> {
        match expr {
            Expr::Const(ty, number) => {
                let fits = match number {
                    Number::Float(_) => ty.elem.is_float(),
                    Number::Int(_) => true,
                };
                self.need(fits, "constant", *ty, "a float type")?;
                Ok(*ty)
            }
            Expr::Copy(x) => self.read(*x),
            Expr::Unary(op, x) => {
                let ty = self.read(*x)?;
                let ok = match op {
                    UnOp::Neg | UnOp::Abs => ty.elem != Elem::Bool,
                    UnOp::Not => !ty.elem.is_float(),
                    _ => ty.elem.is_float(),
                };
                let ok = ok && is_arithmetic(ty.elem);
                self.need(ok, "operand", ty, "an element that the operation is defined for")?;
                Ok(ty)
            }
            Expr::Binary(op, x, y) => {
                let ty = self.read(*x)?;
                self.expect("second operand", self.read(*y)?, ty)?;
                let ok = match op {
                    BinOp::And | BinOp::Or | BinOp::Xor => !ty.elem.is_float(),
                    BinOp::Shl | BinOp::Shr | BinOp::Ushr | BinOp::Rem => !ty.elem.is_float() && ty.elem != Elem::Bool,
                    _ => ty.elem != Elem::Bool,
                };
                let ok = ok && is_arithmetic(ty.elem);
                self.need(ok, "operand", ty, "an element that the operation is defined for")?;
                Ok(ty)
            }
            Expr::Fma(x, y, z) => {
                let ty = self.read(*x)?;
                self.need(ty.elem.is_float() && is_arithmetic(ty.elem), "operand", ty, "floats")?;
                self.expect("second operand", self.read(*y)?, ty)?;
                self.expect("third operand", self.read(*z)?, ty)?;
                Ok(ty)
            }
            Expr::Compare(op, x, y) => {
                let ty = self.read(*x)?;
                self.expect("second operand", self.read(*y)?, ty)?;
                self.need(*op != Cmp::Uno || ty.elem.is_float(), "operand", ty, "floats")?;
                self.need(is_arithmetic(ty.elem), "operand", ty, "an element that the operation is defined for")?;
                Ok(ty.with(Elem::Bool))
            }
            Expr::Select(c, x, y) => {
                let ty = self.read(*x)?;
                self.expect("condition", self.read(*c)?, ty.with(Elem::Bool))?;
                self.expect("second choice", self.read(*y)?, ty)?;
                Ok(ty)
            }
            Expr::Convert(elem, x) => Ok(self.read(*x)?.with(*elem)),
            Expr::Bitcast(elem, x) => {
                let ty = self.read(*x)?;
                self.need(ty.elem.bytes() == elem.bytes(), "operand", ty, "an element of the same width")?;
                Ok(ty.with(*elem))
            }
            Expr::Splat(lanes, x) => {
                let ty = self.read(*x)?;
                self.need(ty.lanes == 1, "operand", ty, "a scalar")?;
                Ok(Ty { lanes: *lanes, ..ty })
            }
            Expr::Extract(x, lane) => {
                let ty = self.read(*x)?;
                self.need(*lane < ty.lanes, "operand", ty, "a vector with that lane")?;
                Ok(Ty::scalar(ty.elem))
            }
            Expr::Iota(ty) => {
                self.need(ty.elem != Elem::Bool, "iota", *ty, "a number")?;
                Ok(*ty)
            }
            Expr::Reduce(op, x) => {
                let ty = self.read(*x)?;
                let fits = op.is_of_masks() == (ty.elem == Elem::Bool);
                self.need(fits, "operand", ty, "a mask exactly for any, all, count and first")?;
                self.need(is_arithmetic(ty.elem), "operand", ty, "an element that the operation is defined for")?;
                let is_number = op.result(ty.elem) == ty.elem;
                self.need(is_number || ty.lanes > 1, "operand", ty, "a vector for count and first")?;
                Ok(Ty::scalar(op.result(ty.elem)))
            }
            Expr::Load { ty, buf, offset, stride, tail } => {
                self.expect("load", ty.with(self.buffer(*buf)?), *ty)?;
                self.expect("offset", self.read(*offset)?, I64)?;
                stride.iter().try_for_each(|s| self.expect("stride", self.read(*s)?, I64))?;
                if let Some((count, fill)) = tail {
                    self.expect("tail", self.read(*count)?, I64)?;
                    self.expect("fill", self.read(*fill)?, Ty::scalar(ty.elem))?;
                }
                Ok(*ty)
            }
        }
    }
}
