//! `run --verify`: results against the f64 interpreter.

use crate::summary::number;
use onefold::{Argument, Array, DType};

/// How far one output is from the reference.
#[derive(Debug)]
pub struct Report {
    /// For people.
    pub line: String,
    /// Whether the bound holds.
    pub fine: bool,
}

/// Below this, absolute differences do not count.
const TINY: f64 = 1e-37;

/// The tolerance if none is given.
pub const TOLERANCE: f64 = 2e-6;

/// How many times the noise of its inputs a result may be off: a sum of n products is at best that of inputs which are off by
/// some square root of n of their roundings, and n is in the hundreds where it matters.
const NOISE: f64 = 16.0;

/// Compare an output with its f64 reference: each element may be off by the tolerance times the largest magnitude along the
/// last axis, and by some of what noise in the last place of the inputs does there: a formula may be as ill-conditioned as its
/// data (scores in the hundreds are f32 numbers with few digits after the point). Results that are not finite must agree in
/// class, integers must be equal.
pub fn compare(argument: &Argument, got: &Array, want: &[f64], tolerance: f64, noise: &[f64]) -> Report {
    let row = got.shape().last().copied().unwrap_or(1).max(1);
    let (mut absolute, mut relative, mut ulps) = (0.0f64, 0.0f64, 0.0f64);
    let mut wrong: Option<(usize, f64, f64)> = None;
    for (number_of_row, reference) in want.chunks(row).enumerate() {
        let largest = reference.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
        let shaken = noise.iter().skip(number_of_row * row).take(row).fold(0.0f64, |m, v| m.max(*v));
        for (offset, want) in reference.iter().enumerate() {
            let at = number_of_row * row + offset;
            let got = got.get_f64(at).unwrap_or(f64::NAN);
            let want = settle(argument.dtype, *want);
            let fine = if got == want || got.is_nan() && want.is_nan() {
                true
            } else if argument.dtype.is_float() && got.is_finite() && want.is_finite() {
                let error = (got - want).abs();
                absolute = absolute.max(error);
                if want != 0.0 {
                    relative = relative.max(error / want.abs());
                }
                ulps = ulps.max(error / ulp(argument.dtype, want));
                error <= tolerance.max(epsilon(argument.dtype)) * largest + NOISE * shaken + TINY
            } else {
                false
            };
            if !fine && wrong.is_none() {
                wrong = Some((at, got, want));
            }
        }
    }
    let mut line = format!(
        "{}: largest error {} absolute, {} relative, {} ULP",
        argument.name,
        number(absolute),
        number(relative),
        number((ulps * 10.0).round() / 10.0)
    );
    if let Some((at, got, want)) = wrong {
        line.push_str(&format!("; out of bounds first at element {at}: {got} instead of {want}"));
    }
    line.push('\n');
    Report { line, fine: wrong.is_none() }
}

/// A reference as its dtype has it where that changes its class: too large a number is infinite.
fn settle(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F32 if (v as f32).is_infinite() => f64::from(v as f32),
        DType::F16 if half::f16::from_f64(v).is_infinite() => half::f16::from_f64(v).to_f64(),
        DType::BF16 if half::bf16::from_f64(v).is_infinite() => half::bf16::from_f64(v).to_f64(),
        _ => v,
    }
}

/// Half a unit in the last place, relative: no result of that type can be closer.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        _ => 0.0,
    }
}

/// The distance between neighbours of that type at a value.
fn ulp(dtype: DType, v: f64) -> f64 {
    let (mantissa, least) = match dtype {
        DType::F64 => (52, -1022),
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        _ => (23, -126),
    };
    let exponent = if v == 0.0 { least } else { (v.abs().log2().floor() as i32).max(least) };
    2f64.powi(exponent - mantissa)
}
