//! Attaches recorded tensors to passing buffers, as an inference element would.
//!
//! ```text
//! gst-launch-1.0 videotestsrc ! video/x-raw,width=1920,height=744 ! tensorreplay location=windows.csv ! nmsfilter ! fakesink
//! ```
//!
//! Each element attaches one tensor; chain several for models with several outputs.

mod csv;
mod imp;
mod npy;
mod recording;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element.
    pub struct TensorReplay(ObjectSubclass<imp::TensorReplay>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// What the elements of a raw recording are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstTensorReplayType")]
pub enum RawType {
    /// Single precision.
    #[default]
    #[enum_value(name = "Single precision, native byte order", nick = "f32")]
    F32 = 0,
    /// Half precision.
    #[enum_value(name = "Half precision, native byte order", nick = "f16")]
    F16 = 1,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Where GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "tensorreplay",
        gst::Rank::NONE,
        TensorReplay::static_type(),
    )
}
