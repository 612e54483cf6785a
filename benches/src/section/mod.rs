// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the evaluation, one per file. In: engines and workloads. Out: tables and plots.

mod attach;
mod batches;
mod candidates;
mod chain;
mod coco;
mod counts;
mod crowd;
mod element;
mod growth;
mod kernels;
mod latency;
mod layouts;
mod live;
mod masks;
mod merging;
mod oriented;
mod oscars;
mod partitions;
mod stock;
mod streams;
mod tiles;

pub use stock::TRACE_FILE;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::engines::Engines;
use crate::gpu_time::Repeats;
use crate::report::Folder;

/// Inputs of every section.
pub struct Bench {
    /// Engines of this machine.
    pub engines: Engines,
    /// Folder for results.
    pub folder: Folder,
    /// Duration of each measurement.
    pub budget: Duration,
    /// Repetitions of each measurement of GPU time.
    pub repeats: Repeats,
    /// Further candidate lists for the section `candidates`.
    pub lists: Vec<PathBuf>,
}

/// A part of the evaluation.
pub struct Section {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the measurement.
    pub about: &'static str,
    /// Function that measures and writes the results.
    pub run: fn(&mut Bench) -> Result<()>,
}

/// All sections, in the order in which they run.
pub const SECTIONS: &[Section] = &[
    oscars::SECTION,
    latency::SECTION,
    crowd::SECTION,
    partitions::SECTION,
    candidates::SECTION,
    chain::SECTION,
    live::SECTION,
    tiles::SECTION,
    layouts::SECTION,
    coco::SECTION,
    oriented::SECTION,
    masks::SECTION,
    merging::SECTION,
    growth::SECTION,
    kernels::SECTION,
    batches::SECTION,
    counts::SECTION,
    attach::SECTION,
    element::SECTION,
    stock::SECTION,
    streams::SECTION,
];

/// Formats a time in microseconds for tables. It has one decimal below 100, and none from 100 on.
fn format_us(microseconds: f64) -> String {
    let digits = if microseconds >= 100.0 { 0 } else { 1 };
    format!("{microseconds:.digits$}")
}

/// A GPU time in microseconds for tables.
fn format_gpu_us(microseconds: f64) -> String {
    format!("{microseconds:.2}")
}
