//! Each theory as a test: a start term, a goal term, and whether saturation proves them equal.

use onefold_passes::convert::convert;
use onefold_passes::saturate::{saturate, Limits};

/// Whether two terms over some parameters land in one class.
fn proves(parameters: &str, left: &str, right: &str, wide: bool, explain: bool) -> bool {
    let text = format!("func @t({parameters}) {{\n  return {left}, {right}\n}}\n");
    let module = match onefold_ir::parse("law.fold", &text) {
        Ok(module) => module,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    let source = convert(&module, &module.funcs[0]).expect("terms");
    let saturated = saturate(&source, &Limits::default(), wide, explain);
    saturated.egraph.find(saturated.roots[0]) == saturated.egraph.find(saturated.roots[1])
}

macro_rules! laws {
    ($($name:ident: $parameters:literal, $left:literal => $right:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert!(proves($parameters, $left, $right, false, false), "{} != {}", $left, $right);
                assert!(proves($parameters, $left, $right, false, true), "with explanations on");
            }
        )*
    };
}

macro_rules! not_laws {
    ($($name:ident: $parameters:literal, $left:literal => $right:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert!(!proves($parameters, $left, $right, false, false), "{} = {} must not hold", $left, $right);
            }
        )*
    };
}

laws! {
    positions_cancel: "%x: f32[j]", "%x + (tanh(f32(index(j))) - tanh(f32(index(j))))" => "%x + 0.0 * f32(index(j))";
    zero_times_a_position: "%x: f32[j]", "exp(%x) * (f32(index(j)) * 0.0)" => "exp(%x) * (0.0 * tanh(f32(index(j))))";
    products_are_flat: "%a: f32[b], %c: f32[b], %d: f32[b]", "(%a * %c) * %d" => "%a * (%d * %c)";
    constants_fold: "%a: f32[b]", "2.0 * (%a * 3.0)" => "6.0 * %a";
    factor_leaves_a_sum: "%x: f32[b, j], %a: f32[b]", "sum[j](%x * %a)" => "%a * sum[j](%x)";
    division_leaves_a_sum: "%x: f32[b, j], %a: f32[b]", "sum[j](%x / %a)" => "sum[j](%x) / %a";
    division_is_deferred: "%w: f32[i, j], %d: f32[i], %v: f32[j, e]", "sum[j]((%w / %d) * %v)" => "sum[j](%w * %v) / %d";
    sum_of_a_constant: "%a: f32[b], %x: f32[b, j=8]", "sum[j](%a + 0.0 * %x)" => "sum[j](%a + 0.0 * %x)";
    sums_split: "%x: f32[j], %y: f32[j]", "sum[j](%x + %y)" => "sum[j](%x) + sum[j](%y)";
    shares_split: "%x: f32[j], %y: f32[j], %v: f32[j], %a: f32[], %c: f32[]", "sum[j]((%x / %a - %y / %c) * %v)"
        => "sum[j](%x * %v) / %a - sum[j](%y * %v) / %c";
    magnitude_of_a_shortfall: "%x: f32[b, j]", "sum[j](abs(%x - max[j](%x)))" => "sum[j](-(%x - max[j](%x)))";
    products_reassociate: "%q: f32[i, e], %k: f32[j, e], %v: f32[j, d]",
        "sum[j](sum[e](%q * %k) * %v)" => "sum[e](%q * sum[j](%k * %v))";
    branches_leave_a_sum: "%x: f32[b, j], %c: bool[b]", "sum[j](select(%c, %x, 2.0 * %x))" => "select(%c, sum[j](%x), sum[j](2.0 * %x))";
    log_of_exp: "%x: f32[b]", "log(exp(%x))" => "%x";
    log_of_a_share: "%x: f32[b, j]",
        "log(exp(%x - max[j](%x)) / sum[j](exp(%x - max[j](%x))))" => "(%x - max[j](%x)) - log(sum[j](exp(%x - max[j](%x))))";
    maximum_of_exponentials: "%x: f32[b, j]", "max[j](exp(%x))" => "exp(max[j](%x))";
    maximum_of_the_negative: "%x: f32[b, j]", "max[j](-%x)" => "-min[j](%x)";
    maximum_of_shifted: "%x: f32[b, j], %a: f32[b]", "max[j](%x + %a)" => "max[j](%x) + %a";
    position_of_increasing: "%x: f32[b, j]", "argmax[j](exp(%x) / sum[j](exp(%x)))" => "argmax[j](%x)";
    position_of_the_logistic: "%x: f32[b, j]", "argmax[j](1.0 / (1.0 + exp(-%x)))" => "argmax[j](%x)";
    squares_are_products: "%x: f32[b]", "pow(%x, 2.0)" => "%x * %x";
    inverse_squares: "%x: f32[b]", "pow(%x, -2.0)" => "1.0 / (%x * %x)";
    powers_of_two: "%x: f32[b]", "pow(2.0, %x)" => "exp2(%x)";
    maximum_of_weighted: "%x: f32[b, j], %y: f32[b, j], %a: f32[b]", "max[j](%x * %y / exp(%a))" => "max[j](%x * %y) / exp(%a)";
    position_of_weighted: "%x: f32[b, j], %y: f32[b, j], %a: f32[b]", "argmax[j](%x * %y / exp(%a))" => "argmax[j](%x * %y)";
    maximum_of_widened: "%x: f16[b, j]", "max[j](cast<f32>(%x))" => "cast<f32>(max[j](%x))";
}

not_laws! {
    roots_of_what_may_be_negative: "%x: f32[b]", "pow(%x, 0.5)" => "sqrt(%x)";
    narrowing_makes_ties: "%x: f32[b, j]", "argmax[j](cast<f16>(%x))" => "argmax[j](%x)";
    infinities_do_not_cancel: "%x: f32[j]", "%x - %x" => "0.0 * f32(index(j))";
    zero_times_anything_is_not_zero: "%x: f32[j]", "%x * 0.0" => "0.0 * f32(index(j))";
    exponentials_may_overflow: "%x: f32[j]", "exp(f32(index(j))) - exp(f32(index(j)))" => "0.0 * f32(index(j))";
    rows_differ: "%x: f32[i, j], %a: f32[j]", "sum[j](%x * %a)" => "%a * sum[j](%x)";
    log_needs_a_sign: "%x: f32[b], %y: f32[b]", "log(%x * %y)" => "log(%x) + log(%y)";
    maximum_of_decreasing: "%x: f32[b, j]", "max[j](-%x)" => "-max[j](%x)";
    position_of_rectified: "%x: f32[b, j]", "argmax[j](max(%x, 0.0))" => "argmax[j](%x)";
    zero_is_no_factor: "%x: f32[b, j], %a: f32[b]", "argmax[j](%x * %a)" => "argmax[j](%x)";
    differences_stay: "%x: f32[j], %y: f32[j], %v: f32[j]", "sum[j]((%x - %y) * %v)" => "sum[j](%x * %v) - sum[j](%y * %v)";
    residuals_stay: "%x: f32[j], %y: f32[j], %w: f32[j], %b: f32[]", "sum[j]((%y - %b * %x) * %w)"
        => "sum[j](%y * %w) - %b * sum[j](%x * %w)";
    distances_stay: "%q: f32[i, e], %k: f32[j, e]", "sum[e]((%q - %k) * (%q - %k))"
        => "sum[e](%q * %q) - 2.0 * sum[e](%q * %k) + sum[e](%k * %k)";
    means_stay: "%x: f32[b, j=8]", "sum[j]((%x - sum[j](%x) / 8.0) * (%x - sum[j](%x) / 8.0))"
        => "sum[j](%x * %x) - sum[j](%x) * sum[j](%x) / 8.0";
    squares_stay_in_range: "%x: f32[b, j]", "sum[j]((%x / max[j](abs(%x))) * (%x / max[j](abs(%x))))"
        => "sum[j](%x * %x) / (max[j](abs(%x)) * max[j](abs(%x)))";
    shifts_stay: "%x: f32[b, j]", "exp(%x - max[j](%x)) / sum[j](exp(%x - max[j](%x)))" => "exp(%x) / sum[j](exp(%x))";
}

#[test]
fn shifts_cancel_where_exponents_are_wide() {
    let shifted = "exp(%x - max[j](%x)) / sum[j](exp(%x - max[j](%x)))";
    assert!(proves("%x: f32[b, j]", shifted, "exp(%x) / sum[j](exp(%x))", true, false));
}
