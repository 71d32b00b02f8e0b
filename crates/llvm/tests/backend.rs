//! The backend as such: what it shows, what it refuses, objects, threads.

use onefold_llvm::{Effort, Level, Llvm};
use onefold_loops::{parse, Backend, BackendError, BufferKind, CallArgs, Code, Count, Elem, Kernel, Listing};

/// A fused multiply-add of rows, with a tail, past the caches.
const SCALE: &str = "kernel @scale(n %n) {
  input x: f32[n]
  output y: f32[n]
  %zero: i64 = const 0
  %c: f32x8 = const 0.5
  %fill: f32 = const 0.0
  %low: i64 = const -8
  %whole: i64 = and %n, %low
  for %i in %zero..%whole step 8 parallel {
    %x: f32x8 = load x[%i]
    %y: f32x8 = fma %x, %c, %x
    store y[%i] = %y stream
  }
  %rest: i64 = sub %n, %whole
  %x.1: f32x8 = load x[%whole] tail %rest fill %fill
  %y.1: f32x8 = fma %x.1, %c, %x.1
  store y[%whole] = %y.1 tail %rest
}
";

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn scale(code: &dyn Code, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0f32; x.len()];
    let buffers = [x.as_ptr() as *mut u8, y.as_mut_ptr().cast()];
    let args =
        CallArgs { sizes: &[x.len() as i64], buffers: &buffers, scratch: std::ptr::null_mut(), begin: 0, end: 0 };
    // SAFETY: both arrays are as long as the size says; the kernel has no scratch.
    assert_eq!(unsafe { code.call(&args) }, 0);
    y
}

#[test]
fn ir_is_the_same_everywhere() {
    let listing = Llvm::reference().listing(&kernel(SCALE), Listing::Ir).expect("a listing");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshot/llvm");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("scale", listing));
}

#[test]
fn code_of_every_level_can_be_shown() {
    let words = [
        (Level::Sse2, &["movntps", "sfence", "%xmm"][..]),
        (Level::Avx2, &["vfmadd", "vmovntps", "sfence", "%ymm", "vmaskmovps"]),
        (Level::Avx512, &["vfmadd", "vmovntps", "sfence", "%ymm", "{%k1} {z}"]),
        (Level::Neon, &["fmla", ".4s"]),
    ];
    for (level, words) in words {
        for effort in [Effort::None, Effort::Light, Effort::Full] {
            let llvm = Llvm::with_level(level).effort(effort);
            let asm = llvm.listing(&kernel(SCALE), Listing::Asm).expect("assembly");
            for word in words {
                assert!(asm.contains(word), "no {word} at level {level}, {effort:?}\n{asm}");
            }
            assert!(llvm.object(&kernel(SCALE)).expect("an object").windows(13).any(|w| w == b"onefold_scale"));
        }
        assert_eq!(level.name().parse(), Ok(level));
    }
    assert!("sse3".parse::<Level>().is_err());
}

#[test]
fn wide_levels_use_wide_vectors() {
    let text = SCALE.replace("f32x8", "f32x16");
    let asm = Llvm::with_level(Level::Avx512).listing(&kernel(&text), Listing::Asm).expect("assembly");
    assert!(asm.contains("%zmm"), "{asm}");
}

#[test]
fn code_for_another_machine_is_not_called() {
    for level in Level::ALL.into_iter().filter(|l| !l.is_available()) {
        let error = Llvm::with_level(level).compile(&kernel(SCALE)).err();
        assert!(matches!(error, Some(BackendError::Unavailable { backend: "llvm", .. })), "{error:?}");
    }
    assert_eq!(Level::detect().is_some(), Llvm::host().is_ok());
}

#[test]
fn what_cannot_be_translated_is_an_error() {
    let simple =
        |ty: &str, expr: &str| kernel(&format!("kernel @f() {{\n  %x: {ty} = const 1\n  %y: {ty} = {expr}\n}}\n"));
    let mut without_size = kernel(SCALE);
    without_size.buffers[0].kind = BufferKind::Scratch;
    without_size.buffers[0].len = Count::Size(3);
    let mut huge = kernel(SCALE);
    huge.buffers[0].kind = BufferKind::Stack;
    huge.buffers[0].len = Count::Const(1 << 40);
    let mut untyped = kernel(SCALE);
    untyped.regs[1].ty.elem = Elem::F64;
    let cases = [
        (simple("f32x2048", "copy %x"), "no register holds f32x2048"),
        (simple("f16x4", "add %x, %x"), "f16x4 where"),
        (simple("bf16", "fma %x, %x, %x"), "bf16 where floats"),
        (simple("f16", "sqrt %x"), "f16 where"),
        (without_size, "size 3"),
        (huge, "the stack buffers exceed"),
        (untyped, "f64"),
    ];
    for (kernel, words) in cases {
        for level in Level::ALL {
            let error = Llvm::with_level(level).object(&kernel).expect_err(words);
            assert!(matches!(&error, BackendError::Internal { why, .. } if why.contains(words)), "{error}");
        }
    }
}

#[test]
fn wide_vectors_compile_for_every_level() {
    let ops = ["add %x, %x", "div %x, %x", "min %x, %x", "fma %x, %x, %x", "nearest %x", "ushr %x, %x"];
    for elem in ["f32", "f64", "i8", "i64"] {
        let lanes = 64;
        let mut text = format!(
            "kernel @wide(n %n) {{\n  input x: {elem}[n]\n  output y: {elem}[n]\n  output b: bool[n]\n  output f: f16[n]\n  \
             %o: i64 = const 0\n  %fill: {elem} = load x[%o]\n  \
             %x: {elem}x{lanes} = load x[%o] tail %n fill %fill\n  %c: boolx{lanes} = compare lt %x, %x\n  \
             %any: bool = reduce any %c\n  store b[%o] = %any\n  store b[%o] = %c tail %n\n  \
             %f: f16x{lanes} = convert %x\n  store f[%o] = %f tail %n\n  \
             %s: {elem} = reduce max %x\n  store y[%o] = %s\n"
        );
        for (at, op) in ops.iter().enumerate() {
            let float = matches!(*op, "fma %x, %x, %x" | "nearest %x");
            if (float && elem.starts_with('i')) || (op.starts_with("ushr") && elem.starts_with('f')) {
                continue;
            }
            text += &format!("  %r{at}: {elem}x{lanes} = {op}\n  store y[%o] = %r{at} stream\n");
        }
        for level in Level::ALL {
            let object = Llvm::with_level(level).object(&kernel(&format!("{text}}}\n")));
            assert!(object.is_ok_and(|o| !o.is_empty()), "{elem} at level {level}");
        }
    }
}

#[test]
fn names_of_any_kind_become_symbols() {
    let mut kernel = kernel(SCALE);
    kernel.name = "naïve\0 \"name\"".to_owned();
    assert_eq!(Llvm::symbol(&kernel), "onefold_na_ve___name_");
    for register in &mut kernel.regs {
        register.name = "a\0b\" c".to_owned();
    }
    let code = Llvm::host().expect("a level").compile(&kernel).expect("code");
    assert_eq!(scale(&*code, &[2.0, 4.0]), [3.0, 6.0]);
    Llvm::reference().listing(&kernel, Listing::Ir).expect("a listing");
}

#[test]
fn threads_compile_at_the_same_time() {
    let work = |seed: usize| {
        let mut codes = vec![];
        for round in 0..6 {
            let levels: Vec<Level> = Level::ALL.into_iter().filter(|l| l.is_available()).collect();
            let level = levels[(seed + round) % levels.len()];
            codes.push(Llvm::with_level(level).compile(&kernel(SCALE)).expect("code"));
        }
        codes
    };
    let threads: Vec<_> = (0..8).map(|seed| std::thread::spawn(move || work(seed))).collect();
    let x: Vec<f32> = (0..45u8).map(f32::from).collect();
    let want: Vec<f32> = x.iter().map(|x| x * 1.5).collect();
    for thread in threads {
        // Code that another thread made, called and freed here.
        for code in thread.join().expect("no panic") {
            assert_eq!(scale(&*code, &x), want);
            assert!(code.size() > 0 && code.is_concurrent());
        }
    }
}
