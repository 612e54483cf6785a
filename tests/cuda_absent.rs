// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin without a usable GPU: no driver library, a driver without a GPU, an old driver.
//!
//! These tests need a separate program: each of them starts this program again, runs only the test
//! `report`, and sets an environment in which a different driver is loaded. The drivers are built
//! by `kernels/emulate`, in the folder that `NMSFILTER_EMULATED_CUDA` names.

#[path = "support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::Command;

use crate::support::pipeline::{self, parse, run};
use crate::support::skip;

/// Runs in the process that `in_process` starts, and prints the result of a stream with each
/// backend. With `backend=auto` there is never an error.
#[test]
#[ignore = "run by the other tests in a process of its own"]
fn report() {
    pipeline::init();
    let inspected = gst::ElementFactory::find("nmsfilter").expect("the plugin registers");
    println!("element: {}", inspected.longname());
    for backend in ["auto", "cuda"] {
        let pipeline = parse(&format!(
            "crowdtestsrc num-buffers=20 ! video/x-raw,width=160,height=90
               ! nmsfilter backend={backend} ! fakesink"
        ));
        let ended = run(&pipeline);
        assert!(backend != "auto" || ended.error.is_none(), "{ended:?}");
        println!("{backend} error: {}", ended.error.as_deref().unwrap_or("none"));
        println!("{backend} warnings: {:?}", ended.warnings);
        let engine = ended.stats.first().map(|stats| stats.get::<String>("engine").unwrap());
        println!("{backend} engine: {}", engine.as_deref().unwrap_or("none"));
    }
}

/// Returns the lines that `report` prints with the driver in the folder `libraries` and this number
/// of GPUs.
fn in_process(libraries: Option<PathBuf>, gpus: u32) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "report", "--nocapture"]);
    command
        .env_remove("NMSFILTER_TEST_BACKEND")
        .env("NMSFILTER_EMULATED_DEVICES", gpus.to_string());
    match libraries {
        Some(folder) => command.env("LD_LIBRARY_PATH", folder),
        None => command.env_remove("LD_LIBRARY_PATH"),
    };
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    text.lines().map(str::to_owned).collect()
}

fn emulated() -> Option<PathBuf> {
    std::env::var_os("NMSFILTER_EMULATED_CUDA").map(PathBuf::from)
}

/// Returns the folder of the emulated drivers; panics if it is not set.
fn libraries() -> PathBuf {
    emulated().expect("NMSFILTER_EMULATED_CUDA names what kernels/emulate/libcuda.sh built")
}

/// Returns the rest of the line that begins with `begins`.
fn line<'a>(lines: &'a [String], begins: &str) -> &'a str {
    let found = lines.iter().find_map(|line| line.strip_prefix(begins));
    found.unwrap_or_else(|| panic!("no line {begins} in {lines:?}"))
}

/// Asserts that `backend=auto` ran on the CPU, and that `backend=cuda` failed with `reason`.
fn assert_runs_on_cpu(lines: &[String], reason: &str) {
    assert_eq!(line(lines, "auto error: "), "none");
    assert_eq!(line(lines, "auto engine: "), "cpu");
    assert!(line(lines, "cuda error: ").contains(reason), "{lines:?}");
}

#[test]
fn without_a_driver_auto_runs_on_the_cpu_and_cuda_is_an_error() {
    if nmsfilter_core::device::Driver::get().is_ok() && emulated().is_none() {
        skip::skip("a machine without an NVIDIA driver");
        return;
    }
    let lines = in_process(None, 1);
    if line(&lines, "cuda error: ") == "none" {
        skip::skip("a machine without a GPU");
        return;
    }
    assert_runs_on_cpu(&lines, "there is no NVIDIA driver (libcuda cannot be loaded)");
    assert_eq!(line(&lines, "auto warnings: "), "[]");
}

#[test]
#[ignore = "needs the emulated drivers"]
fn with_a_driver_and_no_gpu_auto_runs_on_the_cpu_and_cuda_is_an_error() {
    let folder = libraries();
    let lines = in_process(Some(folder), 0);
    assert_runs_on_cpu(&lines, "the NVIDIA driver finds no GPU");
    assert_eq!(line(&lines, "auto warnings: "), "[]");
}

#[test]
#[ignore = "needs the emulated drivers"]
fn with_an_old_driver_auto_runs_on_the_cpu_with_a_warning_and_cuda_is_an_error() {
    let folder = libraries();
    let lines = in_process(Some(folder.join("old")), 1);
    let reason = "the NVIDIA driver has no cuGraphInstantiateWithFlags; install one for CUDA 11.4";
    assert_runs_on_cpu(&lines, reason);
    let warnings = line(&lines, "auto warnings: ");
    assert_eq!(warnings.matches(reason).count(), 1, "{warnings}");
}

#[test]
#[ignore = "needs the emulated drivers"]
fn with_a_gpu_auto_and_cuda_run_without_warnings() {
    let folder = libraries();
    let lines = in_process(Some(folder), 1);
    assert_eq!(line(&lines, "auto error: "), "none");
    assert_eq!(line(&lines, "auto warnings: "), "[]");
    assert_eq!(line(&lines, "cuda error: "), "none");
    assert_eq!(line(&lines, "cuda engine: "), "cuda");
}
