// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches recorded tensors to video buffers, as an inference element would.
//!
//! ```text
//! gst-launch-1.0 videotestsrc ! video/x-raw,width=1920,height=744 ! tensorreplay location=windows.csv ! nmsfilter ! fakesink
//! ```
//!
//! In: video buffers, and files. Out: these buffers with tensors as metadata. Each element attaches
//! one tensor, after all tensors that the buffer already has. For models with several outputs, use
//! several elements. The extension of `location` determines how a file is read:
//!
//! | extension | content | shape | id, unless `tensor-id` is set |
//! | --- | --- | --- | --- |
//! | `.csv`, `.txt` | lines `x,y,side,score` | f32, `Nx4` | `windows` |
//! | `.npy` | little-endian f32 or f16 in C order | the file's | the file's name without extension |
//! | `.npz` | refused: unpack it, each array is a `.npy` file | | |
//! | any other | raw, in native byte order | `shape`, `element-type` | the file's name without extension |
//!
//! A single tensor is attached to every frame. A recording with a tensor per frame is either a file
//! per frame, or one file with several tensors. For a file per frame, `location` is a pattern such
//! as `frame%05d.npy`; numbers start at 0, and all tensors have the id of the first. A file with
//! several tensors of `shape` is raw, or `.npy` with an additional first dimension. Frames are
//! counted from the start of the element or the last flush, no matter to which position a seek
//! goes. After the last recorded frame, the recording repeats, or the stream ends if `repeat` is
//! false.
//!
//! A file must be regular and have at most 1 GiB. FIFOs and devices are refused. A file is read
//! into memory once, and frames share the memory. If there is a file per frame, each file is read
//! when its frame is processed.

mod csv;
mod file;
mod imp;
mod npy;
mod pattern;
mod recording;

use gst::glib;
use gst::prelude::*;

use gstnmsfilter::format_type_name as format;
use gstnmsfilter::tensor::ElementType;

glib::wrapper! {
    /// The element `tensorreplay`.
    pub struct TensorReplay(ObjectSubclass<imp::TensorReplay>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// The element type of a raw recording.
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
    /// Signed, 8 bits.
    #[enum_value(name = "Signed integers of 8 bits", nick = "i8")]
    I8 = 2,
    /// Unsigned, 8 bits.
    #[enum_value(name = "Unsigned integers of 8 bits", nick = "u8")]
    U8 = 3,
    /// Signed, 32 bits.
    #[enum_value(name = "Signed integers of 32 bits, native byte order", nick = "i32")]
    I32 = 4,
    /// Signed, 64 bits.
    #[enum_value(name = "Signed integers of 64 bits, native byte order", nick = "i64")]
    I64 = 5,
}

impl From<RawType> for ElementType {
    fn from(raw: RawType) -> Self {
        match raw {
            RawType::F32 => Self::F32,
            RawType::F16 => Self::F16,
            RawType::I8 => Self::I8,
            RawType::U8 => Self::U8,
            RawType::I32 => Self::I32,
            RawType::I64 => Self::I64,
        }
    }
}

/// Registers the element with `plugin`.
///
/// # Errors
/// Returns an error if GStreamer refuses to register the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "tensorreplay",
        gst::Rank::NONE,
        TensorReplay::static_type(),
    )
}
