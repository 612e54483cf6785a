//! A thousand changes of state leave no memory allocated.
//!
//! A program of its own: it measures the memory of the process.

#[path = "support/mod.rs"]
mod support;

use crate::support::engines;
use crate::support::pipeline::{parse, run};
use crate::support::process::resident;

#[test]
fn a_thousand_state_cycles_leak_no_memory() {
    // GPU drivers keep memory of their own; cuda_faults counts what the CUDA engine leaves.
    let backend = if engines::on_gpu() { "cpu" } else { "auto" };
    let pipeline = parse(&format!(
        "crowdtestsrc num-buffers=2 ! video/x-raw,width=64,height=36
           ! nmsfilter backend={backend} ! fakesink"
    ));
    let cycle = || assert_eq!(run(&pipeline).error, None);
    // Threads' arenas and GStreamer's caches fill up first.
    (0..200).for_each(|_| cycle());
    let before = resident();
    (0..1_000).for_each(|_| cycle());
    let grown = resident().saturating_sub(before);
    // 2 KiB a cycle: less than the smallest thing that could leak, a session's histogram.
    assert!(grown < 2 << 10, "grown by {grown} KiB");
}
