// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the kernels for one GPU architecture where asked to.
//!
//! `NMSFILTER_CUDA_ARCH` is such an architecture as nvcc takes, `sm_87` or `native` (this machine's
//! own). `NVCC` names the compiler. Without it the crate has the PTX alone, which is in the
//! sources and runs on every GPU.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(nmsfilter_native)");
    println!("cargo::rerun-if-env-changed=NMSFILTER_CUDA_ARCH");
    println!("cargo::rerun-if-env-changed=NVCC");
    if let Ok(architecture) = env::var("NMSFILTER_CUDA_ARCH") {
        compile(&architecture);
    }
}

fn compile(architecture: &str) {
    println!("cargo::rerun-if-changed=kernels");
    let nvcc = env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    let status = Command::new(&nvcc)
        .args(["-std=c++17", "-O3", "--fmad=false", "-cubin"])
        .arg(format!("-arch={architecture}"))
        .args(["kernels/nmsfilter.cu", "-o"])
        .arg(Path::new(&folder).join("nmsfilter.cubin"))
        .status();
    match status {
        Ok(status) if status.success() => println!("cargo::rustc-cfg=nmsfilter_native"),
        Ok(status) => panic!("{nvcc} for {architecture}: {status}"),
        Err(error) => panic!(
            "NMSFILTER_CUDA_ARCH is set, but {nvcc} cannot be run: {error}; install the CUDA \
             toolkit, name its compiler in NVCC, or unset NMSFILTER_CUDA_ARCH to use the PTX"
        ),
    }
}
