//! Kernels and their calls.

use crate::array::Array;
use crate::check;
use crate::error::CallError;
use crate::memory::{self, Pointers};
use crate::signature::Signature;
use crate::view::{ArrayView, ArrayViewMut};
use crate::work::{Traffic, Work};
use onefold_ir::{AxisId, Extent, Func, Module, Op};
use onefold_loops::{scratch_bytes, status, Buffer, BufferKind, Code};
use onefold_runtime::{parallel_for, Scratch};
use std::fmt;
use std::sync::Arc;

/// A compiled function. Cheap to clone; may be called from several threads at once.
#[derive(Clone)]
pub struct Kernel {
    compiled: Arc<Compiled>,
    threads: usize,
}

/// What calls share.
pub(crate) struct Compiled {
    pub(crate) signature: Signature,
    pub(crate) func: Func,
    pub(crate) engine: Engine,
    /// What it moves; `None` for the interpreter.
    pub(crate) traffic: Option<Traffic>,
    pub(crate) warnings: Vec<String>,
}

/// What runs it.
pub(crate) enum Engine {
    /// Code of loop kernels that run one after the other, with the constants that follow the parameters.
    Code { phases: Vec<Phase>, constants: Vec<Array> },
    /// The interpreter of tensor IR, on a module of this function alone.
    Reference(Module),
}

/// A part of a kernel that all threads finish before the next one begins.
pub(crate) struct Phase {
    pub(crate) code: Box<dyn Code>,
    pub(crate) loops: onefold_loops::Kernel,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.signature())
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled({})", self.signature)
    }
}

impl Kernel {
    pub(crate) fn new(compiled: Arc<Compiled>, threads: usize) -> Kernel {
        Kernel { compiled, threads }
    }

    /// What it takes and gives.
    pub fn signature(&self) -> &Signature {
        &self.compiled.signature
    }

    /// Whether two kernels are one compiled function: the second came from the cache.
    pub fn is_same_code(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled)
    }

    /// What was cut short when it was made.
    pub fn warnings(&self) -> &[String] {
        &self.compiled.warnings
    }

    /// The same kernel with another number of threads.
    #[must_use]
    pub fn with_threads(&self, threads: usize) -> Kernel {
        Kernel { compiled: self.compiled.clone(), threads: threads.max(1) }
    }

    /// Names of the axes whose lengths the arrays of a call decide.
    pub fn axes(&self) -> Vec<&str> {
        let open = self.compiled.func.axes.iter().filter(|a| a.extent == Extent::Symbolic);
        open.map(|a| a.name.as_str()).collect()
    }

    /// Where the elements of an input are positions along an axis (an operand of `gather`): its name, and its length if that is fixed.
    pub fn positions_along(&self, input: usize) -> Option<(&str, Option<u64>)> {
        let func = &self.compiled.func;
        func.nodes.iter().find_map(|node| {
            let Op::Gather(axis) = node.op else { return None };
            let ids = func.node(*node.args.get(1)?);
            if ids.op != Op::Param(input) {
                return None;
            }
            let decl = func.axis(axis);
            let fixed = if let Extent::Fixed(n) = decl.extent { Some(n) } else { None };
            Some((decl.name.as_str(), fixed))
        })
    }

    /// Bytes of machine code; 0 where an interpreter runs it.
    pub fn code_bytes(&self) -> usize {
        match &self.compiled.engine {
            Engine::Code { phases, .. } => phases.iter().map(|p| p.code.size()).sum(),
            Engine::Reference(_) => 0,
        }
    }

    /// Bytes of memory that a call on arrays of these shapes needs with one thread: scratch memory, which every thread has
    /// of its own, and arrays that one part of a kernel stores and another reads.
    ///
    /// # Errors
    /// The shapes do not fit the function or each other.
    pub fn scratch_bytes(&self, shapes: &[Vec<usize>]) -> Result<usize, CallError> {
        let sizes = check::sizes(&self.compiled, shapes)?;
        let Engine::Code { phases, constants } = &self.compiled.engine else { return Ok(0) };
        let symbolic = symbolic(&self.compiled.func, &sizes)?;
        let of = |phase: &Phase| scratch_bytes(&phase.loops, &symbolic).ok_or_else(|| overflow("scratch memory"));
        let mut bytes = 0;
        for phase in phases {
            bytes = of(phase)?.max(bytes);
        }
        let arguments = shapes.len() + constants.len() + self.signature().outputs.len();
        let arrays = shared_bytes(&phases[0].loops, arguments, &symbolic)?;
        arrays.iter().try_fold(bytes, |sum: usize, n| sum.checked_add(*n)).ok_or_else(|| overflow("scratch memory"))
    }

    /// What a call on arrays of these shapes moves and computes; nothing is known of it where the interpreter runs it.
    ///
    /// # Errors
    /// The shapes do not fit the function or each other.
    pub fn work(&self, shapes: &[Vec<usize>]) -> Result<Option<Work>, CallError> {
        let sizes = check::sizes(&self.compiled, shapes)?;
        let Some(traffic) = &self.compiled.traffic else { return Ok(None) };
        let (read, written) = traffic
            .bytes(&symbolic(&self.compiled.func, &sizes)?)
            .ok_or_else(|| overflow("the number of bytes moved"))?;
        let flops = crate::work::flops(&self.compiled.func, &sizes);
        Ok(Some(Work { bytes: read.saturating_add(written), written, flops }))
    }

    /// The shapes of the results for inputs of these shapes.
    ///
    /// # Errors
    /// The shapes do not fit the function or each other.
    pub fn result_shapes(&self, shapes: &[Vec<usize>]) -> Result<Vec<Vec<usize>>, CallError> {
        let sizes = check::sizes(&self.compiled, shapes)?;
        check::result_shapes(&self.compiled.func, &sizes)
    }

    /// Computes the results into new arrays.
    ///
    /// # Errors
    /// Arrays that do not fit the signature or each other, or values that the formula forbids (a gather's index out of range).
    pub fn run(&self, inputs: &[ArrayView<'_>]) -> Result<Vec<Array>, CallError> {
        let sizes = check::inputs(&self.compiled, inputs)?;
        let mut results = vec![];
        let shapes = check::result_shapes(&self.compiled.func, &sizes)?;
        for (argument, shape) in self.signature().outputs.iter().zip(&shapes) {
            let array = Array::zeros(argument.dtype, shape);
            results.push(array.map_err(|error| CallError::Array { name: argument.name.clone(), error })?);
        }
        let mut views: Vec<ArrayViewMut<'_>> = results.iter_mut().map(Array::view_mut).collect();
        self.launch(&sizes, inputs, &mut views)?;
        Ok(results)
    }

    /// Computes the results into arrays that are there.
    ///
    /// # Errors
    /// As [`Kernel::run`]; outputs of another shape, or that overlap an input or each other.
    pub fn call(&self, inputs: &[ArrayView<'_>], outputs: &mut [ArrayViewMut<'_>]) -> Result<(), CallError> {
        let sizes = check::inputs(&self.compiled, inputs)?;
        check::outputs(&self.compiled, &sizes, inputs, outputs)?;
        self.launch(&sizes, inputs, outputs)
    }

    /// Run on arrays that were checked.
    fn launch(
        &self,
        sizes: &[u64],
        inputs: &[ArrayView<'_>],
        outputs: &mut [ArrayViewMut<'_>],
    ) -> Result<(), CallError> {
        let names = &self.compiled.signature;
        let in_array = |name: &str| {
            let name = name.to_owned();
            move |error| CallError::Array { name, error }
        };
        match &self.compiled.engine {
            Engine::Reference(module) => {
                let results = crate::reference::run(module, &self.compiled.func.name, inputs)?;
                for (view, result) in outputs.iter_mut().zip(&results) {
                    view.assign(result.bytes());
                }
                Ok(())
            }
            Engine::Code { phases, constants } => {
                let mut copies: Vec<Option<Array>> = vec![];
                for (view, argument) in inputs.iter().zip(&names.inputs) {
                    let copy = (!view.place().is_dense()).then(|| view.to_array()).transpose();
                    copies.push(copy.map_err(in_array(&argument.name))?);
                }
                let mut stands_in: Vec<Option<Array>> = vec![];
                for (view, argument) in outputs.iter().zip(&names.outputs) {
                    let dense = view.place().is_dense();
                    let array = (!dense).then(|| Array::zeros(view.dtype(), view.shape())).transpose();
                    stands_in.push(array.map_err(in_array(&argument.name))?);
                }
                let read = |(view, copy): (&ArrayView<'_>, &Option<Array>)| {
                    copy.as_ref().map_or(view.place().start(), |a| a.bytes().as_ptr().cast_mut())
                };
                let write = |(view, array): (&ArrayViewMut<'_>, &mut Option<Array>)| {
                    array.as_mut().map_or(view.place().start(), |a| a.bytes_mut().as_mut_ptr())
                };
                let symbolic = symbolic(&self.compiled.func, sizes)?;
                let arguments = inputs.len() + constants.len() + outputs.len();
                let shared = shared_bytes(&phases[0].loops, arguments, &symbolic)?.into_iter();
                let shared: Result<Vec<Scratch>, CallError> = shared.map(|n| memory_of("scratch memory", n)).collect();
                let mut shared = shared?;
                let pointers = Pointers::new(
                    inputs
                        .iter()
                        .zip(&copies)
                        .map(read)
                        .chain(constants.iter().map(|a| a.bytes().as_ptr().cast_mut()))
                        .chain(outputs.iter().zip(&mut stands_in).map(write))
                        .chain(shared.iter_mut().map(Scratch::as_mut_ptr)),
                );
                phases.iter().try_for_each(|phase| self.shares(phase, &symbolic, &pointers))?;
                for (view, array) in outputs.iter_mut().zip(&stands_in) {
                    if let Some(array) = array {
                        view.assign(array.bytes());
                    }
                }
                Ok(())
            }
        }
    }

    /// Run the split loop of a phase in shares, one for each thread.
    fn shares(&self, phase: &Phase, sizes: &[i64], pointers: &Pointers) -> Result<(), CallError> {
        let Phase { code, loops } = phase;
        let bytes = scratch_bytes(loops, sizes).ok_or_else(|| overflow("scratch memory"))?;
        let extent = match &loops.split {
            Some(split) => split.extent.eval(sizes).filter(|n| i64::try_from(*n).is_ok()),
            None => Some(1),
        };
        let extent = extent.ok_or_else(|| overflow("the number of iterations"))?;
        for buffer in &loops.buffers {
            buffer.len.eval(sizes).ok_or_else(|| overflow(&buffer.name))?;
        }
        let threads = if code.is_concurrent() { self.threads } else { 1 };
        let statuses = parallel_for(threads, extent, |begin, end| {
            let mut scratch = memory_of("scratch memory", bytes)?;
            // SAFETY: `check` made sure that every array is as long as its shape at these sizes; those of inputs are dense or
            // dense copies, those of outputs exclusively borrowed and apart from everything else; the others were made for this call.
            // Shares are disjoint. The kernel is one that `lower` made, with a schedule in range: its offsets stay inside the buffers.
            let status = unsafe {
                memory::call(code.as_ref(), sizes, pointers, scratch.as_mut_ptr(), (begin as i64, end as i64))
            };
            match status {
                0 => Ok(()),
                status::GATHER_OUT_OF_RANGE => Err(CallError::OutOfRange),
                status::BAD_SCALE => Err(CallError::BadScale),
                other => Err(CallError::Internal(format!("status {other} of kernel {}", loops.name))),
            }
        });
        statuses.into_iter().collect()
    }
}

/// Bytes of each array that phases share: the parameters of a kernel behind its arguments.
fn shared_bytes(loops: &onefold_loops::Kernel, arguments: usize, sizes: &[i64]) -> Result<Vec<usize>, CallError> {
    let is_parameter = |b: &&Buffer| matches!(b.kind, BufferKind::Input | BufferKind::Output);
    let bytes = |buffer: &Buffer| {
        let bytes = buffer.len.eval(sizes).and_then(|n| n.checked_mul(u64::from(buffer.elem.bytes())));
        bytes.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| overflow(&buffer.name))
    };
    loops.buffers.iter().filter(is_parameter).skip(arguments).map(bytes).collect()
}

fn memory_of(name: &str, bytes: usize) -> Result<Scratch, CallError> {
    Scratch::new(bytes).map_err(|e| CallError::Array { name: name.to_owned(), error: e.into() })
}

fn overflow(name: &str) -> CallError {
    CallError::Array { name: name.to_owned(), error: crate::ArrayError::TooLarge }
}

/// Lengths of the symbolic axes, in order: what kernels are given.
fn symbolic(func: &Func, sizes: &[u64]) -> Result<Vec<i64>, CallError> {
    let of = |at: usize| i64::try_from(sizes[at]).map_err(|_| overflow(&func.axis(AxisId(at as u8)).name));
    (0..func.axes.len()).filter(|at| func.axes[*at].extent == Extent::Symbolic).map(of).collect()
}
