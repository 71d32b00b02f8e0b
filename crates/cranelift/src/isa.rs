//! Target description: this machine's, or a fixed one for listings.

use crate::internal;
use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags};
use onefold_loops::{BackendError, Target};
use target_lexicon::Triple;

fn flags() -> Result<Flags, BackendError> {
    let mut builder = settings::builder();
    // Loop IR is hoisted already; see the crate documentation.
    for (name, value) in [
        ("opt_level", "none"),
        ("is_pic", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ("regalloc_algorithm", "backtracking"),
    ] {
        builder.set(name, value).map_err(internal)?;
    }
    Ok(Flags::new(builder))
}

/// This machine, with the features that its CPU has.
pub fn host() -> Result<OwnedTargetIsa, BackendError> {
    let unavailable = |why: &str| BackendError::Unavailable { backend: "cranelift", why: why.to_owned() };
    let builder = cranelift_native::builder().map_err(unavailable)?;
    builder.finish(flags()?).map_err(internal)
}

/// x86-64 with AVX2 and FMA, on any machine.
pub fn reference() -> Result<OwnedTargetIsa, BackendError> {
    let triple: Triple = "x86_64-unknown-linux-gnu".parse().map_err(internal)?;
    let mut builder = isa::lookup(triple).map_err(internal)?;
    for feature in ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_avx", "has_avx2", "has_fma"] {
        builder.enable(feature).map_err(internal)?;
    }
    builder.finish(flags()?).map_err(internal)
}

/// What lowering needs to know.
pub fn target(isa: &dyn TargetIsa) -> Target {
    let has = |name: &str| isa.isa_flags().iter().any(|f| f.name == name && f.as_bool() == Some(true));
    let fma = match isa.triple().architecture {
        target_lexicon::Architecture::X86_64 => has("has_fma") && has("has_avx"),
        target_lexicon::Architecture::Aarch64(_) => true,
        _ => false,
    };
    let vector_registers =
        if matches!(isa.triple().architecture, target_lexicon::Architecture::X86_64) { 16 } else { 32 };
    Target { vector_bytes: 16, vector_registers, fma }
}
