//! Loop IR: what both backends lower and the interpreter runs. Loops, vectors of fixed width, buffers; nothing implicit.
//!
//! A kernel is a list of statements over registers. Registers are typed, mutable and local to the kernel: an accumulator is a
//! register assigned in a loop. A register must be assigned on every path before it is read (the verifier checks). All
//! offsets into buffers are in elements, as `i64`.

use std::fmt;

/// Element of a register or a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// binary32
    F32,
    /// binary64
    F64,
    /// binary16; only in memory and as operand of conversions
    F16,
    /// bfloat16; only in memory and as operand of conversions
    BF16,
    /// signed byte
    I8,
    /// unsigned byte: compared, shifted, divided and converted as a number from 0 to 255
    U8,
    /// 32-bit integer
    I32,
    /// 64-bit integer: sizes, offsets, indices
    I64,
    /// truth value; a vector of them is a mask. In memory one byte, 0 or 1
    Bool,
}

/// Type of a register: `lanes` elements; 1 is a scalar. Lanes are a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty {
    /// Element type.
    pub elem: Elem,
    /// Number of lanes.
    pub lanes: u16,
}

/// A register: an index into [`Kernel::regs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// A buffer: an index into [`Kernel::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufId(pub u32);

/// A compiled unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the function it came from.
    pub name: String,
    /// Named sizes, given at the call; each is held in an `i64` register that is never assigned otherwise.
    pub sizes: Vec<SizeParam>,
    /// Parameter arrays first, in call order; then scratch and stack.
    pub buffers: Vec<Buffer>,
    /// All registers.
    pub regs: Vec<RegDecl>,
    /// `i64` registers set at the call to the part of the outermost parallel loop that this call is to run: `[begin, end)`.
    /// The whole is `0..extent`; `None` if there is no such loop (then the call does everything).
    pub split: Option<Split>,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// A size passed at the call.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeParam {
    /// The axis' name.
    pub name: String,
    /// The register that holds it.
    pub reg: Reg,
}

/// How one call's share of the outermost loop is passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// First iteration.
    pub begin: Reg,
    /// One past the last.
    pub end: Reg,
    /// The full number of iterations, over the named sizes.
    pub extent: Count,
}

/// A register's declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct RegDecl {
    /// Its type.
    pub ty: Ty,
    /// Name for printing; the printer makes it unique.
    pub name: String,
}

/// An array that the kernel touches.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Name for printing, unique.
    pub name: String,
    /// Element type in memory.
    pub elem: Elem,
    /// Where it lives.
    pub kind: BufferKind,
    /// Number of elements, for bounds checks of the interpreter and to size scratch.
    pub len: Count,
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// Given by the caller, only read; dense row-major.
    Input,
    /// Given by the caller, written; dense row-major.
    Output,
    /// Memory of one call (not shared between threads), 64-byte aligned, contents undefined at the start.
    Scratch,
    /// Of fixed size, on the kernel's stack, 64-byte aligned, contents undefined at the start.
    Stack,
}

/// A number of elements over the kernel's sizes (by index into [`Kernel::sizes`]), known at the call. Overflow is an error of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A number.
    Const(u64),
    /// The n-th size.
    Size(usize),
    /// A product.
    Mul(Box<Count>, Box<Count>),
    /// A sum.
    Add(Box<Count>, Box<Count>),
    /// A difference; below zero is an error of the call.
    Sub(Box<Count>, Box<Count>),
    /// A quotient rounded up; by zero is an error of the call.
    DivCeil(Box<Count>, Box<Count>),
    /// A quotient without remainder; one with a remainder, or by zero, is an error of the call.
    DivExact(Box<Count>, Box<Count>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `dst = expr`.
    Assign(Reg, Expr),
    /// Store to a buffer.
    Store {
        /// Which buffer. Its element type equals the value's.
        buf: BufId,
        /// Offset of the first element.
        offset: Reg,
        /// What is stored.
        value: Reg,
        /// If given, only the first `tail` lanes (an `i64` register, at most the lanes) are stored.
        tail: Option<Reg>,
        /// A hint that the data will not be read again soon.
        stream: bool,
    },
    /// `for var in lo..hi step step { body }`. `lo`, `hi` are read once; `var` after the loop is undefined.
    For {
        /// `i64` register.
        var: Reg,
        /// First value.
        lo: Reg,
        /// One past the last.
        hi: Reg,
        /// At least 1.
        step: u64,
        /// Whether iterations are independent.
        parallel: bool,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// Branch on a `bool` scalar.
    If {
        /// The condition.
        cond: Reg,
        /// Where true.
        then: Vec<Stmt>,
        /// Where false.
        els: Vec<Stmt>,
    },
    /// A hint: what lies there will be read soon. It reads nothing, and may point outside of the buffer.
    Prefetch {
        /// Which buffer.
        buf: BufId,
        /// Offset of an element.
        offset: Reg,
    },
    /// Leave the kernel with that status (not 0) if the `bool` scalar is true. Outputs are then undefined.
    Fail {
        /// The condition.
        cond: Reg,
        /// Status returned to the caller, see [`crate::status`].
        status: i32,
    },
    /// A remark that prints; says which part of the fold program the following statements come from.
    Comment(String),
}

/// A right-hand side. Operands are registers; vector operations are lane by lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant in every lane. Floats by value (rounded to the element), integers and bools as `Int`, by their low bits.
    Const(Ty, Number),
    /// A copy.
    Copy(Reg),
    /// One operand; the type stays.
    Unary(UnOp, Reg),
    /// Two operands of one type; the type stays.
    Binary(BinOp, Reg, Reg),
    /// `a * b + c`, rounded once.
    Fma(Reg, Reg, Reg),
    /// Comparison; the result is `bool` with as many lanes.
    Compare(Cmp, Reg, Reg),
    /// Mask, value where true, value where false.
    Select(Reg, Reg, Reg),
    /// Conversion to another element type, same lanes. Float to integer truncates; out of range and NaN give an unspecified
    /// value without trapping (lowering guards where it matters). To a narrower float: nearest even. `bool` to a number: 0 or 1;
    /// a number to `bool`: the lowest bit of the integer that it is truncated to.
    Convert(Elem, Reg),
    /// Same bits, other element type of equal width, same lanes. A byte that becomes `bool` is 0 or 1.
    Bitcast(Elem, Reg),
    /// A scalar in every lane.
    Splat(u16, Reg),
    /// One lane.
    Extract(Reg, u16),
    /// 0, 1, 2, ... of that type, a number.
    Iota(Ty),
    /// All lanes into a scalar, in a fixed tree order (halves: lane i with lane i + n/2, and so on).
    Reduce(Fold, Reg),
    /// Contiguous load from a buffer at an element offset; with a tail only the first `n` lanes are read (others are `fill`).
    Load {
        /// Result type; its element equals the buffer's.
        ty: Ty,
        /// Which buffer.
        buf: BufId,
        /// Offset of the first element.
        offset: Reg,
        /// Distance in elements between lanes; `None` is 1.
        stride: Option<Reg>,
        /// Number of lanes read (`i64` register, at most the lanes) and the scalar for the others.
        tail: Option<(Reg, Reg)>,
    },
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// For float elements.
    Float(f64),
    /// For integers and `bool`.
    Int(i64),
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// Negation.
    Neg,
    /// Absolute value.
    Abs,
    /// Square root.
    Sqrt,
    /// Largest integer not above.
    Floor,
    /// Nearest integer, half to even.
    Nearest,
    /// Complement of integers or masks.
    Not,
}

/// Operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum (integers wrap).
    Add,
    /// Difference (integers wrap).
    Sub,
    /// Product (integers wrap).
    Mul,
    /// Quotient; of integers truncated, the divisor must not be zero (lowering guards).
    Div,
    /// Remainder of integers, sign of the dividend.
    Rem,
    /// `a < b ? a : b`: not symmetric in NaN, one instruction. Integers as [`Cmp`] has them.
    Min,
    /// `a > b ? a : b`: not symmetric in NaN, one instruction. Integers as [`Cmp`] has them.
    Max,
    /// Bitwise and of integers and masks.
    And,
    /// Bitwise or of integers and masks.
    Or,
    /// Bitwise exclusive or of integers and masks.
    Xor,
    /// Shift left of integers; the amount (per lane) is below the width.
    Shl,
    /// Shift right of integers that keeps the sign (`u8` has none).
    Shr,
    /// Logical shift right of integers.
    Ushr,
}

/// Comparisons. Of floats: ordered except `Ne` (true on NaN) and `Uno` (true only on NaN). Of integers: signed, of `u8` and
/// `bool` unsigned (true is the larger one).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// less
    Lt,
    /// less or equal
    Le,
    /// greater
    Gt,
    /// greater or equal
    Ge,
    /// equal
    Eq,
    /// not equal or unordered
    Ne,
    /// unordered: one of them is NaN
    Uno,
}

/// Reductions over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// By [`BinOp::Min`].
    Min,
    /// By [`BinOp::Max`].
    Max,
    /// Of a mask: whether any lane is true.
    Any,
    /// Of a mask: whether all lanes are true.
    All,
    /// Of a mask: how many lanes are true, as `i64`.
    Count,
    /// Of a mask: the first true lane, as `i64`; the number of lanes if there is none.
    First,
}

impl Fold {
    /// Whether it is of masks only.
    pub fn is_of_masks(self) -> bool {
        matches!(self, Fold::Any | Fold::All | Fold::Count | Fold::First)
    }

    /// The element that comes out of such elements.
    pub fn result(self, elem: Elem) -> Elem {
        match self {
            Fold::Count | Fold::First => Elem::I64,
            _ => elem,
        }
    }
}

impl Elem {
    /// Bytes of one element in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Elem::F64 | Elem::I64 => 8,
            Elem::F32 | Elem::I32 => 4,
            Elem::F16 | Elem::BF16 => 2,
            Elem::I8 | Elem::U8 | Elem::Bool => 1,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Elem::F32 | Elem::F64 | Elem::F16 | Elem::BF16)
    }

    /// Name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Elem::F32 => "f32",
            Elem::F64 => "f64",
            Elem::F16 => "f16",
            Elem::BF16 => "bf16",
            Elem::I8 => "i8",
            Elem::U8 => "u8",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::Bool => "bool",
        }
    }
}

impl Ty {
    /// One element.
    pub const fn scalar(elem: Elem) -> Ty {
        Ty { elem, lanes: 1 }
    }

    /// Several.
    pub const fn vector(elem: Elem, lanes: u16) -> Ty {
        Ty { elem, lanes }
    }

    /// As many lanes of another element.
    pub const fn with(self, elem: Elem) -> Ty {
        Ty { elem, lanes: self.lanes }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.elem.name())?;
        if self.lanes > 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}

impl Kernel {
    /// Type of a register.
    pub fn ty(&self, reg: Reg) -> Ty {
        self.regs[reg.0 as usize].ty
    }

    /// A buffer's declaration.
    pub fn buffer(&self, buf: BufId) -> &Buffer {
        &self.buffers[buf.0 as usize]
    }
}

impl Expr {
    /// The registers that it reads, in the order of the text.
    pub fn operands(&self) -> Vec<Reg> {
        match self {
            Expr::Const(..) | Expr::Iota(_) => vec![],
            Expr::Copy(x)
            | Expr::Unary(_, x)
            | Expr::Convert(_, x)
            | Expr::Bitcast(_, x)
            | Expr::Splat(_, x)
            | Expr::Extract(x, _)
            | Expr::Reduce(_, x) => vec![*x],
            Expr::Binary(_, x, y) | Expr::Compare(_, x, y) => vec![*x, *y],
            Expr::Fma(x, y, z) | Expr::Select(x, y, z) => vec![*x, *y, *z],
            Expr::Load { offset, stride, tail, .. } => {
                let mut regs = vec![*offset];
                regs.extend(stride);
                regs.extend(tail.iter().flat_map(|(n, fill)| [*n, *fill]));
                regs
            }
        }
    }
}
