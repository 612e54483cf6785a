// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's state from start to stop: the open model, and how it is run on the frames of a buffer.
//!
//! In: a buffer. Out: the buffer, with tensors on its frames, and a mark that says whether the model ran.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use gst::glib;
use gst_video::VideoInfo;

use super::schedule::Schedule;
use crate::inference::error::InferenceError;
use crate::inference::instance::Interrupt;
use crate::inference::{Inference, InferenceOptions, provider, run_regions};
use crate::regions::{RegionKind, Regions};
use gstnmsfilter::input::analytics_batch::{self, StreamFrame};
use gstnmsfilter::input::{custom_meta, inference_mark};
use nmsfilter_core::geometry::FrameRegion;

/// The data that exists from start to stop.
pub(super) struct State {
    /// The open model.
    pub inference: Inference,
    /// The options with which the model was opened.
    pub options: InferenceOptions,
    /// The element's name. `nmsfilter` can select the tensors by this name.
    pub name: glib::GString,
    /// True if the CPU replaces a GPU that fails.
    pub is_auto: bool,
    /// The choice of the frames on which the model runs.
    pub schedule: Schedule,
    /// The choice of the regions on which the model runs.
    pub regions: Regions,
    /// The format of the frames; `None` before caps.
    pub frame: Option<VideoInfo>,
    /// True if buffers are batches of GStreamer's analytics library.
    pub has_streams: bool,
}

impl State {
    /// Runs the model on the regions of the frame that were chosen last, and attaches the outputs.
    pub fn run(&mut self, buffer: &mut gst::BufferRef) -> Result<(), InferenceError> {
        let Self { inference, regions, name, .. } = self;
        let chosen = &regions.chosen;
        if chosen.is_empty() {
            inference_mark::attach_without_regions(buffer);
            return Ok(());
        }
        let Inference { pictures, member, last_run, batched } = inference;
        let prepared = pictures.prepare(buffer, chosen.iter().map(|region| region.pixels))?;
        let entries = run_regions(pictures, member, &prepared, chosen.len());
        pictures.release(prepared)?;
        let description = pictures.description();
        *batched = 0;
        let mut chosen = chosen.iter();
        for (run, entry) in &entries? {
            *batched += run.pictures * entry.pictures;
            *last_run = *run;
            for (picture, region) in (0..entry.pictures).zip(&mut chosen) {
                let region = Some(region).filter(|_| regions.settings.kind != RegionKind::Frame);
                entry.tensors(picture, description.as_ref(), |tensor| {
                    custom_meta::attach_of(buffer, tensor, Some(name), region)
                })?;
            }
        }
        inference_mark::attach(buffer, true);
        Ok(())
    }

    /// Marks the frame, or each frame of a batch, as passed without inference. Returns the number of frames.
    pub fn skip(&self, buffer: &mut gst::BufferRef) -> Result<u64, InferenceError> {
        if !self.has_streams {
            inference_mark::attach(buffer, false);
            return Ok(1);
        }
        let mut frames = 0;
        for_each_frame(buffer, &(0..usize::MAX), |_, frame| {
            inference_mark::attach(frame.make_mut(), false);
            frames += 1;
            Ok(())
        })?;
        Ok(frames)
    }

    /// Runs the model once, on as many of the batch's `frames` as it takes, and attaches the outputs. A frame that
    /// has other references is replaced by a copy. Returns the number of frames, and the number of uploaded bytes.
    pub fn run_streams(
        &mut self,
        buffer: &mut gst::BufferRef,
        frames: Range<usize>,
    ) -> Result<(usize, u64), InferenceError> {
        let Inference { pictures, member, last_run, .. } = &mut self.inference;
        let mut entry = member.enter(frames.len(), 1)?;
        let taken = entry.pictures;
        let chosen = frames.start..frames.start + taken;
        // All pictures are made in one stream, so that the earlier ones complete before the last one.
        let (mut written, mut uploaded, mut descriptions) = (None, 0, Vec::new());
        for_each_frame(buffer, &chosen, |index, frame| {
            let format = frame_format(frame)?;
            pictures.set_frame(&format)?;
            let whole = FrameRegion::whole([format.width(), format.height()]);
            let prepared = pictures.prepare(frame.buffer(), [whole])?;
            let (input, place) = (entry.input, entry.first + index);
            // SAFETY: `pictures` was made for the model that this input belongs to. The places belong to this entry, whose
            // run begins below.
            let result = unsafe { pictures.write(&prepared, 0..1, input, place) };
            pictures.release(prepared)?;
            written = result?;
            uploaded += pictures.uploaded;
            descriptions.push(pictures.description());
            Ok(())
        })?;
        assert_eq!(descriptions.len(), taken, "all places have a frame");
        *last_run = entry.run(written)?;
        for_each_frame(buffer, &chosen, |index, frame| {
            let frame = frame.make_mut();
            entry.tensors(index, descriptions[index].as_ref(), |tensor| {
                custom_meta::attach_of(frame, tensor, Some(&self.name), None)
            })?;
            inference_mark::attach(frame, true);
            Ok(())
        })?;
        Ok((taken, uploaded))
    }

    /// Returns the longest time that a frame waits for frames of other elements.
    pub fn batch_wait(&self) -> Duration {
        let has_others = self.options.instance_id.is_some();
        if has_others && self.inference.member.model().model.input.batch > 1 {
            self.options.batch_timeout
        } else {
            Duration::ZERO
        }
    }

    /// Replaces the model on the GPU by a model on the CPU.
    pub fn replace_gpu(&mut self, interrupt: &Arc<Interrupt>) -> Result<(), InferenceError> {
        let cpu = provider::Provider::Cpu;
        let mut inference = Inference::open(&self.options, cpu, interrupt)?;
        if let Some(frame) = &self.frame {
            inference.pictures.set_frame(frame)?;
        }
        self.inference = inference;
        self.is_auto = false;
        Ok(())
    }
}

/// Calls `process` for each of the `chosen` frames of a batch, with the frame's index among them. Errors name the
/// stream.
pub(super) fn for_each_frame(
    buffer: &mut gst::BufferRef,
    chosen: &Range<usize>,
    mut process: impl FnMut(usize, &mut StreamFrame<'_>) -> Result<(), InferenceError>,
) -> Result<(), InferenceError> {
    let mut number = 0;
    analytics_batch::try_for_each_frame(buffer, |mut frame| {
        let index = number;
        number += 1;
        if !chosen.contains(&index) {
            return Ok(());
        }
        let stream = frame.stream;
        process(index - chosen.start, &mut frame).map_err(|error| error.of_stream(stream))
    })
}

/// Returns the format of a batch's frame.
pub(super) fn frame_format(frame: &StreamFrame<'_>) -> Result<VideoInfo, InferenceError> {
    let caps = frame.caps.ok_or_else(|| {
        let problem =
            "a frame came before caps; expected video caps with format, width and height first";
        InferenceError::Stream(problem.to_owned())
    })?;
    Ok(VideoInfo::from_caps(caps)?)
}
