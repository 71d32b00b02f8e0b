//! Outputs in a line: shape, dtype, first values, least, largest, sum.

use onefold::{Argument, Array};
use std::fmt::Write;

/// How many elements are shown.
const FIRST: usize = 6;

/// One line for an output.
pub fn line(argument: &Argument, array: &Array) -> String {
    let axes: Vec<String> =
        argument.axes.iter().zip(array.shape()).map(|(axis, size)| format!("{}={size}", axis.name)).collect();
    let mut out = format!("{}: {}[{}] [", argument.name, argument.dtype, axes.join(", "));
    for at in 0..array.len().min(FIRST) {
        let _ = write!(out, "{}{}", if at > 0 { ", " } else { "" }, value(array, at));
    }
    out.push_str(if array.len() > FIRST { ", ...]" } else { "]" });
    if !array.is_empty() {
        let (least, largest, sum) = measures(array);
        let _ = write!(out, " min {} max {} sum {}", number(least), number(largest), number(sum));
    }
    out.push('\n');
    out
}

/// NaN if any element is.
fn measures(array: &Array) -> (f64, f64, f64) {
    let mut least = f64::INFINITY;
    let mut largest = f64::NEG_INFINITY;
    let mut sum = 0.0;
    for at in 0..array.len() {
        let v = array.get_f64(at).unwrap_or(f64::NAN);
        least = if v.is_nan() || least.is_nan() { f64::NAN } else { least.min(v) };
        largest = if v.is_nan() || largest.is_nan() { f64::NAN } else { largest.max(v) };
        sum += v;
    }
    (least, largest, sum)
}

fn value(array: &Array, at: usize) -> String {
    if let Some(elements) = array.as_slice::<i64>() {
        return elements[at].to_string();
    }
    number(array.get_f64(at).unwrap_or(f64::NAN))
}

/// Six significant digits, without an exponent where that is short.
pub fn number(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return format!("{v}");
    }
    if v.fract() == 0.0 && v.abs() < 1e15 {
        return format!("{v}");
    }
    let magnitude = v.abs().log10().floor();
    if (-4.0..6.0).contains(&magnitude) {
        let digits = (5.0 - magnitude).max(0.0) as usize;
        let text = format!("{v:.digits$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return text.to_owned();
    }
    format!("{v:.5e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.0, -2.5, 0.123456789, 1234567.5, 1e-7, f64::NAN, f64::NEG_INFINITY, 5e20].map(number);
        assert_eq!(shown, ["0", "1", "-2.5", "0.123457", "1.23457e6", "1.00000e-7", "NaN", "-inf", "5.00000e20"]);
    }
}
