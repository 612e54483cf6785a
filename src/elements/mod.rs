//! The plugin's elements.

use crate::tensor;

pub mod nmsfilter;

/// Registers every element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses an element.
pub fn register(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    tensor::attached::register();
    nmsfilter::register(plugin)
}
