//! NumPy's `.npy` files: read into arrays, written from them.
//!
//! The header is a small Python literal. It is read here with a scanner of its own, since a general parser of Python literals
//! can be made to recurse by a malformed file.

use onefold::{Array, ArrayError, DType};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Headers are short; a longer one is nonsense.
const MAX_HEADER: usize = 1 << 16;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// Not NumPy's.
    #[error("not a .npy file (it does not begin with \\x93NUMPY)")]
    Magic,
    /// It ends too early.
    #[error("truncated: {0}")]
    Truncated(String),
    /// More than the header says.
    #[error("{0} bytes follow after the last element")]
    Excess(usize),
    /// A header that cannot be read.
    #[error("malformed header: {0}")]
    Header(String),
    /// Elements of a type that no input takes.
    #[error("element type '{descr}' is not supported where {expected} is expected")]
    Type {
        /// NumPy's name of it.
        descr: String,
        /// The input's dtype.
        expected: DType,
    },
    /// A number outside a 4-bit type.
    #[error("element {at} is {value}, outside {dtype}")]
    Range {
        /// Where.
        at: usize,
        /// What it is.
        value: f64,
        /// The type.
        dtype: DType,
    },
    /// Sizes that overflow, bytes that are no truth values.
    #[error("{0}")]
    Array(#[from] ArrayError),
}

/// What a header says.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Read a file for an input of that dtype: it decides what two bytes without a sign are (`bf16`), and how 4-bit integers come.
pub fn read(file: &Path, expected: DType) -> Result<Array, NpyError> {
    parse(&std::fs::read(file)?, expected)
}

fn parse(bytes: &[u8], expected: DType) -> Result<Array, NpyError> {
    if bytes.is_empty() {
        return Err(NpyError::Empty);
    }
    let version = match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', major, _, ..] => *major,
        _ => return Err(NpyError::Magic),
    };
    let short = || NpyError::Truncated("the header ends too early".to_owned());
    let (len, start) = match (version, &bytes[8..]) {
        (1, [a, b, ..]) => (usize::from(u16::from_le_bytes([*a, *b])), 10),
        (2 | 3, [a, b, c, d, ..]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
        (1..=3, _) => return Err(short()),
        (other, _) => return Err(NpyError::Header(format!("version {other} is not known"))),
    };
    if len > MAX_HEADER {
        return Err(NpyError::Header(format!("it claims to be {len} bytes long")));
    }
    let text = bytes.get(start..start + len).ok_or_else(short)?;
    let text = std::str::from_utf8(text).map_err(|_| NpyError::Header("it is not text".to_owned()))?;
    let header = Scanner { rest: text }.header().map_err(NpyError::Header)?;
    elements(&header, &bytes[start + len..], expected)
}

fn elements(header: &Header, data: &[u8], expected: DType) -> Result<Array, NpyError> {
    let unsupported = || NpyError::Type { descr: header.descr.clone(), expected };
    let (order, kind) = header.descr.split_at_checked(1).ok_or_else(unsupported)?;
    let found = match kind {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "u1" => DType::U8,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "b1" => DType::Bool,
        "u2" if expected == DType::BF16 => DType::BF16,
        _ => return Err(unsupported()),
    };
    let width = found.bits() as usize / 8;
    let count = if header.shape.contains(&0) {
        Some(0)
    } else {
        header.shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s))
    };
    let wanted = count.and_then(|n| n.checked_mul(width)).ok_or(ArrayError::TooLarge)?;
    if data.len() < wanted {
        let text = format!("{} bytes of elements where shape {:?} needs {wanted}", data.len(), header.shape);
        return Err(NpyError::Truncated(text));
    }
    if data.len() > wanted {
        return Err(NpyError::Excess(data.len() - wanted));
    }
    let swapped: Vec<u8>;
    let data = match order {
        ">" if width > 1 => {
            swapped = data.chunks_exact(width).flat_map(|e| e.iter().rev().copied()).collect();
            &swapped
        }
        "<" | "=" | "|" | ">" => data,
        _ => return Err(unsupported()),
    };
    let array = if header.fortran && header.shape.len() > 1 {
        let reversed: Vec<usize> = header.shape.iter().rev().copied().collect();
        Array::from_bytes(found, &reversed, data)?.view().transposed().to_array()?
    } else {
        Array::from_bytes(found, &header.shape, data)?
    };
    match (expected, found) {
        (DType::I4, DType::I8) => narrow(&array, expected, -8.0, 7.0),
        (DType::U4, DType::U8) => narrow(&array, expected, 0.0, 15.0),
        _ => Ok(array),
    }
}

/// Bytes as 4-bit integers.
fn narrow(array: &Array, dtype: DType, low: f64, high: f64) -> Result<Array, NpyError> {
    let values = array.to_f64();
    if let Some(at) = values.iter().position(|v| !(low..=high).contains(v)) {
        return Err(NpyError::Range { at, value: values[at], dtype });
    }
    Ok(Array::from_f64(dtype, array.shape(), &values)?)
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn header(mut self) -> Result<Header, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" => descr = Some(self.string()?.to_owned()),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => shape = Some(self.shape()?),
                other => return Err(format!("unknown key '{other}'")),
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        let missing = |what: &str| format!("'{what}' is missing");
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(10).collect();
        Err(format!("'{token}' expected at '{found}'"))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.eat("'") { '\'' } else { self.expect("\"").map(|()| '"')? };
        let (text, rest) = self.rest.split_once(quote).ok_or("a string does not end")?;
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, String> {
        if self.eat("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = vec![];
        self.expect("(")?;
        while !self.eat(")") {
            let negative = self.eat("-");
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = self.rest.split_at(digits);
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if negative {
                return Err(format!("negative size -{number}"));
            }
            shape.push(number.parse().map_err(|_| format!("'{number}' is no size"))?);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}

/// The bytes of a file that holds the array.
fn to_bytes(array: &Array) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let unpacked: Vec<u8>;
    let (descr, data): (String, &[u8]) = match array.dtype() {
        DType::F16 => (format!("{order}f2"), array.bytes()),
        DType::F32 => (format!("{order}f4"), array.bytes()),
        DType::F64 => (format!("{order}f8"), array.bytes()),
        DType::BF16 => (format!("{order}u2"), array.bytes()),
        DType::I32 => (format!("{order}i4"), array.bytes()),
        DType::I64 => (format!("{order}i8"), array.bytes()),
        DType::I8 => ("|i1".to_owned(), array.bytes()),
        DType::U8 => ("|u1".to_owned(), array.bytes()),
        DType::Bool => ("|b1".to_owned(), array.bytes()),
        DType::I4 | DType::U4 => {
            unpacked = array.to_f64().iter().map(|v| *v as i8 as u8).collect();
            (if array.dtype() == DType::I4 { "|i1" } else { "|u1" }.to_owned(), &unpacked)
        }
    };
    let mut shape = String::new();
    for (at, size) in array.shape().iter().enumerate() {
        let _ = write!(shape, "{}{size}", if at > 0 { ", " } else { "" });
    }
    let comma = if array.shape().len() == 1 { "," } else { "" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}{comma}), }}");
    // NumPy asks for elements on a multiple of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A file written beside its final place: nothing is there until [`Pending::finish`], and it vanishes if that is never called.
pub struct Pending {
    temporary: PathBuf,
    place: PathBuf,
    done: bool,
}

impl Pending {
    /// Write an array for a place.
    pub fn write(place: &Path, array: &Array) -> std::io::Result<Pending> {
        let mut name = std::ffi::OsString::from(".");
        name.push(place.file_name().ok_or(std::io::ErrorKind::InvalidInput)?);
        name.push(format!(".{}.part", std::process::id()));
        let pending = Pending { temporary: place.with_file_name(name), place: place.to_owned(), done: false };
        let mut file = std::fs::File::create(&pending.temporary)?;
        file.write_all(&to_bytes(array))?;
        Ok(pending)
    }

    /// Put it in its place.
    pub fn finish(mut self) -> std::io::Result<()> {
        std::fs::rename(&self.temporary, &self.place)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            // It may not have been created; there is nobody left to tell.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn what_is_written_reads_back() {
        for dtype in DType::ALL {
            let array = Array::from_f64(dtype, &[2, 3], &[0.0, 1.0, 1.0, 0.0, 1.0, 0.0]).expect("fits");
            assert_eq!(parse(&to_bytes(&array), dtype).expect("readable"), array, "{dtype}");
        }
        for shape in [&[][..], &[0], &[1], &[3, 0, 2]] {
            let array = Array::zeros(DType::F32, shape).expect("small");
            assert_eq!(parse(&to_bytes(&array), DType::F32).expect("readable"), array);
        }
    }

    #[test]
    fn order_of_axes_and_bytes() {
        let text = "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }";
        let data: Vec<u8> = (0..6i32).flat_map(i32::to_be_bytes).collect();
        let array = parse(&file(text, &data), DType::I32).expect("readable");
        assert_eq!(array.shape(), &[2, 3]);
        assert_eq!(array.as_slice::<i32>(), Some(&[0, 2, 4, 1, 3, 5][..]));
    }

    #[test]
    fn nonsense_is_an_error() {
        let said = |bytes: &[u8]| parse(bytes, DType::F32).expect_err("nonsense").to_string();
        assert_eq!(said(b""), "the file is empty");
        assert!(said(b"hello").contains("not a .npy file"));
        assert!(said(b"\x93NUMPY\x01").contains("not a .npy file"));
        assert!(said(b"\x93NUMPY\x01\x00\x76").contains("truncated"));
        assert!(said(b"\x93NUMPY\x09\x00\x76\x00").contains("version 9"));
        assert!(said(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").contains("4294967295 bytes"));
        let header = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        assert!(said(&file(&header("(2, 3)"), &[0; 20])).contains("20 bytes of elements where shape [2, 3] needs 24"));
        assert!(said(&file(&header("(1,)"), &[0; 9])).contains("5 bytes follow"));
        assert!(said(&file(&header("(-1,)"), &[])).contains("negative size"));
        assert!(said(&file(&header("(99999999999, 99999999999)"), &[])).contains("overflows"));
        assert!(said(&file(&header("(999999999999999999999999)"), &[])).contains("is no size"));
        assert!(said(&file(&header(&"(".repeat(60_000)), &[])).contains("is no size"));
        assert!(said(&file("{'descr': '<c8', 'fortran_order': False, 'shape': (), }", &[])).contains("'<c8'"));
        assert!(said(&file("{'descr': 'é', 'fortran_order': False, 'shape': (), }", &[])).contains("'é'"));
        assert!(said(&file("{}", &[])).contains("'descr' is missing"));
        assert!(said(&file("{'descr", &[])).contains("does not end"));
    }

    #[test]
    fn four_bit_integers_come_as_bytes() {
        let text = "{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(parse(&file(text, &[249, 7]), DType::I4).expect("fits").to_f64(), [-7.0, 7.0]);
        assert!(parse(&file(text, &[8, 7]), DType::I4).is_err());
    }
}
