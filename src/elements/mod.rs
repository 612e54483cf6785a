//! The plugin's elements.

use crate::tensor;

pub mod crowdtestsrc;
pub mod nmsfilter;
pub mod roioverlay;
pub mod tensorreplay;

/// Registers every element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses an element.
pub fn register(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    tensor::attached::register();
    crowdtestsrc::register(plugin)?;
    nmsfilter::register(plugin)?;
    roioverlay::register(plugin)?;
    tensorreplay::register(plugin)
}

/// The pads of a filter that never touches pixels: any raw video in any memory.
fn any_video_templates() -> Vec<gst::PadTemplate> {
    let caps = gst::Caps::builder("video/x-raw").any_features().build();
    [
        ("sink", gst::PadDirection::Sink),
        ("src", gst::PadDirection::Src),
    ]
    .map(|(name, direction)| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps)
            .expect("the template is sound")
    })
    .into()
}
