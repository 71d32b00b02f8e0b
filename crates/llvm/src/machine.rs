//! LLVM's side of the work: the target machine, the passes, and what comes out.

use crate::internal;
use crate::level::Level;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use inkwell::OptimizationLevel;
use onefold_loops::BackendError;
use std::sync::Once;

/// How much LLVM is to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Nothing before code generation.
    None,
    /// What loop IR leaves to do: it arrives hoisted, unrolled and in vectors.
    #[default]
    Light,
    /// All that LLVM has, at three times the price or more.
    Full,
}

impl Effort {
    fn passes(self) -> Option<&'static str> {
        match self {
            Effort::None => None,
            Effort::Light => Some("function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse,adce)"),
            Effort::Full => Some("default<O3>"),
        }
    }
}

/// A machine of a level: this one, or a fixed one of which listings are the same everywhere.
pub fn machine(level: Level, fixed: bool) -> Result<TargetMachine, BackendError> {
    static TARGETS: Once = Once::new();
    TARGETS.call_once(|| {
        let config = InitializationConfig::default();
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
    });
    let triple = if level.is_native() && !fixed {
        TargetMachine::get_default_triple()
    } else {
        TargetTriple::create(level.triple())
    };
    let target = Target::from_triple(&triple).map_err(internal)?;
    let (optimize, reloc, model) = (OptimizationLevel::Default, RelocMode::PIC, CodeModel::Default);
    target
        .create_target_machine(&triple, level.cpu(), level.features(), optimize, reloc, model)
        .ok_or_else(|| internal("no target machine"))
}

/// Say which machine a module is for, check it, and run the passes.
pub fn optimize(module: &Module<'_>, machine: &TargetMachine, effort: Effort) -> Result<(), BackendError> {
    // A module that is not well formed would end the process later on.
    module.verify().map_err(|e| internal(e.to_string()))?;
    let Some(passes) = effort.passes() else { return Ok(()) };
    let options = PassBuilderOptions::create();
    options.set_verify_each(false);
    module.run_passes(passes, machine, options).map_err(|e| internal(e.to_string()))
}

/// A relocatable object.
pub fn object(module: &Module<'_>, machine: &TargetMachine) -> Result<MemoryBuffer<'static>, BackendError> {
    machine.write_to_memory_buffer(module, FileType::Object).map_err(|e| internal(e.to_string()))
}

/// Bytes of instructions in an object; 0 if it cannot be read, since nothing but reports depends on it.
pub fn code_bytes(object: &MemoryBuffer<'_>) -> usize {
    let Ok(file) = object.create_binary_file(None) else { return 0 };
    let mut total = 0;
    if let Some(mut sections) = file.get_sections() {
        while let Some(section) = sections.next_section() {
            if section.get_name().is_some_and(|name| name.to_bytes().starts_with(b".text")) {
                total += section.get_size();
            }
        }
    }
    usize::try_from(total).unwrap_or(0)
}

/// Assembly, without what only assemblers and debuggers read.
pub fn assembly(module: &Module<'_>, machine: &TargetMachine) -> Result<String, BackendError> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Assembly).map_err(|e| internal(e.to_string()))?;
    let text = String::from_utf8_lossy(buffer.as_slice()).into_owned();
    let noise = ["\t.cfi_", "\t.file", "\t.ident", "\t.addrsig", "\t.section\t\".note.GNU-stack\""];
    Ok(without(&text, |line| noise.iter().any(|n| line.starts_with(n)) || line == "\0"))
}

/// LLVM IR, without the lines that say where it was made.
pub fn ir(module: &Module<'_>) -> String {
    let places = ["; ModuleID", "; Function Attrs", "source_filename", "target datalayout", "target triple"];
    without(&module.print_to_string().to_string(), |line| places.iter().any(|p| line.starts_with(p)))
        .trim_start()
        .to_owned()
}

fn without(text: &str, noise: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| !noise(line)).flat_map(|line| [line, "\n"]).collect()
}
