//! One method for each primitive.

use super::{BuildError, FuncBuilder};
use crate::text::MacroArg;
use crate::{AxisId, AxisSet, BinaryOp, CmpOp, DType, Literal, NodeId, Op, Part, ReduceOp, UnaryOp};

type Built = Result<NodeId, BuildError>;

impl FuncBuilder {
    /// A literal of a floating-point type.
    pub fn float(&mut self, dtype: DType, value: f64) -> Built {
        self.node(Op::Literal(Literal::Float(value)), &[], dtype)
    }

    /// A literal of an integer type.
    pub fn int(&mut self, dtype: DType, value: i64) -> Built {
        self.node(Op::Literal(Literal::Int(value)), &[], dtype)
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) -> Built {
        self.node(Op::Literal(Literal::Bool(value)), &[], DType::Bool)
    }

    /// The position along an axis.
    pub fn index(&mut self, dtype: DType, axis: AxisId) -> Built {
        self.node(Op::Index(axis), &[], dtype)
    }

    /// The length of an axis.
    pub fn size(&mut self, dtype: DType, axis: AxisId) -> Built {
        self.node(Op::Size(axis), &[], dtype)
    }

    /// A function of one operand.
    pub fn unary(&mut self, op: UnaryOp, x: NodeId) -> Built {
        self.node(Op::Unary(op), &[x], DType::F32)
    }

    /// A function of two operands of one dtype.
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Built {
        self.node(Op::Binary(op), &[a, b], DType::F32)
    }

    /// A comparison.
    pub fn compare(&mut self, op: CmpOp, a: NodeId, b: NodeId) -> Built {
        self.node(Op::Compare(op), &[a, b], DType::Bool)
    }

    /// `a` where the condition holds, `b` elsewhere.
    pub fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> Built {
        self.node(Op::Select, &[condition, a, b], DType::F32)
    }

    /// Conversion.
    pub fn cast(&mut self, dtype: DType, x: NodeId) -> Built {
        self.node(Op::Cast, &[x], dtype)
    }

    /// A reduction along axes.
    pub fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: &[AxisId]) -> Built {
        let set: AxisSet = axes.iter().copied().filter(|a| usize::from(a.0) < crate::MAX_AXES).collect();
        self.node(Op::Reduce(op, set), &[x], DType::F32)
    }

    /// The sum along axes.
    pub fn sum(&mut self, x: NodeId, axes: &[AxisId]) -> Built {
        self.reduce(ReduceOp::Sum, x, axes)
    }

    /// The maximum along axes.
    pub fn max(&mut self, x: NodeId, axes: &[AxisId]) -> Built {
        self.reduce(ReduceOp::Max, x, axes)
    }

    /// The minimum along axes.
    pub fn min(&mut self, x: NodeId, axes: &[AxisId]) -> Built {
        self.reduce(ReduceOp::Min, x, axes)
    }

    /// The product along axes.
    pub fn prod(&mut self, x: NodeId, axes: &[AxisId]) -> Built {
        self.reduce(ReduceOp::Prod, x, axes)
    }

    /// The position of the largest element.
    pub fn argmax(&mut self, x: NodeId, axis: AxisId) -> Built {
        self.node(Op::ArgMax(axis), &[x], DType::I64)
    }

    /// The largest elements and where they stood, along the new axis `to`.
    pub fn topk(&mut self, x: NodeId, axis: AxisId, to: AxisId) -> Result<(NodeId, NodeId), BuildError> {
        self.pair(x, |part| Op::TopK { axis, to, part })
    }

    /// Sorted elements and where they stood.
    pub fn sort(&mut self, x: NodeId, axis: AxisId) -> Result<(NodeId, NodeId), BuildError> {
        self.pair(x, |part| Op::Sort { axis, part })
    }

    fn pair(&mut self, x: NodeId, op: impl Fn(Part) -> Op) -> Result<(NodeId, NodeId), BuildError> {
        let values = self.node(op(Part::Values), &[x], DType::F32)?;
        let indices = self.node(op(Part::Indices), &[x], DType::I64)?;
        Ok((values, indices))
    }

    /// The running sum.
    pub fn cumsum(&mut self, x: NodeId, axis: AxisId) -> Built {
        self.node(Op::CumSum(axis), &[x], DType::F32)
    }

    /// The table at positions `ids` along an axis.
    pub fn gather(&mut self, table: NodeId, ids: NodeId, axis: AxisId) -> Built {
        self.node(Op::Gather(axis), &[table, ids], DType::F32)
    }

    /// An axis called otherwise; see [`FuncBuilder::same_length`].
    pub fn rename(&mut self, x: NodeId, from: AxisId, to: AxisId) -> Built {
        self.node(Op::Rename { from, to }, &[x], DType::F32)
    }

    /// An axis cut into several, outermost first; see [`FuncBuilder::quotient`].
    pub fn split(&mut self, x: NodeId, from: AxisId, to: &[AxisId]) -> Built {
        self.node(Op::Split { from, to: to.to_vec() }, &[x], DType::F32)
    }

    /// Several axes as one, outermost first; see [`FuncBuilder::merged`].
    pub fn merge(&mut self, x: NodeId, from: &[AxisId], to: AxisId) -> Built {
        self.node(Op::Merge { from: from.to_vec(), to }, &[x], DType::F32)
    }

    /// Every `step`-th element from `start`; see [`FuncBuilder::sliced`].
    pub fn slice(&mut self, x: NodeId, from: AxisId, to: AxisId, start: i64, step: i64) -> Built {
        self.node(Op::Slice { from, to, start, step }, &[x], DType::F32)
    }

    /// Operands, each with its own axis, one after the other; see [`FuncBuilder::joined`].
    pub fn concat(&mut self, parts: &[(NodeId, AxisId)], to: AxisId) -> Built {
        let (args, from): (Vec<NodeId>, Vec<AxisId>) = parts.iter().copied().unzip();
        self.node(Op::Concat { from, to }, &args, DType::F32)
    }

    /// `x` moved `by` positions along an axis, `fill` where nothing comes from.
    pub fn shift(&mut self, x: NodeId, fill: NodeId, axis: AxisId, by: i64) -> Built {
        self.node(Op::Shift { axis, by }, &[x, fill], DType::F32)
    }

    /// Conversion to integers of a scale and a zero point.
    pub fn quantize(&mut self, dtype: DType, x: NodeId, scale: NodeId, zero_point: NodeId) -> Built {
        self.node(Op::Quantize, &[x, scale, zero_point], dtype)
    }

    /// Conversion from integers of a scale, a zero point and an offset.
    pub fn dequantize(&mut self, q: NodeId, scale: NodeId, zero_point: NodeId, offset: NodeId) -> Built {
        self.node(Op::Dequantize, &[q, scale, zero_point, offset], DType::F32)
    }
}

impl FuncBuilder {
    /// A macro of the prelude, such as `attention`, expanded to primitives here. Axes and arguments are given by the names of its parameters.
    ///
    /// ```
    /// use onefold_ir::{DType, FuncBuilder, MacroArg};
    /// let mut f = FuncBuilder::new("p");
    /// let j = f.symbolic("j")?;
    /// let x = f.param("x", DType::F32, &[j])?;
    /// let p = f.expand("softmax", &[("j", &[j])], &[("x", MacroArg::Node(x))])?;
    /// f.result(p[0], &[j])?;
    /// # Ok::<(), onefold_ir::BuildError>(())
    /// ```
    pub fn expand(
        &mut self,
        name: &str,
        axes: &[(&str, &[AxisId])],
        args: &[(&str, MacroArg)],
    ) -> Result<Vec<NodeId>, BuildError> {
        crate::text::expand_for_builder(self, name, axes, args)
    }
}

macro_rules! unary {
    ($($name:ident $op:ident $doc:literal),* $(,)?) => {
        impl FuncBuilder {
            $(
                #[doc = $doc]
                pub fn $name(&mut self, x: NodeId) -> Built {
                    self.unary(UnaryOp::$op, x)
                }
            )*
        }
    };
}

unary! {
    neg Neg "`-x`.",
    exp Exp "`e^x`.",
    log Log "The natural logarithm.",
    exp2 Exp2 "`2^x`.",
    log2 Log2 "The logarithm to base 2.",
    tanh Tanh "The hyperbolic tangent.",
    erf Erf "The error function.",
    sqrt Sqrt "The square root.",
    rsqrt Rsqrt "`1 / sqrt(x)`.",
    abs Abs "The absolute value.",
    floor Floor "The largest integer not above.",
    round Round "The nearest integer, half to even.",
    not Not "Logical not.",
}

macro_rules! binary {
    ($($name:ident $op:ident $doc:literal),* $(,)?) => {
        impl FuncBuilder {
            $(
                #[doc = $doc]
                pub fn $name(&mut self, a: NodeId, b: NodeId) -> Built {
                    self.binary(BinaryOp::$op, a, b)
                }
            )*
        }
    };
}

binary! {
    add Add "`a + b`.",
    sub Sub "`a - b`.",
    mul Mul "`a * b`.",
    div Div "`a / b`.",
    minimum Min "The smaller of two.",
    maximum Max "The larger of two.",
    pow Pow "`a` to the power `b`.",
}
