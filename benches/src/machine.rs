// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the machine on which times were measured.

use std::fs::read_to_string;

use gst_newer::Capabilities;
use nmsfilter_core::engine::Engine as _;

use crate::engines::Engines;

/// Returns pairs of a name and a description: processor, GPU, system and versions.
pub fn describe(engines: &Engines) -> Vec<[String; 2]> {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu_field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown").to_owned()
    };
    let os = read_to_string("/etc/os-release").unwrap_or_default();
    let os = os.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    // All cores of the machine: single-threaded benchmarks are bound to one of them.
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let gpu = match (engines.cuda(), &engines.cuda_error) {
        (Some(cuda), _) => cuda.description(),
        (None, Some(error)) => format!("none: {error}"),
        (None, None) => "none".to_owned(),
    };
    let gstreamer = gst::version_string();
    let processor = format!("{}, {cores} cores, {}", cpu_field("model name"), instruction_set());
    let version = format!("{}; {}", env!("CARGO_PKG_VERSION"), Capabilities::get());
    let lines = [
        ["processor", &processor],
        ["GPU", &gpu],
        ["system", os.unwrap_or("unknown").trim_matches('"')],
        ["GStreamer", &gstreamer],
        ["nmsfilter", &version],
    ];
    lines.map(|line| line.map(str::to_owned)).into()
}

/// Returns the instruction set that the CPU engine uses.
fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        return "AVX2";
    }
    std::env::consts::ARCH
}
