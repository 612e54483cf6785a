//! Attaches recorded tensors to passing buffers, as an inference element would.
//!
//! ```text
//! gst-launch-1.0 videotestsrc ! video/x-raw,width=1920,height=744 ! tensorreplay location=windows.csv ! nmsfilter ! fakesink
//! ```
//!
//! Each element attaches one tensor, behind those that are there; chain several for models with
//! several outputs. The ending of `location` says how a file is read:
//!
//! | ending | content | shape | id, unless `tensor-id` is set |
//! | --- | --- | --- | --- |
//! | `.csv`, `.txt` | lines `x,y,side,score` | f32, `Nx4` | `windows` |
//! | `.npy` | little-endian f32 or f16 in C order | the file's | the file's name without ending |
//! | `.npz` | refused: unpack it, each array is a `.npy` file | | |
//! | any other | raw, in native byte order | `shape`, `element-type` | the file's name without ending |
//!
//! One tensor is attached to every frame. A tensor for each frame is either a file for each (a
//! `location` such as `frame%05d.npy`, counted from 0, all with the id of the first), or one file
//! that holds several of `shape`: raw, or `.npy` with one dimension more in front. Frames are the
//! buffers since the element started or was last flushed, wherever a seek went. Past the last
//! recorded frame the recording starts over or, with `repeat=false`, the stream ends.
//!
//! A file is a regular file of at most 1 GiB: no FIFO, no device. It is read into memory once and
//! frames share it; with a file for each frame, each is read when it is its turn.

mod csv;
mod file;
mod imp;
mod npy;
mod pattern;
mod recording;

use gst::glib;
use gst::prelude::*;

use crate::type_names::format;

glib::wrapper! {
    /// The element.
    pub struct TensorReplay(ObjectSubclass<imp::TensorReplay>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// What the elements of a raw recording are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstTensorReplayType", allow_name_conflict)]
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
