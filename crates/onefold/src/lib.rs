//! A compiler for attention graphs: formulas in, derived single-pass kernels out.
//!
//! You write a softmax, an attention or a variant of your own plainly, as mathematics with named axes. Onefold rewrites it by
//! equality saturation, *derives* the kernel that folds over the data once, and compiles that to native code in
//! milliseconds. No kernel is written by hand and no formula is recognised by name.
//!
//! # A first kernel
//!
//! ```
//! use onefold::{ArrayView, Compiler};
//!
//! let text = "
//! func @softmax(%x: f32[b, v]) -> f32[b, v] {
//!   %w = exp(%x - max[v](%x))
//!   return %w / sum[v](%w)
//! }
//! ";
//! let kernel = Compiler::new().compile_text("softmax.fold", text, None)?;
//!
//! let x = [2.0f32, 1.0, 0.0, -1.0];
//! let results = kernel.run(&[ArrayView::new(&[1, 4], &x)?])?;
//! let p = results[0].as_slice::<f32>().unwrap();
//! assert!((p[0] - 0.643914).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Axes are named, so nothing is broadcast, transposed or reshaped: an operand that lacks an axis is constant along it. Sizes
//! stay symbolic: the kernel above serves every number of rows and every row length.
//!
//! # What was derived
//!
//! Three reductions that depend on each other become one fold. The correction that lets the sums follow a rising maximum is
//! in no table; it is found, and checked by multiplying back. [`inspect`] shows it, and how often each input is read:
//!
//! ```
//! use onefold::inspect::{stage, streams, Format, Stage};
//! use onefold::Compiler;
//!
//! let text = "
//! func @attention(%q: f32[b, h, i, e], %k: f32[b, h, j, e], %v: f32[b, h, j, d]) -> f32[b, h, i, d] {
//!   %s = sum[e](%q * %k) / sqrt(size(e))
//!   %w = exp(%s - max[j](%s))
//!   %p = %w / sum[j](%w)
//!   return sum[j](%p * %v)
//! }
//! ";
//! let module = onefold::parse("attention.fold", text)?;
//! let compiler = Compiler::new();
//!
//! let facts = streams(&compiler, &module, "attention")?;
//! assert_eq!(facts.reads, [("q".to_string(), 1), ("k".to_string(), 1), ("v".to_string(), 1)]);
//! assert!(facts.intermediates.is_empty(), "no array of queries times keys");
//!
//! let fold = stage(&compiler, &module, "attention", Stage::Fold, Format::Text)?;
//! assert!(fold.contains("carry"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Arrays of your own
//!
//! [`Kernel::run`] makes new arrays; [`Kernel::call`] writes into those that are there. Inputs and outputs are views with
//! strides, which may be negative or 0: transposed, reversed and repeated arrays need no copy on your side. With the feature
//! `ndarray`, views of `ndarray` arrays convert.
//!
//! ```
//! use onefold::{ArrayView, ArrayViewMut, Compiler};
//!
//! let text = "func @total(%x: f32[i, j]) -> f32[i] {\n  return sum[j](%x)\n}\n";
//! let kernel = Compiler::new().compile_text("total.fold", text, None)?;
//!
//! let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let columns = ArrayView::strided(&data, 0, &[3, 2], &[1, 3])?;
//! let mut totals = [0.0f32; 3];
//! kernel.call(&[columns], &mut [ArrayViewMut::new(&[3], &mut totals)?])?;
//! assert_eq!(totals, [5.0, 7.0, 9.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When something is wrong
//!
//! Errors of a text point at it; errors of a call name the arrays and the sizes:
//!
//! ```
//! use onefold::{ArrayView, Compiler};
//!
//! let error = onefold::parse("f.fold", "func @f(%scores: f32[j]) -> f32[j] {\n  return %scoers\n}\n").unwrap_err();
//! assert!(error.to_string().contains("f.fold:2:10"));
//! assert!(error.to_string().contains("`%scores`"), "{error}");
//!
//! let text = "func @dot(%x: f32[j], %y: f32[j]) -> f32 {\n  return sum[j](%x * %y)\n}\n";
//! let kernel = Compiler::new().compile_text("dot.fold", text, None)?;
//! let error = kernel.run(&[ArrayView::new(&[2], &[1.0f32; 2])?, ArrayView::new(&[3], &[1.0f32; 3])?]).unwrap_err();
//! assert_eq!(error.to_string(), "axis `j` has size 2 in input `x` but 3 in input `y`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads, forms, backends
//!
//! Kernels are `Send`, `Sync` and cheap to clone; a [`Compiler`] remembers what it has compiled. Results do not depend on the
//! number of threads. [`Form`] says how far passes are fused, for comparisons; [`Backend`] what runs a kernel: native code, or
//! one of two interpreters that are slow and sure.
//!
//! ```
//! use onefold::{Array, Backend, Compiler, Form};
//!
//! let text = "func @lse(%x: f32[b, v]) -> f32[b] {\n  return logsumexp[v](%x)\n}\n";
//! let module = onefold::parse("lse.fold", text)?;
//! let x = Array::from_vec(&[3, 100], (0..300).map(|i| (i % 17) as f32).collect())?;
//!
//! let kernel = Compiler::new().threads(1).compile(&module, "lse")?;
//! let fused = kernel.run(&[x.view()])?;
//! assert_eq!(kernel.with_threads(4).run(&[x.view()])?, fused);
//!
//! let formula = onefold::evaluate(&module, "lse", &[x.view()])?; // in f64
//! let plain = Compiler::new().form(Form::Plain).compile(&module, "lse")?.run(&[x.view()])?;
//! for (row, want) in formula[0].iter().enumerate() {
//!     assert!((fused[0].to_f64()[row] - want).abs() < 4e-6);
//!     assert!((plain[0].to_f64()[row] - want).abs() < 4e-6);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod array;
mod check;
mod compiler;
mod cpu;
mod element;
mod error;
pub mod inspect;
mod kernel;
mod memory;
mod reference;
mod signature;
mod view;
mod work;

pub use array::{Array, ArrayError};
pub use compiler::{choose, Backend, Compiler};
pub use cpu::Cpu;
pub use element::Element;
pub use error::{CallError, Error};
pub use kernel::Kernel;
pub use onefold_ir::{parse, verify, DType, Diagnostics, Func, Module};
pub use onefold_loops::lower::Schedule;
pub use onefold_passes::saturate::Limits;
pub use onefold_passes::Form;
pub use reference::{evaluate, sensitivity};
pub use signature::{Argument, Axis, AxisSize, Signature};
pub use view::{ArrayView, ArrayViewMut};
pub use work::Work;
