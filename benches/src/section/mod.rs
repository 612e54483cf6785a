//! What is measured, a file to a section.

mod attach;
mod candidates;
mod crowd;
mod element;
mod growth;
mod latency;
mod oscars;
mod partitions;
#[cfg(feature = "v1_28")]
mod stock;
mod streams;

#[cfg(feature = "v1_28")]
pub use stock::TRACE_FILE;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::engines::Engines;
use crate::report::Folder;

/// What every section works with.
pub struct Bench {
    /// The engines at hand.
    pub engines: Engines,
    /// Where results go.
    pub folder: Folder,
    /// For each measurement.
    pub budget: Duration,
    /// Candidate lists to suppress besides the recorded ones.
    pub lists: Vec<PathBuf>,
}

/// A part of the evaluation.
pub struct Section {
    /// By which it is asked for.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Measures it.
    pub run: fn(&mut Bench) -> Result<()>,
}

/// Every section, in the order in which they are run.
pub const SECTIONS: &[Section] = &[
    oscars::SECTION,
    latency::SECTION,
    crowd::SECTION,
    partitions::SECTION,
    candidates::SECTION,
    growth::SECTION,
    attach::SECTION,
    element::SECTION,
    #[cfg(feature = "v1_28")]
    stock::SECTION,
    streams::SECTION,
];

/// As tables show times: three significant digits from 1 up.
fn format_us(microseconds: f64) -> String {
    let digits = if microseconds >= 100.0 { 0 } else { 1 };
    format!("{microseconds:.digits$}")
}
