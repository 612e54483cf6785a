// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about input and settings that can be processed but are probably a mistake.
//!
//! In: tensors, regions and counts of a frame. Out: element warnings, each posted once.

use super::NmsFilter;
use super::imp::CAT;
use super::settings::Settings;
use crate::input::{MAX_TENSORS, Tensors};
use crate::output::{self, Kinds, Labels, Region};
use crate::tensor::MAX_RANK;

/// Which warnings have been posted since the element started.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    unread_tensors: bool,
    repeated_region: bool,
    /// The value of `max-detections` for which was reported that it is reached.
    max_detections: Option<u32>,
}

impl Warnings {
    /// Warns if tensors of the buffer are not read.
    pub fn unread_tensors(&mut self, element: &NmsFilter, tensors: &Tensors<'_>) {
        if tensors.unread() == 0 || std::mem::replace(&mut self.unread_tensors, true) {
            return;
        }
        gst::element_warning!(
            element,
            gst::StreamError::Format,
            (
                "the buffer carries {} tensors, of which {} are read: at most {MAX_TENSORS}, each \
                 of at most {MAX_RANK} dimensions; attach the detector's tensors alone, or first",
                tensors.len() + tensors.unread(),
                tensors.len()
            )
        );
    }

    /// Warns if the buffer already has `best`, which is about to be attached. Once the warning is
    /// posted, this is not checked any more.
    pub fn repeated_region(
        &mut self,
        element: &NmsFilter,
        buffer: &gst::BufferRef,
        (frame, best): ([u32; 2], Option<&Region>),
        labels: &mut Labels,
        kinds: Kinds,
    ) {
        let Some(best) = best.filter(|_| !self.repeated_region) else {
            return;
        };
        if !output::is_attached(buffer, frame, best, labels, kinds) {
            return;
        }
        self.repeated_region = true;
        gst::element_warning!(
            element,
            gst::StreamError::Format,
            ("the buffer already carries the best region that is about to be attached, so all \
                 regions may be attached twice; if an nmsfilter upstream has read the same \
                 tensors, set keep-tensors=false on that one"),
            ["region {:?} of class {}", best.pixels(frame), best.class]
        );
    }

    /// Reports that `max-detections` is reached: as a warning if it has its default value,
    /// otherwise in the log.
    pub fn max_detections(&mut self, element: &NmsFilter, limit: u32, survivors: usize) {
        let reached = limit > 0 && survivors >= limit as usize;
        if !reached || self.max_detections.replace(limit) == Some(limit) {
            return;
        }
        if limit != Settings::default().max_detections {
            gst::info!(CAT, obj = element, "max-detections={limit} is reached");
            return;
        }
        gst::element_warning!(
            element,
            gst::StreamError::Decode,
            ("a frame has {limit} detections or more, and only the best {limit} are attached, \
                 which is the default of max-detections; set max-detections to a larger number, \
                 or to 0 for all")
        );
    }
}
