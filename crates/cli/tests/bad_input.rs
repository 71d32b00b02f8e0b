//! Input that is wrong: a message, status 1, no panic, and nothing written.

mod support;

use support::{fails, npy, onefold, Folder, SOFTMAX, TOPK};

#[test]
fn errors_of_a_text_have_places() {
    let folder = Folder::new();
    let unknown = folder.write("a.fold", "func @f(%x: f32[b, v]) -> f32[b] {\n  return sum[w](%x)\n}\n");
    fails(1, &["a.fold:2:14", "w"], &["check", &unknown]);
    writes_nothing(&folder, &["a.fold:2:14", "w"], &[&unknown, "--random", "--size", "b=2", "--size", "v=3"]);
    let dtype = folder.write("b.fold", "func @f(%x: f32[b], %y: i32[b]) -> f32[b] {\n  return %x + %y\n}\n");
    writes_nothing(&folder, &["b.fold:2:", "i32"], &[&dtype, "--random", "--size", "b=3"]);
    let name = folder.write("c.fold", "func @f(%scores: f32[b]) -> f32[b] {\n  return %scoers\n}\n");
    fails(1, &["c.fold:2:", "scores"], &["check", &name]);
    let heads =
        folder.write("d.fold", "func @f(%q: f32[h=7, e]) -> f32[g=2, r, e] {\n  return split[h -> (g=2, r)](%q)\n}\n");
    fails(1, &["d.fold:2:", "7"], &["check", &heads]);
}

#[test]
fn nonsense_is_an_error() {
    let folder = Folder::new();
    let mut state = 1u32;
    let mut noise = |range: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % range
    };
    let text: String = (0..1 << 20).map(|_| char::from(b' ' + noise(95) as u8)).collect();
    let text = folder.write("noise.fold", text);
    fails(1, &["noise.fold:1:"], &["check", &text]);
    writes_nothing(&folder, &["noise.fold:1:"], &[&text, "--random"]);
    let bytes: Vec<u8> = (0..1 << 20).map(|_| noise(256) as u8).collect();
    let bytes = folder.write("bytes.fold", bytes);
    fails(1, &["bytes.fold", "UTF-8"], &["check", &bytes]);
    writes_nothing(&folder, &["bytes.fold", "UTF-8"], &[&bytes, "--random"]);
    fails(1, &["empty.fold"], &["run", &folder.write("empty.fold", ""), "--random"]);
    fails(1, &["missing.fold"], &["check", &folder.path("missing.fold").display().to_string()]);
    fails(1, &[], &["check", &folder.path("").display().to_string()]);
}

#[test]
fn deep_nesting_is_an_error() {
    let folder = Folder::new();
    for (name, open, close) in
        [("paren", "(", ")"), ("minus", "-", ""), ("call", "exp(", ")"), ("select", "select(true, ", ", 1)")]
    {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        let text = format!("func @f(%x: f32[b]) -> f32[b] {{\n  return {open}%x{close}\n}}\n");
        let file = folder.write(&format!("{name}.fold"), text);
        fails(1, &[&format!("{name}.fold:2:")], &["check", &file]);
        writes_nothing(&folder, &["nest"], &[&file, "--random", "--size", "b=1"]);
    }
    let open = "(".repeat(10_000);
    fails(1, &["open.fold"], &["check", &folder.write("open.fold", open)]);
}

/// A .npy file with that header and those bytes of elements.
fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A run that is to write its first output fails with status 1 and these words, and leaves no file behind.
#[track_caller]
fn writes_nothing(folder: &Folder, words: &[&str], args: &[&str]) {
    let before = folder.names();
    let out = format!("0={}", folder.path("out.npy").display());
    fails(1, words, &[&["run"], args, &["--out", &out]].concat());
    assert_eq!(folder.names(), before);
}

#[test]
fn arrays_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let file = folder.write("p.fold", SOFTMAX);
    let whole = npy(&[2, 3], &[1.0; 6]);
    let mut magic = whole.clone();
    magic[0] = 0x92;
    let header = |descr: &str, fortran: &str, shape: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        with_header(&text, &[0; 24])
    };
    for (name, bytes, word) in [
        ("zero.npy", vec![], "empty"),
        ("text.npy", b"hello world, this is no array".to_vec(), "not a .npy file"),
        ("magic.npy", magic, "not a .npy file"),
        ("cut_magic.npy", whole[..7].to_vec(), "not a .npy file"),
        ("cut_header.npy", whole[..20].to_vec(), "truncated"),
        ("cut.npy", whole[..whole.len() - 1].to_vec(), "truncated"),
        ("long.npy", [&whole[..], &[0]].concat(), "follow after the last element"),
        ("version.npy", [&whole[..6], &[9], &whole[7..]].concat(), "version 9"),
        ("no_dict.npy", with_header("[1, 2, 3]\n", &[]), "malformed header"),
        ("no_shape.npy", with_header("{'descr': '<f4', 'fortran_order': False}", &[]), "'shape' is missing"),
        ("bytes.npy", with_header("\u{1}\u{2}\u{3}", &[]), "malformed header"),
        ("order.npy", header("<f4", "Maybe", "(2, 3)"), "malformed header"),
        ("negative.npy", header("<f4", "False", "(-2, 3)"), "negative size"),
        ("complex.npy", header("<c8", "False", "(3,)"), "'<c8'"),
        ("object.npy", header("|O", "False", "(3,)"), "'|O'"),
        ("overflow.npy", npy(&[usize::MAX / 2, 8], &[]), "overflow"),
    ] {
        let input = format!("x={}", folder.write(name, bytes));
        writes_nothing(&folder, &[name, word], &[&file, "--input", &input]);
    }
    // What can be read but is of another type is the call's to refuse.
    for (name, descr, shape, dtype) in [("wide.npy", "<f8", "(1, 3)", "f64"), ("integers.npy", "<i4", "(2, 3)", "i32")]
    {
        let input = format!("x={}", folder.write(name, header(descr, "False", shape)));
        writes_nothing(&folder, &["x is f32", dtype], &[&file, "--input", &input]);
    }
    let missing = format!("x={}", folder.path("none.npy").display());
    writes_nothing(&folder, &["none.npy"], &[&file, "--input", &missing]);
}

#[test]
fn fortran_order_is_read() {
    let folder = Folder::new();
    let file = folder.write("p.fold", "func @p(%x: f32[b, v]) -> f32[b] {\n  return sum[v](%x)\n}\n");
    let elements: Vec<u8> = [1.0f32, 10.0, 2.0, 20.0, 3.0, 30.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let text = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    let input = format!("x={}", folder.write("x.npy", with_header(text, &elements)));
    let outcome = onefold(&["run", &file, "--input", &input]);
    assert!(outcome.status == 0 && outcome.out.contains("[6, 60]"), "{}{}", outcome.out, outcome.err);
}

#[test]
fn sizes_that_do_not_fit() {
    let folder = Folder::new();
    let text = "func @f(%x: f32[b, j], %y: f32[j]) -> f32[b] {\n  return sum[j](%x * %y)\n}\n";
    let file = folder.write("f.fold", text);
    let x = format!("x={}", folder.write("x.npy", npy(&[2, 3], &[0.0; 6])));
    let y = format!("y={}", folder.write("y.npy", npy(&[4], &[0.0; 4])));
    writes_nothing(&folder, &["`j`", "3 in input `x`", "4 in input `y`"], &[&file, "--input", &x, "--input", &y]);
    let flat = format!("x={}", folder.write("flat.npy", npy(&[6], &[0.0; 6])));
    writes_nothing(&folder, &["`x`", "2 dimensions", "has 1"], &[&file, "--input", &flat, "--input", &y]);
    let best = folder.write("best.fold", TOPK);
    writes_nothing(&folder, &["topk", "5", "3"], &[&best, "--random", "--size", "v=3"]);
    for size in ["j=18446744073709551615", "j=4611686018427387904"] {
        writes_nothing(&folder, &["x"], &[&file, "--random", "--size", "b=8", "--size", size]);
    }
    writes_nothing(&folder, &["memory"], &[&file, "--random", "--size", "b=1000000", "--size", "j=1000000000"]);
    for size in ["j=-1", "j=x", "j=99999999999999999999", "j=1.5"] {
        fails(2, &["is not a size"], &["run", &file, "--random", "--size", "b=1", "--size", size]);
    }
    let grouped = "func @g(%q: f32[h, e]) -> f32[g=2, r, e] {\n  return split[h -> (g=2, r)](%q)\n}\n";
    let grouped = folder.write("grouped.fold", grouped);
    writes_nothing(&folder, &["`h`", "7", "`g` (2)"], &[&grouped, "--random", "--size", "h=7", "--size", "e=3"]);
}
