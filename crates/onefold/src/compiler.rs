//! From a module to kernels.

use crate::array::{Array, ArrayError};
use crate::cpu::{generator, Cpu};
use crate::error::Error;
use crate::kernel::{Compiled, Engine, Kernel, Phase};
use crate::signature::Signature;
use crate::work::Traffic;
use onefold_ir::{Constant, Func, Module, Op};
use onefold_loops::lower::{lower_phases, LowerError, Schedule};
use onefold_loops::{Backend as CodeGenerator, BackendError, Kernel as Loops, Target};
use onefold_passes::fold::FoldProgram;
use onefold_passes::saturate::Limits;
use onefold_passes::{derive, Form, Options};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What runs a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backend {
    /// Native code by Cranelift.
    #[default]
    Cranelift,
    /// Native code by LLVM: faster, and slower to make. Only in builds with the feature `llvm`.
    Llvm,
    /// The interpreter of loop IR, which checks every access: slow, for finding faults.
    Loops,
    /// The reference interpreter of tensor IR, in f64: the formula itself.
    Interp,
}

impl Backend {
    /// All backends of this build.
    pub const ALL: &'static [Backend] = if cfg!(feature = "llvm") {
        &[Backend::Cranelift, Backend::Llvm, Backend::Loops, Backend::Interp]
    } else {
        &[Backend::Cranelift, Backend::Loops, Backend::Interp]
    };

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cranelift => "cranelift",
            Backend::Llvm => "llvm",
            Backend::Loops => "loops",
            Backend::Interp => "interp",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compiles functions, and remembers them: the same function with the same options is compiled once.
///
/// A clone shares what is remembered.
///
/// ```
/// use onefold::{Backend, Compiler};
///
/// let module = onefold::parse("double.fold", "func @double(%x: f32[n]) -> f32[n] {\n  return 2 * %x\n}\n")?;
/// let kernel = Compiler::new().backend(Backend::Cranelift).threads(1).compile(&module, "double")?;
/// assert_eq!(kernel.signature().to_string(), "@double(x: f32[n]) -> (out0: f32[n])");
/// # Ok::<(), onefold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    backend: Backend,
    options: Options,
    threads: Option<usize>,
    schedule: Option<Schedule>,
    cpu: Option<Cpu>,
    cache: Arc<Mutex<BTreeMap<String, Arc<Compiled>>>>,
}

impl Compiler {
    /// Native code, fully fused, on all processors.
    pub fn new() -> Compiler {
        Compiler::default()
    }

    /// What is to run kernels.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Compiler {
        self.backend = backend;
        self
    }

    /// How far passes are fused.
    #[must_use]
    pub fn form(mut self, form: Form) -> Compiler {
        self.options.form = form;
        self
    }

    /// Bounds on saturation.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Compiler {
        self.options.limits = limits;
        self
    }

    /// How many threads a call uses; results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Compiler {
        self.threads = Some(threads.max(1));
        self
    }

    /// A schedule instead of the one that is chosen. Compilation fails if one of its numbers is out of range, or if the tiles need
    /// more stack than a kernel may use.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Compiler {
        self.schedule = Some(schedule);
        self
    }

    /// The CPU that code is for. Without it kernels are for this machine's, and what [`crate::inspect`] shows is for
    /// [`Cpu::Baseline`].
    #[must_use]
    pub fn cpu(mut self, cpu: Cpu) -> Compiler {
        self.cpu = Some(cpu);
        self
    }

    /// Options of the derivation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The kernel of a function.
    ///
    /// # Errors
    /// There is no such function, or it uses what cannot be compiled yet.
    pub fn compile(&self, module: &Module, func: &str) -> Result<Kernel, Error> {
        let threads = self.threads.unwrap_or_else(processors);
        let func = find(module, func)?;
        let key = self.key(module, func);
        // A lock that was poisoned by a panic elsewhere still guards a whole map: entries are inserted at once.
        if let Some(found) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Kernel::new(found.clone(), threads));
        }
        let compiled = Arc::new(self.build(module, func)?);
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key, compiled.clone());
        Ok(Kernel::new(compiled, threads))
    }

    /// The kernel of a text with one function, or of the one named.
    ///
    /// # Errors
    /// The text is at fault, or as [`Compiler::compile`].
    pub fn compile_text(&self, source_name: &str, text: &str, func: Option<&str>) -> Result<Kernel, Error> {
        let module = onefold_ir::parse(source_name, text)?;
        let name = choose(&module, func)?.name.clone();
        self.compile(&module, &name)
    }

    /// The code generator whose code is run.
    fn generator(&self) -> Result<Option<Box<dyn CodeGenerator>>, Error> {
        match self.cpu.unwrap_or(Cpu::Native) {
            Cpu::Baseline if self.backend != Backend::Interp => {
                let why = "baseline code is for listings; this machine may lack what it needs".to_owned();
                Err(BackendError::Unavailable { backend: self.backend.name(), why }.into())
            }
            cpu => generator(self.backend, cpu),
        }
    }

    /// The code generator for listings: of the backend if it has one, for a fixed CPU if none is asked for.
    pub(crate) fn listing_generator(&self, backend: Backend) -> Result<Box<dyn CodeGenerator>, Error> {
        let backend = if backend == Backend::Llvm { backend } else { Backend::Cranelift };
        let generator = generator(backend, self.cpu.unwrap_or(Cpu::Baseline))?;
        let none = || BackendError::Internal { backend: backend.name(), why: "no code generator".to_owned() };
        Ok(generator.ok_or_else(none)?)
    }

    /// What runs kernels.
    pub(crate) fn chosen(&self) -> Backend {
        self.backend
    }

    /// The loops of a program, with the schedule given or one that is chosen so that what tiles keep fits the stack.
    pub(crate) fn lower(&self, program: &FoldProgram, target: &Target) -> Result<Vec<Loops>, Error> {
        if let Some(schedule) = &self.schedule {
            return Ok(lower_phases(program, target, schedule)?);
        }
        let mut schedule = Schedule::choose(program, target);
        loop {
            let longest = schedule.tiles.iter().copied().max().unwrap_or(1);
            match lower_phases(program, target, &schedule) {
                Err(LowerError::Frame { .. }) if longest > 1 => {
                    schedule.tiles.iter_mut().for_each(|tile| *tile = (*tile).min(longest / 2));
                }
                kernels => {
                    log::debug!("@{}: {schedule}", program.name);
                    return Ok(kernels?);
                }
            }
        }
    }

    fn build(&self, module: &Module, func: &Func) -> Result<Compiled, Error> {
        let signature = Signature::of(func);
        let Some(generator) = self.generator()? else {
            let mut alone = module.clone();
            alone.funcs.retain(|f| f.name == func.name);
            let engine = Engine::Reference(alone);
            return Ok(Compiled { signature, func: func.clone(), engine, traffic: None, warnings: vec![] });
        };
        let start = Instant::now();
        let derived = derive(module, func, &self.options)?;
        log::debug!("@{}: derived in {:.2?}", func.name, start.elapsed());
        log::trace!("{}", derived.program);
        let start = Instant::now();
        let target = generator.target();
        let kernels = self.lower(&derived.program, &target)?;
        log::debug!("@{}: lowered in {:.2?}", func.name, start.elapsed());
        let mut phases = vec![];
        for loops in kernels {
            log::trace!("{loops}");
            let start = Instant::now();
            let code = generator.compile(&loops)?;
            log::debug!("@{}: {} bytes of code in {:.2?}", loops.name, code.size(), start.elapsed());
            phases.push(Phase { code, loops });
        }
        let constants: Result<Vec<Array>, Error> =
            derived.source.constants.iter().map(|k| constant(&module.constants[*k])).collect();
        let engine = Engine::Code { phases, constants: constants? };
        let traffic = Some(Traffic::of(derived.program));
        Ok(Compiled { signature, func: func.clone(), engine, traffic, warnings: derived.warnings })
    }

    /// Everything that a kernel depends on, as text: equal texts are equal kernels.
    fn key(&self, module: &Module, func: &Func) -> String {
        let canonical = onefold_ir::print_func(module, func);
        let mut constants = Module::default();
        for node in &func.nodes {
            if let Op::Constant(at) = node.op {
                constants.constants.extend(module.constants.get(at).cloned());
            }
        }
        let constants = onefold_ir::print(&constants);
        let Compiler { backend, cpu, options, schedule, .. } = self;
        format!("{backend:?} {cpu:?} {options:?} {schedule:?}\n{constants}{canonical}")
    }
}

/// Processors that this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The function of that name.
pub(crate) fn find<'m>(module: &'m Module, name: &str) -> Result<&'m Func, Error> {
    module.func(name).ok_or_else(|| Error::NoFunction { name: name.to_owned(), available: names(module) })
}

/// The function named, or the only one.
///
/// # Errors
/// There is none of that name, or none is named and there is not exactly one.
pub fn choose<'m>(module: &'m Module, name: Option<&str>) -> Result<&'m Func, Error> {
    match (name, module.funcs.as_slice()) {
        (Some(name), _) => find(module, name),
        (None, [only]) => Ok(only),
        (None, []) => Err(Error::Empty),
        (None, _) => Err(Error::WhichFunction { available: names(module) }),
    }
}

fn names(module: &Module) -> Vec<String> {
    module.funcs.iter().map(|f| f.name.clone()).collect()
}

fn constant(constant: &Constant) -> Result<Array, Error> {
    let shape: Result<Vec<usize>, ArrayError> =
        constant.axes.iter().map(|(_, n)| usize::try_from(*n).map_err(|_| ArrayError::TooLarge)).collect();
    shape
        .and_then(|shape| Array::from_f64(constant.dtype, &shape, &constant.data))
        .map_err(|error| Error::Constant { name: constant.name.clone(), error })
}
