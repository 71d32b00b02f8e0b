//! The language reference: every block of code on it must be read, verified and printed.

use onefold_ir::filetest::read;
use onefold_ir::{parse, print, verify};

#[test]
fn the_reference_speaks_the_language() {
    let page = include_str!("../../docs/language.md");
    let mut blocks = 0;
    for (number, block) in page.split("```fold\n").skip(1).enumerate() {
        let code = block.split("```").next().unwrap_or_default();
        let module = parse(&format!("language.md, block {}", number + 1), code).unwrap_or_else(|e| panic!("{e}"));
        verify(&module).unwrap_or_else(|e| panic!("{e}\n{code}"));
        let text = print(&module);
        assert_eq!(print(&parse("printed", &text).unwrap_or_else(|e| panic!("{text}\n{e}"))), text);
        read(code).unwrap_or_else(|e| panic!("{e}\n{code}"));
        blocks += 1;
    }
    assert!(blocks >= 8, "{blocks}");
    // Any other fence would escape the test.
    assert_eq!(page.matches("```").count(), 2 * blocks);
}

#[test]
fn every_macro_of_the_prelude_that_users_meet_is_documented() {
    let page = include_str!("../../docs/language.md");
    let macros = onefold_ir::text::PRELUDE.lines().filter_map(|l| l.strip_prefix("macro "));
    for line in macros {
        let name = line.split(['[', '(']).next().unwrap_or_default();
        assert!(name.starts_with('_') || page.contains(&format!("`{name}")), "{name} is not in docs/language.md");
    }
}
