// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checksums of the functions over many numbers, which tests compare with the checksums of the kernels' headers.

use std::fmt::Write;

use half::f16;

use super::measure::in_threads;
use super::{exp, ln, sigmoid, sin_cos};
use crate::device::kernel_headers;

/// The inputs of a checksum: f16 or f32, whose bits are first + index x stride.
struct Set {
    name: String,
    is_half: bool,
    first: u32,
    stride: u32,
    count: u32,
}

/// Every f16, and a sample of f32.
fn small_sets() -> [Set; 2] {
    let (stride, first) = (409, 0);
    [
        Set { name: "f16".to_owned(), is_half: true, first, stride: 1, count: 1 << 16 },
        Set { name: "sample".to_owned(), is_half: false, first, stride, count: !0 / stride + 1 },
    ]
}

/// All f32, by the first five of their bits.
fn blocks() -> impl Iterator<Item = Set> {
    (0..32).map(|block| Set {
        name: format!("{block:02x}"),
        is_half: false,
        first: block << 27,
        stride: 1,
        count: 1 << 27,
    })
}

/// The line that `tests/gpu/functions.cu` prints, which explains the checksums.
fn checksums(set: &Set) -> String {
    let mut sums = [0_u64; 6];
    for index in 0..set.count {
        let bits = set.first.wrapping_add(index.wrapping_mul(set.stride));
        let x =
            if set.is_half { f16::from_bits(bits as u16).to_f32() } else { f32::from_bits(bits) };
        let radicand = f32::from_bits((bits & 0x7fff_ffff).min(0x7f80_0000));
        let angle = sin_cos(x);
        let results = [exp(x), sigmoid(x), radicand.sqrt(), angle.sin, angle.cos, ln(x)];
        for (sum, result) in sums.iter_mut().zip(results) {
            let word = u64::from(index) << 32 | u64::from(result.to_bits());
            let product = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *sum = sum.wrapping_add(product ^ product >> 32);
        }
    }
    let mut line = set.name.clone();
    for sum in sums {
        write!(line, " {sum:016x}").unwrap();
    }
    line + "\n"
}

/// The expected lines.
fn expected() -> String {
    let path = "../tests/fixtures/functions/checksums.txt";
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn checksums_of_f16_and_of_a_sample() {
    let ours: String = small_sets().iter().map(checksums).collect();
    let expected: String = expected().split_inclusive('\n').take(2).collect();
    assert_eq!(ours, expected);
    if let Some(theirs) = kernel_headers::run("tests/gpu/functions.cu", &[]) {
        assert_eq!(theirs, expected);
    }
}

#[test]
#[ignore = "takes minutes"]
fn checksums_of_all_numbers() {
    let sets: Vec<Set> = small_sets().into_iter().chain(blocks()).collect();
    let ours = in_threads(sets.len() as u32, |index| checksums(&sets[index as usize])).concat();
    assert_eq!(ours, expected());
    if let Some(theirs) = kernel_headers::run("tests/gpu/functions.cu", &["all"]) {
        assert_eq!(theirs, ours);
    }
}
