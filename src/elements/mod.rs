//! The plugin's elements.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::input::custom_meta;

pub mod crowdtestsrc;
mod grid;
pub mod nmsfilter;
mod plane;
mod property;
pub mod roioverlay;
mod tensor_memory;
pub mod tensorreplay;

pub use tensor_memory::TensorMemory;

/// Registers every element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses an element.
pub fn register(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    custom_meta::register();
    crowdtestsrc::register(plugin)?;
    nmsfilter::register(plugin)?;
    roioverlay::register(plugin)?;
    tensorreplay::register(plugin)
}

/// Any raw video in any memory, for filters that never touch pixels.
fn any_video() -> gst::Caps {
    gst::Caps::builder("video/x-raw").any_features().build()
}

/// The pads of a filter whose input and output are alike.
fn filter_templates(caps: &gst::Caps) -> Vec<gst::PadTemplate> {
    [("sink", gst::PadDirection::Sink), ("src", gst::PadDirection::Src)]
        .map(|(name, direction)| {
            gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
                .expect("the template is sound")
        })
        .into()
}

/// Locks an element's mutex. A panic elsewhere must not take the element's locks with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
