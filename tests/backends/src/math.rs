//! Elementary functions, compiled: errors in units in the last place against f64, over the whole range of arguments.

use onefold_loops::math::{self, Arithmetic};
use onefold_loops::{
    Backend, BinOp, BufId, Buffer, BufferKind, CallArgs, Cmp, Count, Elem, Expr, Kernel, Number, Reg, RegDecl,
    SizeParam, Stmt, Ty, UnOp,
};

/// A test of one backend.
pub type Test = fn(&dyn Backend);

/// All tests, by name.
pub const TESTS: &[(&str, Test)] = &[
    ("exp_f32", exp_f32),
    ("exp_nonpositive_f32", exp_nonpositive_f32),
    ("exp_of_a_rounded_argument", exp_of_a_rounded_argument),
    ("exp_is_monotone", exp_is_monotone),
    ("exp2_f32", exp2_f32),
    ("logarithms_f32", logarithms_f32),
    ("tanh_and_erf_f32", tanh_and_erf_f32),
    ("doubles_are_close", doubles_are_close),
];

/// A function of the kind that is tested.
type Function = fn(&mut Maker, Reg) -> Reg;

/// A kernel `y[i] = f(x[i])` under construction.
struct Maker {
    /// Whether multiply-adds are rounded once.
    fused: bool,
    regs: Vec<RegDecl>,
    body: Vec<Stmt>,
}

impl Maker {
    fn let_(&mut self, ty: Ty, expr: Expr) -> Reg {
        self.regs.push(RegDecl { ty, name: "v".to_owned() });
        let reg = Reg(self.regs.len() as u32 - 1);
        self.body.push(Stmt::Assign(reg, expr));
        reg
    }
}

impl Arithmetic for Maker {
    fn ty(&self, x: Reg) -> Ty {
        self.regs[x.0 as usize].ty
    }
    fn constant(&mut self, ty: Ty, value: Number) -> Reg {
        self.let_(ty, Expr::Const(ty, value))
    }
    fn unary(&mut self, op: UnOp, x: Reg) -> Reg {
        self.let_(self.ty(x), Expr::Unary(op, x))
    }
    fn binary(&mut self, op: BinOp, x: Reg, y: Reg) -> Reg {
        self.let_(self.ty(x), Expr::Binary(op, x, y))
    }
    fn fma(&mut self, x: Reg, y: Reg, z: Reg) -> Reg {
        if self.fused {
            return self.let_(self.ty(x), Expr::Fma(x, y, z));
        }
        let product = self.binary(BinOp::Mul, x, y);
        self.binary(BinOp::Add, product, z)
    }
    fn compare(&mut self, op: Cmp, x: Reg, y: Reg) -> Reg {
        self.let_(self.ty(x).with(Elem::Bool), Expr::Compare(op, x, y))
    }
    fn select(&mut self, mask: Reg, yes: Reg, no: Reg) -> Reg {
        self.let_(self.ty(yes), Expr::Select(mask, yes, no))
    }
    fn convert(&mut self, elem: Elem, x: Reg) -> Reg {
        self.let_(self.ty(x).with(elem), Expr::Convert(elem, x))
    }
    fn bitcast(&mut self, elem: Elem, x: Reg) -> Reg {
        self.let_(self.ty(x).with(elem), Expr::Bitcast(elem, x))
    }
}

/// The kernel of a function on vectors of a type, over arrays whose length is a multiple of the lanes.
fn kernel(ty: Ty, fused: bool, f: impl Fn(&mut Maker, Reg) -> Reg) -> Kernel {
    let int = Ty::scalar(Elem::I64);
    let regs = ["n", "zero", "i"].map(|n| RegDecl { ty: int, name: n.to_owned() }).to_vec();
    let mut maker = Maker { fused, regs, body: vec![] };
    let (n, zero, i) = (Reg(0), Reg(1), Reg(2));
    let load = Expr::Load { ty, buf: BufId(0), offset: i, stride: None, tail: None };
    let x = maker.let_(ty, load);
    let y = f(&mut maker, x);
    let mut body = std::mem::take(&mut maker.body);
    body.push(Stmt::Store { buf: BufId(1), offset: i, value: y, tail: None, stream: false });
    let step = u64::from(ty.lanes);
    let body = vec![
        Stmt::Assign(zero, Expr::Const(int, Number::Int(0))),
        Stmt::For { var: i, lo: zero, hi: n, step, parallel: false, body },
    ];
    let buffer = |name: &str, kind| Buffer { name: name.to_owned(), elem: ty.elem, kind, len: Count::Size(0) };
    Kernel {
        name: "map".to_owned(),
        sizes: vec![SizeParam { name: "n".to_owned(), reg: n }],
        buffers: vec![buffer("x", BufferKind::Input), buffer("y", BufferKind::Output)],
        regs: maker.regs,
        split: None,
        body,
    }
}

/// `f` of each number, on whole vectors.
fn run<T: Copy + Default>(backend: &dyn Backend, elem: Elem, f: impl Fn(&mut Maker, Reg) -> Reg, x: &[T]) -> Vec<T> {
    let target = backend.target();
    let lanes = target.vector_bytes / elem.bytes();
    assert!(x.len().is_multiple_of(lanes as usize));
    let kernel = kernel(Ty::vector(elem, lanes as u16), target.fma, f);
    let code = backend.compile(&kernel).expect("code");
    let mut y = vec![T::default(); x.len()];
    let buffers = [x.as_ptr() as *mut u8, y.as_mut_ptr().cast()];
    let args =
        CallArgs { sizes: &[x.len() as i64], buffers: &buffers, scratch: std::ptr::null_mut(), begin: 0, end: 0 };
    // SAFETY: both arrays have the length passed, a multiple of the lanes; the kernel has no scratch.
    assert_eq!(unsafe { code.call(&args) }, 0);
    y
}

/// Every 97th float, and the specials.
fn floats() -> Vec<f32> {
    let mut all: Vec<f32> = (0..u32::MAX / 97).map(|n| f32::from_bits(n * 97)).collect();
    all.extend([
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        88.72,
        -103.9,
        -87.4,
        0.625,
    ]);
    all.truncate(all.len() / 16 * 16);
    all
}

fn doubles() -> Vec<f64> {
    let mut all: Vec<f64> = (0..1u64 << 21).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    all.extend((0..1 << 20).map(|n| (f64::from(n) - 524_288.0) / 700.0));
    all.extend([0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, 709.7, -745.1]);
    all
}

fn ulps_f32(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.is_nan() && want.is_nan() || got == rounded {
        return 0.0;
    }
    if !got.is_finite() || !rounded.is_finite() {
        // One place apart at the edge of the range.
        return if got.abs() == f32::MAX || rounded.abs() == f32::MAX { 1.0 } else { f64::INFINITY };
    }
    let exponent = want.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (f64::from(got) - want).abs() / (exponent - 23.0).exp2()
}

fn worst_f32(
    backend: &dyn Backend,
    f: impl Fn(&mut Maker, Reg) -> Reg,
    want: impl Fn(f64) -> f64,
    domain: impl Fn(f32) -> bool,
) -> (f64, f32) {
    let x: Vec<f32> = floats().into_iter().map(|x| if domain(x) { x } else { 0.0 }).collect();
    let y = run(backend, Elem::F32, f, &x);
    let mut worst = (0.0, 0.0);
    for (x, y) in x.iter().zip(&y) {
        let error = ulps_f32(*y, want(f64::from(*x)));
        if error > worst.0 {
            worst = (error, *x);
        }
    }
    worst
}

fn worst_f64(backend: &dyn Backend, f: impl Fn(&mut Maker, Reg) -> Reg, want: impl Fn(f64) -> f64) -> (f64, f64) {
    let x = doubles();
    let y = run(backend, Elem::F64, f, &x);
    let mut worst = (0.0, 0.0);
    for (x, y) in x.iter().zip(&y) {
        let want = want(*x);
        let error = if y.is_nan() && want.is_nan() || *y == want {
            0.0
        } else {
            (y - want).abs() / (want.abs() * f64::EPSILON).max(f64::from_bits(1))
        };
        if error.is_nan() || error > worst.0 {
            worst = (error, *x);
        }
    }
    worst
}

fn exp_f32(backend: &dyn Backend) {
    let (error, at) = worst_f32(backend, math::exp, f64::exp, |_| true);
    assert!(error <= 2.0, "{error} ULP at {at:e}");
}

fn exp_nonpositive_f32(backend: &dyn Backend) {
    let x: Vec<f32> = floats().into_iter().map(|x| if x > 0.0 { -x } else { x }).collect();
    let y = run(backend, Elem::F32, math::exp_nonpositive, &x);
    for (x, y) in x.iter().zip(&y) {
        let want = f64::from(*x).exp();
        let ok = ulps_f32(*y, want) <= 2.0 || (f64::from(*y) - want).abs() <= 1.2e-38;
        assert!(ok, "exp({x:e}) = {y:e}, not {want:e}");
    }
}

fn exp_of_a_rounded_argument(backend: &dyn Backend) {
    let x: Vec<f32> = floats().into_iter().map(|x| if x > 0.0 { -x } else { x }).collect();
    let y = run(backend, Elem::F32, math::exp_nonpositive_rounded, &x);
    for (x, y) in x.iter().zip(&y) {
        let want = f64::from(*x).exp();
        // A twentieth (without fused multiply-adds a half) of what half a unit in the last place of the argument does, and the polynomial's own error.
        let budget = 2.5 + f64::from(x.abs()) / if backend.target().fma { 20.0 } else { 1.0 };
        let is_small = (f64::from(*y) - want).abs() <= 1.2e-38;
        let ok = x.is_nan() && y.is_nan() || ulps_f32(*y, want) <= budget || is_small;
        assert!(ok, "exp({x:e}) = {y:e}, not {want:e}");
    }
    assert!(x.iter().zip(&y).all(|(x, y)| *x != 0.0 || *y == 1.0), "exp(0) is not 1");
}

fn exp_is_monotone(backend: &dyn Backend) {
    let x: Vec<f32> = (0..1 << 22).map(|n| (n as f32 - 2_097_152.0) * 5e-5).collect();
    let y = run(backend, Elem::F32, math::exp, &x);
    assert!(y.windows(2).all(|w| w[0] <= w[1]));
}

fn exp2_f32(backend: &dyn Backend) {
    let (error, at) = worst_f32(backend, math::exp2, f64::exp2, |_| true);
    assert!(error <= 2.0, "{error} ULP at {at:e}");
}

fn logarithms_f32(backend: &dyn Backend) {
    let (error, at) = worst_f32(backend, math::log, f64::ln, |_| true);
    assert!(error <= 2.0, "log: {error} ULP at {at:e}");
    let (error, at) = worst_f32(backend, math::log2, f64::log2, |_| true);
    assert!(error <= 2.0, "log2: {error} ULP at {at:e}");
}

fn tanh_and_erf_f32(backend: &dyn Backend) {
    let (error, at) = worst_f32(backend, math::tanh, f64::tanh, |_| true);
    assert!(error <= 4.0, "tanh: {error} ULP at {at:e}");
    let (error, at) = worst_f32(backend, math::erf, libm::erf, |_| true);
    assert!(error <= 8.0, "erf: {error} ULP at {at:e}");
}

fn doubles_are_close(backend: &dyn Backend) {
    for (name, f, want, bound) in [
        ("exp", math::exp as Function, f64::exp as fn(f64) -> f64, 3.0),
        ("exp2", math::exp2, f64::exp2, 3.0),
        ("log", math::log, f64::ln, 3.0),
        ("log2", math::log2, f64::log2, 4.0),
        ("tanh", math::tanh, f64::tanh, 4.0),
        ("erf", math::erf, libm::erf, 8.0),
    ] {
        let (error, at) = worst_f64(backend, f, want);
        assert!(error <= bound, "{name}: {error} at {at:e}");
    }
}
