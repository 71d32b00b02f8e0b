//! From tensor IR to terms: views and gathers become index arithmetic on the leaves.
//!
//! A view commutes with everything elementwise, so it is carried down as a substitution from axes to index terms until it
//! meets a leaf. Reductions bind their axes: where a substituted index mentions a bound axis, the bound one is renamed.

mod quantization;
mod stored;
mod view;

use crate::error::PassError;
use crate::fold::{ArrayDecl, Target};
use crate::term::{ArrayId, Term, TermId, TermOp, Terms};
use onefold_ir::{AxisDecl, AxisId, AxisSet, DType, Extent, Func, Literal, Module, NodeId, Op, SizeExpr, MAX_AXES};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// Arrays that must be in memory before later terms can be computed, in order.
    pub stored: Vec<Stored>,
    /// A term for each stored array, then for each output.
    pub roots: Vec<TermId>,
}

/// An array that is computed on its own and read back: what is picked from it by position is not known where it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The array: the n-th of [`Graph::stored`] is `ArrayId::Intermediate(n)`.
    pub decl: ArrayDecl,
    /// Of a running sum: the axis that it runs along. The root is then what is summed.
    pub scan: Option<AxisId>,
}

impl Graph {
    /// Where the n-th root goes.
    pub fn target(&self, root: usize) -> Target {
        match root.checked_sub(self.stored.len()) {
            Some(n) => Target::Output(n),
            None => Target::Intermediate(root),
        }
    }

    /// The array that the n-th root is stored in.
    pub fn decl(&self, root: usize) -> &ArrayDecl {
        match self.target(root) {
            Target::Output(n) => &self.outputs[n],
            Target::Intermediate(n) => &self.stored[n].decl,
        }
    }
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
    /// Positions that ids give and that may lie outside of their axes.
    picked: BTreeSet<TermId>,
    stored: Vec<Stored>,
    /// What is stored.
    stored_roots: Vec<TermId>,
    /// Nodes whose values are computed once, for all views of them.
    shared: BTreeSet<NodeId>,
    /// The stored array of a node.
    stored_at: HashMap<NodeId, usize>,
}

/// The terms of a verified function.
///
/// # Errors
/// The function needs more axes than there may be.
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
        picked: BTreeSet::new(),
        stored: vec![],
        stored_roots: vec![],
        shared: stored::shared_values(func),
        stored_at: HashMap::new(),
    };
    converter.add_constants(module);
    // Nodes in order of definition first: the recursion below then never goes deep, however long the function is.
    for id in 0..func.nodes.len() as u32 {
        // An error here matters only if a result needs this very node; then it comes again below.
        let _ = converter.node(NodeId(id), &Substitution::new());
    }
    let mut results = vec![];
    for result in &func.results {
        results.push(converter.node(result.node, &Substitution::new())?);
    }
    let mut roots = converter.drop_unused(&mut results);
    roots.extend(results);
    let outputs = func
        .results
        .iter()
        .map(|r| ArrayDecl { name: r.name.clone(), dtype: func.node(r.node).ty.dtype, axes: r.axes.clone() })
        .collect();
    let Converter { axes, inputs, constants, terms, stored, .. } = converter;
    Ok(Graph { name: func.name.clone(), axes, inputs, constants, outputs, terms, stored, roots })
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
        let term = match self.must_be_stored(id, &relevant) {
            true => self.stored_node(id, &relevant)?,
            false => self.convert_op(&node.op, &node.args, node.ty.dtype, &relevant)?,
        };
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
                let (fresh, subst) = self.bind(AxisSet::one(*axis), subst)?;
                let x = self.node(args[0], &subst)?;
                let axis = fresh.get(axis).copied().unwrap_or(*axis);
                Ok(self.terms.make(TermOp::TopK { axis, to: *to, part: *part }, dtype, vec![x]))
            }
            Op::Sort { .. } | Op::CumSum(_) => Err(PassError::internal("a term that has to be stored")),
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
        let checked = self.may_be_outside(&args);
        self.terms.make(TermOp::Load { array: ArrayId::Input(input), checked }, dtype, args)
    }

    fn position(&mut self, axis: AxisId, subst: &Substitution) -> TermId {
        match subst.get(&axis) {
            Some(&term) => term,
            None => self.terms.make(TermOp::Index(axis), DType::I64, vec![]),
        }
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

/// Whether two axes are sure to have as many positions.
pub fn same_extent(axes: &[AxisDecl], a: AxisId, b: AxisId) -> bool {
    let root = |mut axis: AxisId| {
        while let Extent::Derived(SizeExpr::Axis(of)) = &axes[axis.0 as usize].extent {
            axis = *of;
        }
        axis
    };
    let (a, b) = (root(a), root(b));
    let fixed = |axis: AxisId| match axes[axis.0 as usize].extent {
        Extent::Fixed(n) => Some(n),
        _ => None,
    };
    a == b || fixed(a).is_some() && fixed(a) == fixed(b)
}
