// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the plugin's version, and compiles the kernels for a GPU architecture if this is requested.
//!
//! `NMSFILTER_CUDA_ARCH` requests an architecture in the form that nvcc accepts, such as `sm_87`,
//! or `native` for the GPU of this machine. `NVCC` names the compiler. If no architecture is
//! requested, the plugin contains only the PTX that is part of the sources, which runs on every
//! GPU.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    gst_plugin_version_helper::info();
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
