//! Running the command in a folder of its own.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with files for one test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(TempDir::new().expect("folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).expect("file");
        self.path(name).display().to_string()
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("folder").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// What a command did.
pub struct Outcome {
    pub status: i32,
    pub out: String,
    pub err: String,
}

pub fn onefold(args: &[&str]) -> Outcome {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_onefold")).args(args).env("NO_COLOR", "1").output().expect("command");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let outcome = Outcome { status: status.code().expect("no signal"), out: text(stdout), err: text(stderr) };
    assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
    outcome
}

/// The command must fail with that status and say these words, and print nothing else.
#[track_caller]
pub fn fails(status: i32, words: &[&str], args: &[&str]) {
    let outcome = onefold(args);
    assert_eq!(outcome.status, status, "{}", outcome.err);
    for word in words {
        assert!(outcome.err.contains(word), "`{word}` is missing in:\n{}", outcome.err);
    }
    assert_eq!(outcome.out, "");
}

#[track_caller]
pub fn succeeds(args: &[&str]) -> String {
    let outcome = onefold(args);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
    outcome.out
}

/// An f32 file of that shape.
pub fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

pub const SOFTMAX: &str = "func @p(%x: f32[b, v]) -> f32[b, v] {\n  %p = softmax[v](%x)\n  return %p\n}\n";
pub const TOPK: &str =
    "func @best(%x: f32[v]) -> (f32[k=5], i64[k=5]) {\n  %top, %at = topk[v -> k](%x)\n  return %top, %at\n}\n";
