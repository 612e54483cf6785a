// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metadata of a batch and its frames, and the lists that contain them.
//!
//! In: the batch of a buffer. Out: while the batch's lock is held, its frames and the metadata that is attached to
//! them.

use std::ptr::NonNull;

use super::DeepStreamError;
use super::layout::{StructureLayout, TENSOR_OUTPUT_META, Version, base, batch, frame, user};
use super::library::DeepStreamLibraries;
use super::record::{Field, List, Record};
use super::structures::Structures;

/// The maximum number of frames in a batch, and of entries in a list of metadata, that are read; no pipeline has
/// more. With this limit, a list that does not end is an error instead of an endless loop.
pub(super) const MAX_LIST: usize = 65_536;

/// The metadata of a batch, `NvDsBatchMeta`.
#[derive(Clone, Copy, Debug)]
pub struct BatchMeta<'a> {
    pub(super) library: &'a DeepStreamLibraries,
    /// The structures.
    pub structures: &'a Structures,
    pub(super) batch: Record<'a, batch::S>,
}

/// The metadata of a batch whose lock is held, so that other threads do not change it.
#[derive(Debug)]
pub struct LockedBatch<'a>(pub(super) BatchMeta<'a>);

impl<'a> BatchMeta<'a> {
    /// Acquires the batch's lock. A thread may acquire it several times.
    pub fn lock(self) -> LockedBatch<'a> {
        // SAFETY: the batch exists as long as the buffer.
        unsafe { (self.library.nvds_acquire_meta_lock)(self.batch.as_ptr()) };
        LockedBatch(self)
    }
}

impl Drop for LockedBatch<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { (self.0.library.nvds_release_meta_lock)(self.0.batch.as_ptr()) };
    }
}

impl LockedBatch<'_> {
    /// Returns the layout of the structures.
    pub fn layout(&self) -> &'static StructureLayout {
        self.0.structures.layout
    }

    pub(super) fn version(&self) -> Version {
        self.0.structures.version
    }

    /// Returns the frames, in the order of the batch's list.
    ///
    /// # Errors
    /// If the list's length differs from the batch's number of frames, or if an entry is null.
    pub fn frames(
        &self,
    ) -> Result<impl Iterator<Item = Result<FrameMeta<'_>, DeepStreamError>>, DeepStreamError> {
        let count = self.0.batch.read(batch::NUM_FRAMES) as usize;
        let list = self.list(self.0.batch, batch::FRAMES, "frames");
        let listed = list.clone().count();
        if count != listed {
            return Err(DeepStreamError::damaged(
                self.version(),
                format_args!(
                    "batch has num_frames_in_batch={count}, but its list has {listed} frames"
                ),
            ));
        }
        Ok(list)
    }

    /// Returns whether tensors are attached to the batch itself. nvinfer does this for regions of interest
    /// (`input-tensor-meta`).
    pub fn has_batch_tensors(&self) -> bool {
        self.has_user_meta(self.0.batch, batch::USER_METAS, TENSOR_OUTPUT_META)
    }

    /// Returns whether `frame` has a region of interest on which a model was run.
    pub fn has_region(&self, frame: FrameMeta<'_>) -> bool {
        let roi_meta = self.layout().roi_meta;
        roi_meta.is_some_and(|roi_meta| self.has_user_meta(frame, frame::USER_METAS, roi_meta))
    }

    /// Returns whether a list of user metadata has an entry of this type.
    fn has_user_meta<S: Copy>(
        &self,
        record: Record<'_, S>,
        metas: Field<S, List<user::S>>,
        meta_type: i32,
    ) -> bool {
        let mut metas = self.list(record, metas, "user metadata").flatten();
        metas.any(|meta| type_of(meta) == meta_type)
    }

    /// Returns the timestamp of `frame` in nanoseconds, if it has one.
    pub fn timestamp(&self, frame: FrameMeta<'_>) -> Option<u64> {
        Some(frame.read(frame::TIMESTAMP))
            .filter(|&timestamp| timestamp != gst::ffi::GST_CLOCK_TIME_NONE)
    }

    /// Returns the wall-clock time of `frame` in nanoseconds since 1970, if it has one.
    pub fn unix_time(&self, frame: FrameMeta<'_>) -> Option<u64> {
        Some(frame.read(frame::UNIX_TIME))
            .filter(|&time| time != 0 && time != gst::ffi::GST_CLOCK_TIME_NONE)
    }

    /// Returns the size to which the muxer has scaled `frame`, or `None` if the frame's metadata does not have it:
    /// the new nvstreammux does not write the size, and a copy of a buffer (for example behind a tee) does not
    /// contain it.
    pub(super) fn muxed_size(&self, frame: FrameMeta<'_>) -> Option<[u32; 2]> {
        Some(frame.read(frame::SIZE)).filter(|size| !size.contains(&0))
    }

    /// Copies the sizes of the frames, and the model descriptions of their tensors, from `original` to this batch,
    /// which is a copy of it. DeepStream does not copy the sizes, and nvinfer up to 7.1 does not copy the model
    /// descriptions.
    ///
    /// # Errors
    /// If a list of frames or of tensors is damaged.
    pub fn complete_copy(&self, original: &LockedBatch<'_>) -> Result<(), DeepStreamError> {
        for (frame, original_frame) in self.frames()?.zip(original.frames()?) {
            let (frame, original_frame) = (frame?, original_frame?);
            if let Some(size) = original.muxed_size(original_frame) {
                // SAFETY: the lock is held.
                unsafe { frame.write(frame::SIZE, size) };
            }
            self.copy_models(frame, original, original_frame)?;
        }
        Ok(())
    }

    /// Marks `frame` as a frame on which a model was run, so that trackers update their objects.
    pub fn set_infer_done(&self, frame: FrameMeta<'_>) {
        // SAFETY: the lock is held.
        unsafe { frame.write(frame::INFER_DONE, i32::from(true)) };
    }

    /// Returns the entries of a list. The iterator ends after an error.
    pub(super) fn list<'l, S: Copy, E: Copy + 'l>(
        &'l self,
        record: Record<'_, S>,
        field: Field<S, List<E>>,
        what: &'static str,
    ) -> impl Iterator<Item = Result<Record<'l, E>, DeepStreamError>> + Clone + use<'l, S, E> {
        let version = self.version();
        let mut link = record.read(field).first;
        let mut count = 0;
        std::iter::from_fn(move || {
            if link.is_null() {
                return None;
            }
            count += 1;
            if count > MAX_LIST {
                link = std::ptr::null();
                let problem = format!("list of {what} has more than {MAX_LIST} entries");
                return Some(Err(DeepStreamError::damaged(version, problem)));
            }
            // SAFETY: the link is not null, and the list does not change while the lock is held.
            let entry = unsafe { link.read() };
            link = entry.next;
            // SAFETY: the entries are of this kind, and exist while the lock is held.
            let data = NonNull::new(entry.data).map(|data| unsafe { Record::new(data) });
            Some(data.ok_or_else(|| DeepStreamError::null(version, what)))
        })
    }
}

/// Returns the type of user metadata.
pub(super) fn type_of(meta: Record<'_, user::S>) -> i32 {
    meta.part(user::BASE).read(base::TYPE)
}

/// The metadata of a frame, `NvDsFrameMeta`.
pub type FrameMeta<'l> = Record<'l, frame::S>;
