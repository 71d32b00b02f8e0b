//! Running a kernel both ways.

use onefold_backend_tests::bits::difference;
use onefold_llvm::{Effort, Level, Llvm};
use onefold_loops::interp::{run, Array};
use onefold_loops::{parse, scratch_bytes, Backend, BufferKind, CallArgs, Code, Elem, Kernel};

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
    if let Some((at, g, w)) = difference(elem, got, want) {
        panic!("element {at} is {g:x?}, not {w:x?}: {what}");
    }
}
