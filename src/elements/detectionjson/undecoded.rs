// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines whether detections are missing because no element has decoded the tensors.
//!
//! In: a frame without detections. Out: whether the frame has tensors, and whether an element upstream decodes
//! tensors. Both are needed: a decoder may leave the tensors on the frame, so a frame with tensors alone does not
//! show that a decoder is missing.

use gst::prelude::*;

use crate::input::Tensors;

/// Returns whether a frame has tensors other than DeepStream's.
pub fn has_tensors(frame: &gst::BufferRef) -> bool {
    Tensors::of(frame).is_ok_and(|tensors| !tensors.is_empty())
}

/// Returns whether an element upstream of `element` decodes tensors.
pub fn has_decoder(element: &gst::Element) -> bool {
    let mut elements = vec![element.clone()];
    let mut next = 0;
    while let Some(element) = elements.get(next).cloned() {
        next += 1;
        for upstream in element.sink_pads().iter().filter_map(linked_element) {
            if is_decoder(&upstream) {
                return true;
            }
            if !elements.contains(&upstream) {
                elements.push(upstream);
            }
        }
    }
    false
}

/// Returns the element whose source pad is linked to a sink pad, directly or across the borders of bins.
fn linked_element(sink: &gst::Pad) -> Option<gst::Element> {
    let mut source = sink.peer()?;
    loop {
        if let Some(ghost) = source.downcast_ref::<gst::GhostPad>() {
            source = ghost.target()?;
            continue;
        }
        match source.parent()?.downcast::<gst::Element>() {
            Ok(element) => return Some(element),
            // The pad is the inner side of a ghost pad. Continue at its outer side.
            Err(parent) => source = parent.downcast::<gst::GhostPad>().ok()?.peer()?,
        }
    }
}

fn is_decoder(element: &gst::Element) -> bool {
    element.factory().is_some_and(|factory| {
        let class = factory.metadata(gst::ELEMENT_METADATA_KLASS);
        factory.name() == "nmsfilter" || class.is_some_and(|class| class.contains("Tensordecoder"))
    })
}
