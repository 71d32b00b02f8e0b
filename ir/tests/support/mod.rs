//! Random functions, for property tests.

use onefold_ir::*;

/// Numbers to choose by.
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices { bytes, at: 0 }
    }

    pub fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn below(&mut self, n: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % n.max(1)
    }

    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

const FLOATS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.5,
    1e-3,
    1e30,
    -7.25e-12,
    1e22,
    9007199254740994.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.1,
];

const UNARY: [UnaryOp; 13] = [
    UnaryOp::Neg,
    UnaryOp::Exp,
    UnaryOp::Log,
    UnaryOp::Exp2,
    UnaryOp::Log2,
    UnaryOp::Tanh,
    UnaryOp::Erf,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Abs,
    UnaryOp::Floor,
    UnaryOp::Round,
    UnaryOp::Not,
];

const BINARY: [BinaryOp; 13] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::Pow,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
];

/// A module with one function made by random calls of the builder. Calls that do not fit are left out.
pub fn random_module(bytes: &[u8]) -> Module {
    let mut c = Choices::new(bytes);
    let constants = vec![
        Constant { name: "c".into(), dtype: DType::F32, axes: vec![("i".into(), 3)], data: vec![1.0, -2.5, 0.25] },
        Constant { name: "n".into(), dtype: DType::I64, axes: vec![], data: vec![2.0] },
    ];
    let mut f = FuncBuilder::new("random");
    f.reserve("c");
    f.reserve("n");
    let mut axes = vec![];
    for name in ["i", "j", "e"] {
        let fixed = c.below(3) == 0;
        axes.push(if fixed { f.fixed(name, 3) } else { f.symbolic(name) }.expect("fits"));
    }
    if c.below(4) == 0 {
        axes.push(f.fixed("j", 2).expect("fits"));
    }
    let mut nodes = vec![];
    // Every axis is some parameter's, or it would have no size; in order, so that sums add up in the same order after
    // reading the text back.
    for (n, axis) in axes.iter().enumerate() {
        nodes.push(f.param(&format!("p{n}"), DType::F32, &[*axis]).expect("fits"));
    }
    for (name, dtype) in [("x", DType::F32), ("y", DType::F32), ("k", DType::I64), ("m", DType::Bool)] {
        let own: Vec<AxisId> = axes.iter().copied().filter(|_| c.below(2) == 0).collect();
        if let Ok(node) = f.param(name, dtype, &own) {
            nodes.push(node);
        }
    }
    while !c.done() {
        let made = random_call(&mut f, &mut c, &nodes, &axes, &constants);
        let Some(made) = made else { continue };
        if c.below(3) == 0 {
            let name = c.of(&["a", "b", "s", "s_1", "out0", "t"]);
            let _ = f.name(made[0], name);
        }
        nodes.extend(made);
    }
    for _ in 0..1 + c.below(2) {
        let node = nodes[nodes.len() - 1 - c.below(3)];
        let ty = f.ty(node).expect("known");
        let mut order: Vec<AxisId> = ty.axes.iter().collect();
        if c.below(2) == 0 {
            order.reverse();
        }
        f.result(node, &order).expect("fits");
    }
    Module { funcs: vec![f.finish().expect("well formed")], constants }
}

fn random_call(
    f: &mut FuncBuilder,
    c: &mut Choices<'_>,
    nodes: &[NodeId],
    axes: &[AxisId],
    constants: &[Constant],
) -> Option<Vec<NodeId>> {
    // Mostly recent nodes, so that functions are deep.
    let pick = |c: &mut Choices<'_>| nodes[nodes.len() - 1 - c.below(nodes.len().min(6))];
    let x = pick(c);
    let ty = f.ty(x).ok()?;
    let own: Vec<AxisId> = ty.axes.iter().collect();
    let some_axis = if own.is_empty() { c.of(axes) } else { c.of(&own) };
    let one = |made: Result<NodeId, BuildError>| made.ok().map(|n| vec![n]);
    match c.below(26) {
        0 => one(f.float(c.of(&[DType::F32, DType::F64]), c.of(&FLOATS))),
        1 => one(f.int(c.of(&[DType::I64, DType::I32, DType::I8]), c.of(&[0, 1, -1, 5]))),
        2 => one(f.boolean(c.below(2) == 0)),
        3 => one(f.index(c.of(&[DType::I64, DType::F32, DType::I32]), c.of(axes))),
        4 => one(f.size(c.of(&[DType::I64, DType::F32]), c.of(axes))),
        5..=7 => one(f.unary(c.of(&UNARY), x)),
        8..=11 => {
            let y = pick(c);
            one(f.binary(c.of(&BINARY), x, y))
        }
        12 => {
            let y = pick(c);
            one(f.compare(c.of(&[CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge, CmpOp::Eq, CmpOp::Ne]), x, y))
        }
        13 => {
            let (y, z) = (pick(c), pick(c));
            one(f.select(x, y, z))
        }
        14 => one(f.cast(c.of(&DType::ALL), x)),
        15 | 16 => {
            let over: Vec<AxisId> = own.iter().copied().filter(|_| c.below(2) == 0).collect();
            one(f.reduce(c.of(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min]), x, &over))
        }
        17 => one(f.cumsum(x, some_axis)),
        18 => f.sort(x, some_axis).ok().map(|(a, b)| vec![a, b]),
        19 => {
            let to = f.fixed(c.of(&["t", "i"]), c.of(&[1, 2])).ok()?;
            f.topk(x, some_axis, to).ok().map(|(a, b)| vec![a, b])
        }
        20 => {
            let name = c.of(&["r", "i", "j"]);
            let to = f.same_length(name, some_axis).ok()?;
            one(f.rename(x, some_axis, to))
        }
        21 => {
            let (start, step) = (c.below(2) as i64, 1 + c.below(2) as i64);
            let name = c.of(&["j", "i", "w"]);
            let to = f.sliced(name, some_axis, start, None, step).ok()?;
            one(f.slice(x, some_axis, to, start, step))
        }
        22 => {
            if own.len() > 1 && c.below(2) == 0 {
                let to = f.merged("g", &own).ok()?;
                return one(f.merge(x, &own, to));
            }
            let (a, known) = ("a", f.fixed("u", 1).ok()?);
            let rest = f.quotient(a, some_axis, &[known]).ok()?;
            one(f.split(x, some_axis, &[known, rest]))
        }
        23 => {
            let y = pick(c);
            let to = f.joined("j", &[some_axis, some_axis]).ok()?;
            one(f.concat(&[(x, some_axis), (y, some_axis)], to))
        }
        24 => {
            let fill = pick(c);
            one(f.shift(x, fill, some_axis, c.below(5) as i64 - 2))
        }
        _ => match c.below(4) {
            0 => {
                let n = c.below(constants.len());
                one(f.constant(n, &constants[n]))
            }
            1 => {
                let scale = f.float(DType::F32, 0.5).ok()?;
                let zero = f.int(DType::I8, c.of(&[0, 3])).ok()?;
                one(f.quantize(DType::I8, x, scale, zero))
            }
            2 => {
                let scale = f.float(c.of(&[DType::F32, DType::F64]), 0.5).ok()?;
                let offset = f.float(c.of(&[DType::F32, DType::F64]), c.of(&[0.0, 0.125])).ok()?;
                let zero = f.int(DType::I8, 3).ok()?;
                one(f.dequantize(x, scale, zero, offset))
            }
            _ => {
                let ids = f.int(DType::I64, c.of(&[0, -1])).ok()?;
                one(f.gather(x, ids, some_axis))
            }
        },
    }
}
