//! Reading directives.

use super::{Array, Expect, Fact, FileTest, FileTestError, Run};

/// Directives that are kept as [`Fact`]s.
const FACTS: [&str; 4] = ["streams", "passes", "stored", "option"];

/// All directives.
const DIRECTIVES: [&str; 10] =
    ["run", "with", "scale", "expect", "expect-error", "parse-error", "streams", "passes", "stored", "option"];

/// The most elements an array may have.
const MAX_ELEMENTS: usize = 1 << 24;

/// Reads the directives of a text. Other comments are left alone, unless they look like a directive misspelt.
///
/// # Errors
/// The first directive that cannot be read.
pub fn read(text: &str) -> Result<FileTest, FileTestError> {
    let mut test = FileTest::default();
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let Some((key, rest)) = comment.trim_start().split_once(':') else { continue };
        let fail = |message: String| FileTestError { line: line_number, message };
        if !DIRECTIVES.contains(&key) {
            let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            match crate::text::nearest(key, DIRECTIVES) {
                Some(meant) if is_word => {
                    return Err(fail(format!("unknown directive `{key}:`; did you mean `{meant}:`?")))
                }
                _ => continue,
            }
        }
        directive(&mut test, key, rest.trim(), line_number).map_err(fail)?;
    }
    Ok(test)
}

fn directive(test: &mut FileTest, key: &str, text: &str, line: usize) -> Result<(), String> {
    let mut reader = Reader { rest: text };
    let last_run = |test: &mut FileTest| match test.runs.pop() {
        Some(run) => Ok(run),
        None => Err(format!("`{key}:` before any `run:`")),
    };
    match key {
        "run" => {
            let func = reader.func()?;
            let inputs = reader.inputs()?;
            test.runs.push(Run { line, func, inputs, expects: vec![], error: None, scale: 0.0 });
        }
        "with" => {
            let mut run = last_run(test)?;
            run.inputs.extend(reader.inputs()?);
            test.runs.push(run);
        }
        "expect" => {
            let mut run = last_run(test)?;
            let output = reader.name()?.ok_or("expected the name or the position of an output")?;
            reader.mark('=')?;
            let array = reader.array()?;
            let (mut tol, mut rel) = (1e-6, 0.0);
            while let Some(word) = reader.name()? {
                match word.as_str() {
                    "tol" => tol = reader.number()?,
                    "rel" => rel = reader.number()?,
                    _ => return Err(format!("expected `tol` or `rel`, found `{word}`")),
                }
            }
            run.expects.push(Expect { line, output, array, tol, rel });
            test.runs.push(run);
        }
        "scale" => {
            let mut run = last_run(test)?;
            run.scale = reader.number()?;
            test.runs.push(run);
        }
        "expect-error" => {
            let mut run = last_run(test)?;
            run.error = Some(text.to_string());
            test.runs.push(run);
            return Ok(());
        }
        "parse-error" => {
            test.parse_errors.push(text.to_string());
            return Ok(());
        }
        _ if FACTS.contains(&key) => {
            let func = reader.func()?;
            let mut values = vec![];
            while !reader.at_end() {
                values.push(reader.fact()?);
                if !reader.accept(',') {
                    break;
                }
            }
            test.facts.push(Fact { line, key: key.to_string(), func, values });
        }
        _ => return Err(format!("unknown directive `{key}:`")),
    }
    if reader.at_end() {
        Ok(())
    } else {
        Err(format!("cannot read `{}`", reader.rest.chars().take(40).collect::<String>()))
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty()
    }

    fn accept(&mut self, mark: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn mark(&mut self, mark: char) -> Result<(), String> {
        if self.accept(mark) {
            return Ok(());
        }
        Err(format!("expected `{mark}`, found `{}`", self.rest.chars().take(20).collect::<String>()))
    }

    /// Letters, digits and `_`, as many as there are.
    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_string()
    }

    fn name(&mut self) -> Result<Option<String>, String> {
        if self.at_end() {
            return Ok(None);
        }
        self.accept('%');
        let word = self.word();
        if word.is_empty() {
            return Err(format!("expected a name, found `{}`", self.rest.chars().take(20).collect::<String>()));
        }
        Ok(Some(word))
    }

    fn func(&mut self) -> Result<Option<String>, String> {
        if self.accept('@') {
            return self.name();
        }
        Ok(None)
    }

    fn inputs(&mut self) -> Result<Vec<(String, Array)>, String> {
        let mut inputs = vec![];
        while let Some(name) = self.name()? {
            self.mark('=')?;
            inputs.push((name, self.array()?));
            if !self.accept(',') {
                break;
            }
        }
        Ok(inputs)
    }

    /// `x = 1` or `1`
    fn fact(&mut self) -> Result<(String, f64), String> {
        let before = self.rest;
        if let Some(name) = self.name()? {
            if self.accept('=') {
                return Ok((name, self.number()?));
            }
        }
        self.rest = before;
        Ok((String::new(), self.number()?))
    }

    fn number(&mut self) -> Result<f64, String> {
        let negative = self.accept('-');
        let mut word = self.word();
        // A signed exponent ends the word before its sign.
        if word.ends_with(['e', 'E']) && word.starts_with(|c: char| c.is_ascii_digit()) {
            if let Some(sign) = ['-', '+'].into_iter().find(|s| self.rest.starts_with(*s)) {
                self.rest = &self.rest[1..];
                word.push(sign);
                word.push_str(&self.word());
            }
        }
        let value = match word.as_str() {
            "inf" => f64::INFINITY,
            "nan" => f64::NAN,
            "true" => 1.0,
            "false" => 0.0,
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                word.parse().map_err(|_| format!("`{word}` is not a number"))?
            }
            _ => {
                return Err(format!(
                    "expected a number, found `{word}{}`",
                    self.rest.chars().take(10).collect::<String>()
                ))
            }
        };
        Ok(if negative { -value } else { value })
    }

    fn array(&mut self) -> Result<Array, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('[') {
            let mut data = vec![];
            let shape = self.list(&mut data, 0)?;
            return Ok(Array { shape, data });
        }
        for made in ["fill", "ramp", "random", "steps"] {
            if self.rest.starts_with(made) {
                self.word();
                return self.generated(made);
            }
        }
        Ok(Array { shape: vec![], data: vec![self.number()?] })
    }

    /// A nested list; every row of one shape.
    fn list(&mut self, data: &mut Vec<f64>, depth: usize) -> Result<Vec<usize>, String> {
        if depth > 16 {
            return Err("an array has at most 16 dimensions".to_string());
        }
        self.mark('[')?;
        let (mut count, mut inner): (usize, Option<Vec<usize>>) = (0, None);
        while !self.accept(']') {
            self.rest = self.rest.trim_start();
            let shape = if self.rest.starts_with('[') {
                self.list(data, depth + 1)?
            } else {
                data.push(self.number()?);
                vec![]
            };
            if inner.as_ref().is_some_and(|before| *before != shape) {
                return Err("the rows of a list have different shapes".to_string());
            }
            inner = Some(shape);
            count += 1;
            if !self.accept(',') {
                self.mark(']')?;
                break;
            }
        }
        let mut shape = vec![count];
        shape.extend(inner.unwrap_or_default());
        Ok(shape)
    }

    /// `fill[2, 3](0.5)`, `ramp[4](0, 0.1)`, `random[2](7)`, `steps[6](2, -1, 0)`
    fn generated(&mut self, kind: &str) -> Result<Array, String> {
        let mut sizes = vec![];
        let shape = self.list(&mut sizes, 0)?;
        if shape.len() != 1 || sizes.iter().any(|n| *n < 0.0 || n.fract() != 0.0) {
            return Err(format!("`{kind}` needs a list of sizes"));
        }
        let shape: Vec<usize> = sizes.iter().map(|n| *n as usize).collect();
        let count = shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).filter(|n| *n <= MAX_ELEMENTS);
        let count = count.ok_or_else(|| format!("`{kind}` makes at most {MAX_ELEMENTS} elements"))?;
        let row = shape.last().copied().unwrap_or(1).max(1);
        self.mark('(')?;
        let first = self.number()?;
        let second = if self.accept(',') { self.number()? } else { 1.0 };
        let third = if self.accept(',') { self.number()? } else { 0.0 };
        self.mark(')')?;
        let data = match kind {
            "fill" => vec![first; count],
            "steps" => (0..count).map(|n| if (n % row) as f64 >= first { third } else { second }).collect(),
            "ramp" => (0..count).map(|n| first + n as f64 * second).collect(),
            _ => uniform(first as u64, count),
        };
        Ok(Array { shape, data })
    }
}

/// Numbers in -2 to 2 that depend on the seed alone (SplitMix64), each of 16 bits so that every float type holds them well.
fn uniform(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..count).map(|_| (next() >> 48) as f64 / 16384.0 - 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read() {
        let text = "// run: @p x = [2, 1e-3, -inf], k = [[1], [0]]\n//with: s = 0.5, z = fill[2, 0](1)\n// expect: p = [nan] tol 1e-6 rel 2e-5\n// expect: 1 = 3\n// a remark: nothing\n// streams: @p x = 1, k = 2\n// passes: 1\nfunc";
        let test = read(text).expect("well formed");
        let run = &test.runs[0];
        assert_eq!(run.func.as_deref(), Some("p"));
        assert_eq!(run.inputs[0].1, Array { shape: vec![3], data: vec![2.0, 1e-3, f64::NEG_INFINITY] });
        assert_eq!(run.inputs[1].1.shape, [2, 1]);
        assert_eq!(run.inputs[2].1, Array { shape: vec![], data: vec![0.5] });
        assert_eq!(run.inputs[3].1, Array { shape: vec![2, 0], data: vec![] });
        assert_eq!((run.expects[0].tol, run.expects[0].rel), (1e-6, 2e-5));
        assert_eq!(run.expects[1].output, "1");
        assert_eq!(test.facts[0].values, [("x".to_string(), 1.0), ("k".to_string(), 2.0)]);
        assert_eq!(test.facts[1].values, [(String::new(), 1.0)]);
    }

    #[test]
    fn wrong_directives_are_refused() {
        let message = |text: &str| read(text).expect_err("wrong").to_string();
        assert_eq!(message("\n// expct: p = 1"), "line 2: unknown directive `expct:`; did you mean `expect:`?");
        assert_eq!(message("// expect: p = 1"), "line 1: `expect:` before any `run:`");
        assert_eq!(message("// run: x = [[1], 2]"), "line 1: the rows of a list have different shapes");
        assert_eq!(message("// run: x = [1, a]"), "line 1: expected a number, found `a]`");
        assert!(message("// run: x = fill[99999999, 99999999](1)").contains("at most"));
        assert!(message(&format!("// run: x = {}", "[".repeat(1000))).contains("dimensions"));
    }
}
