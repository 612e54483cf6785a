// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's state from start to stop: the open model, and how it is run on the frames of a buffer.
//!
//! In: a buffer. Out: the buffer, with tensors on its frames.

#[cfg(feature = "v1_28")]
use std::ops::Range;

use gst::glib;
use gst_video::VideoInfo;

use crate::inference::error::InferenceError;
use crate::inference::{Inference, InferenceOptions, provider};
#[cfg(feature = "v1_28")]
use gstnmsfilter::input::analytics_batch::{self, StreamFrame};
use gstnmsfilter::input::custom_meta;

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
    /// The format of the frames; `None` before caps.
    pub frame: Option<VideoInfo>,
    /// True if buffers are batches of GStreamer's analytics library.
    #[cfg(feature = "v1_28")]
    pub has_streams: bool,
}

impl State {
    /// Runs the model on the frame, and attaches the outputs.
    pub fn run(&mut self, buffer: &mut gst::BufferRef) -> Result<(), InferenceError> {
        let name = &self.name;
        self.inference
            .run(buffer, |buffer, tensor| Ok(custom_meta::attach_from(buffer, tensor, name)?))
    }

    /// Runs the model once, on as many of the batch's `frames` as it takes, and attaches the outputs. A frame that
    /// has other references is replaced by a copy. Returns the number of frames, and the number of uploaded bytes.
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

    /// Replaces the model on the GPU by a model on the CPU.
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

/// Calls `process` for each of the `chosen` frames of a batch, with the frame's index among them. Errors name the
/// stream.
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
