// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory, with the driver of a GPU, or the one that emulates a GPU (tests/run.sh).

#[allow(dead_code, reason = "other programs use the rest")]
mod support;

use support::{Check, Library};

const LIBRARY: Library =
    Library { package: "c", file: "libnmsfilter.so", name: "nmsfilter", pkg_config: &[] };

/// The driver's library, where the dynamic loader finds it.
fn driver() -> Vec<String> {
    let folders = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| format!("-L{folder}")).chain(["-l:libcuda.so.1".to_owned()]).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn the_example_prints_the_windows_that_remain() {
    let driver = driver();
    let arguments: Vec<&str> = driver.iter().map(String::as_str).collect();
    let program = LIBRARY.compile("examples/device.c", Check::None, &arguments);
    let expected = "window 0 at 100,50, score 0.90\nwindow 2 at 300,60, score 0.70\n";
    assert_eq!(program.run(), expected);
}

#[test]
#[ignore = "needs a GPU"]
fn calls_with_device_memory_give_what_calls_with_host_memory_give() {
    let driver = driver();
    let arguments: Vec<&str> = driver.iter().map(String::as_str).collect();
    LIBRARY.compile("tests/programs/device_calls.c", Check::None, &arguments).run();
}
