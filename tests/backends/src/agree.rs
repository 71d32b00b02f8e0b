//! Running a kernel on a backend and on the interpreter.

use crate::bits::{bytes, difference, Data};
use crate::guard::Guarded;
use onefold_loops::interp::{run, Array};
use onefold_loops::{scratch_bytes, verify, Backend, BufferKind, CallArgs, Kernel};

/// What outputs hold before: so that what is not written shows, too.
const BEFORE: u64 = 99;

/// What a kernel is called with.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its sizes.
    pub sizes: &'a [i64],
    /// First iteration of a split loop, and one past the last.
    pub part: (i64, i64),
    /// What inputs are filled from.
    pub seed: u64,
}

/// The backend's code gives what the interpreter gives, bit for bit (any NaN for NaN), and touches nothing else: arrays lie
/// against pages that must not be touched, at their ends or at their beginnings.
///
/// # Errors
/// What differs first.
pub fn agree(backend: &dyn Backend, kernel: &Kernel, call: Call<'_>) -> Result<(), String> {
    let Call { sizes, part, seed } = call;
    verify(kernel).map_err(|e| e.to_string())?;
    let given: Vec<_> = kernel.buffers.iter().filter(|b| b.kind as u8 <= BufferKind::Output as u8).collect();
    let lens: Vec<usize> = given.iter().map(|b| b.len.eval(sizes).unwrap_or(0) as usize).collect();
    let content = |at: usize| {
        let seed = if given[at].kind == BufferKind::Input { seed.wrapping_add(at as u64) } else { BEFORE };
        bytes(given[at].elem, lens[at], Data::Mixed, seed)
    };
    let before: Vec<Vec<u8>> = (0..given.len()).map(content).collect();

    let mut want = before.clone();
    let arrays = want.iter_mut().zip(&given).map(|(memory, buffer)| match buffer.kind {
        BufferKind::Input => Array::Input(memory),
        _ => Array::Output(memory),
    });
    let status = run(kernel, sizes, arrays.collect(), part.0, part.1).map_err(|e| format!("interpreted: {e}"))?;

    let code = backend.compile(kernel).map_err(|e| e.to_string())?;
    let scratch_len = scratch_bytes(kernel, sizes).ok_or("scratch is too large")?;
    for at_end in [true, false] {
        let mut arrays: Vec<Guarded> = before.iter().map(|b| Guarded::new(b.len())).collect();
        for (array, content) in arrays.iter_mut().zip(&before) {
            array.bytes(content.len(), at_end).copy_from_slice(content);
        }
        let mut scratch = Guarded::new(scratch_len);
        let pointers: Vec<*mut u8> =
            arrays.iter_mut().zip(&before).map(|(array, b)| array.place(b.len(), at_end)).collect();
        let scratch = scratch.place(scratch_len, at_end);
        let args = CallArgs { sizes, buffers: &pointers, scratch, begin: part.0, end: part.1 };
        // SAFETY: arrays are as long as the kernel's buffers say at these sizes, and aligned to their elements; scratch is
        // whole lines against a page; there is no other call.
        let found = unsafe { code.call(&args) };
        if found != status {
            return Err(format!("{}: status {found}, not {status}", backend.name()));
        }
        if status != 0 {
            continue;
        }
        for (at, buffer) in given.iter().enumerate() {
            let got = arrays[at].bytes(want[at].len(), at_end);
            if let Some((element, got, want)) = difference(buffer.elem, got, &want[at]) {
                let (name, elem) = (&buffer.name, buffer.elem.name());
                return Err(format!("{}: {name}[{element}] is {got:02x?}, not {want:02x?} ({elem})", backend.name()));
            }
        }
    }
    Ok(())
}
