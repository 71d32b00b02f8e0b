//! From tensor IR to terms: views and gathers become index arithmetic on the leaves.
//!
//! A view commutes with everything elementwise, so it is carried down as a substitution from axes to index terms until it
//! meets a leaf. Reductions bind their axes: where a substituted index mentions a bound axis, the bound one is renamed.

use crate::error::PassError;
use crate::fold::ArrayDecl;
use crate::term::{ArrayId, Term, TermId, TermOp, Terms};
use onefold_ir::{
    AxisDecl, AxisId, AxisSet, BinaryOp, CmpOp, DType, Extent, Func, Literal, Module, NodeId, Op, SizeExpr, UnaryOp,
    MAX_AXES,
};
use std::collections::{BTreeMap, HashMap};

/// A function as terms.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Name of the function.
    pub name: String,
    /// Its axes; renamed bound axes are appended.
    pub axes: Vec<AxisDecl>,
    /// Parameters, then the constants used (by position in [`Graph::constants`]).
    pub inputs: Vec<ArrayDecl>,
    /// For each input beyond the parameters, the module's constant.
    pub constants: Vec<usize>,
    /// Results.
    pub outputs: Vec<ArrayDecl>,
    /// All terms.
    pub terms: Terms,
    /// A term for each output.
    pub roots: Vec<TermId>,
}

/// Axes replaced by index terms.
type Substitution = BTreeMap<AxisId, TermId>;

struct Converter<'a> {
    func: &'a Func,
    axes: Vec<AxisDecl>,
    /// For each axis those that stand in for it where it would be captured.
    aliases: BTreeMap<AxisId, Vec<AxisId>>,
    inputs: Vec<ArrayDecl>,
    constants: Vec<usize>,
    terms: Terms,
    memo: HashMap<(NodeId, Vec<(AxisId, TermId)>), TermId>,
}

/// The terms of a verified function.
///
/// # Errors
/// The function uses a primitive that has no term form (`sort`, `cumsum`), or a view of a `topk` along its new axis.
pub fn convert(module: &Module, func: &Func) -> Result<Graph, PassError> {
    let inputs = func.params.iter().map(|p| ArrayDecl { name: p.name.clone(), dtype: p.dtype, axes: p.axes.clone() });
    let mut converter = Converter {
        func,
        axes: func.axes.clone(),
        aliases: BTreeMap::new(),
        inputs: inputs.collect(),
        constants: vec![],
        terms: Terms::default(),
        memo: HashMap::new(),
    };
    converter.add_constants(module);
    let mut roots = vec![];
    // Nodes in order of definition first: the recursion below then never goes deep, however long the function is.
    for id in 0..func.nodes.len() as u32 {
        // An error here matters only if a result needs this very node; then it comes again below.
        let _ = converter.node(NodeId(id), &Substitution::new());
    }
    for result in &func.results {
        roots.push(converter.node(result.node, &Substitution::new())?);
    }
    let outputs = func
        .results
        .iter()
        .map(|r| ArrayDecl { name: r.name.clone(), dtype: func.node(r.node).ty.dtype, axes: r.axes.clone() })
        .collect();
    let Converter { axes, inputs, constants, terms, .. } = converter;
    Ok(Graph { name: func.name.clone(), axes, inputs, constants, outputs, terms, roots })
}

impl Converter<'_> {
    /// Constants that occur become inputs after the parameters.
    fn add_constants(&mut self, module: &Module) {
        for node in &self.func.nodes {
            let Op::Constant(index) = node.op else { continue };
            if self.constants.contains(&index) {
                continue;
            }
            let constant = &module.constants[index];
            let axes = constant
                .axes
                .iter()
                .filter_map(|(name, size)| {
                    node.ty.axes.iter().find(|a| {
                        let decl = self.func.axis(*a);
                        decl.name == *name && decl.extent == Extent::Fixed(*size)
                    })
                })
                .collect();
            self.constants.push(index);
            self.inputs.push(ArrayDecl { name: constant.name.clone(), dtype: constant.dtype, axes });
        }
    }

    fn node(&mut self, id: NodeId, subst: &Substitution) -> Result<TermId, PassError> {
        let func = self.func;
        let node = func.node(id);
        let relevant: Substitution =
            subst.iter().filter(|(axis, _)| node.ty.axes.contains(**axis)).map(|(a, t)| (*a, *t)).collect();
        let key = (id, relevant.iter().map(|(a, t)| (*a, *t)).collect::<Vec<_>>());
        if let Some(&term) = self.memo.get(&key) {
            return Ok(term);
        }
        let term = self.convert_op(&node.op, &node.args, node.ty.dtype, &relevant)?;
        self.memo.insert(key, term);
        Ok(term)
    }

    fn convert_op(
        &mut self,
        op: &Op,
        args: &[NodeId],
        dtype: DType,
        subst: &Substitution,
    ) -> Result<TermId, PassError> {
        match op {
            Op::Param(index) => Ok(self.load(*index, subst)),
            Op::Constant(index) => {
                let at = self.constants.iter().position(|c| c == index).unwrap_or(0);
                Ok(self.load(self.func.params.len() + at, subst))
            }
            Op::Literal(value) => Ok(self.terms.make(TermOp::Literal(*value), dtype, vec![])),
            Op::Index(axis) => Ok(match subst.get(axis) {
                Some(&term) => self.cast(term, dtype),
                None => self.terms.make(TermOp::Index(*axis), dtype, vec![]),
            }),
            Op::Size(axis) => Ok(self.size(*axis, dtype)),
            Op::Unary(unary) => self.elementwise(TermOp::Unary(*unary), args, dtype, subst),
            Op::Binary(binary) => self.elementwise(TermOp::Binary(*binary), args, dtype, subst),
            Op::Compare(cmp) => self.elementwise(TermOp::Compare(*cmp), args, dtype, subst),
            Op::Select => self.elementwise(TermOp::Select, args, dtype, subst),
            Op::Cast => {
                let x = self.node(args[0], subst)?;
                Ok(self.cast(x, dtype))
            }
            Op::Reduce(op, axes) => {
                let (fresh, subst) = self.bind(*axes, subst)?;
                let x = self.node(args[0], &subst)?;
                let axes = axes.iter().map(|a| fresh.get(&a).copied().unwrap_or(a)).collect();
                Ok(self.terms.make(TermOp::Reduce(*op, axes), dtype, vec![x]))
            }
            Op::ArgMax(axis) => {
                let (fresh, subst) = self.bind(AxisSet::one(*axis), subst)?;
                let x = self.node(args[0], &subst)?;
                let axis = fresh.get(axis).copied().unwrap_or(*axis);
                Ok(self.terms.make(TermOp::ArgMax(axis), dtype, vec![x]))
            }
            Op::TopK { axis, to, part } => {
                if subst.contains_key(to) {
                    return Err(PassError::unsupported("a view or gather along the new axis of topk"));
                }
                let (fresh, subst) = self.bind(AxisSet::one(*axis), subst)?;
                let x = self.node(args[0], &subst)?;
                let axis = fresh.get(axis).copied().unwrap_or(*axis);
                Ok(self.terms.make(TermOp::TopK { axis, to: *to, part: *part }, dtype, vec![x]))
            }
            Op::Sort { .. } => Err(PassError::unsupported("sort")),
            Op::CumSum(_) => Err(PassError::unsupported("cumsum")),
            Op::Quantize | Op::Dequantize => self.quantization(op, args, dtype, subst),
            _ => self.view(op, args, dtype, subst),
        }
    }

    fn elementwise(
        &mut self,
        op: TermOp,
        args: &[NodeId],
        dtype: DType,
        subst: &Substitution,
    ) -> Result<TermId, PassError> {
        let args = args.iter().map(|a| self.node(*a, subst)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.terms.make(op, dtype, args))
    }

    fn view(&mut self, op: &Op, args: &[NodeId], dtype: DType, subst: &Substitution) -> Result<TermId, PassError> {
        match op {
            Op::Gather(axis) => {
                let ids = self.node(args[1], subst)?;
                let ids = self.cast(ids, DType::I64);
                self.with(args[0], subst, &[(*axis, ids)])
            }
            Op::Rename { from, to } => {
                let at = self.position(*to, subst);
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Split { from, to } => {
                let mut at = self.position(to[0], subst);
                for axis in &to[1..] {
                    let size = self.size(*axis, DType::I64);
                    let inner = self.position(*axis, subst);
                    at = self.terms.binary(BinaryOp::Mul, at, size);
                    at = self.terms.binary(BinaryOp::Add, at, inner);
                }
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Merge { from, to } => {
                let mut rest = self.position(*to, subst);
                let mut parts = vec![];
                for axis in from[1..].iter().rev() {
                    let size = self.size(*axis, DType::I64);
                    parts.push((*axis, self.terms.binary(BinaryOp::Rem, rest, size)));
                    rest = self.terms.binary(BinaryOp::Div, rest, size);
                }
                parts.push((from[0], rest));
                self.with(args[0], subst, &parts)
            }
            Op::Slice { from, to, start, step } => {
                let mut at = self.position(*to, subst);
                if *step != 1 {
                    let step = self.terms.int(*step);
                    at = self.terms.binary(BinaryOp::Mul, at, step);
                }
                if *start != 0 {
                    let start = self.terms.int(*start);
                    at = self.terms.binary(BinaryOp::Add, at, start);
                }
                self.with(args[0], subst, &[(*from, at)])
            }
            Op::Shift { axis, by } => {
                let at = self.position(*axis, subst);
                let by = self.terms.int(*by);
                let at = self.terms.binary(BinaryOp::Sub, at, by);
                let (inside, at) = self.clamped(at, *axis);
                let x = self.with(args[0], subst, &[(*axis, at)])?;
                let fill = self.node(args[1], subst)?;
                Ok(self.terms.make(TermOp::Select, dtype, vec![inside, x, fill]))
            }
            Op::Concat { from, to } => {
                let mut at = self.position(*to, subst);
                let mut pieces = vec![];
                for (axis, arg) in from.iter().zip(args) {
                    let (inside, clamped) = self.clamped(at, *axis);
                    pieces.push((inside, self.with(*arg, subst, &[(*axis, clamped)])?));
                    let size = self.size(*axis, DType::I64);
                    at = self.terms.binary(BinaryOp::Sub, at, size);
                }
                let (_, mut joined) = pieces.pop().ok_or_else(|| PassError::internal("concat of nothing"))?;
                for (inside, piece) in pieces.into_iter().rev() {
                    joined = self.terms.make(TermOp::Select, dtype, vec![inside, piece, joined]);
                }
                Ok(joined)
            }
            other => Err(PassError::internal(format!("no term form of {other:?}"))),
        }
    }

    fn quantization(
        &mut self,
        op: &Op,
        args: &[NodeId],
        dtype: DType,
        subst: &Substitution,
    ) -> Result<TermId, PassError> {
        let args = args.iter().map(|a| self.node(*a, subst)).collect::<Result<Vec<_>, _>>()?;
        let (x, scale) = (args[0], args[1]);
        let float = self.terms.get(scale).dtype;
        let zero = self.cast(args[2], float);
        if *op == Op::Dequantize {
            let x = self.cast(x, float);
            let shifted = self.terms.binary(BinaryOp::Sub, x, zero);
            let scaled = self.terms.binary(BinaryOp::Mul, shifted, scale);
            return Ok(match args.get(3) {
                Some(&offset) => self.terms.binary(BinaryOp::Add, scaled, offset),
                None => scaled,
            });
        }
        let (lo, hi) = int_range(dtype);
        let (lo, hi) = (self.terms.float(lo, float), self.terms.float(hi, float));
        let steps = self.terms.binary(BinaryOp::Div, x, scale);
        let rounded = self.terms.unary(UnaryOp::Round, steps);
        let shifted = self.terms.binary(BinaryOp::Add, rounded, zero);
        let low = self.terms.binary(BinaryOp::Max, shifted, lo);
        let clamped = self.terms.binary(BinaryOp::Min, low, hi);
        let is_number = self.terms.make(TermOp::Compare(CmpOp::Eq), DType::Bool, vec![x, x]);
        let value = self.terms.make(TermOp::Select, float, vec![is_number, clamped, zero]);
        Ok(self.cast(value, dtype))
    }

    /// An operand under a view: some of its axes are at given positions, the others as outside.
    fn with(&mut self, arg: NodeId, subst: &Substitution, at: &[(AxisId, TermId)]) -> Result<TermId, PassError> {
        let mut inner = subst.clone();
        for (axis, term) in at {
            let identity = self.terms.get(*term).op == TermOp::Index(*axis);
            if identity {
                inner.remove(axis);
            } else {
                inner.insert(*axis, *term);
            }
        }
        self.node(arg, &inner)
    }

    /// Bind reduced axes: outer substitutions of them do not reach inside, and those whose names would be captured get others.
    ///
    /// An alias made before serves again if nothing that is substituted mentions it: equal terms then stay equal, and
    /// chains of views over reductions do not use up axes.
    fn bind(
        &mut self,
        axes: AxisSet,
        subst: &Substitution,
    ) -> Result<(BTreeMap<AxisId, AxisId>, Substitution), PassError> {
        let mut inner = subst.clone();
        inner.retain(|axis, _| !axes.contains(*axis));
        let mentioned = inner.values().fold(AxisSet::EMPTY, |set, t| set.union(self.terms.get(*t).axes));
        let mut fresh = BTreeMap::new();
        for axis in axes.intersect(mentioned).iter() {
            let known = self.aliases.get(&axis).and_then(|a| a.iter().copied().find(|id| !mentioned.contains(*id)));
            let id = match known {
                Some(id) => id,
                None => self.alias(axis)?,
            };
            let index = self.terms.make(TermOp::Index(id), DType::I64, vec![]);
            inner.insert(axis, index);
            fresh.insert(axis, id);
        }
        Ok((fresh, inner))
    }

    /// A new axis of the same length.
    fn alias(&mut self, axis: AxisId) -> Result<AxisId, PassError> {
        if self.axes.len() >= MAX_AXES {
            return Err(PassError::unsupported(format!("a function that needs more than {MAX_AXES} axes")));
        }
        let extent = match &self.axes[axis.0 as usize].extent {
            Extent::Fixed(n) => Extent::Fixed(*n),
            _ => Extent::Derived(SizeExpr::Axis(axis)),
        };
        let id = AxisId(self.axes.len() as u8);
        let aliases = self.aliases.entry(axis).or_default();
        aliases.push(id);
        let name = format!("{}{}", self.axes[axis.0 as usize].name, "'".repeat(aliases.len()));
        self.axes.push(AxisDecl { name, extent });
        Ok(id)
    }

    fn load(&mut self, input: usize, subst: &Substitution) -> TermId {
        let axes = self.inputs[input].axes.clone();
        let dtype = self.inputs[input].dtype;
        let args: Vec<TermId> = axes.iter().map(|a| self.position(*a, subst)).collect();
        let checked = args.iter().any(|a| self.reads_memory(*a));
        self.terms.make(TermOp::Load { array: ArrayId::Input(input), checked }, dtype, args)
    }

    fn reads_memory(&self, id: TermId) -> bool {
        let reads = |op: &TermOp| {
            matches!(op, TermOp::Load { .. } | TermOp::Reduce(..) | TermOp::ArgMax(_) | TermOp::TopK { .. })
        };
        self.terms.reachable(&[id]).into_iter().any(|t| reads(&self.terms.get(t).op))
    }

    fn position(&mut self, axis: AxisId, subst: &Substitution) -> TermId {
        match subst.get(&axis) {
            Some(&term) => term,
            None => self.terms.make(TermOp::Index(axis), DType::I64, vec![]),
        }
    }

    /// Whether a position is inside an axis, and the nearest position that is.
    fn clamped(&mut self, at: TermId, axis: AxisId) -> (TermId, TermId) {
        let zero = self.terms.int(0);
        let one = self.terms.int(1);
        let size = self.size(axis, DType::I64);
        let last = self.terms.binary(BinaryOp::Sub, size, one);
        let from = self.terms.make(TermOp::Compare(CmpOp::Ge), DType::Bool, vec![at, zero]);
        let to = self.terms.make(TermOp::Compare(CmpOp::Lt), DType::Bool, vec![at, size]);
        let inside = self.terms.make(TermOp::Binary(BinaryOp::And), DType::Bool, vec![from, to]);
        let low = self.terms.binary(BinaryOp::Max, at, zero);
        let clamped = self.terms.binary(BinaryOp::Min, low, last);
        (inside, clamped)
    }

    fn size(&mut self, axis: AxisId, dtype: DType) -> TermId {
        match &self.axes[axis.0 as usize].extent {
            Extent::Fixed(n) if dtype.is_float() => self.terms.float(*n as f64, dtype),
            Extent::Fixed(n) => self.terms.make(TermOp::Literal(Literal::Int(*n as i64)), dtype, vec![]),
            _ => self.terms.make(TermOp::Size(axis), dtype, vec![]),
        }
    }

    fn cast(&mut self, x: TermId, dtype: DType) -> TermId {
        let Term { op, dtype: from, .. } = self.terms.get(x).clone();
        if from == dtype {
            return x;
        }
        match op {
            // Positions and sizes are exact in either type.
            TermOp::Index(_) | TermOp::Size(_) if !matches!(dtype, DType::Bool) => self.terms.make(op, dtype, vec![]),
            TermOp::Literal(Literal::Int(n)) if dtype.is_float() => self.terms.float(n as f64, dtype),
            TermOp::Literal(Literal::Int(n)) if dtype == DType::I64 => self.terms.int(n),
            _ => self.terms.make(TermOp::Cast, dtype, vec![x]),
        }
    }
}

/// Range of an integer type's values as floats.
fn int_range(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::I4 => (-8.0, 7.0),
        DType::U4 => (0.0, 15.0),
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        _ => (f64::from(i32::MIN), f64::from(i32::MAX)),
    }
}
