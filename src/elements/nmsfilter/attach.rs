// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the regions of a buffer.
//!
//! In: the regions of each frame of a buffer, and their models with labels and settings. Out: metadata on the buffer, or on
//! the frames of its batch; and the buffer without the tensors that were decoded, if they are to be removed.

use super::NmsFilter;
use super::decode::FrameDecoder;
use super::error::FrameError;
use super::session::Session;
use super::words::ElementNotice;
use crate::deepstream::ObjectColors;
use crate::input::InputError;
use crate::input::analytics_batch;
use crate::input::deepstream::{Found, TensorPlace};
use crate::output::deepstream;
use crate::output::{self, DetailedRegions, Kinds, object_parent};

impl Session {
    /// Attaches the regions of each frame, and removes the tensors unless `keep-tensors` is set. `batch` is the batch of
    /// DeepStream that the frames are of; if it has one frame, the buffer is this frame, too.
    ///
    /// # Errors
    /// If GStreamer or DeepStream cannot add metadata, or if DeepStream's metadata is damaged.
    pub(super) fn attach(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        batch: Option<Found>,
    ) -> Result<(), FrameError> {
        self.warn_if_repeated(element, buffer, batch);
        if self.has_streams {
            return self.attach_to_streams(buffer);
        }
        let Self { decoder: FrameDecoder { regions, .. }, models, batches, mask_buffers, .. } =
            self;
        let Some((frame, mut found)) = regions.frames().next() else { return Ok(()) };
        let model = &mut models[frame.model];
        let (kinds, keep_tensors) = (model.settings.attach, model.settings.keep_tensors);
        match batch {
            None => {
                output::attach(buffer, frame.size, found, &mut model.labels, mask_buffers, kinds)?;
                if !keep_tensors {
                    self.tensor_sets.remove(buffer);
                }
            }
            Some(Found { unique_id, all_frames, place, .. }) => {
                if let Some(batch) = batches.batch_meta(buffer) {
                    let colors = |class: u32| match &model.settings.nvinfer {
                        Some(config) => config.of(class as usize).colors,
                        None => ObjectColors::default(),
                    };
                    let (frames, labels) = (regions.frames(), &mut model.labels);
                    let add = kinds.contains(Kinds::NVDS);
                    let remove_from = (!keep_tensors).then_some(place);
                    deepstream::attach(batch, frames, labels, colors, unique_id, add, remove_from)
                        .map_err(InputError::from)?;
                }
                if all_frames > 1 {
                    return Ok(());
                }
                let with_ids;
                if place != TensorPlace::Frames
                    && let Some(batch) = batches.batch_meta(buffer)
                {
                    with_ids = object_parent::with_ids(batch, buffer, frame, found.regions)
                        .map_err(InputError::from)?;
                    found = DetailedRegions { regions: &with_ids, ..found };
                }
                output::attach(buffer, frame.size, found, &mut model.labels, mask_buffers, kinds)?;
            }
        }
        Ok(())
    }

    /// Attaches the regions to the frames of a batch of GStreamer's analytics library. A frame that has other references
    /// is replaced by a copy.
    fn attach_to_streams(&mut self, buffer: &mut gst::BufferRef) -> Result<(), FrameError> {
        let mut decoded = self.decoder.regions.frames().peekable();
        let tensor_sets = &mut self.tensor_sets;
        let mut index = 0;
        analytics_batch::try_for_each_frame(buffer, |mut frame| {
            let found = decoded.next_if(|(id, _)| id.index == index);
            index += 1;
            let Some((id, found)) = found else { return Ok(()) };
            let model = &mut self.models[id.model];
            let (kinds, keep_tensors) = (model.settings.attach, model.settings.keep_tensors);
            let stream = Some(frame.stream);
            let (buffer, labels) = (frame.make_mut(), &mut model.labels);
            output::attach(buffer, id.size, found, labels, &mut self.mask_buffers, kinds)
                .map_err(|error| FrameError::from(error).in_stream(stream))?;
            if !keep_tensors {
                tensor_sets.remove(buffer);
            }
            Ok(())
        })
    }

    /// Posts a notice if the first frame with a region already has it, or the first with a class already has that.
    fn warn_if_repeated(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        batch: Option<Found>,
    ) {
        let Self { decoder, models, batches, has_streams, .. } = self;
        let FrameDecoder { regions, notices, .. } = decoder;
        let first = |has: fn(&DetailedRegions<'_>) -> bool| {
            regions.frames().find(move |(_, found)| has(found))
        };
        let first = [
            (ElementNotice::RepeatedRegion, first(|found| !found.regions.is_empty())),
            (ElementNotice::RepeatedClasses, first(|found| !found.classified.is_empty())),
        ];
        for (notice, found) in first {
            let Some((frame, found)) = found else { continue };
            let model = &mut models[frame.model];
            let (kinds, labels) = (model.settings.attach, &mut model.labels);
            notices.post_if(element, notice, || match batch {
                None if *has_streams => {
                    buffer.meta::<gst_newer::AnalyticsBatchMeta>().is_some_and(|batch| {
                        analytics_batch::frames(&batch).nth(frame.index).is_some_and(|read| {
                            output::is_attached(read.buffer, frame.size, found, labels, kinds)
                        })
                    })
                }
                None => output::is_attached(buffer, frame.size, found, labels, kinds),
                Some(Found { unique_id, .. }) => {
                    let batch = batches.batch_meta(buffer).filter(|_| kinds.contains(Kinds::NVDS));
                    batch.zip(found.iter().next()).is_some_and(|(batch, region)| {
                        deepstream::is_attached(batch, frame, region, labels, unique_id)
                    })
                }
            });
        }
    }
}
