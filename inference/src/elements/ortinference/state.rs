// SPDX-License-Identifier: MIT OR Apache-2.0
//! What exists from start to stop: the model, and what runs it on the frames of a buffer.
//!
//! In: a buffer. Out: its frames with tensors.

#[cfg(feature = "v1_28")]
use std::ops::Range;

use gst::glib;
use gst_video::VideoInfo;

use crate::inference::error::InferenceError;
use crate::inference::{Inference, InferenceOptions, provider};
#[cfg(feature = "v1_28")]
use gstnmsfilter::input::analytics_batch::{self, StreamFrame};
use gstnmsfilter::input::custom_meta;

/// What exists from start to stop.
pub struct State {
    /// The model.
    pub inference: Inference,
    /// What was opened.
    pub options: InferenceOptions,
    /// The element's name, by which `nmsfilter` selects its tensors.
    pub name: glib::GString,
    /// Whether the CPU replaces a GPU that fails.
    pub is_auto: bool,
    /// The format of frames; `None` before caps.
    pub frame: Option<VideoInfo>,
    /// Whether buffers are batches of GStreamer's analytics library.
    #[cfg(feature = "v1_28")]
    pub has_streams: bool,
}

impl State {
    /// Runs the model on the frame and attaches its outputs.
    pub fn run(&mut self, buffer: &mut gst::BufferRef) -> Result<(), InferenceError> {
        let name = &self.name;
        self.inference
            .run(buffer, |buffer, tensor| Ok(custom_meta::attach_from(buffer, tensor, name)?))
    }

    /// Runs the model once on frames of a batch, of those in `frames` as many as it takes, and attaches the outputs.
    /// Frames with other references are replaced by copies. Returns the number of frames, and the bytes that were
    /// uploaded.
    #[cfg(feature = "v1_28")]
    pub fn run_streams(
        &mut self,
        buffer: &mut gst::BufferRef,
        frames: Range<usize>,
    ) -> Result<(usize, u64), InferenceError> {
        let mut run = self.inference.frames_run(frames.len())?;
        let taken = run.capacity();
        let chosen = frames.start..frames.start + taken;
        let mut uploaded = 0;
        for_each_frame(buffer, &chosen, |_, frame| {
            let format = VideoInfo::from_caps(frame.caps.ok_or(InferenceError::NoCaps)?)?;
            uploaded += run.write(&format, frame.buffer())?;
            Ok(())
        })?;
        run.run()?;
        for_each_frame(buffer, &chosen, |index, frame| {
            let frame = frame.make_mut();
            run.tensors(index, |tensor| Ok(custom_meta::attach_from(frame, tensor, &self.name)?))
        })?;
        Ok((taken, uploaded))
    }

    /// Opens the model on the CPU.
    pub fn replace_gpu(&mut self) -> Result<(), InferenceError> {
        let mut inference = Inference::open(&self.options, provider::Provider::Cpu)?;
        if let Some(frame) = &self.frame {
            inference.set_frame(frame)?;
        }
        self.inference = inference;
        self.is_auto = false;
        Ok(())
    }
}

/// Calls `process` with each of the chosen frames of a batch, and its number among them. Errors name the stream.
#[cfg(feature = "v1_28")]
fn for_each_frame(
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
        process(index - chosen.start, &mut frame)
            .map_err(|error| InferenceError::Stream { number: stream, error: Box::new(error) })
    })
}
