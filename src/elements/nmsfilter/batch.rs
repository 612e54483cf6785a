// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processing of a batch of DeepStream.
//!
//! In: a buffer with frames and their tensors. Out: the same buffer, whose frames have objects, and the counts of
//! all frames. The frames of one size and one input of the model are decoded in one run of the engine.

use super::NmsFilter;
use super::debug_category::CAT;
use super::enums::NmsFilterLetterbox;
use super::error::FrameError;
use super::plan::PlanInput;
use super::session::{FrameResult, Session};
use super::stats::FrameCounts;
use crate::input::deepstream::{Batch, Reader};
use crate::output::deepstream::{FrameRegions, Task};
use crate::output::{self, Kinds};

impl Session {
    /// Processes `buffer` if it has a batch of DeepStream whose frames have tensors, else returns `None`.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    pub(super) fn process_batch(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        reader: &mut Reader,
    ) -> Result<Option<FrameResult>, FrameError> {
        let pts = buffer.pts();
        let Some(batch) = reader.read(buffer, self.batch_caps(), !self.decoded)? else {
            return Ok(None);
        };
        let (all_frames, unique_id) = (batch.found.all_frames, batch.found.unique_id);
        self.frames = all_frames;
        self.warn_of_batch(element, &batch);
        if batch.frames().is_empty() {
            return Ok(None);
        }
        if self.model.clear() {
            self.labels.set_model(&[]);
            self.plan = None;
        }
        if self.plan.is_none() {
            gst::debug!(CAT, obj = element, "DeepStream {}, {:?}", batch.version(), batch.found);
        }
        let size = batch.frames()[0].size;
        let mut counts = self.decode_batch(element, &batch, pts)?;
        counts.frames_without_tensors = all_frames - counts.frames;
        self.attach_to_batch(element, buffer, reader, unique_id)?;
        if all_frames == 1 {
            let kinds = Kinds::from(self.settings.attach);
            output::attach(buffer, size, &self.regions, &mut self.labels, kinds)?;
        }
        self.decoded = true;
        self.warnings.max_detections(element, self.settings.max_detections, counts.most_survivors);
        Ok(Some(FrameResult::Decoded(counts)))
    }

    fn warn_of_batch(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        self.warnings.unread_tensors(element, batch.layers(), batch.found.unread);
        self.warnings.other_inference(element, batch, self.settings.unique_id);
        self.warnings.tensors_elsewhere(element, batch);
        self.warnings.size_of_caps(element, batch);
        if self.settings.letterbox == NmsFilterLetterbox::Auto && !batch.frames().is_empty() {
            self.warnings.unknown_letterbox(element, batch);
        }
    }

    /// Decodes and suppresses. The regions are in `regions`, and for each frame in `batch_regions`.
    fn decode_batch(
        &mut self,
        element: &NmsFilter,
        batch: &Batch<'_>,
        pts: Option<gst::ClockTime>,
    ) -> Result<FrameCounts, FrameError> {
        let mut counts = FrameCounts::default();
        self.regions.clear();
        self.batch_regions.clear();
        for group in batch.groups() {
            let frames = &batch.frames()[group.clone()];
            let tensors = batch.tensors(group);
            let mut views = tensors.views();
            let (size, model) = (frames[0].size, batch.model_input(&frames[0]));
            let all_frames = Some(batch.found.all_frames);
            let input = PlanInput {
                tensors: &views,
                frame: Some(size),
                model,
                family: None,
                batch: all_frames,
            };
            self.update_plan(element, input, pts)?;
            let plan = self.plan.as_ref().expect("update_plan has made it");
            let part = plan.frame(size, model);
            plan.quantization.apply(&mut views);
            let outcome = self.engine.run(&views, &plan.choice.layout, &part.params)?;
            for (frame, image) in frames.iter().zip(outcome.images()) {
                let first = self.regions.len();
                let regions = image.survivors.iter().filter_map(|d| part.mapping.region(d));
                self.regions.extend(regions);
                self.batch_regions.push((frame.index, first..self.regions.len()));
            }
            counts.add(&outcome);
            self.contradictions.add(element, &outcome, part.anchors(&plan.choice.layout), pts);
        }
        self.batch_regions.sort_unstable_by_key(|(index, _)| *index);
        Ok(counts)
    }

    /// Attaches the regions of each frame as its objects, and removes the tensors unless `keep-tensors` is set.
    fn attach_to_batch(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        reader: &Reader,
        unique_id: u32,
    ) -> Result<(), FrameError> {
        let Self { labels, regions, batch_regions, warnings, settings, .. } = self;
        let kinds = Kinds::from(settings.attach);
        let task =
            Task { unique_id, add_objects: kinds.nvds, remove_tensors: !settings.keep_tensors };
        if let Some(batch) = reader.batch_meta(buffer) {
            if kinds.nvds
                && let Some((index, range)) =
                    batch_regions.iter().find(|(_, range)| !range.is_empty())
            {
                let best = &regions[range.start];
                warnings.repeated_region(element, best, || {
                    output::deepstream::is_attached(batch, *index, best, labels, unique_id)
                });
            }
            let frames = batch_regions.iter().map(|(frame, range)| FrameRegions {
                frame: *frame,
                regions: &regions[range.clone()],
            });
            output::deepstream::attach(batch, frames, labels, task)?;
        }
        Ok(())
    }
}
