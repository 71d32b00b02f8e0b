//! Graphs for tests, written as expressions.

use onefold_ir::{AxisDecl, AxisId, BinaryOp, CmpOp, DType, Extent, Part, ReduceOp, UnaryOp};
use onefold_passes::convert::Graph;
use onefold_passes::fold::ArrayDecl;
use onefold_passes::term::{ArrayId, TermId, TermOp, Terms};

/// A graph under construction. Axes are named by words: `"i j"`.
pub struct Draft {
    /// What there is of it.
    pub graph: Graph,
}

#[expect(missing_docs, reason = "each is named after the term that it makes")]
impl Draft {
    /// Axes: symbolic, or `name=size`.
    pub fn new(axes: &str) -> Draft {
        let axes = axes.split_whitespace().map(|word| match word.split_once('=') {
            Some((name, size)) => AxisDecl { name: name.into(), extent: Extent::Fixed(size.parse().unwrap()) },
            None => AxisDecl { name: word.into(), extent: Extent::Symbolic },
        });
        let graph = Graph {
            name: "test".into(),
            axes: axes.collect(),
            inputs: vec![],
            constants: vec![],
            outputs: vec![],
            terms: Terms::default(),
            stored: vec![],
            roots: vec![],
        };
        Draft { graph }
    }

    pub fn axes(&self, names: &str) -> Vec<AxisId> {
        let find = |name| self.graph.axes.iter().position(|a| a.name == name).unwrap();
        names.split_whitespace().map(|name| AxisId(find(name) as u8)).collect()
    }

    pub fn axis(&self, name: &str) -> AxisId {
        self.axes(name)[0]
    }

    /// An input, read at the positions of its own axes.
    pub fn input(&mut self, name: &str, axes: &str) -> TermId {
        self.input_of(name, DType::F32, axes)
    }

    pub fn input_of(&mut self, name: &str, dtype: DType, axes: &str) -> TermId {
        let array = self.declare(name, dtype, axes);
        let at = self.axes(axes).into_iter().map(|a| self.index(a, DType::I64)).collect();
        self.load(array, dtype, at, false)
    }

    pub fn declare(&mut self, name: &str, dtype: DType, axes: &str) -> usize {
        let axes = self.axes(axes);
        self.graph.inputs.push(ArrayDecl { name: name.into(), dtype, axes });
        self.graph.inputs.len() - 1
    }

    pub fn load(&mut self, array: usize, dtype: DType, at: Vec<TermId>, checked: bool) -> TermId {
        self.graph.terms.make(TermOp::Load { array: ArrayId::Input(array), checked }, dtype, at)
    }

    pub fn index(&mut self, axis: AxisId, dtype: DType) -> TermId {
        self.graph.terms.make(TermOp::Index(axis), dtype, vec![])
    }

    pub fn at(&mut self, axis: &str) -> TermId {
        self.index(self.axis(axis), DType::I64)
    }

    pub fn size(&mut self, axis: &str, dtype: DType) -> TermId {
        self.graph.terms.make(TermOp::Size(self.axis(axis)), dtype, vec![])
    }

    pub fn float(&mut self, v: f64) -> TermId {
        self.graph.terms.float(v, DType::F32)
    }

    pub fn int(&mut self, v: i64) -> TermId {
        self.graph.terms.int(v)
    }

    pub fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        self.graph.terms.binary(op, a, b)
    }

    pub fn add(&mut self, a: TermId, b: TermId) -> TermId {
        self.binary(BinaryOp::Add, a, b)
    }

    pub fn sub(&mut self, a: TermId, b: TermId) -> TermId {
        self.binary(BinaryOp::Sub, a, b)
    }

    pub fn mul(&mut self, a: TermId, b: TermId) -> TermId {
        self.binary(BinaryOp::Mul, a, b)
    }

    pub fn div(&mut self, a: TermId, b: TermId) -> TermId {
        self.binary(BinaryOp::Div, a, b)
    }

    pub fn unary(&mut self, op: UnaryOp, a: TermId) -> TermId {
        self.graph.terms.unary(op, a)
    }

    pub fn exp(&mut self, a: TermId) -> TermId {
        self.unary(UnaryOp::Exp, a)
    }

    pub fn compare(&mut self, op: CmpOp, a: TermId, b: TermId) -> TermId {
        self.graph.terms.make(TermOp::Compare(op), DType::Bool, vec![a, b])
    }

    pub fn select(&mut self, c: TermId, a: TermId, b: TermId) -> TermId {
        let dtype = self.graph.terms.get(a).dtype;
        self.graph.terms.make(TermOp::Select, dtype, vec![c, a, b])
    }

    pub fn cast(&mut self, a: TermId, dtype: DType) -> TermId {
        self.graph.terms.make(TermOp::Cast, dtype, vec![a])
    }

    pub fn reduce(&mut self, op: ReduceOp, axes: &str, a: TermId) -> TermId {
        let axes = self.axes(axes).into_iter().collect();
        let dtype = self.graph.terms.get(a).dtype;
        self.graph.terms.make(TermOp::Reduce(op, axes), dtype, vec![a])
    }

    pub fn sum(&mut self, axes: &str, a: TermId) -> TermId {
        self.reduce(ReduceOp::Sum, axes, a)
    }

    pub fn max(&mut self, axes: &str, a: TermId) -> TermId {
        self.reduce(ReduceOp::Max, axes, a)
    }

    pub fn argmax(&mut self, axis: &str, a: TermId) -> TermId {
        self.graph.terms.make(TermOp::ArgMax(self.axis(axis)), DType::I64, vec![a])
    }

    pub fn topk(&mut self, axis: &str, to: &str, a: TermId) -> (TermId, TermId) {
        let (axis, to) = (self.axis(axis), self.axis(to));
        let dtype = self.graph.terms.get(a).dtype;
        let mut part = |part, dtype| self.graph.terms.make(TermOp::TopK { axis, to, part }, dtype, vec![a]);
        (part(Part::Values, dtype), part(Part::Indices, DType::I64))
    }

    pub fn output(&mut self, name: &str, axes: &str, a: TermId) {
        let (axes, dtype) = (self.axes(axes), self.graph.terms.get(a).dtype);
        self.graph.outputs.push(ArrayDecl { name: name.into(), dtype, axes });
        self.graph.roots.push(a);
    }

    /// `exp(x - max x) / sum`.
    pub fn weights(&mut self, axis: &str, x: TermId) -> TermId {
        let greatest = self.max(axis, x);
        let shifted = self.sub(x, greatest);
        let e = self.exp(shifted);
        let total = self.sum(axis, e);
        self.div(e, total)
    }
}
