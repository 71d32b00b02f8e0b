//! What the command line may say.

use clap::{Args, Parser, Subcommand, ValueEnum};
use onefold::inspect::{Format, Stage};
use onefold::{Cpu, Form};
use std::path::PathBuf;

/// A compiler for attention graphs.
#[derive(Debug, Parser)]
#[command(
    name = "onefold",
    version,
    about,
    after_help = "Exit status: 0 done; 1 the input is at fault; 2 wrong usage; 3 results out of bounds."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Say nothing but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say on stderr what each stage took (as ONEFOLD_LOG=debug; trace shows the stages themselves).
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Parse and verify.
    Check(Check),
    /// Compile, run, and print a summary of each output or write it.
    Run(Run),
    /// Show a stage of the compiler.
    Inspect(Inspect),
    /// Show the chain of named laws from the formula to the kernel.
    Explain(Explain),
    /// Time a function.
    Bench(Bench),
    /// Compile ahead of time.
    #[command(hide = true)]
    Compile(Unavailable),
    /// Record ranges and quantization bias.
    #[command(hide = true)]
    Calibrate(Unavailable),
    /// Import a model.
    #[command(hide = true)]
    Import(Unavailable),
}

/// Arguments of a command that this version lacks.
#[derive(Debug, Args)]
pub struct Unavailable {
    /// Ignored.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<String>,
}

/// `onefold check`
#[derive(Debug, Args)]
pub struct Check {
    /// A .fold file.
    pub file: PathBuf,
}

/// Which function of which file.
#[derive(Debug, Args)]
pub struct Source {
    /// A .fold file.
    pub file: PathBuf,
    /// The function; needed if the file has several.
    #[arg(long)]
    pub func: Option<String>,
}

/// How far passes are fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// As few streams as the algebra yields.
    Fused,
    /// The same, with exponentials carried as mantissa and exponent instead of relative to a maximum.
    Wide,
    /// No corrections: each dependence between reductions costs a stream.
    Staged,
    /// The formula as it stands.
    Plain,
    /// All of them, one after the other (bench only).
    All,
}

impl FormArg {
    /// The forms meant.
    pub fn forms(self) -> &'static [Form] {
        match self {
            FormArg::Fused => &[Form::Fused],
            FormArg::Wide => &[Form::Wide],
            FormArg::Staged => &[Form::Staged],
            FormArg::Plain => &[Form::Plain],
            FormArg::All => &Form::ALL,
        }
    }
}

/// What runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// Native code by Cranelift.
    Cranelift,
    /// Native code by LLVM, in builds that have it.
    Llvm,
    /// The interpreter of loop IR.
    Loops,
    /// The reference interpreter, in f64.
    Interp,
}

/// `onefold run`
#[derive(Debug, Args)]
pub struct Run {
    /// Which function.
    #[command(flatten)]
    pub source: Source,
    /// An input: NAME=FILE.npy.
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Where an output goes: NAME_OR_INDEX=FILE.npy; the others are summarised.
    #[arg(long = "out", value_name = "NAME_OR_INDEX=FILE")]
    pub outputs: Vec<String>,
    /// Sizes and numbers for the inputs that are not given.
    #[command(flatten)]
    pub fill: Fill,
    /// What runs it.
    #[arg(long, value_enum, default_value = "cranelift")]
    pub backend: BackendArg,
    /// The CPU that code is for; if not given, this machine's.
    #[arg(long, value_enum)]
    pub cpu: Option<CpuArg>,
    /// How far passes are fused.
    #[arg(long, value_enum, default_value = "fused")]
    pub form: FormArg,
    /// Threads; results do not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Also run the f64 interpreter and print the largest errors; exit 3 if a bound is exceeded.
    #[arg(long)]
    pub verify: bool,
    /// A strict bound, relative to the largest magnitude along the last axis. Without it the bound is 2e-6 and what inputs that
    /// differ by half a unit in the last place make of the formula.
    #[arg(long, requires = "verify")]
    pub tolerance: Option<f64>,
}

/// Inputs that are not given.
#[derive(Debug, Args)]
pub struct Fill {
    /// Fill the inputs not given with seeded normal numbers.
    #[arg(long)]
    pub random: bool,
    /// Where the numbers start.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The length of a symbolic axis: NAME=N.
    #[arg(long = "size", value_name = "NAME=N")]
    pub sizes: Vec<String>,
}

/// Stages to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// Tensor IR, macros expanded.
    Tensor,
    /// The e-graph after saturation.
    Egraph,
    /// The fold program.
    Fold,
    /// Loop IR.
    Loop,
    /// Cranelift's IR.
    Clif,
    /// LLVM's IR.
    Llvm,
    /// Assembly.
    Asm,
}

impl StageArg {
    /// The stage.
    pub fn stage(self) -> Stage {
        match self {
            StageArg::Tensor => Stage::Tensor,
            StageArg::Egraph => Stage::EGraph,
            StageArg::Fold => Stage::Fold,
            StageArg::Loop => Stage::Loop,
            StageArg::Clif => Stage::Clif,
            StageArg::Llvm => Stage::Llvm,
            StageArg::Asm => Stage::Asm,
        }
    }
}

/// How a stage is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For Graphviz.
    Dot,
    /// For browsers.
    Html,
}

impl FormatArg {
    /// The format, if this build has it.
    pub fn format(self) -> Option<Format> {
        Some(match self {
            FormatArg::Text => Format::Text,
            FormatArg::Json => Format::Json,
            FormatArg::Dot => Format::Dot,
            FormatArg::Html => return None,
        })
    }
}

/// `onefold inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// Which function; without --func all of the file.
    #[command(flatten)]
    pub source: Source,
    /// The stage.
    #[arg(long, value_enum)]
    pub stage: StageArg,
    /// How it is written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
    /// How far passes are fused.
    #[arg(long, value_enum, default_value = "fused")]
    pub form: FormArg,
    /// The backend whose code is shown.
    #[arg(long, value_enum, default_value = "cranelift")]
    pub backend: BackendArg,
    /// The CPU that code is for; if not given, baseline, which is the same everywhere.
    #[arg(long, value_enum)]
    pub cpu: Option<CpuArg>,
}

/// CPUs that code can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CpuArg {
    /// x86-64 with FMA, on any machine; to be shown, not run.
    Baseline,
    /// This machine's.
    Native,
    /// Every x86-64, without FMA; 128-bit vectors (LLVM).
    Sse2,
    /// 256-bit vectors (LLVM).
    Avx2,
    /// 512-bit vectors (LLVM).
    Avx512,
    /// AArch64 (LLVM).
    Neon,
}

impl CpuArg {
    /// The CPU.
    pub fn cpu(self) -> Cpu {
        match self {
            CpuArg::Baseline => Cpu::Baseline,
            CpuArg::Native => Cpu::Native,
            CpuArg::Sse2 => Cpu::Sse2,
            CpuArg::Avx2 => Cpu::Avx2,
            CpuArg::Avx512 => Cpu::Avx512,
            CpuArg::Neon => Cpu::Neon,
        }
    }
}

/// `onefold explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// Which function; without --func all of the file.
    #[command(flatten)]
    pub source: Source,
    /// How far passes are fused.
    #[arg(long, value_enum, default_value = "fused")]
    pub form: FormArg,
}

/// `onefold bench`
#[derive(Debug, Args)]
pub struct Bench {
    /// Which function.
    #[command(flatten)]
    pub source: Source,
    /// An input: NAME=FILE.npy; the others are filled with numbers.
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// The length of a symbolic axis: NAME=N.
    #[arg(long = "size", value_name = "NAME=N")]
    pub sizes: Vec<String>,
    /// Where the numbers start.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How far passes are fused; all compares the forms.
    #[arg(long, value_enum, default_value = "fused")]
    pub form: FormArg,
    /// What to compare with: functions run one after the other on each other's results. Names of functions of the same file, or
    /// another file, all of whose functions are run.
    #[arg(long = "then", value_name = "FUNC,FUNC,…|FILE", value_delimiter = ',')]
    pub chain: Vec<String>,
    /// What runs it.
    #[arg(long, value_enum, default_value = "cranelift")]
    pub backend: BackendArg,
    /// The CPU that code is for; if not given, this machine's.
    #[arg(long, value_enum)]
    pub cpu: Option<CpuArg>,
    /// Measured calls of each.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub reps: u32,
    /// Threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}
