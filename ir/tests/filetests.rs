//! File tests on the reference interpreter: the worked numbers of the field's operators, each written in primitives, and
//! the edge cases of floating point.

use onefold_ir::filetest::{read, Run};
use onefold_ir::interp::run;
use onefold_ir::{parse, print, verify, Module};
use std::fs;
use std::path::Path;

fn check(module: &Module, case: &Run) -> Result<(), String> {
    let func = match &case.func {
        Some(name) => module.func(name).ok_or_else(|| format!("no function @{name}"))?,
        None => module.funcs.first().ok_or("no functions")?,
    };
    let mut inputs = vec![];
    for param in &func.params {
        let given = case.inputs.iter().find(|(name, _)| *name == param.name);
        inputs.push(given.ok_or_else(|| format!("no input {}", param.name))?.1.tensor(param.dtype));
    }
    let outputs = match (run(module, &func.name, &inputs), &case.error) {
        (Ok(outputs), None) => outputs,
        (Ok(_), Some(error)) => return Err(format!("succeeded, expected the error `{error}`")),
        (Err(got), Some(error)) if got.to_string().contains(error) => return Ok(()),
        (Err(got), _) => return Err(got.to_string()),
    };
    for expect in &case.expects {
        let position = match expect.output.parse::<usize>() {
            Ok(n) => Some(n),
            Err(_) => func.results.iter().position(|r| r.name == expect.output),
        };
        let output = position.and_then(|n| outputs.get(n)).ok_or_else(|| format!("no output {}", expect.output))?;
        expect.check(output).map_err(|e| format!("line {}: {e}", expect.line))?;
    }
    Ok(())
}

#[test]
fn worked_numbers_come_out() {
    check_folder("variants");
}

#[test]
fn edge_cases_give_what_the_formula_gives() {
    check_folder("numerics");
}

fn check_folder(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path()).collect();
    files.sort();
    let mut failures = vec![];
    let mut count = 0;
    for file in &files {
        let name = file.file_name().expect("name").to_string_lossy().into_owned();
        let text = fs::read_to_string(file).expect("text");
        let module = match parse(&name, &text) {
            Ok(module) => module,
            Err(errors) => {
                failures.push(errors.to_string());
                continue;
            }
        };
        verify(&module).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = parse("printed", &print(&module)).unwrap_or_else(|e| panic!("{}\n{e}", print(&module)));
        assert_eq!(print(&again), print(&module), "{name}");
        let test = read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!test.runs.is_empty(), "{name} checks nothing");
        for case in &test.runs {
            count += 1;
            for module in [&module, &again] {
                if let Err(error) = check(module, case) {
                    failures.push(format!("{name}:{}: {error}", case.line));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 40, "only {count} runs");
}
