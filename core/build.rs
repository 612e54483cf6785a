// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses the kernels; compiles them for one GPU architecture where asked to.
//!
//! `NMSFILTER_CUDA_ARCH` is such an architecture as nvcc takes, `sm_87` or `native` (this machine's
//! own). `NVCC` names the compiler. Without it the crate has the PTX alone, which is in the
//! sources and runs on every GPU.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use lzma_rust2::{Lzma2Options, Lzma2Writer};

/// PTX files whose kernels the crate can load.
const PTX: [&str; 2] = ["nmsfilter.sm_80.ptx", "resample.sm_60.ptx"];

/// PTX files that differ little from [`PTX`]'s first file, with which they are compressed to a tenth of their size.
const SIMILAR: [&str; 2] = ["nmsfilter.sm_60.ptx", "nmsfilter.sm_90.ptx"];

/// Higher presets take ten times as long, for a quarter of the size.
const PRESET: u32 = 3;

/// The number of bytes, before those that are decompressed, from which bytes can be repeated: two files of PTX.
const DICTIONARY: u32 = 8 << 20;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(nmsfilter_native)");
    println!("cargo::rustc-env=KERNELS_DICTIONARY={DICTIONARY}");
    println!("cargo::rerun-if-env-changed=NMSFILTER_CUDA_ARCH");
    println!("cargo::rerun-if-env-changed=NVCC");
    println!("cargo::rerun-if-changed=kernels/ptx");
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let ptx = Path::new("kernels/ptx");
    for file in PTX {
        compress(file, &read(&ptx.join(file)), None, &folder);
    }
    let base = read(&ptx.join(PTX[0]));
    for file in SIMILAR {
        compress(file, &read(&ptx.join(file)), Some(&base), &folder);
    }
    if let Ok(architecture) = env::var("NMSFILTER_CUDA_ARCH") {
        compile(&architecture, &folder.join("nmsfilter.cubin"));
        compress("nmsfilter.cubin", &read(&folder.join("nmsfilter.cubin")), None, &folder);
        println!("cargo::rustc-cfg=nmsfilter_native");
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Writes the compressed `bytes` of the file `name` to `folder`. `core/src/device/compressed.rs` decompresses them, and
/// also needs the file `similar`.
fn compress(name: &str, bytes: &[u8], similar: Option<&[u8]>, folder: &Path) {
    let mut options = Lzma2Options::with_preset(PRESET);
    options.lzma_options.dict_size = DICTIONARY;
    options.lzma_options.preset_dict = similar.map(<[u8]>::to_vec);
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    let compressed = writer.write_all(bytes).and_then(|()| writer.finish());
    compressed
        .and_then(|bytes| std::fs::write(folder.join(format!("{name}.lzma2")), bytes))
        .unwrap_or_else(|error| panic!("{name} in {}: {error}", folder.display()));
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
