use onefold_tests::*;
#[test]
fn t() {
    let text = std::fs::read_to_string("/tmp/newton2.fold").unwrap();
    let m = onefold::parse("x", &text).unwrap();
    let a = onefold::Array::from_vec(&[3], vec![0f32, 1.0, 3.0]).unwrap();
    println!("{:?}", bisect(&m, "n4", &[a], onefold::Form::Plain, Bound(1e-4)).map_err(|e| println!("{e}")));
}
