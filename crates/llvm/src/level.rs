//! CPU levels: which instructions code may use.

use onefold_loops::Target;
use std::fmt;
use std::str::FromStr;

/// A set of CPU features that code is generated for. Levels of one architecture are ordered: each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Every x86-64: vectors of 128 bits, no fused multiply-add (where loop IR has one anyhow, the C library computes it).
    Sse2,
    /// x86-64-v3: vectors of 256 bits, fused multiply-add, conversion of half floats.
    Avx2,
    /// x86-64-v4: vectors of 512 bits and masks.
    Avx512,
    /// Every AArch64: vectors of 128 bits.
    Neon,
}

/// A name that is no level.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no CPU level {0}; there are sse2, avx2, avx512 and neon")]
pub struct UnknownLevel(String);

impl Level {
    /// All levels.
    pub const ALL: [Level; 4] = [Level::Sse2, Level::Avx2, Level::Avx512, Level::Neon];

    /// The highest level that this machine has; `None` on an architecture without levels.
    pub fn detect() -> Option<Level> {
        Level::ALL.into_iter().rev().find(|level| level.is_available())
    }

    /// Whether this machine can run code of that level.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = || {
                let wide = has!("avx") && has!("avx2") && has!("fma") && has!("f16c");
                wide && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("movbe")
            };
            let avx512 = || {
                let wide = has!("avx512f") && has!("avx512bw") && has!("avx512cd");
                wide && has!("avx512dq") && has!("avx512vl")
            };
            match self {
                Level::Sse2 => true,
                Level::Avx2 => avx2(),
                Level::Avx512 => avx2() && avx512(),
                Level::Neon => false,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Level::Neon && cfg!(target_arch = "aarch64")
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Sse2 => "sse2",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Neon => "neon",
        }
    }

    /// What lowering needs to know.
    pub fn target(self) -> Target {
        let (vector_bytes, vector_registers, fma) = match self {
            Level::Sse2 => (16, 16, false),
            Level::Avx2 => (32, 16, true),
            Level::Avx512 => (64, 32, true),
            Level::Neon => (16, 32, true),
        };
        Target { vector_bytes, vector_registers, fma }
    }

    /// LLVM's name of the least CPU of that level.
    pub(crate) fn cpu(self) -> &'static str {
        match self {
            Level::Sse2 => "x86-64",
            Level::Avx2 => "x86-64-v3",
            Level::Avx512 => "x86-64-v4",
            Level::Neon => "generic",
        }
    }

    /// The features that this crate counts on, in LLVM's words.
    pub(crate) fn features(self) -> &'static str {
        match self {
            Level::Sse2 => "+sse2",
            Level::Avx2 => "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe",
            Level::Avx512 => {
                "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
            }
            Level::Neon => "+neon",
        }
    }

    /// A system of that architecture, for listings that are the same everywhere.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Level::Neon => "aarch64-unknown-linux-gnu",
            _ => "x86_64-unknown-linux-gnu",
        }
    }

    /// Whether it is one of this machine's architecture.
    pub(crate) fn is_native(self) -> bool {
        cfg!(target_arch = "aarch64") == (self == Level::Neon)
            && cfg!(any(target_arch = "aarch64", target_arch = "x86_64"))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Level, UnknownLevel> {
        Level::ALL.into_iter().find(|level| level.name() == name).ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}
