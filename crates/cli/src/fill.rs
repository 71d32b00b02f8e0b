//! Inputs: from files, or filled with seeded numbers.

use crate::failure::Failure;
use crate::{npy, source};
use onefold::{Argument, Array, AxisSize, DType, Kernel};
use std::collections::BTreeMap;
use std::path::Path;

/// Sizes of axes by name.
pub type Sizes = BTreeMap<String, u64>;

/// `--size` options.
pub fn sizes(options: &[String]) -> Result<Sizes, Failure> {
    let mut sizes = Sizes::new();
    for option in options {
        let (name, value) = source::pair("--size", option)?;
        let size = value
            .parse::<u64>()
            .map_err(|_| Failure::Usage(format!("--size {option}: {value} is not a size (0 or more, below 2^64)")))?;
        if sizes.insert(name.to_owned(), size).is_some_and(|before| before != size) {
            return Err(Failure::Usage(format!("--size {name} is given twice")));
        }
    }
    Ok(sizes)
}

/// `--input` options, by name.
pub fn files<'a>(options: &'a [String], kernel: &Kernel) -> Result<BTreeMap<&'a str, &'a str>, Failure> {
    let mut files = BTreeMap::new();
    for option in options {
        let (name, file) = source::pair("--input", option)?;
        let names: Vec<&str> = kernel.signature().inputs.iter().map(|i| i.name.as_str()).collect();
        if !names.contains(&name) {
            return Err(Failure::Usage(format!(
                "--input {option}: there is no input {name}, only {}",
                names.join(", ")
            )));
        }
        if files.insert(name, file).is_some() {
            return Err(Failure::Usage(format!("--input {name} is given twice")));
        }
    }
    Ok(files)
}

/// Arrays read for the inputs that have a file; the others are `None`.
pub fn read(files: &BTreeMap<&str, &str>, kernel: &Kernel) -> Result<Vec<Option<Array>>, Failure> {
    let mut arrays = vec![];
    for input in &kernel.signature().inputs {
        let Some(file) = files.get(input.name.as_str()) else {
            arrays.push(None);
            continue;
        };
        let array = npy::read(Path::new(file), input.dtype);
        arrays.push(Some(array.map_err(|e| Failure::Input(format!("{file}: {e}")))?));
    }
    Ok(arrays)
}

/// Fill the inputs that are not there, of the sizes given or those of the arrays that are.
pub fn random(arrays: &mut [Option<Array>], kernel: &Kernel, given: &Sizes, seed: u64) -> Result<(), Failure> {
    let inputs = &kernel.signature().inputs;
    let mut known = given.clone();
    for (input, array) in inputs.iter().zip(arrays.iter()) {
        let Some(array) = array else { continue };
        for (axis, size) in input.axes.iter().zip(array.shape()) {
            if axis.size == AxisSize::Symbolic {
                known.entry(axis.name.clone()).or_insert(*size as u64);
            }
        }
    }
    for (at, input) in inputs.iter().enumerate() {
        if arrays[at].is_none() {
            let shape = shape(input, &known)?;
            let ids = kernel.positions_along(at).and_then(|(axis, fixed)| fixed.or(known.get(axis).copied()));
            let numbers = Numbers::new(seed, at as u64, ids);
            arrays[at] = Some(numbers.array(input, &shape)?);
        }
    }
    Ok(())
}

fn shape(input: &Argument, sizes: &Sizes) -> Result<Vec<usize>, Failure> {
    let mut shape = vec![];
    for axis in &input.axes {
        let size = match &axis.size {
            AxisSize::Fixed(n) => Some(*n),
            _ => sizes.get(&axis.name).copied(),
        };
        let size = size.ok_or_else(|| {
            Failure::Usage(format!(
                "the length of axis {} of input {} is needed: --size {}=N",
                axis.name, input.name, axis.name
            ))
        })?;
        let too_large =
            || Failure::Input(format!("input {}: size {size} of axis {} is too large", input.name, axis.name));
        shape.push(usize::try_from(size).map_err(|_| too_large())?);
    }
    Ok(shape)
}

/// A stream of numbers (splitmix64), the same on every machine.
struct Numbers {
    state: u64,
    ids: Option<u64>,
}

impl Numbers {
    fn new(seed: u64, stream: u64, ids: Option<u64>) -> Numbers {
        let mut numbers = Numbers { state: seed, ids };
        numbers.state = numbers.next() ^ (stream << 32 | stream);
        numbers
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Normal to all intents: the sum of twelve uniform numbers of 16 bits, which needs no library function.
    fn normal(&mut self) -> f32 {
        let mut sum = 0i64;
        for _ in 0..3 {
            let x = self.next();
            sum += ((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48)) as i64;
        }
        (sum - 6 * 65_535) as f32 / 65_536.0
    }

    fn array(mut self, input: &Argument, shape: &[usize]) -> Result<Array, Failure> {
        let failed = |e| Failure::Input(format!("input {}: {e}", input.name));
        let mut array = Array::zeros(input.dtype, shape).map_err(failed)?;
        if let Some(elements) = array.as_mut_slice::<f32>() {
            elements.iter_mut().for_each(|e| *e = self.normal());
            return Ok(array);
        }
        let values: Vec<f64> = (0..array.len()).map(|_| self.value(input.dtype)).collect();
        Array::from_f64(input.dtype, shape, &values).map_err(failed)
    }

    /// A number that suits a dtype: for integers of unknown meaning small ones that are not negative.
    fn value(&mut self, dtype: DType) -> f64 {
        match dtype {
            DType::Bool => (self.next() >> 63) as f64,
            _ if dtype.is_float() => f64::from(self.normal()),
            DType::I8 => f64::from(self.normal() * 32.0).round().clamp(-128.0, 127.0),
            DType::U8 => f64::from(self.normal() * 32.0 + 128.0).round().clamp(0.0, 255.0),
            DType::I4 => f64::from(self.normal() * 3.0).round().clamp(-8.0, 7.0),
            DType::U4 => f64::from(self.normal() * 3.0 + 8.0).round().clamp(0.0, 15.0),
            _ => ((u128::from(self.next()) * u128::from(self.ids.unwrap_or(8))) >> 64) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_normal() {
        let mut numbers = Numbers::new(1, 0, None);
        let values: Vec<f64> = (0..100_000).map(|_| f64::from(numbers.normal())).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
