//! What is derived from each formula: the number of streams, asserted, and the fold program, as a snapshot.

use onefold_passes::schedule::reads::reads;
use onefold_passes::{derive, Derived, Form, Options};
use std::path::Path;

fn formula(name: &str, form: Form) -> Derived {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formulas").join(format!("{name}.fold"));
    let text = std::fs::read_to_string(&path).expect("the formula's file");
    let module = match onefold_ir::parse(name, &text) {
        Ok(module) => module,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    derive(&module, &module.funcs[0], &Options { form, ..Options::default() }).expect("a fold program")
}

fn check(name: &str, snapshot: &str, form: Form, streams: &[u32]) {
    let derived = formula(name, form);
    assert_eq!(derived.warnings, Vec::<String>::new());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshot/passes");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(snapshot, derived.program.to_string()));
    assert_eq!(reads(&derived.program), streams, "streams of the inputs of {name}");
    assert!(derived.program.intermediates.is_empty(), "nothing is stored and read back");
}

macro_rules! derivations {
    ($($name:ident: $streams:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), stringify!($name), Form::Fused, &$streams);
            }
        )*
    };
}

derivations! {
    log_sum_exp: [1];
    softmax: [2];
    softmax_topk: [1];
    attention: [1, 1, 1];
    causal: [1, 1, 1];
    masked_softcap: [1, 1, 1, 1];
    alibi_window: [1, 1, 1, 1];
    grouped_queries: [1, 1, 1];
    cross_entropy: [1, 1];
    argmax_score: [1];
    scaled_norm: [1];
    moments: [1, 1];
    difference: [1, 1, 1, 1];
    sigmoid_attention: [1, 1, 1];
    normalised_sigmoid: [1, 1];
    relu_attention: [1, 1, 1];
    linear_attention: [1, 1, 1];
    entropy: [1];
    mean_variance: [1];
    softpick: [1, 1];
    sink: [1, 1, 1];
    normalised_scores: [1, 1];
}

#[test]
fn softmax_with_wide_exponents() {
    check("softmax", "softmax_wide", Form::Wide, &[2]);
}

#[test]
fn forms_without_corrections_need_more_streams() {
    assert_eq!(reads(&formula("softmax", Form::Staged).program), [3]);
    assert_eq!(reads(&formula("softmax_topk", Form::Staged).program), [2]);
    assert_eq!(reads(&formula("softmax_topk", Form::Plain).program), [3]);
    assert_eq!(reads(&formula("attention", Form::Staged).program)[1], 2);
}

#[test]
fn derivation_is_deterministic() {
    for name in ["attention", "entropy", "difference", "linear_attention"] {
        let first = formula(name, Form::Fused).program.to_string();
        for _ in 0..3 {
            assert_eq!(formula(name, Form::Fused).program.to_string(), first);
        }
    }
}

#[test]
fn explanations_name_the_laws() {
    let laws = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formulas").join(format!("{name}.fold"));
        let text = std::fs::read_to_string(&path).expect("the formula's file");
        let module = onefold_ir::parse(name, &text).expect("a module");
        let explanation =
            onefold_passes::explain::explain(&module, &module.funcs[0], &Options::default()).expect("an explanation");
        let chain = &explanation.results[0];
        chain.steps.iter().map(|s| s.law.clone()).collect::<Vec<_>>()
    };
    assert_eq!(laws("difference"), ["distribute-in-sum", "hoist-factor"]);
    assert_eq!(laws("softmax_topk"), ["topk-of-monotone"; 3]);
    assert_eq!(laws("entropy"), ["hoist-factor", "log-of-product", "log-of-exp", "log-of-product"]);
    assert!(laws("softmax").is_empty(), "the formula itself is what is folded");
}
