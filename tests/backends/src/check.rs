//! Kernels run natively, and their results compared with what fold programs mean.

use onefold_ir::DType;
use onefold_loops::interp::InterpBackend;
use onefold_loops::lower::{lower, Schedule};
use onefold_loops::{scratch_bytes, verify, Backend, CallArgs, Code, Kernel, Target};
use onefold_passes::convert::Graph;
use onefold_passes::fold::FoldProgram;
use onefold_passes::{derive_terms, interp, Form, Options};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A stream of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal.
    pub fn normal(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() - 1.5) * 2.0
    }
}

/// Memory aligned as kernels expect, with the array of one buffer.
struct Aligned {
    data: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Aligned {
        let data = vec![0xa5u8; bytes + 64];
        let start = data.as_ptr().align_offset(64);
        Aligned { data, start }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.data[self.start..].as_mut_ptr()
    }
}

fn push(bytes: &mut Vec<u8>, dtype: DType, v: f64) {
    match dtype {
        DType::F32 => bytes.extend((v as f32).to_le_bytes()),
        DType::F64 => bytes.extend(v.to_le_bytes()),
        DType::F16 => bytes.extend(half::f16::from_f64(v).to_le_bytes()),
        DType::BF16 => bytes.extend(half::bf16::from_f64(v).to_le_bytes()),
        DType::I64 => bytes.extend((v as i64).to_le_bytes()),
        DType::I32 => bytes.extend((v as i32).to_le_bytes()),
        DType::I8 => bytes.extend((v as i8).to_le_bytes()),
        _ => bytes.push(v as u8),
    }
}

fn number_of(dtype: DType, b: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
        DType::F64 => f64::from_le_bytes(b.try_into().unwrap()),
        DType::F16 => half::f16::from_le_bytes(b.try_into().unwrap()).to_f64(),
        DType::BF16 => half::bf16::from_le_bytes(b.try_into().unwrap()).to_f64(),
        DType::I64 => i64::from_le_bytes(b.try_into().unwrap()) as f64,
        DType::I32 => f64::from(i32::from_le_bytes(b.try_into().unwrap())),
        DType::I8 => f64::from(b[0] as i8),
        _ => f64::from(b[0]),
    }
}

/// A value as an array of that dtype holds it.
pub fn rounded(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(v as f32),
        DType::F64 => v,
        _ => {
            let mut bytes = vec![];
            push(&mut bytes, dtype, v);
            number_of(dtype, &bytes)
        }
    }
}

/// What a native call gave.
pub enum Outcome {
    /// Its outputs, as numbers.
    Done(Vec<Vec<f64>>),
    /// Its status.
    Failed(i32),
}

/// Run a kernel, its split loop in two parts.
pub fn call(way: &Way, program: &FoldProgram, kernel: &Kernel, sizes: &[i64], inputs: &[Vec<f64>]) -> Outcome {
    verify(kernel).unwrap();
    let code = way.code(kernel);
    let mut arrays = vec![];
    for (decl, data) in program.inputs.iter().zip(inputs) {
        let mut bytes = Vec::with_capacity(8 * data.len());
        data.iter().for_each(|v| push(&mut bytes, decl.dtype, *v));
        let mut array = Aligned::new(bytes.len());
        let start = array.start;
        array.data[start..start + bytes.len()].copy_from_slice(&bytes);
        arrays.push(array);
    }
    let mut lengths = vec![];
    for at in 0..program.outputs.len() {
        let buffer = &kernel.buffers[program.inputs.len() + at];
        let bytes = buffer.len.eval(sizes).unwrap() as usize * buffer.elem.bytes() as usize;
        lengths.push(bytes);
        arrays.push(Aligned::new(bytes));
    }
    let pointers: Vec<*mut u8> = arrays.iter_mut().map(Aligned::pointer).collect();
    let mut scratch = Aligned::new(scratch_bytes(kernel, sizes).unwrap());
    let whole = kernel.split.as_ref().map_or(0, |s| s.extent.eval(sizes).unwrap() as i64);
    let parts = if kernel.split.is_some() { vec![(0, whole / 3), (whole / 3, whole)] } else { vec![(0, 0)] };
    for (begin, end) in parts {
        let args = CallArgs { sizes, buffers: &pointers, scratch: scratch.pointer(), begin, end };
        // SAFETY: every array is as long as the kernel's buffers say at these sizes, aligned, and there is no other call.
        let status = unsafe { code.call(&args) };
        if status != 0 {
            return Outcome::Failed(status);
        }
    }
    let mut results = vec![];
    for (at, decl) in program.outputs.iter().enumerate() {
        let array = &arrays[program.inputs.len() + at];
        let width = decl.dtype.bits() as usize / 8;
        let bytes = &array.data[array.start..array.start + lengths[at]];
        results.push(bytes.chunks(width).map(|b| number_of(decl.dtype, b)).collect());
        let beyond = &array.data[array.start + lengths[at]..];
        assert!(beyond.iter().all(|b| *b == 0xa5), "something was written behind output {}", decl.name);
    }
    Outcome::Done(results)
}

/// What a test fills inputs with.
pub type Fill<'a> = dyn Fn(&str, usize, usize, &mut Random) -> f64 + 'a;

/// Normal numbers.
pub fn normal(_: &str, _: usize, _: usize, random: &mut Random) -> f64 {
    random.normal()
}

/// A way to run a program: where, on what vectors, in what tiles.
pub struct Way {
    backend: Box<dyn Backend>,
    /// What lowering is told.
    target: Target,
    /// Tiles of that many elements instead of those chosen.
    tile: Option<u32>,
    /// What was compiled, by its text: a kernel runs at many sizes.
    codes: Mutex<HashMap<String, Arc<dyn Code>>>,
}

impl Way {
    /// A backend that is told of a target, with tiles of a size or those that are chosen.
    pub fn new(backend: Box<dyn Backend>, target: Target, tile: Option<u32>) -> Way {
        Way { backend, target, tile, codes: Mutex::default() }
    }

    /// The loops of a program.
    pub fn kernel(&self, program: &FoldProgram) -> Kernel {
        let mut schedule = Schedule::choose(program, &self.target);
        if let Some(tile) = self.tile {
            schedule.tiles.iter_mut().for_each(|t| *t = tile);
        }
        lower(program, &self.target, &schedule).unwrap()
    }

    fn code(&self, kernel: &Kernel) -> Arc<dyn Code> {
        let mut codes = self.codes.lock().unwrap();
        let compile = || Arc::from(self.backend.compile(kernel).unwrap());
        codes.entry(kernel.to_string()).or_insert_with(compile).clone()
    }
}

/// The interpreter, which checks every access: only where there is not much to do.
fn interpreted() -> [Way; 2] {
    let wide = Target { vector_bytes: 64, vector_registers: 32, fma: true };
    [(Target::BASELINE, Some(4)), (wide, None)].map(|(target, tile)| Way::new(Box::new(InterpBackend), target, tile))
}

/// A test of a graph.
pub struct Check<'a> {
    /// What is computed.
    pub graph: &'a Graph,
    /// The ways of the backend under test.
    pub ways: &'a [Way],
    /// Forms compared.
    pub forms: &'a [Form],
    /// Largest error allowed, relative to the largest finite value of the output.
    pub tolerance: f64,
}

impl<'a> Check<'a> {
    /// A test with the usual tolerance.
    pub fn new(graph: &'a Graph, ways: &'a [Way]) -> Check<'a> {
        Check { graph, ways, forms: &[Form::Fused, Form::Plain], tolerance: 2e-6 }
    }

    /// Compare at some sizes.
    pub fn run(&self, sizes: &[i64], fill: &Fill<'_>) {
        self.run_ordered(sizes, fill, "");
    }

    /// The same, but an output whose order is that of the logits is compared with the same program's meaning.
    pub fn run_ordered(&self, sizes: &[i64], fill: &Fill<'_>, ordered: &str) {
        for form in self.forms {
            let options = Options { form: *form, ..Options::default() };
            let program = derive_terms(self.graph.clone(), &options).unwrap().program;
            let inputs = inputs(&program, sizes, fill);
            let plain = Options { form: Form::Plain, ..Options::default() };
            let reference = derive_terms(self.graph.clone(), &plain).unwrap().program;
            let mut want = interp::run(&reference, sizes, &inputs, 1 << 20).unwrap();
            if let Some(at) = program.outputs.iter().position(|o| o.name == ordered) {
                want[at] = interp::run(&program, sizes, &inputs, 100).unwrap()[at].clone();
            }
            let elements: usize = inputs.iter().map(Vec::len).sum();
            let interpreted = if elements < 3000 { Vec::from(interpreted()) } else { vec![] };
            for way in self.ways.iter().chain(&interpreted) {
                match call(way, &program, &way.kernel(&program), sizes, &inputs) {
                    Outcome::Done(got) => self.compare(&program, sizes, &got, &want),
                    Outcome::Failed(status) => panic!("status {status}\n{program}"),
                }
            }
        }
    }

    /// The call fails with a status.
    pub fn fails(&self, sizes: &[i64], fill: &Fill<'_>, status: i32) {
        let program = derive_terms(self.graph.clone(), &Options::default()).unwrap().program;
        let inputs = inputs(&program, sizes, fill);
        for way in self.ways {
            match call(way, &program, &way.kernel(&program), sizes, &inputs) {
                Outcome::Failed(found) => assert_eq!(found, status),
                Outcome::Done(_) => panic!("the call did not fail\n{program}"),
            }
        }
    }

    fn compare(&self, program: &FoldProgram, sizes: &[i64], got: &[Vec<f64>], want: &[Vec<f64>]) {
        for ((decl, got), want) in program.outputs.iter().zip(got).zip(want) {
            assert_eq!(got.len(), want.len());
            let largest = want.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
            for (at, (g, w)) in got.iter().zip(want).enumerate() {
                let w = rounded(decl.dtype, *w);
                let close = (g - w).abs() <= self.tolerance * largest + 1e-37;
                let fine = g.is_nan() && w.is_nan() || *g == w || decl.dtype.is_float() && w.is_finite() && close;
                assert!(fine, "{}[{at}] is {g:e}, not {w:e}, at sizes {sizes:?}\n{program}", decl.name);
            }
        }
    }
}

/// Inputs filled for a program.
pub fn inputs(program: &FoldProgram, sizes: &[i64], fill: &Fill<'_>) -> Vec<Vec<f64>> {
    let extents = interp::extents(program, sizes).unwrap();
    let mut random = Random(7);
    let of = |decl: &onefold_passes::fold::ArrayDecl, random: &mut Random| {
        let len: i64 = decl.axes.iter().map(|a| extents[a.0 as usize]).product();
        let value = |at| rounded(decl.dtype, fill(&decl.name, at as usize, len as usize, random));
        (0..len).map(value).collect()
    };
    program.inputs.iter().map(|decl| of(decl, &mut random)).collect()
}
