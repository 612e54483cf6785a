// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses the kernels; compiles them for one GPU architecture where asked to.
//!
//! `NMSFILTER_CUDA_ARCH` is such an architecture as nvcc takes, `sm_87` or `native` (this machine's
//! own). `NVCC` names the compiler. Without it the crate has the PTX alone, which is in the
//! sources and runs on every GPU.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use miniz_oxide::deflate::compress_to_vec;

/// PTX files whose kernels the crate can load.
const PTX: [&str; 4] =
    ["nmsfilter.sm_60.ptx", "nmsfilter.sm_80.ptx", "nmsfilter.sm_90.ptx", "resample.sm_60.ptx"];

/// Higher levels take several times as long, for a percent of the size.
const LEVEL: u8 = 6;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(nmsfilter_native)");
    println!("cargo::rerun-if-env-changed=NMSFILTER_CUDA_ARCH");
    println!("cargo::rerun-if-env-changed=NVCC");
    println!("cargo::rerun-if-changed=kernels/ptx");
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for file in PTX {
        compress(&Path::new("kernels/ptx").join(file), &folder);
    }
    if let Ok(architecture) = env::var("NMSFILTER_CUDA_ARCH") {
        compile(&architecture, &folder.join("nmsfilter.cubin"));
        compress(&folder.join("nmsfilter.cubin"), &folder);
        println!("cargo::rustc-cfg=nmsfilter_native");
    }
}

/// Writes the compressed bytes of `file` to `folder`.
fn compress(file: &Path, folder: &Path) {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name = file.file_name().and_then(|name| name.to_str()).expect("it is a file");
    std::fs::write(folder.join(format!("{name}.deflate")), compress_to_vec(&bytes, LEVEL))
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
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
