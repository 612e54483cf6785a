// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the regions of a buffer.
//!
//! In: the regions of each frame of a buffer, and for each model the labels and the metadata to write. Out: metadata on
//! the buffer, or on the frames of its batch; and the buffer without the tensors that were decoded, if they are to be
//! removed.

use gst::glib;

use super::deepstream::{self, ClassColors, Task};
use super::{
    DetailedRegion, DetailedRegions, FrameId, FrameRegions, Kinds, Labels, MaskBuffers,
    object_parent,
};
use crate::deepstream::DeepStreamError;
use crate::input::InputError;
use crate::input::analytics_batch;
use crate::input::deepstream::TensorPlace;
use crate::input::source::{Images, Sources};

/// The buffer or the frames that regions are attached to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A buffer that is a frame.
    Frame,
    /// The frames of a batch of DeepStream.
    Batch {
        /// The id of the inference element whose tensors were decoded.
        unique_id: u32,
        /// True if the batch has one frame: the buffer is this frame, too.
        is_frame: bool,
        /// The owner of the tensors.
        place: TensorPlace,
    },
    /// The frames of a batch of GStreamer's analytics library.
    Streams,
}

/// Attaches regions, and removes tensors.
pub(crate) struct Sink<'a> {
    pub target: Target,
    /// The colors of DeepStream's objects.
    pub colors: &'a ClassColors,
    /// The readers of the tensors.
    pub sources: &'a mut Sources,
}

/// The settings for the frames of a model.
pub(crate) struct ModelOutput<'a> {
    pub labels: &'a mut Labels,
    pub kinds: Kinds,
    pub keep_tensors: bool,
}

/// The models of the frames of a buffer.
pub(crate) trait ModelOutputs {
    /// The settings for the frames of the model with this index ([`FrameId::model`]).
    fn output(&mut self, model: usize) -> ModelOutput<'_>;
}

/// The reason for which regions cannot be attached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("regions cannot be attached: {0}")]
    Attach(#[from] glib::BoolError),
    #[error(transparent)]
    DeepStream(#[from] DeepStreamError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("stream {number} of the batch: {error}")]
    Stream { number: u32, error: Box<Self> },
}

impl Target {
    /// Returns the buffer or the batch from which `images` were read.
    pub fn of(images: Images<'_, '_>) -> Self {
        match images {
            Images::Frames(_) => Self::Frame,
            Images::Batch(batch) => Self::Batch {
                unique_id: batch.found.unique_id,
                is_frame: batch.found.all_frames == 1,
                place: batch.found.place,
            },
        }
    }
}

impl Sink<'_> {
    /// Returns true if the frame already has the classes of `images`. Frames of batches are not searched.
    pub fn has_classes(
        &self,
        buffer: &gst::BufferRef,
        frame: FrameId,
        images: DetailedRegions<'_>,
        models: &mut impl ModelOutputs,
    ) -> bool {
        let ModelOutput { labels, kinds, .. } = models.output(frame.model);
        matches!(self.target, Target::Frame)
            && super::has_classes(buffer, frame.size, images, labels, kinds)
    }

    /// Returns true if the frame already has `region`.
    pub fn is_attached(
        &self,
        buffer: &mut gst::BufferRef,
        frame: FrameId,
        region: DetailedRegion<'_>,
        models: &mut impl ModelOutputs,
    ) -> bool {
        let ModelOutput { labels, kinds, .. } = models.output(frame.model);
        match self.target {
            Target::Frame => super::is_attached(buffer, frame.size, region, labels, kinds),
            Target::Batch { unique_id, .. } => {
                let batch = self.sources.batches.batch_meta(buffer).filter(|_| kinds.nvds);
                batch.is_some_and(|batch| {
                    deepstream::is_attached(batch, frame, region, labels, unique_id)
                })
            }
            Target::Streams => {
                let Some(batch) = buffer.meta::<gst_newer::AnalyticsBatchMeta>() else {
                    return false;
                };
                let frames = &mut analytics_batch::frames(&batch);
                frames.nth(frame.index).is_some_and(|read| {
                    super::is_attached(read.buffer, frame.size, region, labels, kinds)
                })
            }
        }
    }

    /// Attaches the regions of each frame, and removes the tensors unless they are to be kept.
    ///
    /// # Errors
    /// If GStreamer or DeepStream cannot add metadata, or if DeepStream's metadata is damaged.
    pub fn attach(
        &mut self,
        buffer: &mut gst::BufferRef,
        regions: &FrameRegions,
        models: &mut impl ModelOutputs,
        mask_buffers: &mut MaskBuffers,
    ) -> Result<(), OutputError> {
        let Some((frame, found)) = regions.frames().next() else { return Ok(()) };
        match self.target {
            Target::Frame => {
                let ModelOutput { labels, kinds, keep_tensors } = models.output(frame.model);
                super::attach(buffer, frame.size, found, labels, mask_buffers, kinds)?;
                if !keep_tensors {
                    self.remove_tensors(buffer);
                }
            }
            Target::Batch { unique_id, is_frame, place } => {
                let ModelOutput { labels, kinds, keep_tensors } = models.output(frame.model);
                let task = Task {
                    unique_id,
                    add_objects: kinds.nvds,
                    remove_tensors: !keep_tensors,
                    place,
                };
                if let Some(batch) = self.sources.batches.batch_meta(buffer) {
                    deepstream::attach(batch, regions.frames(), labels, self.colors, task)?;
                }
                if is_frame {
                    let with_ids;
                    let mut found = found;
                    if place != TensorPlace::Frames
                        && let Some(batch) = self.sources.batches.batch_meta(buffer)
                    {
                        let objects = object_parent::objects(batch, frame)?;
                        with_ids = object_parent::with_ids(buffer, &objects, found.regions);
                        found = DetailedRegions { regions: &with_ids, ..found };
                    }
                    super::attach(buffer, frame.size, found, labels, mask_buffers, kinds)?;
                }
            }
            Target::Streams => self.attach_to_streams(buffer, regions, models, mask_buffers)?,
        }
        Ok(())
    }

    /// Attaches the regions to the frames of a batch of GStreamer's analytics library. A frame that has other references
    /// is replaced by a copy.
    fn attach_to_streams(
        &mut self,
        buffer: &mut gst::BufferRef,
        regions: &FrameRegions,
        models: &mut impl ModelOutputs,
        mask_buffers: &mut MaskBuffers,
    ) -> Result<(), OutputError> {
        let mut decoded = regions.frames().peekable();
        let mut index = 0;
        analytics_batch::try_for_each_frame(buffer, |mut frame| {
            let found = decoded.next_if(|(id, _)| id.index == index);
            index += 1;
            let Some((id, found)) = found else { return Ok(()) };
            let ModelOutput { labels, kinds, keep_tensors } = models.output(id.model);
            let number = frame.stream;
            let mut attach = || {
                if !keep_tensors {
                    // The reader removes the set that it has read last.
                    self.sources.tensor_sets.read(frame.buffer())?;
                }
                let buffer = frame.make_mut();
                super::attach(buffer, id.size, found, labels, mask_buffers, kinds)?;
                if !keep_tensors {
                    self.remove_tensors(buffer);
                }
                Ok(())
            };
            attach().map_err(|error| OutputError::Stream { number, error: Box::new(error) })
        })
    }

    fn remove_tensors(&self, buffer: &mut gst::BufferRef) {
        self.sources.tensor_sets.remove(buffer);
    }
}
