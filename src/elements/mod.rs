//! The plugin's elements.

use crate::tensor;

/// Registers every element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses an element.
pub fn register(_plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    tensor::attached::register();
    Ok(())
}
