// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses the kernels; compiles them for one GPU architecture where asked to.
//!
//! `NMSFILTER_CUDA_ARCH` is such an architecture as nvcc takes, `sm_87` or `native` (this machine's
//! own). `NVCC` names the compiler. Without it the crate has the PTX alone, which is in the
//! sources and runs on every GPU.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use miniz_oxide::deflate::compress_to_vec;

/// PTX files whose kernels the crate can load.
const PTX: [&str; 2] = ["nmsfilter.sm_80.ptx", "resample.sm_60.ptx"];

/// PTX files that differ little from [`PTX`]'s first file. The crate has their differences only.
const SIMILAR: [&str; 2] = ["nmsfilter.sm_60.ptx", "nmsfilter.sm_90.ptx"];

/// The least number of consecutive lines that are copied from the other file.
const LEAST_LINES: usize = 2;

/// Higher levels take several times as long, for a percent of the size.
const LEVEL: u8 = 6;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(nmsfilter_native)");
    println!("cargo::rerun-if-env-changed=NMSFILTER_CUDA_ARCH");
    println!("cargo::rerun-if-env-changed=NVCC");
    println!("cargo::rerun-if-changed=kernels/ptx");
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let ptx = Path::new("kernels/ptx");
    for file in PTX {
        compress(file, &read(&ptx.join(file)), &folder);
    }
    let base = read(&ptx.join(PTX[0]));
    for file in SIMILAR {
        compress(file, &differences(&base, &read(&ptx.join(file))), &folder);
    }
    if let Ok(architecture) = env::var("NMSFILTER_CUDA_ARCH") {
        compile(&architecture, &folder.join("nmsfilter.cubin"));
        compress("nmsfilter.cubin", &read(&folder.join("nmsfilter.cubin")), &folder);
        println!("cargo::rustc-cfg=nmsfilter_native");
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Writes the compressed `bytes` of the file `name` to `folder`.
fn compress(name: &str, bytes: &[u8], folder: &Path) {
    std::fs::write(folder.join(format!("{name}.deflate")), compress_to_vec(bytes, LEVEL))
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
}

/// The steps that make `text` of `base` (`core/src/device/compressed.rs` performs them). A step appends new bytes and then
/// a part of `base`. In the result, all as u32 in little endian: the number of steps; for each step the number of new
/// bytes, and the first byte and the length of the part. Then follow the new bytes of all steps.
fn differences(base: &[u8], text: &[u8]) -> Vec<u8> {
    let old: Vec<&[u8]> = base.split_inclusive(|&byte| byte == b'\n').collect();
    let new: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut places: HashMap<&[&[u8]], Vec<usize>> = HashMap::new();
    for (place, window) in old.windows(LEAST_LINES).enumerate() {
        places.entry(window).or_default().push(place);
    }
    let bytes_before: Vec<usize> = std::iter::once(0)
        .chain(old.iter().scan(0, |sum, line| {
            *sum += line.len();
            Some(*sum)
        }))
        .collect();
    let (mut steps, mut inserted, mut since, mut line) = (Vec::new(), Vec::new(), 0, 0);
    while line < new.len() {
        let window = new.get(line..line + LEAST_LINES).unwrap_or_default();
        let equal = |place: usize| {
            let pairs = old[place..].iter().zip(&new[line..]);
            pairs.take_while(|(old, new)| old == new).count()
        };
        // Frequent lines have thousands of places, of which any is good enough.
        let known = places.get(window).into_iter().flatten().take(64);
        match known.map(|&place| (equal(place), place)).max() {
            Some((count, place)) => {
                let (first, end) = (bytes_before[place], bytes_before[place + count]);
                steps.push([inserted.len() - since, first, end - first]);
                since = inserted.len();
                line += count;
            }
            None => {
                inserted.extend_from_slice(new[line]);
                line += 1;
            }
        }
    }
    steps.push([inserted.len() - since, 0, 0]);
    let numbers = std::iter::once(steps.len()).chain(steps.iter().flatten().copied());
    numbers.flat_map(|number| (number as u32).to_le_bytes()).chain(inserted).collect()
}

/// Compiles the kernels to machine code.
fn compile(architecture: &str, output: &Path) {
    println!("cargo::rerun-if-changed=kernels");
    let nvcc = env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let status = Command::new(&nvcc)
        .args(["-std=c++17", "-O3", "--fmad=false", "-cubin"])
        .arg(format!("-arch={architecture}"))
        .args(["kernels/nmsfilter.cu", "-o"])
        .arg(output)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{nvcc} for {architecture}: {status}"),
        Err(error) => panic!(
            "NMSFILTER_CUDA_ARCH is set, but {nvcc} cannot be run: {error}; install the CUDA \
             toolkit, name its compiler in NVCC, or unset NMSFILTER_CUDA_ARCH to use the PTX"
        ),
    }
}
