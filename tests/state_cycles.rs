// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thousand state changes leak no memory.
//!
//! This is a separate program, since it measures the memory of the process.

#[path = "support/mod.rs"]
mod support;

use crate::support::engines;
use crate::support::pipeline::{parse, run};
use crate::support::process::resident;

#[test]
fn a_thousand_state_cycles_leak_no_memory() {
    // GPU drivers cache memory of their own. The test program cuda_faults counts the objects of the
    // CUDA engine.
    let backend = if engines::on_gpu() { "cpu" } else { "auto" };
    let pipeline = parse(&format!(
        "crowdtestsrc num-buffers=2 ! video/x-raw,width=64,height=36
           ! nmsfilter backend={backend} ! fakesink"
    ));
    let cycle = || assert_eq!(run(&pipeline).error, None);
    // The first cycles fill the allocator's arenas and GStreamer's caches.
    (0..200).for_each(|_| cycle());
    // A leak grows in every interval; the allocator may take a megabyte more in one of them.
    let mut grown: Vec<u64> = (0..5)
        .map(|_| {
            let before = resident();
            (0..200).for_each(|_| cycle());
            resident().saturating_sub(before)
        })
        .collect();
    grown.sort_unstable();
    // 2 KiB per cycle are less than the smallest object that could leak, a session's histogram.
    assert!(grown[2] < 400, "grown by {grown:?} KiB in 200 cycles each");
}
