// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the model once on several frames of one buffer.
//!
//! In: the frames, one after the other. Out: for each frame, the tensors of its slot.

use gst_video::VideoInfo;

use super::error::InferenceError;
use super::instance::{BatchEntry, Run};
use super::pictures::Pictures;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::Event;
use nmsfilter_core::geometry::FrameRegion;

/// A run that collects frames. If it is dropped before [`run`](Self::run), its places in the batch stay empty.
pub struct FramesRun<'i> {
    pub(super) pictures: &'i mut Pictures,
    pub(super) entry: BatchEntry<'i>,
    pub(super) last_run: &'i mut Run,
    /// The event of the last picture. All pictures are made in one stream, so the earlier ones complete before it.
    pub(super) written: Option<Event>,
    /// The [`Pictures::description`] for each frame written so far.
    pub(super) descriptions: Vec<Option<gst::Caps>>,
}

impl FramesRun<'_> {
    /// Returns the number of frames that the run takes.
    pub fn capacity(&self) -> usize {
        self.entry.pictures
    }

    /// Makes the next picture, from a frame of this format. Afterwards, if the frame is in host memory, the GPU can
    /// read the returned number of its bytes.
    ///
    /// # Errors
    /// If the frame cannot be scaled.
    ///
    /// # Panics
    /// If [`capacity`](Self::capacity) frames have already been written.
    pub fn write(
        &mut self,
        format: &VideoInfo,
        frame: &gst::BufferRef,
    ) -> Result<u64, InferenceError> {
        let written = self.descriptions.len();
        assert!(written < self.capacity(), "there are places for {}", self.capacity());
        self.pictures.set_frame(format)?;
        let whole = FrameRegion::whole([format.width(), format.height()]);
        let prepared = self.pictures.prepare(frame, [whole])?;
        let (input, place) = (self.entry.input, self.entry.first + written);
        // SAFETY: `pictures` was made for the model that this input belongs to. The places belong to this entry,
        // and the entry's run does not begin before `BatchEntry::run` is called.
        let result = unsafe { self.pictures.write(&prepared, 0..1, input, place) };
        self.pictures.release(prepared)?;
        self.written = result?;
        self.descriptions.push(self.pictures.description());
        Ok(self.pictures.uploaded)
    }

    /// Runs the model on these frames and on the frames that other elements have added to the batch. On a GPU, the
    /// run may still be in progress when this function returns.
    ///
    /// # Errors
    /// If the model fails.
    ///
    /// # Panics
    /// If fewer than [`capacity`](Self::capacity) frames have been written.
    pub fn run(&mut self) -> Result<Run, InferenceError> {
        assert_eq!(self.descriptions.len(), self.capacity(), "all places have a frame");
        *self.last_run = self.entry.run(self.written)?;
        Ok(*self.last_run)
    }

    /// Calls `attach` with each tensor of the frame with number `index`.
    ///
    /// # Errors
    /// If `attach` returns an error.
    pub fn tensors<E>(
        &self,
        index: usize,
        attach: impl FnMut(&NewTensor) -> Result<(), E>,
    ) -> Result<(), E> {
        self.entry.tensors(index, self.descriptions[index].as_ref(), attach)
    }
}
