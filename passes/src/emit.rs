//! From e-nodes back to terms: flat sums and products become differences, quotients and chains of binary operations.

use crate::lang::NodeOp;
use crate::term::{TermId, TermOp, Terms};
use onefold_ir::{BinaryOp, DType, Literal, UnaryOp};

/// The term of a node whose operands are terms already.
pub fn emit(terms: &mut Terms, op: &NodeOp, args: &[TermId]) -> TermId {
    match op {
        NodeOp::Add(dtype) => sum(terms, *dtype, args),
        NodeOp::Mul(dtype) => product(terms, *dtype, args),
        NodeOp::Recip(dtype) => {
            let one = terms.float(1.0, *dtype);
            match sqrt_operand(terms, args[0]) {
                Some(x) => terms.unary(UnaryOp::Rsqrt, x),
                None => terms.binary(BinaryOp::Div, one, args[0]),
            }
        }
        NodeOp::Prim(op, dtype) => terms.make(op.clone(), *dtype, args.to_vec()),
        // Opaque nodes stand for terms that exist; whoever made them replaces them before coming here.
        NodeOp::Opaque(n, ..) => TermId(*n),
    }
}

fn sqrt_operand(terms: &Terms, id: TermId) -> Option<TermId> {
    (terms.get(id).op == TermOp::Unary(UnaryOp::Sqrt)).then(|| terms.get(id).args[0])
}

fn float_literal(terms: &Terms, id: TermId) -> Option<f64> {
    match terms.get(id).op {
        TermOp::Literal(Literal::Float(v)) => Some(v),
        _ => None,
    }
}

fn sum(terms: &mut Terms, dtype: DType, args: &[TermId]) -> TermId {
    let negated = |terms: &Terms, id: TermId| {
        let term = terms.get(id);
        (term.op == TermOp::Unary(UnaryOp::Neg)).then(|| term.args[0])
    };
    let mut plus: Vec<TermId> = args.iter().copied().filter(|a| negated(terms, *a).is_none()).collect();
    let mut minus: Vec<TermId> = args.iter().filter_map(|a| negated(terms, *a)).collect();
    // The widest operand first: what it meets next is then subtracted from the data, in the order of definition.
    plus.sort_by_key(|a| (std::cmp::Reverse(terms.get(*a).axes.len()), *a));
    minus.sort_by_key(|a| (std::cmp::Reverse(terms.get(*a).axes.len()), *a));
    let mut plus = plus.into_iter();
    let mut total = match plus.next() {
        Some(first) => first,
        None => {
            let Some(first) = (!minus.is_empty()).then(|| minus.remove(0)) else { return terms.float(0.0, dtype) };
            terms.unary(UnaryOp::Neg, first)
        }
    };
    for x in plus {
        total = terms.binary(BinaryOp::Add, total, x);
    }
    for x in minus {
        total = terms.binary(BinaryOp::Sub, total, x);
    }
    total
}

fn product(terms: &mut Terms, dtype: DType, args: &[TermId]) -> TermId {
    let (mut above, mut below, mut constant) = (vec![], vec![], 1.0);
    for &arg in args {
        let term = terms.get(arg).clone();
        if let Some(value) = float_literal(terms, arg) {
            constant *= value;
        } else if term.op == TermOp::Binary(BinaryOp::Div) && float_literal(terms, term.args[0]) == Some(1.0) {
            below.push(term.args[1]);
        } else if term.op == TermOp::Unary(UnaryOp::Neg) {
            constant = -constant;
            above.push(term.args[0]);
        } else {
            above.push(arg);
        }
    }
    // Factors that vary least first, so that what an inner loop does not change is one operand.
    above.sort_by_key(|a| (terms.get(*a).axes.len(), *a));
    below.sort_by_key(|a| (terms.get(*a).axes.len(), *a));
    let negative = constant == -1.0 && !above.is_empty();
    if above.is_empty() || (constant != 1.0 && !negative) {
        above.insert(0, terms.float(constant, dtype));
    }
    let chain =
        |terms: &mut Terms, factors: Vec<TermId>| factors.into_iter().reduce(|a, b| terms.binary(BinaryOp::Mul, a, b));
    let mut result = match chain(terms, above) {
        Some(product) => product,
        None => terms.float(1.0, dtype),
    };
    if let Some(divisor) = chain(terms, below) {
        result = terms.binary(BinaryOp::Div, result, divisor);
    }
    if negative {
        result = terms.unary(UnaryOp::Neg, result);
    }
    result
}
