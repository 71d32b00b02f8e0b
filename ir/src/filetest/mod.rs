//! Checks written as comments in `.fold` files, read for whoever runs them: interpreter, fold programs, kernels.
//!
//! ```text
//! // run: @p x = [2, 1, 0, -1]
//! // expect: p = [0.643914, 0.236883, 0.087144, 0.032059] tol 1e-6
//! func @p(%x: f32[j]) -> f32[j] {
//!   %p = softmax[j](%x)
//!   return %p
//! }
//! ```
//!
//! | directive | says |
//! |---|---|
//! | `// run: @f x = …, y = …` | a run of function `f` (without `@f`: of the first one) on these inputs; without `expect` it is compared with the interpreter |
//! | `// with: z = …` | more inputs of the run above |
//! | `// expect: p = … tol 1e-6 rel 1e-5` | an output by name or position; a value passes within `tol + rel * abs(value)`, `tol` is 1e-6 and `rel` 0 if not given |
//! | `// scale: 1` | the magnitude of what is added up in the run above: where results cancel, errors are a share of it |
//! | `// expect-error: text` | the run above fails with a message that contains the text |
//! | `// parse-error: text` | the file is refused with a message that contains the text |
//! | `// streams: @f x = 1` | how many times each input is read |
//! | `// passes: @f 1`, `// stored: @f 0` | how many passes there are, how many values are stored between them |
//! | `// option: @f name = 1` | an option of the compiler for the whole file |
//!
//! Values are numbers (also `inf`, `-inf`, `nan`, `true`, `false`), nested lists of them, `fill[2, 3](0.5)` (all equal),
//! `ramp[4](start, step)`, `random[2, 3](seed)` (uniform in -2 to 2) and `steps[2, 300](at, before, after)` (rows of `before` up to
//! the place `at`, of `after` from there on).

mod read;

use crate::interp::{Data, Tensor};
use crate::DType;
use std::fmt;
use thiserror::Error;

pub use read::read;

/// The checks of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileTest {
    /// Runs, in order.
    pub runs: Vec<Run>,
    /// Other statements about the file.
    pub facts: Vec<Fact>,
    /// Texts that must occur in the errors of parsing.
    pub parse_errors: Vec<String>,
}

/// A run of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Line of the directive, from 1.
    pub line: usize,
    /// The function; the first of the file if not given.
    pub func: Option<String>,
    /// Inputs by name.
    pub inputs: Vec<(String, Array)>,
    /// What must come out.
    pub expects: Vec<Expect>,
    /// What the error must say, if the run must fail.
    pub error: Option<String>,
    /// Magnitude that errors are measured against at least; 0 if not given.
    pub scale: f64,
}

/// What an output must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// Line of the directive, from 1.
    pub line: usize,
    /// Name or position of the output.
    pub output: String,
    /// Shape and elements.
    pub array: Array,
    /// Allowed absolute error.
    pub tol: f64,
    /// Allowed error as a share of the element.
    pub rel: f64,
}

/// A statement such as `// streams: @f x = 1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Line of the directive, from 1.
    pub line: usize,
    /// `streams`, `passes`, `stored` or `option`.
    pub key: String,
    /// The function; the first of the file if not given.
    pub func: Option<String>,
    /// Names and numbers; a number alone has the empty name.
    pub values: Vec<(String, f64)>,
}

/// An array without a dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements, row by row.
    pub data: Vec<f64>,
}

/// A directive that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct FileTestError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl Array {
    /// The array with a dtype; integers are truncated.
    pub fn tensor(&self, dtype: DType) -> Tensor {
        if dtype.is_float() {
            return Tensor::float(dtype, &self.shape, &self.data);
        }
        Tensor::int(dtype, &self.shape, &self.data.iter().map(|v| *v as i64).collect::<Vec<_>>())
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn rows(f: &mut fmt::Formatter<'_>, shape: &[usize], data: &[f64]) -> fmt::Result {
            let Some((n, inner)) = shape.split_first() else {
                return write!(f, "{}", data.first().copied().unwrap_or(f64::NAN));
            };
            let stride: usize = inner.iter().product();
            f.write_str("[")?;
            for row in 0..*n {
                if row > 0 {
                    f.write_str(", ")?;
                }
                rows(f, inner, data.get(row * stride..).unwrap_or(&[]))?;
            }
            f.write_str("]")
        }
        rows(f, &self.shape, &self.data)
    }
}

impl Expect {
    /// Compares an output; the error says where they differ first.
    ///
    /// # Errors
    /// Shapes differ, or an element is further off than allowed. NaN equals NaN only, infinities themselves only.
    pub fn check(&self, got: &Tensor) -> Result<(), String> {
        let output = &self.output;
        if got.shape != self.array.shape {
            return Err(format!("{output}: expected shape {:?}, got {:?}", self.array.shape, got.shape));
        }
        let element = |n: usize| match &got.data {
            Data::Float(v) => v.get(n).copied().unwrap_or(f64::NAN),
            Data::Int(v) => v.get(n).map_or(f64::NAN, |v| *v as f64),
        };
        for (n, want) in self.array.data.iter().enumerate() {
            let value = element(n);
            let near = (value - want).abs() <= self.tol + self.rel * want.abs();
            if !(near || value == *want || (value.is_nan() && want.is_nan())) {
                let all = Array { shape: got.shape.clone(), data: got.to_f64() };
                return Err(format!("{output}: element {n} is {value}, expected {want}; all: {all}"));
            }
        }
        Ok(())
    }
}
