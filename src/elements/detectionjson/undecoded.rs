// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines whether detections are missing because no element has decoded the tensors.
//!
//! In: a frame without detections. Out: whether the frame has tensors, and whether an element upstream decodes
//! tensors. Both are needed: a decoder may leave the tensors on the frame, so a frame with tensors alone does not
//! show that a decoder is missing.

use gst::prelude::*;

use super::upstream;
use crate::input::Tensors;

/// Returns whether a frame has tensors other than DeepStream's.
pub fn has_tensors(frame: &gst::BufferRef) -> bool {
    Tensors::of(frame).is_ok_and(|tensors| !tensors.is_empty())
}

/// Returns whether an element upstream of `element` decodes tensors.
pub fn has_decoder(element: &gst::Element) -> bool {
    upstream::elements(element).any(|element| is_decoder(&element))
}

fn is_decoder(element: &gst::Element) -> bool {
    element.factory().is_some_and(|factory| {
        let class = factory.metadata(gst::ELEMENT_METADATA_KLASS);
        factory.name() == "nmsfilter" || class.is_some_and(|class| class.contains("Tensordecoder"))
    })
}
