// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run for several frames of an element, which came on one buffer.
//!
//! In: the frames, one after the other. Out: for each the tensors of its slot.

use gst_video::VideoInfo;

use super::error::InferenceError;
use super::instance::{Entry, Run};
use super::pictures::Pictures;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::Event;

/// A run that takes frames. Dropped before [`run`](Self::run), it leaves their places empty.
pub struct FramesRun<'i> {
    pub(super) pictures: &'i mut Pictures,
    pub(super) entry: Entry<'i>,
    pub(super) last_run: &'i mut Run,
    /// The event of the last picture. Those before complete before it, in the same stream.
    pub(super) written: Option<Event>,
    /// For each frame that is written, as [`Pictures::description`].
    pub(super) descriptions: Vec<Option<gst::Caps>>,
}

impl FramesRun<'_> {
    /// The frames that it takes.
    pub fn capacity(&self) -> usize {
        self.entry.pictures
    }

    /// Makes the next picture of a frame of this format. Returns the bytes that the GPU can read of it, if it is in host
    /// memory.
    ///
    /// # Errors
    /// If the frame cannot be scaled.
    ///
    /// # Panics
    /// After as many as [`capacity`](Self::capacity).
    pub fn write(
        &mut self,
        format: &VideoInfo,
        frame: &gst::BufferRef,
    ) -> Result<u64, InferenceError> {
        let written = self.descriptions.len();
        assert!(written < self.capacity(), "there are places for {}", self.capacity());
        self.pictures.set_frame(format)?;
        let prepared = self.pictures.prepare(frame)?;
        let (input, place) = (self.entry.input, self.entry.first + written);
        // SAFETY: the input is that of the model, which `pictures` was made for. The places are those of the entry, and its
        // run begins after `Entry::run` is called.
        self.written = unsafe { self.pictures.write(prepared, input, place) }?;
        self.descriptions.push(self.pictures.description());
        Ok(self.pictures.uploaded)
    }

    /// Runs the model, with the frames of other elements. On a GPU the run may still be in progress.
    ///
    /// # Errors
    /// If the model fails.
    ///
    /// # Panics
    /// If fewer frames than [`capacity`](Self::capacity) are written.
    pub fn run(&mut self) -> Result<Run, InferenceError> {
        assert_eq!(self.descriptions.len(), self.capacity(), "all places have a frame");
        *self.last_run = self.entry.run(self.written)?;
        Ok(*self.last_run)
    }

    /// Calls `attach` with each tensor of frame number `index`.
    ///
    /// # Errors
    /// That of `attach`.
    pub fn tensors<E>(
        &self,
        index: usize,
        attach: impl FnMut(&NewTensor) -> Result<(), E>,
    ) -> Result<(), E> {
        self.entry.tensors(index, self.descriptions[index].as_ref(), attach)
    }
}
