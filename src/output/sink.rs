// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the regions of a buffer.
//!
//! In: the regions of each frame of a buffer. Out: metadata on the buffer, or on the frames of its batch. If the
//! decoded tensors are to be removed, the buffer no longer has them.

use gst::glib;

use super::deepstream::{self, ClassColors, Task};
use super::{DetailedRegion, FrameRegions, Kinds, Labels, MaskBuffers};
use crate::deepstream::DeepStreamError;
use crate::input::source::{Images, Sources};

/// The object to which regions are attached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A buffer that contains a single frame. The size of the frame is `None` if it is unknown.
    Frame(Option<[u32; 2]>),
    /// The frames of a DeepStream batch.
    Batch {
        /// The id of the inference element whose tensors were decoded.
        unique_id: u32,
        /// The size of the frame, if it is the only one in the batch. The buffer then counts as this frame, too.
        only_frame: Option<[u32; 2]>,
    },
}

/// Attaches regions, and removes tensors.
pub(crate) struct Sink<'a> {
    pub target: Target,
    pub kinds: Kinds,
    pub keep_tensors: bool,
    /// The colors of DeepStream's objects.
    pub colors: &'a ClassColors,
    /// The readers of the tensors.
    pub sources: &'a Sources,
}

/// The reason why regions cannot be attached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("regions cannot be attached: {0}")]
    Attach(#[from] glib::BoolError),
    #[error(transparent)]
    DeepStream(#[from] DeepStreamError),
}

impl Target {
    /// Returns the buffer or the batch from which `images` were read.
    pub fn of(images: Images<'_, '_>) -> Self {
        match images {
            Images::Frame { size, .. } => Self::Frame(size),
            Images::Batch(batch) => {
                let only_frame = (batch.found.all_frames == 1).then(|| batch.frames()[0].size);
                Self::Batch { unique_id: batch.found.unique_id, only_frame }
            }
        }
    }
}

impl Sink<'_> {
    /// Returns whether the frame with this index and size already has `region`.
    pub fn is_attached(
        &self,
        buffer: &mut gst::BufferRef,
        (frame, size): (usize, [u32; 2]),
        region: DetailedRegion<'_>,
        labels: &mut Labels,
    ) -> bool {
        match self.target {
            Target::Frame(Some(size)) => {
                super::is_attached(buffer, size, region, labels, self.kinds)
            }
            Target::Batch { unique_id, .. } if self.kinds.nvds => {
                let batch = self.sources.batches.batch_meta(buffer);
                batch.is_some_and(|batch| {
                    deepstream::is_attached(batch, (frame, size), region, labels, unique_id)
                })
            }
            _ => false,
        }
    }

    /// Attaches the regions of each frame, and removes the tensors unless they are to be kept.
    ///
    /// # Errors
    /// If GStreamer or DeepStream cannot add metadata, or if DeepStream's metadata is damaged.
    pub fn attach(
        &self,
        buffer: &mut gst::BufferRef,
        regions: &FrameRegions,
        labels: &mut Labels,
        mask_buffers: &mut MaskBuffers,
    ) -> Result<(), OutputError> {
        let frame = match self.target {
            Target::Frame(size) => size,
            Target::Batch { unique_id, only_frame } => {
                let (add_objects, remove_tensors) = (self.kinds.nvds, !self.keep_tensors);
                let task = Task { unique_id, add_objects, remove_tensors };
                if let Some(batch) = self.sources.batches.batch_meta(buffer) {
                    deepstream::attach(batch, regions.frames(), labels, self.colors, task)?;
                }
                only_frame
            }
        };
        if let Some(size) = frame {
            super::attach(buffer, size, regions.all(), labels, mask_buffers, self.kinds)?;
        }
        #[cfg(feature = "v1_20")]
        if matches!(self.target, Target::Frame(_)) && !self.keep_tensors {
            self.sources.tensor_sets.remove(buffer);
        }
        Ok(())
    }
}
