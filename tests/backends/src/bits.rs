//! Arrays of any element type as raw bytes: filled with what is hard to compute with, and compared bit for bit.

use onefold_loops::Elem;

/// What arrays hold.
#[derive(Clone, Copy)]
pub enum Data {
    /// Every pair of special values of the type (in the arrays of seeds 1 and 2), then random bits.
    Any,
    /// Special values, small numbers and random bits in any order.
    Mixed,
    /// Floats between -8 and 8, many of them halves.
    Small,
    /// Floats from 0 to 127.
    Byte,
    /// Integers other than 0.
    NotZero,
    /// Shift amounts.
    Amount,
}

/// Elements as bytes, from a seed.
pub fn bytes(elem: Elem, len: usize, data: Data, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let special = special(elem);
    let mut all = vec![];
    for at in 0..len {
        let bits = random();
        let value = match data {
            Data::Any | Data::Mixed if elem == Elem::Bool => bits & 1,
            Data::Any if at < special.len() * special.len() => {
                special[if seed == 1 { at } else { at / special.len() } % special.len()]
            }
            Data::Mixed if bits % 4 == 0 => special[(bits >> 8) as usize % special.len()],
            Data::Mixed if bits % 4 < 3 && elem.is_float() => float(elem, (bits >> 56) as f64 / 8.0 - 16.0),
            Data::Mixed if bits % 4 == 1 => (bits >> 60).wrapping_sub(8),
            Data::Any => bits,
            Data::Mixed => bits.rotate_right(8),
            Data::Small => float(elem, (bits % 64) as f64 / 4.0 - 8.0 + if at % 3 == 0 { 0.013 } else { 0.0 }),
            Data::Byte => float(elem, (bits % 1271) as f64 / 10.0),
            Data::NotZero if bits.to_le_bytes()[..elem.bytes() as usize].iter().all(|b| *b == 0) => 1,
            Data::NotZero if at % 7 == 0 => u64::MAX,
            Data::NotZero => bits,
            Data::Amount => bits % u64::from(elem.bytes() * 8),
        };
        all.extend_from_slice(&value.to_le_bytes()[..elem.bytes() as usize]);
    }
    all
}

fn float(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F64 => v.to_bits(),
        Elem::F16 => u64::from(half::f16::from_f64(v).to_bits()),
        Elem::BF16 => u64::from(half::bf16::from_f64(v).to_bits()),
        _ => u64::from((v as f32).to_bits()),
    }
}

fn special(elem: Elem) -> Vec<u64> {
    // Halfway between two numbers of `bf16`, of `f16`.
    let halfway = [1.00390625, 1.01171875, 1.00048828125, 1.00146484375];
    let floats = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-7, 65504.0, 65519.9, 65520.0, 1e-40, 1e-310, 8388607.5];
    let wide = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2147483648.0, 3.4e38, -3.4e38, 1e300, 4503599627370495.5];
    // NaN that would be infinite if its lower bits were cut off.
    let nan = match elem {
        Elem::F64 => 0x7ff0_0000_0000_0001,
        Elem::F16 => 0x7c01,
        Elem::BF16 => 0x7f81,
        _ => 0xff80_0001,
    };
    if elem.is_float() {
        return floats.into_iter().chain(halfway).chain(wide).map(|v| float(elem, v)).chain([nan]).collect();
    }
    let top = 1u64 << (elem.bytes() * 8 - 1);
    vec![0, 1, u64::MAX, top, top - 1, top + 1, 2, 127]
}

/// Where two arrays differ first, as element number, found and wanted bits; of NaN only that it is one counts.
pub fn difference(elem: Elem, got: &[u8], want: &[u8]) -> Option<(usize, Vec<u8>, Vec<u8>)> {
    let width = elem.bytes() as usize;
    let pairs = got.chunks(width).zip(want.chunks(width));
    let differs = |(g, w): &(&[u8], &[u8])| g != w && !(is_nan(elem, g) && is_nan(elem, w));
    let (at, (g, w)) = pairs.enumerate().find(|(_, pair)| differs(pair))?;
    Some((at, g.to_vec(), w.to_vec()))
}

fn is_nan(elem: Elem, b: &[u8]) -> bool {
    match (elem, b) {
        (Elem::F32, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]).is_nan(),
        (Elem::F64, _) => b.try_into().is_ok_and(|b| f64::from_le_bytes(b).is_nan()),
        (Elem::F16, [a, b]) => half::f16::from_le_bytes([*a, *b]).is_nan(),
        (Elem::BF16, [a, b]) => half::bf16::from_le_bytes([*a, *b]).is_nan(),
        _ => false,
    }
}
