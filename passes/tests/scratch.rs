use onefold_ir::*;
use onefold_passes::convert::Graph;
use onefold_passes::cost::CostModel;
use onefold_passes::fold::ArrayDecl;
use onefold_passes::streams::Streams;
use onefold_passes::term::*;
use std::time::Instant;

struct B {
    g: Graph,
}
type T = TermId;
impl B {
    fn new(axes: &[(&str, Option<u64>)]) -> B {
        B {
            g: Graph {
                name: "f".into(),
                axes: axes
                    .iter()
                    .map(|(n, e)| AxisDecl { name: n.to_string(), extent: e.map_or(Extent::Symbolic, Extent::Fixed) })
                    .collect(),
                inputs: vec![],
                constants: vec![],
                outputs: vec![],
                terms: Terms::default(),
                roots: vec![],
            },
        }
    }
    fn ax(&self, s: &str) -> Vec<AxisId> {
        s.split_whitespace().map(|n| AxisId(self.g.axes.iter().position(|a| a.name == n).unwrap() as u8)).collect()
    }
    fn input(&mut self, name: &str, axes: &str) -> T {
        let axes = self.ax(axes);
        let i = self.g.inputs.len();
        self.g.inputs.push(ArrayDecl { name: name.into(), dtype: DType::F32, axes: axes.clone() });
        let args = axes.iter().map(|a| self.g.terms.make(TermOp::Index(*a), DType::I64, vec![])).collect();
        self.g.terms.make(TermOp::Load { array: ArrayId::Input(i), checked: false }, DType::F32, args)
    }
    fn bin(&mut self, op: BinaryOp, a: T, b: T) -> T {
        self.g.terms.binary(op, a, b)
    }
    fn add(&mut self, a: T, b: T) -> T {
        self.bin(BinaryOp::Add, a, b)
    }
    fn sub(&mut self, a: T, b: T) -> T {
        self.bin(BinaryOp::Sub, a, b)
    }
    fn mul(&mut self, a: T, b: T) -> T {
        self.bin(BinaryOp::Mul, a, b)
    }
    fn div(&mut self, a: T, b: T) -> T {
        self.bin(BinaryOp::Div, a, b)
    }
    fn un(&mut self, op: UnaryOp, a: T) -> T {
        self.g.terms.unary(op, a)
    }
    fn f(&mut self, v: f64) -> T {
        self.g.terms.float(v, DType::F32)
    }
    fn red(&mut self, op: ReduceOp, axes: &str, a: T) -> T {
        let axes = self.ax(axes).into_iter().collect();
        self.g.terms.make(TermOp::Reduce(op, axes), DType::F32, vec![a])
    }
    fn sum(&mut self, axes: &str, a: T) -> T {
        self.red(ReduceOp::Sum, axes, a)
    }
    fn max(&mut self, axes: &str, a: T) -> T {
        self.red(ReduceOp::Max, axes, a)
    }
    fn size(&mut self, a: &str) -> T {
        let a = self.ax(a)[0];
        match self.g.axes[a.0 as usize].extent {
            Extent::Fixed(n) => self.f(n as f64),
            _ => self.g.terms.make(TermOp::Size(a), DType::F32, vec![]),
        }
    }
    fn out(&mut self, name: &str, axes: &str, t: T) {
        let axes = self.ax(axes);
        let dtype = self.g.terms.get(t).dtype;
        self.g.outputs.push(ArrayDecl { name: name.into(), dtype, axes });
        self.g.roots.push(t);
    }
    fn topk(&mut self, x: T, axis: &str, to: &str) -> (T, T) {
        let (axis, to) = (self.ax(axis)[0], self.ax(to)[0]);
        (
            self.g.terms.make(TermOp::TopK { axis, to, part: Part::Values }, DType::F32, vec![x]),
            self.g.terms.make(TermOp::TopK { axis, to, part: Part::Indices }, DType::I64, vec![x]),
        )
    }
    fn run(self, what: &str) {
        let _ = env_logger_init();
        for _ in 0..2 {
            let t = Instant::now();
            let sat = onefold_passes::saturate::saturate(&self.g, &Default::default(), false);
            let t1 = t.elapsed();
            let mut terms = Terms::default();
            let mut streams = Streams::new(true);
            let mut model = CostModel::new(&self.g.axes);
            let roots = onefold_passes::extract::extract(&sat, &mut terms, &mut streams, &mut model).unwrap();
            let t2 = t.elapsed();
            let p = onefold_passes::schedule::schedule(&self.g, terms, &mut streams, &roots).unwrap();
            let t3 = t.elapsed();
            println!(
                "=== {what}: nodes {} classes {} iters {} warn {:?}; saturate {:?} extract {:?} schedule {:?}",
                sat.egraph.total_size(),
                sat.egraph.number_of_classes(),
                sat.iterations,
                sat.warning,
                t1,
                t2 - t1,
                t3 - t2
            );
            println!("{p}");
        }
    }
}
fn env_logger_init() {}

fn softmax(b: &mut B, x: T, j: &str) -> T {
    let m = b.max(j, x);
    let s = b.sub(x, m);
    let e = b.un(UnaryOp::Exp, s);
    let d = b.sum(j, e);
    b.div(e, d)
}
fn scores(b: &mut B) -> (T, T) {
    let q = b.input("q", "b h i e");
    let k = b.input("k", "b h j e");
    let v = b.input("v", "b h j d");
    let qk = b.mul(q, k);
    let s = b.sum("e", qk);
    let n = b.size("e");
    let r = b.un(UnaryOp::Sqrt, n);
    (b.div(s, r), v)
}
const ATT: &[(&str, Option<u64>)] =
    &[("b", None), ("h", None), ("i", None), ("j", None), ("e", Some(64)), ("d", Some(64))];

#[test]
fn all() {
    let mut b = B::new(&[("b", None), ("v", None)]);
    let x = b.input("x", "b v");
    let p = softmax(&mut b, x, "v");
    b.out("out0", "b v", p);
    b.run("softmax");
    let mut b = B::new(&[("b", None), ("v", None)]);
    let x = b.input("x", "b v");
    let m = b.max("v", x);
    let s = b.sub(x, m);
    let e = b.un(UnaryOp::Exp, s);
    let d = b.sum("v", e);
    let l = b.un(UnaryOp::Log, d);
    let r = b.add(m, l);
    b.out("out0", "b", r);
    b.run("lse");
    let mut b = B::new(&[("b", None), ("v", None), ("t", Some(5))]);
    let x = b.input("x", "b v");
    let p = softmax(&mut b, x, "v");
    let (a, c) = b.topk(p, "v", "t");
    b.out("out0", "b t", a);
    b.out("out1", "b t", c);
    b.run("softmax+topk");
    let mut b = B::new(ATT);
    let (s, v) = scores(&mut b);
    let p = softmax(&mut b, s, "j");
    let pv = b.mul(p, v);
    let o = b.sum("j", pv);
    b.out("out0", "b h i d", o);
    b.run("attention");
    let mut b = B::new(&[("b", None), ("v", None)]);
    let x = b.input("x", "b v");
    let n = b.size("v");
    let s = b.sum("v", x);
    let mu = b.div(s, n);
    let c = b.sub(x, mu);
    let c2 = b.mul(c, c);
    let s2 = b.sum("v", c2);
    let n = b.size("v");
    let var = b.div(s2, n);
    b.out("mean", "b", mu);
    b.out("var", "b", var);
    b.run("mean var");
    let mut b = B::new(&[("b", None), ("v", None)]);
    let x = b.input("x", "b v");
    let p = softmax(&mut b, x, "v");
    let l = b.un(UnaryOp::Log, p);
    let pl = b.mul(p, l);
    let h = b.sum("v", pl);
    let h = b.un(UnaryOp::Neg, h);
    b.out("h", "b", h);
    b.run("entropy");
    let mut b = B::new(&[("b", None), ("v", None)]);
    let x = b.input("x", "b v");
    let a = b.un(UnaryOp::Abs, x);
    let m = b.max("v", a);
    let q = b.div(x, m);
    let q2 = b.mul(q, q);
    let s = b.sum("v", q2);
    let r = b.un(UnaryOp::Sqrt, s);
    let r = b.mul(m, r);
    b.out("norm", "b", r);
    b.run("scaled norm");
    let mut b = B::new(ATT);
    let (s, v) = scores(&mut b);
    let p = softmax(&mut b, s, "j");
    let pv = b.mul(p, v);
    let o = b.sum("j", pv);
    let pvv = b.mul(pv, v);
    let o2 = b.sum("j", pvv);
    b.out("m1", "b h i d", o);
    b.out("m2", "b h i d", o2);
    b.run("moments");
    let mut b = B::new(ATT);
    let (s, v) = scores(&mut b);
    let p = softmax(&mut b, s, "j");
    let q2 = b.input("q2", "b h i e");
    let k2 = b.input("k2", "b h j e");
    let qk = b.mul(q2, k2);
    let s2 = b.sum("e", qk);
    let p2 = softmax(&mut b, s2, "j");
    let lam = b.f(0.5);
    let p2 = b.mul(lam, p2);
    let d = b.sub(p, p2);
    let dv = b.mul(d, v);
    let o = b.sum("j", dv);
    b.out("o", "b h i d", o);
    b.run("differential");
    let mut b = B::new(ATT);
    let q = b.input("q", "b h i e");
    let k = b.input("k", "b h j e");
    let v = b.input("v", "b h j d");
    let z = b.f(0.0);
    let fq = b.bin(BinaryOp::Max, q, z);
    let fk = b.bin(BinaryOp::Max, k, z);
    let qk = b.mul(fq, fk);
    let a = b.sum("e", qk);
    let av = b.mul(a, v);
    let n = b.sum("j", av);
    let d = b.sum("j", a);
    let o = b.div(n, d);
    b.out("o", "b h i d", o);
    b.run("linear");
    // softpick
    let mut b = B::new(ATT);
    let (s, v) = scores(&mut b);
    let m = b.max("j", s);
    let sm = b.sub(s, m);
    let e1 = b.un(UnaryOp::Exp, sm);
    let nm = b.un(UnaryOp::Neg, m);
    let e2 = b.un(UnaryOp::Exp, nm);
    let a = b.sub(e1, e2);
    let z = b.f(0.0);
    let r = b.bin(BinaryOp::Max, a, z);
    let ab = b.un(UnaryOp::Abs, a);
    let dsum = b.sum("j", ab);
    let eps = b.f(1e-8);
    let den = b.add(dsum, eps);
    let w = b.div(r, den);
    let wv = b.mul(w, v);
    let o = b.sum("j", wv);
    b.out("o", "b h i d", o);
    b.run("softpick");
    // NAP
    let mut b = B::new(ATT);
    let (s, v) = scores(&mut b);
    let n = b.size("j");
    let ss = b.sum("j", s);
    let mu = b.div(ss, n);
    let c = b.sub(s, mu);
    let c2 = b.mul(c, c);
    let m2 = b.sum("j", c2);
    let n = b.size("j");
    let var = b.div(m2, n);
    let eps = b.f(1e-5);
    let var = b.add(var, eps);
    let sd = b.un(UnaryOp::Sqrt, var);
    let w = b.div(c, sd);
    let wv = b.mul(w, v);
    let o = b.sum("j", wv);
    b.out("o", "b h i d", o);
    b.run("nap");
}
