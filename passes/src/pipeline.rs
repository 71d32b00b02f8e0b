//! The whole way of this crate: a verified function in, its fold program out.

use crate::convert::{convert, Graph};
use crate::cost::CostModel;
use crate::error::PassError;
use crate::extract::extract;
use crate::fold::FoldProgram;
use crate::saturate::{saturate, Limits};
use crate::schedule::schedule;
use crate::streams::Streams;
use onefold_ir::{Func, Module};

/// How far a derivation goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// As few streams as the algebra yields.
    #[default]
    Fused,
    /// As `Fused`, with exponentials carried as mantissa and exponent instead of relative to a maximum. For data within
    /// some 1e5 of zero; beyond, results lose accuracy.
    Wide,
    /// Laws, but no corrections: each dependence between reductions costs a stream. What a careful compiler without fold
    /// derivation makes; for comparison.
    Staged,
    /// The formula as it stands, each reduction in the pass that the user's order implies; for comparison and bisection.
    Plain,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 4] = [Form::Fused, Form::Wide, Form::Staged, Form::Plain];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Form::Fused => "fused",
            Form::Wide => "wide",
            Form::Staged => "staged",
            Form::Plain => "plain",
        }
    }
}

/// Options of a derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// How far it goes.
    pub form: Form,
    /// Bounds on saturation.
    pub limits: Limits,
}

/// A fold program with what there is to say about its making.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The program.
    pub program: FoldProgram,
    /// The terms that it came from; its constants say which tensors are the inputs after the parameters.
    pub source: Graph,
    /// What was cut short.
    pub warnings: Vec<String>,
}

/// Derive the fold program of a verified function.
///
/// # Errors
/// The function uses what has no compiled form yet, or a bug of ours.
pub fn derive(module: &Module, func: &Func, options: &Options) -> Result<Derived, PassError> {
    derive_terms(convert(module, func)?, options)
}

/// Derive the fold program of terms: [`derive()`] without the tensor IR.
///
/// # Errors
/// As [`derive()`].
pub fn derive_terms(source: Graph, options: &Options) -> Result<Derived, PassError> {
    let mut streams = Streams::new(matches!(options.form, Form::Fused | Form::Wide));
    let mut warnings = vec![];
    let mut terms = source.terms.clone();
    let mut roots = source.roots.clone();
    if options.form != Form::Plain {
        let saturated = saturate(&source, &options.limits, options.form == Form::Wide, false);
        warnings.extend(saturated.warning.clone());
        let mut model = CostModel::new(&source.axes);
        model.prefer_wide = options.form == Form::Wide;
        terms = crate::term::Terms::default();
        roots = extract(&saturated, &mut terms, &mut streams, &mut model)
            .ok_or_else(|| PassError::internal("a result has no term"))?;
    }
    let program = schedule(&source, terms, &mut streams, &roots)?;
    Ok(Derived { program, source, warnings })
}
