// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzzer of nmsfilter.
//!
//! In: the bytes of a case. Out: a [`Failure`] if the case's result differs from the prediction of
//! the reference engine and the rules, or if anything panics, warns or leaks.

mod analytics;
mod bytes;
mod caps;
pub mod counts;
pub mod coverage;
mod engines;
mod filter;
mod harness;
mod layout_texts;
mod metadata;
mod numbers;
mod overlay;
mod predict;
mod properties;
#[path = "../../tests/support/random_layout.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod random_layout;
mod raw;
mod replay;
pub mod seeds;
mod snapshot;
mod tensors;
mod watch;

use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use counts::Counts;
use engines::Frames;

pub use replay::clean;

/// The reason why a case fails, as a message.
#[derive(Debug)]
pub struct Failure(pub String);

/// Registers the elements, and begins to record panics and logs. Files that cases need are written
/// to a folder in `scratch`. Must be called once.
pub fn init(scratch: &Path) {
    gst::init().expect("GStreamer can be initialized");
    gstnmsfilter::plugin_register_static().expect("the plugin can be registered");
    gstnmsfilterdemo::plugin_register_static().expect("the plugin can be registered");
    watch::install();
    replay::init(scratch);
}

/// Runs the case that these bytes make.
///
/// # Errors
/// Returns an error if the case finds a defect.
pub fn run(case: &[u8], counts: &mut Counts) -> Result<(), Failure> {
    let mut bytes = Bytes::new(case);
    let driver = bytes.below(16);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match driver {
        0..11 => filter::drive(&mut bytes, counts),
        11 | 12 => engines::drive(&mut bytes, Frames::SingleImages, counts),
        13 => engines::drive(&mut bytes, Frames::Batches, counts),
        14 => replay::drive(&mut bytes, counts),
        _ => overlay::drive(&mut bytes, counts),
    }));
    counts.one(match driver {
        0..11 => "cases: filter",
        11 | 12 => "cases: engines",
        13 => "cases: engines, batches",
        14 => "cases: replay",
        _ => "cases: overlay",
    });
    let noted = watch::take();
    caught.unwrap_or(Ok(()))?;
    if let Some(first) = noted.into_iter().next() {
        return Err(Failure(first));
    }
    match metadata::LIVE.load(Ordering::SeqCst) {
        0 => Ok(()),
        live => Err(Failure(format!("{live} memories of tensors are never freed"))),
    }
}
