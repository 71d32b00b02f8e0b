//! Running a kernel both ways.

use onefold_llvm::{Effort, Level, Llvm};
use onefold_loops::interp::{run, Array};
use onefold_loops::{parse, scratch_bytes, Backend, BufferKind, CallArgs, Code, Elem, Kernel};

/// What arrays hold.
#[derive(Clone, Copy)]
pub enum Data {
    /// Every pair of special values of the type (in the arrays of seeds 1 and 2), then random bits.
    Any,
    /// Floats between -8 and 8, many of them halves.
    Small,
    /// Floats from 0 to 127.
    Byte,
    /// Integers other than 0.
    NotZero,
    /// Shift amounts.
    Amount,
}

/// Elements as bytes, from a seed.
pub fn bytes(elem: Elem, len: usize, data: Data, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let special = special(elem);
    let mut all = vec![];
    for at in 0..len {
        let bits = random();
        let value = match data {
            Data::Any if elem == Elem::Bool => bits & 1,
            Data::Any if at < special.len() * special.len() => {
                special[if seed == 1 { at } else { at / special.len() } % special.len()]
            }
            Data::Any => bits,
            Data::Small => float(elem, (bits % 64) as f64 / 4.0 - 8.0 + if at % 3 == 0 { 0.013 } else { 0.0 }),
            Data::Byte => float(elem, (bits % 1271) as f64 / 10.0),
            Data::NotZero if bits.to_le_bytes()[..elem.bytes() as usize].iter().all(|b| *b == 0) => 1,
            Data::NotZero if at % 7 == 0 => u64::MAX,
            Data::NotZero => bits,
            Data::Amount => bits % u64::from(elem.bytes() * 8),
        };
        all.extend_from_slice(&value.to_le_bytes()[..elem.bytes() as usize]);
    }
    all
}

fn float(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F64 => v.to_bits(),
        Elem::F16 => u64::from(half::f16::from_f64(v).to_bits()),
        Elem::BF16 => u64::from(half::bf16::from_f64(v).to_bits()),
        _ => u64::from((v as f32).to_bits()),
    }
}

fn special(elem: Elem) -> Vec<u64> {
    let floats = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-7, 65504.0, 65519.9, 65520.0, 1e-40, 8388607.5];
    let wide = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2147483648.0, 3.4e38, -3.4e38, 1e300, 4503599627370495.5];
    // NaN that would be infinite if its lower bits were cut off.
    let nan = match elem {
        Elem::F64 => 0x7ff0_0000_0000_0001,
        Elem::F16 => 0x7c01,
        Elem::BF16 => 0x7f81,
        _ => 0xff80_0001,
    };
    if elem.is_float() {
        return floats.into_iter().chain(wide).map(|v| float(elem, v)).chain([nan]).collect();
    }
    let top = 1u64 << (elem.bytes() * 8 - 1);
    vec![0, 1, u64::MAX, top, top - 1, top + 1, 2, 127]
}

/// Memory that starts at a cache line.
struct Aligned {
    data: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(content: &[u8], at_least: usize) -> Aligned {
        let mut data = vec![0xa5; content.len().max(at_least) + 128];
        let start = data.as_ptr().align_offset(64);
        data[start..start + content.len()].copy_from_slice(content);
        Aligned { data, start }
    }
}

/// A kernel compiled at every level that this CPU has.
pub struct Compiled {
    kernel: Kernel,
    codes: Vec<(String, Box<dyn Code>)>,
}

impl Compiled {
    /// From its text.
    pub fn new(text: &str) -> Compiled {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut codes = vec![];
        for level in Level::ALL.into_iter().filter(|l| l.is_available()) {
            for effort in [Effort::Light, Effort::Full] {
                let code = Llvm::with_level(level).effort(effort).compile(&kernel);
                codes.push((format!("{level}, {effort:?}"), code.unwrap_or_else(|e| panic!("{e}\n{text}"))));
            }
        }
        Compiled { kernel, codes }
    }

    /// It gives the same at every level as interpreted, and writes nothing behind its outputs.
    pub fn agree(&self, sizes: &[i64], inputs: &[Vec<u8>]) {
        let kernel = &self.kernel;
        let outputs: Vec<(Elem, usize)> = kernel
            .buffers
            .iter()
            .filter(|b| b.kind == BufferKind::Output)
            .map(|b| (b.elem, b.len.eval(sizes).expect("a length") as usize * b.elem.bytes() as usize))
            .collect();
        let mut want: Vec<Vec<u8>> = outputs.iter().map(|(_, len)| vec![0xa5; *len]).collect();
        let arrays = inputs.iter().map(|x| Array::Input(x)).chain(want.iter_mut().map(|y| Array::Output(y)));
        let status = run(kernel, sizes, arrays.collect(), 0, 0).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
        for (level, code) in &self.codes {
            let got = call(&**code, kernel, sizes, inputs, &outputs, status);
            for (at, ((elem, _), (got, want))) in outputs.iter().zip(got.iter().zip(&want)).enumerate() {
                same(*elem, got, want, &format!("output {at} at level {level}\n{kernel}"));
            }
        }
    }
}

/// At one list of sizes.
pub fn agree(text: &str, sizes: &[i64], inputs: &[Vec<u8>]) {
    Compiled::new(text).agree(sizes, inputs);
}

fn call(
    code: &dyn Code,
    kernel: &Kernel,
    sizes: &[i64],
    inputs: &[Vec<u8>],
    outputs: &[(Elem, usize)],
    status: i32,
) -> Vec<Vec<u8>> {
    let mut arrays: Vec<Aligned> = inputs.iter().map(|x| Aligned::new(x, 0)).collect();
    arrays.extend(outputs.iter().map(|(_, len)| Aligned::new(&[], *len)));
    let pointers: Vec<*mut u8> = arrays.iter_mut().map(|a| a.data[a.start..].as_mut_ptr()).collect();
    let mut scratch = Aligned::new(&[], scratch_bytes(kernel, sizes).expect("scratch"));
    let scratch = scratch.data[scratch.start..].as_mut_ptr();
    let args = CallArgs { sizes, buffers: &pointers, scratch, begin: 0, end: 0 };
    // SAFETY: every array is as long as the kernel's buffers say at these sizes, and aligned; there is no other call.
    assert_eq!(unsafe { code.call(&args) }, status);
    let outputs = arrays.iter().skip(inputs.len()).zip(outputs);
    outputs
        .map(|(array, (_, len))| {
            let (got, beyond) = array.data[array.start..].split_at(*len);
            assert!(beyond.iter().all(|b| *b == 0xa5), "something was written behind an output\n{kernel}");
            got.to_vec()
        })
        .collect()
}

/// Equal bits; of NaN, that it is one.
fn same(elem: Elem, got: &[u8], want: &[u8], what: &str) {
    let width = elem.bytes() as usize;
    for (at, (g, w)) in got.chunks(width).zip(want.chunks(width)).enumerate() {
        let both_nan = is_nan(elem, g) && is_nan(elem, w);
        assert!(g == w || both_nan, "element {at} is {g:x?}, not {w:x?}: {what}");
    }
}

fn is_nan(elem: Elem, b: &[u8]) -> bool {
    match (elem, b) {
        (Elem::F32, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]).is_nan(),
        (Elem::F64, _) => b.try_into().is_ok_and(|b| f64::from_le_bytes(b).is_nan()),
        (Elem::F16, [a, b]) => half::f16::from_le_bytes([*a, *b]).is_nan(),
        (Elem::BF16, [a, b]) => half::bf16::from_le_bytes([*a, *b]).is_nan(),
        _ => false,
    }
}
