//! What has to be in memory before others read it: running sums, orders, and selections that are read elsewhere than at the
//! position at hand.

use super::{Converter, Stored, Substitution};
use crate::error::PassError;
use crate::fold::ArrayDecl;
use crate::term::{ArrayId, Term, TermId, TermOp};
use onefold_ir::{AxisId, AxisSet, BinaryOp, CmpOp, DType, Func, Literal, NodeId, Op, Part, ReduceOp, UnaryOp};
use std::collections::BTreeSet;

/// So many reductions behind each other make a value that is not computed again for another view of it.
const LONG_CHAIN: u32 = 4;

/// Nodes behind long chains of reductions that are used as they stand and under a view (a matrix and its transpose, in an iteration). Copies of
/// such a value are summed in different orders, and what differs between them may grow with every further step: Newton's iteration for an
/// inverse doubles it. Besides, each copy is the whole work again.
pub(super) fn shared_values(func: &Func) -> BTreeSet<NodeId> {
    let mut chains: Vec<u32> = vec![];
    let mut viewed: BTreeSet<NodeId> = BTreeSet::new();
    let mut plain: BTreeSet<NodeId> = func.results.iter().map(|r| r.node).collect();
    for node in &func.nodes {
        let before = node.args.iter().map(|a| chains[a.0 as usize]).max().unwrap_or(0);
        let reduces = matches!(node.op, Op::Reduce(..) | Op::ArgMax(_) | Op::TopK { .. });
        chains.push(before + u32::from(reduces));
        let of = if matches!(node.op, Op::Rename { .. }) { &mut viewed } else { &mut plain };
        of.extend(&node.args);
    }
    viewed.retain(|id| plain.contains(id) && chains[id.0 as usize] >= LONG_CHAIN && func.node(*id).ty.dtype.is_float());
    viewed
}

impl Converter<'_> {
    /// Whether a node's values are read back from memory, under views of some of its axes.
    pub(super) fn must_be_stored(&self, id: NodeId, subst: &Substitution) -> bool {
        match &self.func.node(id).op {
            Op::Sort { .. } | Op::CumSum(_) => true,
            Op::TopK { to, .. } => subst.contains_key(to),
            _ => self.shared.contains(&id),
        }
    }

    /// An element of a node that is stored.
    pub(super) fn stored_node(&mut self, id: NodeId, subst: &Substitution) -> Result<TermId, PassError> {
        let func = self.func;
        let node = func.node(id);
        match &node.op {
            Op::CumSum(axis) => {
                let at = self.store(id, node.ty.axes, Some(*axis), |c| c.node(node.args[0], &Substitution::new()))?;
                Ok(self.element(at, subst))
            }
            Op::Sort { axis, part } => self.sorted(id, *axis, *part, subst),
            op => {
                let dtype = node.ty.dtype;
                let whole = Substitution::new();
                let at = self.store(id, node.ty.axes, None, |c| c.convert_op(op, &node.args, dtype, &whole))?;
                Ok(self.element(at, subst))
            }
        }
    }

    /// Store a node's value, made by `make`, once.
    fn store(
        &mut self,
        id: NodeId,
        axes: AxisSet,
        scan: Option<AxisId>,
        make: impl FnOnce(&mut Self) -> Result<TermId, PassError>,
    ) -> Result<usize, PassError> {
        if let Some(&at) = self.stored_at.get(&id) {
            return Ok(at);
        }
        let root = make(self)?;
        let at = self.stored.len();
        // The axis that is run along or sorted is innermost, where memory is contiguous.
        let last = scan.or(match self.terms.get(root).op {
            TermOp::TopK { to, .. } => Some(to),
            _ => None,
        });
        let mut axes: Vec<AxisId> = axes.iter().filter(|a| Some(*a) != last).collect();
        axes.extend(last);
        let dtype = self.func.node(id).ty.dtype;
        self.stored.push(Stored { decl: ArrayDecl { name: format!("t{at}"), dtype, axes }, scan });
        self.stored_roots.push(root);
        self.stored_at.insert(id, at);
        Ok(at)
    }

    /// An element of a stored array.
    fn element(&mut self, at: usize, subst: &Substitution) -> TermId {
        let ArrayDecl { dtype, axes, .. } = self.stored[at].decl.clone();
        let args: Vec<TermId> = axes.iter().map(|a| self.position(*a, subst)).collect();
        let checked = self.may_be_outside(&args);
        self.terms.make(TermOp::Load { array: ArrayId::Intermediate(at), checked }, dtype, args)
    }

    /// An element of an ascending order: the largest first of what is ordered the other way round. NaN comes first there, and is
    /// counted so that it can be read last.
    fn sorted(&mut self, id: NodeId, axis: AxisId, part: Part, subst: &Substitution) -> Result<TermId, PassError> {
        let func = self.func;
        let node = func.node(id);
        let dtype = func.node(node.args[0]).ty.dtype;
        let to = match self.stored_at.get(&id).and_then(|at| self.stored[*at].decl.axes.last()) {
            Some(to) => *to,
            None => self.alias(axis)?,
        };
        let axes = node.ty.axes.without(axis).with(to);
        let store = self.store(id, axes, None, |c| {
            let x = c.node(node.args[0], &Substitution::new())?;
            let turned = c.turned(x, dtype);
            let of = if part == Part::Indices { node.ty.dtype } else { dtype };
            Ok(c.terms.make(TermOp::TopK { axis, to, part }, of, vec![turned]))
        })?;
        let mut position = self.position(axis, subst);
        if dtype.is_float() {
            let (fresh, inner) = self.bind(AxisSet::one(axis), subst)?;
            let x = self.node(node.args[0], &inner)?;
            let is_nan = self.terms.make(TermOp::Compare(CmpOp::Ne), DType::Bool, vec![x, x]);
            let is_nan = self.cast(is_nan, DType::I64);
            let along = fresh.get(&axis).copied().unwrap_or(axis);
            let count = self.terms.make(TermOp::Reduce(ReduceOp::Sum, AxisSet::one(along)), DType::I64, vec![is_nan]);
            let size = self.size(axis, DType::I64);
            position = self.terms.binary(BinaryOp::Add, position, count);
            position = self.terms.binary(BinaryOp::Rem, position, size);
        }
        let mut inner = subst.clone();
        inner.remove(&axis);
        inner.insert(to, position);
        let element = self.element(store, &inner);
        Ok(if part == Part::Values { self.turned(element, dtype) } else { element })
    }

    /// A value in the opposite order; its own inverse.
    fn turned(&mut self, x: TermId, dtype: DType) -> TermId {
        if dtype.is_float() {
            return self.terms.unary(UnaryOp::Neg, x);
        }
        // Of integers the complement, since the least has no negative.
        let ones = if dtype == DType::U8 || dtype == DType::U4 {
            Literal::Int(if dtype == DType::U8 { 255 } else { 15 })
        } else {
            Literal::Int(-1)
        };
        let ones = self.terms.make(TermOp::Literal(ones), dtype, vec![]);
        self.terms.binary(BinaryOp::Sub, ones, x)
    }

    /// The roots of the arrays that some results need; the others are forgotten, and loads renumbered.
    pub(super) fn drop_unused(&mut self, results: &mut [TermId]) -> Vec<TermId> {
        let mut used = vec![false; self.stored.len()];
        let mut open = results.to_vec();
        while let Some(root) = open.pop() {
            for id in self.terms.reachable(&[root]) {
                if let TermOp::Load { array: ArrayId::Intermediate(n), .. } = self.terms.get(id).op {
                    if !std::mem::replace(&mut used[n], true) {
                        open.push(self.stored_roots[n]);
                    }
                }
            }
        }
        let mut place = vec![0; used.len()];
        let mut kept = vec![];
        for (n, used) in used.iter().enumerate() {
            place[n] = kept.len();
            if *used {
                kept.push(n);
            }
        }
        self.stored = kept
            .iter()
            .enumerate()
            .map(|(at, n)| {
                let Stored { decl, scan } = self.stored[*n].clone();
                Stored { decl: ArrayDecl { name: format!("t{at}"), ..decl }, scan }
            })
            .collect();
        let roots: Vec<TermId> = kept.iter().map(|n| self.stored_roots[*n]).collect();
        let roots = roots.into_iter().map(|r| self.renumbered(r, &place)).collect();
        for result in results {
            *result = self.renumbered(*result, &place);
        }
        roots
    }

    fn renumbered(&mut self, root: TermId, place: &[usize]) -> TermId {
        let mut new = std::collections::HashMap::new();
        for id in self.terms.reachable(&[root]) {
            let mut term: Term = self.terms.get(id).clone();
            for arg in &mut term.args {
                *arg = new[arg];
            }
            if let TermOp::Load { array: ArrayId::Intermediate(n), .. } = &mut term.op {
                *n = place[*n];
            }
            let made = self.terms.add(term);
            new.insert(id, made);
        }
        new[&root]
    }
}
