// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark of frames that passed an inference element: whether the model ran on the frame.
//!
//! In: a frame, and whether the model ran on it. Out: the mark, for readers of the frame such as `detectionjson`.
//!
//! The mark is a `GstCustomMeta` named [`META_NAME`] (GStreamer 1.20). Its structure has the field `inferred`, a
//! boolean, and for a frame that had no region to run the model on, also `regions`, the int 0. A frame without a mark
//! has passed no element that writes marks, so nothing is known about it.
//!
//! The mark has no tags, because it does not depend on pixels: elements that convert, scale or turn the frame copy
//! it to the new frame.

use gst_newer::CustomMeta;

/// The name under which the metadata is registered.
pub const META_NAME: &str = "NmsFilterInference";

const FIELD: &str = "inferred";
const REGIONS: &str = "regions";

static META: CustomMeta = CustomMeta::new(META_NAME, &[]);

/// Registers the metadata with GStreamer. Further calls have no effect.
///
/// [`attach`] and [`is_inferred`] call this function.
pub fn register() {
    META.api();
}

/// Marks `frame` as a frame on which a model ran, or did not run. Without effect before GStreamer 1.20.
pub fn attach(frame: &mut gst::BufferRef, inferred: bool) {
    let _ = META.add(frame, |mark| mark.set(FIELD, inferred));
}

/// Marks `frame` as inferred, although it had no region to run the model on, so that it has no tensors.
pub fn attach_without_regions(frame: &mut gst::BufferRef) {
    let _ = META.add(frame, |mark| {
        mark.set(FIELD, true);
        mark.set(REGIONS, 0i32);
    });
}

/// Returns whether an element marked `frame` as a frame without a region to run a model on.
pub fn has_no_regions(frame: &gst::BufferRef) -> bool {
    META.structures(frame).any(|mark| mark.get::<i32>(REGIONS).is_ok_and(|regions| regions == 0))
}

/// Returns whether a model ran on `frame`, or `None` if the frame has no mark. If several elements marked the frame,
/// one model is enough.
pub fn is_inferred(frame: &gst::BufferRef) -> Option<bool> {
    META.structures(frame)
        .filter_map(|mark| mark.get::<bool>(FIELD).ok())
        .reduce(|one, other| one || other)
}
