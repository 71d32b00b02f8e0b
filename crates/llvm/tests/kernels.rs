//! Loop IR in text, compiled at every level that this CPU has, against the loop interpreter: bit by bit.

use onefold_llvm::{Level, Llvm};
use onefold_loops::{parse, Backend, CallArgs};

#[test]
fn a_loop_sums_a_vector() {
    let kernel = parse(
        "kernel @sum(n %n) {\n  input x: f32[n]\n  output y: f32[1]\n  %zero: i64 = const 0\n  %s: f32 = const 0.0\n  \
         for %i in %zero..%n step 1 {\n    %v: f32 = load x[%i]\n    %s: f32 = add %s, %v\n  }\n  store y[%zero] = %s\n}\n",
    )
    .expect("a kernel");
    for level in Level::ALL.into_iter().filter(|l| l.is_available()) {
        let code = Llvm::with_level(level).compile(&kernel).expect("code");
        let x: Vec<f32> = (0..100u8).map(f32::from).collect();
        let mut y = [0.0f32];
        let buffers = [x.as_ptr() as *mut u8, y.as_mut_ptr().cast()];
        let args = CallArgs { sizes: &[100], buffers: &buffers, scratch: std::ptr::null_mut(), begin: 0, end: 0 };
        // SAFETY: both arrays are as long as the kernel declares at this size.
        assert_eq!(unsafe { code.call(&args) }, 0);
        assert_eq!(y, [4950.0]);
        assert!(code.size() > 0);
    }
}
