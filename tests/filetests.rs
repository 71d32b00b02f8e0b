//! Every `.fold` file of `tests/files` (and the operators of the field under `ir/tests/variants`), checked on every backend.
//!
//! `cargo test -p onefold-tests --test filetests -- precision` runs what has `precision` in its name.

use libtest_mimic::{Arguments, Failed, Trial};
use onefold::{Backend, Form};
use onefold_tests::{check_file, Case};
use std::path::{Path, PathBuf};

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut trials = vec![];
    for folder in [root.join("files"), root.join("../ir/tests/variants"), root.join("../examples")] {
        for file in files(&folder) {
            trials.extend(trials_of(&folder, &file));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if entry.extension().is_some_and(|e| e == "fold") {
            found.push(entry);
        }
    }
    found
}

fn trials_of(folder: &Path, file: &Path) -> Vec<Trial> {
    let name = file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let mut cases = vec![(Backend::Interp, Form::Fused), (Backend::Loops, Form::Fused)];
    for native in [Backend::Cranelift, Backend::Llvm].into_iter().filter(|b| Backend::ALL.contains(b)) {
        cases.extend([Form::Fused, Form::Staged, Form::Plain, Form::Wide].map(|form| (native, form)));
    }
    let trial = |(backend, form): (Backend, Form)| {
        let (name, file) = (name.clone(), file.to_owned());
        let label = match (backend, form) {
            (Backend::Cranelift | Backend::Llvm, form) => format!("{name} {backend} {}", form.name()),
            (backend, _) => format!("{name} {backend}"),
        };
        let run = move || {
            let text = std::fs::read_to_string(&file).map_err(|e| Failed::from(e.to_string()))?;
            check_file(&name, &text, Case { backend, form }).map_err(Failed::from)
        };
        Trial::test(label, run)
    };
    cases.into_iter().map(trial).collect()
}
