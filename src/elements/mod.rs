// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of the plugin and what they share.
//!
//! `nmsfilter` connects input, decoder, engine and output. `crowdtestsrc` and `tensorreplay` attach
//! tensors to test it (feature `v1_20`), `roioverlay` draws its results. `ortinference` runs a detector; it is registered by a
//! plugin of its own (feature `onnxruntime`, package in inference/).

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "v1_20")]
use crate::input::custom_meta;

#[cfg(feature = "v1_20")]
pub mod crowdtestsrc;
mod grid;
pub mod nmsfilter;
#[cfg(feature = "onnxruntime")]
pub mod ortinference;
mod property;
pub mod roioverlay;
#[cfg(feature = "v1_20")]
mod tensor_memory;
#[cfg(feature = "v1_20")]
pub mod tensorreplay;

#[cfg(feature = "v1_20")]
pub use tensor_memory::TensorMemory;

/// Registers every element with `plugin`.
///
/// # Errors
/// If GStreamer refuses to register an element.
pub fn register(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    #[cfg(feature = "v1_20")]
    {
        custom_meta::register();
        crowdtestsrc::register(plugin)?;
    }
    nmsfilter::register(plugin)?;
    roioverlay::register(plugin)?;
    #[cfg(feature = "v1_20")]
    tensorreplay::register(plugin)?;
    Ok(())
}

/// Raw video of any format in any memory, for filters that do not access pixels.
fn any_video() -> gst::Caps {
    gst::Caps::builder("video/x-raw").any_features().build()
}

/// Templates of an always sink pad and an always source pad with the same caps.
fn filter_templates(caps: &gst::Caps) -> Vec<gst::PadTemplate> {
    [("sink", gst::PadDirection::Sink), ("src", gst::PadDirection::Src)]
        .map(|(name, direction)| {
            gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
                .expect("the template is valid")
        })
        .into()
}

/// Locks a mutex of an element, also if it was poisoned: a panic in one thread does not make every
/// later call of the element panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
