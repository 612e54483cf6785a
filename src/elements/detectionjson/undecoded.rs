// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether detections are missing because no element has decoded the tensors.
//!
//! In: a frame without detections. Out: whether it carries tensors, and no element upstream is a decoder of them. A
//! decoder may leave the tensors on the frame, so that tensors alone do not show that it is missing.

use gst::prelude::*;

use crate::input::Tensors;

/// Whether a frame carries tensors, of any kind but DeepStream's.
pub fn has_tensors(frame: &gst::BufferRef) -> bool {
    Tensors::of(frame).is_ok_and(|tensors| !tensors.is_empty())
}

/// Whether one of the elements upstream of `element` decodes tensors.
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

/// The element whose source pad is linked to a sink pad, also through the borders of bins.
fn linked_element(sink: &gst::Pad) -> Option<gst::Element> {
    let mut source = sink.peer()?;
    loop {
        if let Some(ghost) = source.downcast_ref::<gst::GhostPad>() {
            source = ghost.target()?;
            continue;
        }
        match source.parent()?.downcast::<gst::Element>() {
            Ok(element) => return Some(element),
            // The inner side of a ghost pad.
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
