//! Primitives: everything that a graph is made of. Anything else (macros, imported operators) expands to these.

use crate::{AxisId, AxisSet, DType};

/// Elementwise functions of one operand. Float unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Negation (integers too).
    Neg,
    /// `e^x`.
    Exp,
    /// Natural logarithm.
    Log,
    /// `2^x`.
    Exp2,
    /// Logarithm to base 2.
    Log2,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// Square root.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// Absolute value (integers too).
    Abs,
    /// Largest integer not above.
    Floor,
    /// Nearest integer, half to even.
    Round,
    /// Logical not, of `bool`.
    Not,
}

/// Elementwise functions of two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; of integers, rounded toward zero.
    Div,
    /// Remainder of integers, of the sign of the dividend.
    Rem,
    /// The smaller; NaN if either is.
    Min,
    /// The larger; NaN if either is.
    Max,
    /// Power of floats, with the special cases of IEEE `pow`.
    Pow,
    /// Shift left, of integers.
    Shl,
    /// Shift right, of integers; arithmetic for signed ones.
    Shr,
    /// Bitwise and of integers, logical and of `bool`.
    And,
    /// Bitwise or of integers, logical or of `bool`.
    Or,
    /// Exclusive or.
    Xor,
}

/// Comparisons; false if either operand is NaN, except `Ne`, which is then true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CmpOp {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

/// Associative reductions along axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Sum; 0 over nothing.
    Sum,
    /// Product; 1 over nothing.
    Prod,
    /// Maximum, NaN if any element is; -inf (or the type's lowest) over nothing. Of `bool`: any.
    Max,
    /// Minimum, NaN if any element is; inf (or the type's highest) over nothing. Of `bool`: all.
    Min,
}

/// Which of the two results of `topk` or `sort` a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The elements, largest first for `topk`.
    Values,
    /// Where they stood, as `i64`.
    Indices,
}

/// A literal number.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// Of a floating-point type.
    Float(f64),
    /// Of an integer type.
    Int(i64),
    /// Of `bool`.
    Bool(bool),
}

impl Literal {
    /// The value as a float (`true` is 1).
    pub fn as_f64(self) -> f64 {
        match self {
            Literal::Float(v) => v,
            Literal::Int(v) => v as f64,
            Literal::Bool(v) => f64::from(u8::from(v)),
        }
    }

    /// The bits that tell two literals apart: every NaN is equal, the zeros are not.
    fn key(self) -> (u8, u64) {
        match self {
            Literal::Float(v) if v.is_nan() => (0, f64::NAN.to_bits()),
            Literal::Float(v) => (0, v.to_bits()),
            Literal::Int(v) => (1, v as u64),
            Literal::Bool(v) => (2, u64::from(v)),
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Literal {}
impl std::hash::Hash for Literal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Literal) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Literal {
    fn cmp(&self, other: &Literal) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// What a node computes from its operands. The node's type says the dtype and the axes of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The n-th parameter of the function.
    Param(usize),
    /// The n-th constant tensor of the module.
    Constant(usize),
    /// A literal, of the node's dtype.
    Literal(Literal),
    /// The position along an axis, in the node's dtype.
    Index(AxisId),
    /// The length of an axis, in the node's dtype.
    Size(AxisId),
    /// One operand.
    Unary(UnaryOp),
    /// Two operands of the same dtype.
    Binary(BinaryOp),
    /// Two operands of the same dtype; the result is `bool`.
    Compare(CmpOp),
    /// `bool`, then the value where true, then the value where false.
    Select,
    /// Conversion to the node's dtype: to nearest even for floats, toward zero and saturating (NaN to 0) from float to integer.
    Cast,
    /// Reduction along axes; all of them are axes of the operand.
    Reduce(ReduceOp, AxisSet),
    /// Position of the largest element along an axis (`i64`); the lower index among equals; NaN counts as largest.
    ArgMax(AxisId),
    /// The largest elements along `axis`, as many as `to` is long, along the new axis `to`; the lower index among equals; NaN first.
    TopK {
        /// The axis searched.
        axis: AxisId,
        /// The new axis; its extent is the number of elements kept.
        to: AxisId,
        /// Values or indices. Both nodes of a pair have the same operand and stand one after the other, values first.
        part: Part,
    },
    /// Ascending stable sort along an axis, NaN last.
    Sort {
        /// The axis sorted.
        axis: AxisId,
        /// Values or indices; pairs as in `TopK`.
        part: Part,
    },
    /// Inclusive running sum along an axis.
    CumSum(AxisId),
    /// Operands: table, ids (integers). `table` at position `ids` along the axis. Negative ids count from the end; others outside are an error.
    Gather(AxisId),
    /// The operand with `from` called `to`, of the same extent.
    Rename {
        /// An axis of the operand.
        from: AxisId,
        /// Its new name.
        to: AxisId,
    },
    /// An axis cut into several, outermost first.
    Split {
        /// An axis of the operand.
        from: AxisId,
        /// The new ones.
        to: Vec<AxisId>,
    },
    /// Several axes laid out as one, outermost first.
    Merge {
        /// Axes of the operand.
        from: Vec<AxisId>,
        /// The new one.
        to: AxisId,
    },
    /// Every `step`-th element from `start` on; the extent of `to` says how many.
    Slice {
        /// An axis of the operand.
        from: AxisId,
        /// Usually of the same name, with another extent.
        to: AxisId,
        /// First position kept.
        start: i64,
        /// Distance, at least 1.
        step: i64,
    },
    /// Operands one after the other along an axis; `from` names each one's own axis.
    Concat {
        /// One axis for each operand.
        from: Vec<AxisId>,
        /// The joined one.
        to: AxisId,
    },
    /// Operands: x, fill (a scalar). `x` at position `index - by` along the axis, `fill` where there is none.
    Shift {
        /// The axis.
        axis: AxisId,
        /// Distance towards higher positions; may be negative.
        by: i64,
    },
    /// Operands: x, scale, zero point. Round half to even, add the zero point, saturate to the node's dtype; NaN gives the zero point.
    Quantize,
    /// Operands: q, scale, zero point, offset. `(q - zero point) * scale + offset` in the scale's dtype.
    Dequantize,
}

impl UnaryOp {
    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "neg",
            UnaryOp::Exp => "exp",
            UnaryOp::Log => "log",
            UnaryOp::Exp2 => "exp2",
            UnaryOp::Log2 => "log2",
            UnaryOp::Tanh => "tanh",
            UnaryOp::Erf => "erf",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Rsqrt => "rsqrt",
            UnaryOp::Abs => "abs",
            UnaryOp::Floor => "floor",
            UnaryOp::Round => "round",
            UnaryOp::Not => "not",
        }
    }

    /// Whether operands of that dtype are allowed.
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            UnaryOp::Neg | UnaryOp::Abs => dtype != DType::Bool,
            UnaryOp::Not => dtype == DType::Bool,
            _ => dtype.is_float(),
        }
    }
}

impl BinaryOp {
    /// Name in the text format (for the infix ones, of the function form).
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Rem => "rem",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Pow => "pow",
            BinaryOp::Shl => "shl",
            BinaryOp::Shr => "shr",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
        }
    }
}

impl CmpOp {
    /// The infix symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
        }
    }
}

impl ReduceOp {
    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
        }
    }
}
