//! Loop IR in text, compiled at every level that this CPU has, against the loop interpreter: bit by bit.

mod kernels {
    pub mod agree;
}

use kernels::agree::{agree, Compiled};
use onefold_backend_tests::bits::{bytes, Data};
use onefold_loops::Elem;

const NUMBERS: [Elem; 6] = [Elem::F32, Elem::F64, Elem::I8, Elem::U8, Elem::I32, Elem::I64];

/// Elements in every array: each vector length divides it, and it has room for every pair of special values.
const LEN: usize = 832;

/// A kernel over vectors: operands `%x`, `%y`, `%z` of one type, and for each line `TYPE: EXPRESSION` an output.
fn lines(elem: Elem, lanes: u16, results: &[(String, String)]) -> String {
    let ty = |elem: &str| if lanes == 1 { elem.to_owned() } else { format!("{elem}x{lanes}") };
    let name = elem.name();
    let mut text = String::from("kernel @op(n %n) {\n");
    for input in ["x", "y", "z"] {
        text += &format!("  input {input}: {name}[n]\n");
    }
    text += "  input mask: bool[n]\n";
    for (at, (to, _)) in results.iter().enumerate() {
        text += &format!("  output r{at}: {to}[n]\n");
    }
    text += &format!("  %zero: i64 = const 0\n  for %i in %zero..%n step {lanes} {{\n");
    for input in ["x", "y", "z"] {
        text += &format!("    %{input}: {} = load {input}[%i]\n", ty(name));
    }
    text += &format!("    %mask: {} = load mask[%i]\n", ty("bool"));
    for (at, (to, expr)) in results.iter().enumerate() {
        // Folds give scalars.
        let scalar = expr.starts_with("reduce") || expr.starts_with("extract");
        let to = if scalar { to.clone() } else { ty(to) };
        text += &format!("    %r{at}: {to} = {expr}\n    store r{at}[%i] = %r{at}\n");
    }
    text + "  }\n}\n"
}

fn of(elem: Elem, expressions: &[&str]) -> Vec<(String, String)> {
    expressions.iter().map(|e| (elem.name().to_owned(), (*e).to_owned())).collect()
}

fn check(elem: Elem, lanes: u16, results: &[(String, String)], fills: [Data; 3]) {
    let inputs = [bytes(elem, LEN, fills[0], 1), bytes(elem, LEN, fills[1], 2), bytes(elem, LEN, fills[2], 3)];
    let mask = bytes(Elem::Bool, LEN, Data::Any, 4);
    let [x, y, z] = inputs;
    agree(&lines(elem, lanes, results), &[LEN as i64], &[x, y, z, mask]);
}

#[test]
fn arithmetic_of_every_type() {
    for elem in NUMBERS {
        for lanes in [1, 2, 4, 8, 16, 64] {
            let mut results = of(elem, &["add %x, %y", "sub %x, %y", "mul %x, %y", "min %x, %y", "max %x, %y"]);
            results.extend(of(elem, &["neg %x", "abs %x", "select %mask, %x, %y", "copy %x"]));
            results.extend(of(Elem::Bool, &["compare lt %x, %y", "compare le %x, %y", "compare gt %x, %y"]));
            results.extend(of(Elem::Bool, &["compare ge %x, %y", "compare eq %x, %y", "compare ne %x, %y"]));
            results.extend(of(elem, &["reduce add %x", "reduce mul %x", "reduce min %x", "reduce max %x"]));
            let last = format!("extract %x, {}", lanes - 1);
            results.extend(of(elem, &[&last]));
            if elem.is_float() {
                results.extend(of(elem, &["div %x, %y", "fma %x, %y, %z", "sqrt %x", "floor %x", "nearest %x"]));
                results.extend(of(Elem::Bool, &["compare uno %x, %y"]));
            } else {
                results.extend(of(elem, &["and %x, %y", "or %x, %y", "xor %x, %y", "not %x"]));
            }
            check(elem, lanes, &results, [Data::Any, Data::Any, Data::Any]);
        }
    }
}

#[test]
fn small_floats_round_as_they_should() {
    for elem in [Elem::F32, Elem::F64] {
        for lanes in [1, 4, 16] {
            let results = of(elem, &["floor %x", "nearest %x", "fma %x, %y, %z", "mul %x, %y", "reduce add %x"]);
            check(elem, lanes, &results, [Data::Small, Data::Small, Data::Small]);
        }
    }
}

#[test]
fn divisions_and_shifts_of_integers() {
    for elem in [Elem::I8, Elem::U8, Elem::I32, Elem::I64] {
        for lanes in [1, 2, 4, 8, 32] {
            let results = of(elem, &["div %x, %y", "rem %x, %y", "shl %x, %z", "shr %x, %z", "ushr %x, %z"]);
            check(elem, lanes, &results, [Data::Any, Data::NotZero, Data::Amount]);
        }
    }
}

#[test]
fn conversions_between_every_pair_of_types() {
    let all = [NUMBERS.to_vec(), vec![Elem::F16, Elem::BF16]].concat();
    for from in all.iter().copied() {
        for lanes in [1, 2, 4, 8, 16, 32] {
            let convert = |fill: Data, to: Vec<Elem>| {
                let results: Vec<_> = to.iter().flat_map(|to| of(*to, &["convert %x"])).collect();
                check(from, lanes, &results, [fill; 3]);
            };
            let (floats, integers) = all.iter().copied().partition(|to: &Elem| to.is_float());
            convert(Data::Any, floats);
            // Out of range of an integer is any value.
            convert(if from.is_float() { Data::Byte } else { Data::Any }, integers);
        }
    }
}

#[test]
fn truth_values() {
    for lanes in [1, 2, 4, 8, 16, 64] {
        let mut results = of(Elem::Bool, &["and %x, %y", "or %x, %y", "xor %x, %y", "not %x", "select %mask, %x, %y"]);
        results.extend(of(Elem::Bool, &["reduce any %x", "reduce all %x", "compare lt %x, %y", "compare eq %x, %y"]));
        for to in NUMBERS {
            results.extend(of(to, &["convert %x"]));
        }
        results.extend(of(Elem::U8, &["bitcast %x"]));
        check(Elem::Bool, lanes, &results, [Data::Any, Data::Any, Data::Any]);
    }
}

#[test]
fn bits_constants_and_positions() {
    for (from, to) in
        [(Elem::F32, "i32"), (Elem::F64, "i64"), (Elem::I32, "f32"), (Elem::F16, "bf16"), (Elem::I8, "u8")]
    {
        for lanes in [1, 4, 32] {
            check(from, lanes, &[(to.to_owned(), "bitcast %x".to_owned())], [Data::Any; 3]);
        }
    }
    for elem in [NUMBERS.to_vec(), vec![Elem::F16, Elem::BF16]].concat() {
        for lanes in [1, 2, 16, 64] {
            let mut results = of(elem, &["const -3", "iota", "copy %x"]);
            if elem.is_float() {
                results.extend(of(elem, &["const 0.1", "const -inf", "const 65519.99", "const 1e-7"]));
            }
            check(elem, lanes, &results, [Data::Any; 3]);
        }
    }
    // Twice rounded by way of f64 this would be 16777218.
    agree("kernel @c() {\n  output r: f32[1]\n  %o: i64 = const 0\n  %v: f32 = const 36028799166447617\n  store r[%o] = %v\n}", &[], &[]);
}

#[test]
fn splats_of_every_type() {
    for elem in [NUMBERS.to_vec(), vec![Elem::F16, Elem::BF16, Elem::Bool]].concat() {
        for lanes in [1, 2, 8, 64] {
            let (name, ty) = (elem.name(), if lanes == 1 { String::new() } else { format!("x{lanes}") });
            let text = format!(
                "kernel @splat(n %n) {{\n  input x: {name}[1]\n  output r: {name}[n]\n  %o: i64 = const 0\n  \
                 %s: {name} = load x[%o]\n  %v: {name}{ty} = splat %s\n  store r[%o] = %v\n}}\n"
            );
            agree(&text, &[64], &[bytes(elem, 1, Data::Any, 9)]);
        }
    }
}

#[test]
fn tails_and_strides() {
    for elem in [NUMBERS.to_vec(), vec![Elem::F16, Elem::BF16, Elem::Bool]].concat() {
        for lanes in [1i64, 2, 4, 8, 16, 64] {
            let (name, ty) = (elem.name(), if lanes == 1 { String::new() } else { format!("x{lanes}") });
            let text = format!(
                "kernel @tail(n %n, s %s, l %l) {{\n  input x: {name}[n]\n  input w: {name}[((l - 1) * s) + 1]\n  \
                 input f: {name}[1]\n  output a: {name}[l]\n  output b: {name}[l]\n  output c: {name}[l]\n  \
                 output d: {name}[n]\n  %o: i64 = const 0\n  %f: {name} = load f[%o]\n  \
                 %a: {name}{ty} = load x[%o] tail %n fill %f\n  store a[%o] = %a\n  \
                 %b: {name}{ty} = load w[%o] stride %s\n  store b[%o] = %b\n  \
                 %c: {name}{ty} = load w[%o] stride %s tail %n fill %f\n  store c[%o] = %c\n  \
                 store d[%o] = %b tail %n\n}}\n"
            )
            .replace("[((l - 1) * s) + 1]", "[(((l - 1) * s) + 1)]");
            let compiled = Compiled::new(&text);
            for n in [0, 1, 2, 3, lanes / 2, lanes - 1, lanes].into_iter().filter(|n| *n <= lanes) {
                let (x, w) =
                    (bytes(elem, n as usize, Data::Any, 5), bytes(elem, (lanes * 3 - 2) as usize, Data::Any, 6));
                compiled.agree(&[n, 3, lanes], &[x, w, bytes(elem, 1, Data::Any, 7)]);
            }
        }
    }
}

#[test]
fn streaming_stores_of_any_alignment() {
    for (name, elem, lanes) in
        [("f32", Elem::F32, 16), ("f32", Elem::F32, 4), ("i8", Elem::I8, 64), ("f64", Elem::F64, 16)]
    {
        let text = format!(
            "kernel @copy(n %n, o %o) {{\n  input x: {name}[n]\n  output y: {name}[(n + o)]\n  %zero: i64 = const 0\n  \
             for %i in %zero..%n step {lanes} {{\n    %v: {name}x{lanes} = load x[%i]\n    %at: i64 = add %i, %o\n    \
             store y[%at] = %v stream\n  }}\n}}\n"
        );
        let compiled = Compiled::new(&text);
        for offset in [0, 1, 3, 4, 16] {
            compiled.agree(&[192, offset], &[bytes(elem, 192, Data::Any, 8)]);
        }
    }
}

#[test]
fn registers_meet_behind_loops_and_branches() {
    let text = "kernel @meet(n %n, m %m) {\n  input x: f32[n]\n  output y: f32[4]\n  scratch s: f32[(n + m)]\n  \
                stack t: f64[3]\n  scratch u: i8[5]\n  %zero: i64 = const 0\n  %one: i64 = const 1\n  \
                %two: i64 = const 2\n  %three: i64 = const 3\n  %sum: f32 = const 0.0\n  %best: f32 = const -inf\n  \
                %count: i64 = const 0\n  %half: f64 = const 0.5\n  store t[%one] = %half\n  %b: i8 = const 7\n  \
                store u[%two] = %b\n  for %i in %zero..%n step 1 {\n    %v: f32 = load x[%i]\n    \
                store s[%i] = %v\n    %c: bool = compare gt %v, %best\n    if %c {\n      %best: f32 = copy %v\n      \
                %w: f32 = neg %v\n    } else {\n      %w: f32 = copy %v\n      \
                for %j in %zero..%m step 2 {\n        %count: i64 = add %count, %j\n        \
                %w: f32 = add %w, %best\n      }\n    }\n    %sum: f32 = add %sum, %w\n  }\n  \
                %bad: bool = compare eq %count, %three\n  fail %bad 7\n  \
                for %i in %zero..%n step 1 {\n    %v: f32 = load s[%i]\n    %sum: f32 = add %sum, %v\n  }\n  \
                store y[%zero] = %sum\n  store y[%one] = %best\n  %f: f32 = convert %count\n  store y[%two] = %f\n  \
                %k: i8 = load u[%two]\n  %l: f64 = load t[%one]\n  %kf: f32 = convert %k\n  %lf: f32 = convert %l\n  \
                %kl: f32 = add %kf, %lf\n  store y[%three] = %kl\n}\n";
    let compiled = Compiled::new(text);
    for n in [0, 1, 2, 5, 40] {
        for m in [0, 1, 3, 4] {
            compiled.agree(&[n, m], &[bytes(Elem::F32, n as usize, Data::Small, 10)]);
        }
    }
}
