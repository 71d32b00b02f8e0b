//! Views of `ndarray` arrays.
#![cfg(feature = "ndarray")]

use ndarray::{s, Array2, Axis};
use onefold::{ArrayView, ArrayViewMut, CallError, Compiler};

const TEXT: &str = "func @f(%x: f32[b, v]) -> f32[b] {\n  return sum[v](%x)\n}\n";

#[test]
fn any_view_of_an_array_will_do() {
    let kernel = Compiler::new().compile_text("f.fold", TEXT, None).expect("kernel");
    let x = Array2::from_shape_fn((6, 8), |(b, v)| (b * 8 + v) as f32);
    for view in [x.view(), x.t(), x.slice(s![1..5;2, ..;-1]), x.slice(s![..;-1, 2..7])] {
        let want: Vec<f64> = view.sum_axis(Axis(1)).iter().map(|v| f64::from(*v)).collect();
        assert_eq!(kernel.run(&[view.into()]).expect("result")[0].to_f64(), want);
    }
    let mut out = Array2::<f32>::zeros((6, 2));
    kernel.call(&[x.view().into()], &mut [out.column_mut(1).into()]).expect("result");
    assert_eq!(out.column(1).to_vec(), x.sum_axis(Axis(1)).to_vec());
    assert_eq!(out.column(0).to_vec(), [0.0; 6]);
}

#[test]
fn columns_of_one_array_do_not_overlap() {
    let text = "func @f(%x: f32[b]) -> (f32[b], f32[b]) {\n  return %x + 1, %x * 2\n}\n";
    let kernel = Compiler::new().compile_text("f.fold", text, None).expect("kernel");
    let mut a = Array2::from_shape_fn((5, 3), |(b, _)| b as f32);
    let (x, mut out) = a.view_mut().split_at(Axis(1), 1);
    let (first, second) = out.view_mut().split_at(Axis(1), 1);
    let (x, first, second) = (x.remove_axis(Axis(1)), first.remove_axis(Axis(1)), second.remove_axis(Axis(1)));
    let views: [ArrayViewMut<'_>; 2] = [first.into(), second.into()];
    let mut views = views;
    kernel.call(&[x.view().into()], &mut views).expect("results");
    assert_eq!(a.row(3).to_vec(), [3.0, 4.0, 6.0]);
}

#[test]
fn overlap_is_an_error() {
    let text = "func @f(%x: f32[b]) -> f32[b] {\n  return %x + 1\n}\n";
    let kernel = Compiler::new().compile_text("f.fold", text, None).expect("kernel");
    let mut data = [0.0f32; 10];
    let start = data.as_mut_ptr();
    // SAFETY: both views lie inside `data`; the call is to refuse them before it reads or writes anything.
    let (x, out) = unsafe {
        (ndarray::ArrayView1::from_shape_ptr(8, start), ndarray::ArrayViewMut1::from_shape_ptr(8, start.add(2)))
    };
    let views: [ArrayView<'_>; 1] = [x.into()];
    let error = kernel.call(&views, &mut [out.into()]).expect_err("overlap");
    assert!(matches!(&error, CallError::Overlap { other, .. } if other == "input x"), "{error}");
}
