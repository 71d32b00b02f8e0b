//! The interpreter behind the backend interface, so that everything that runs on native code runs on it too.

use super::{byte_len, run, Array};
use crate::{verify, Backend, BackendError, BufferKind, CallArgs, Code, Kernel, Listing, Target};

/// A backend that generates no code: calls interpret the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpBackend;

struct Interpreted(Kernel);

impl Backend for InterpBackend {
    fn name(&self) -> &'static str {
        "loops"
    }

    fn target(&self) -> Target {
        Target::BASELINE
    }

    fn compile(&self, kernel: &Kernel) -> Result<Box<dyn Code>, BackendError> {
        verify(kernel).map_err(|e| BackendError::Internal { backend: "loops", why: e.to_string() })?;
        Ok(Box::new(Interpreted(kernel.clone())))
    }

    fn listing(&self, kernel: &Kernel, _what: Listing) -> Result<String, BackendError> {
        Ok(kernel.to_string())
    }
}

/// Status of a run that the interpreter stopped; its reason is on the log.
const STOPPED: i32 = -1;

impl Code for Interpreted {
    unsafe fn call(&self, args: &CallArgs<'_>) -> i32 {
        let given = self.0.buffers.iter().filter(|b| matches!(b.kind, BufferKind::Input | BufferKind::Output));
        let mut arrays = vec![];
        for (buffer, pointer) in given.zip(args.buffers) {
            let Some(len) = byte_len(&buffer.len, buffer.elem, args.sizes) else { return STOPPED };
            arrays.push(if len == 0 {
                Array::Input(&[])
            } else if buffer.kind == BufferKind::Input {
                // SAFETY: the caller promises that the buffer is as long as the kernel declares, and that no output overlaps it.
                Array::Input(unsafe { std::slice::from_raw_parts(*pointer, len) })
            } else {
                // SAFETY: as above; outputs overlap nothing else, and calls do not run at the same time (`is_concurrent`).
                Array::Output(unsafe { std::slice::from_raw_parts_mut(*pointer, len) })
            });
        }
        run(&self.0, args.sizes, arrays, args.begin, args.end).unwrap_or_else(|error| {
            eprintln!("onefold: internal error in a kernel, this is a bug in onefold: {error}");
            STOPPED
        })
    }

    fn is_concurrent(&self) -> bool {
        // Calls hold exclusive slices of whole outputs.
        false
    }

    fn size(&self) -> usize {
        0
    }
}
