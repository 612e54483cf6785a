// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metadata of a batch and its frames, and the lists that contain them.
//!
//! In: the batch of a buffer. Out: while the batch's lock is held, its frames and the metadata that is attached to
//! them.

use std::marker::PhantomData;
use std::ptr::NonNull;

use gst::glib;

use super::DeepStreamError;
use super::layout::{StructureLayout, TENSOR_OUTPUT_META, Version, base, batch, frame, user};
use super::library::DeepStreamLibraries;
use super::record::Record;
use super::structures::Structures;

/// The maximum number of frames in a batch, and of entries in a list of metadata, that are read; no pipeline has
/// more. With this limit, a list that does not end is an error instead of an endless loop.
pub(super) const MAX_LIST: usize = 65_536;

/// The metadata of a batch, `NvDsBatchMeta`.
#[derive(Clone, Copy, Debug)]
pub struct BatchMeta<'a> {
    pub(super) library: &'a DeepStreamLibraries,
    pub(super) structures: &'a Structures,
    pub(super) batch: Record,
    buffer: PhantomData<&'a gst::BufferRef>,
}

/// The metadata of a batch whose lock is held, so that other threads do not change it.
#[derive(Debug)]
pub struct LockedBatch<'a>(pub(super) BatchMeta<'a>);

impl<'a> BatchMeta<'a> {
    /// Creates the value from `batch`, which must be an `NvDsBatchMeta` of video frames that has these structures
    /// and exists during `'a`.
    pub(super) fn new(
        library: &'a DeepStreamLibraries,
        structures: &'a Structures,
        batch: Record,
    ) -> Self {
        Self { library, structures, batch, buffer: PhantomData }
    }

    /// Returns the structures.
    pub fn structures(&self) -> &'a Structures {
        self.structures
    }

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
    pub(super) fn layout(&self) -> &'static StructureLayout {
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
        // SAFETY: the batch has these fields in every layout.
        let (count, list) = unsafe {
            let count: u32 = self.0.batch.read(batch::NUM_FRAMES);
            (count as usize, self.list(self.0.batch, batch::FRAMES, "frames"))
        };
        let listed = list.clone().count();
        if count != listed {
            return Err(DeepStreamError::FrameCount { count, listed, version: self.version() });
        }
        Ok(list.map(|frame| frame.map(|frame| FrameMeta(frame, PhantomData))))
    }

    /// Returns whether tensors are attached to the batch itself. nvinfer does this for regions of interest
    /// (`input-tensor-meta`).
    pub fn has_batch_tensors(&self) -> bool {
        // SAFETY: the batch has this field in every layout.
        unsafe { self.has_user_meta(self.0.batch, batch::USER_METAS, TENSOR_OUTPUT_META) }
    }

    /// Returns whether `frame` has a region of interest on which a model was run.
    pub fn has_region(&self, frame: FrameMeta<'_>) -> bool {
        self.layout().roi_meta.is_some_and(|roi_meta| {
            // SAFETY: the frame has this field in every layout.
            unsafe { self.has_user_meta(frame.0, frame::USER_METAS, roi_meta) }
        })
    }

    /// Returns whether the list of user metadata in the field at `offset` has an entry of this type.
    ///
    /// # Safety
    /// See [`list`](Self::list).
    unsafe fn has_user_meta(&self, record: Record, offset: usize, meta_type: i32) -> bool {
        // SAFETY: the caller guarantees the field.
        let metas = unsafe { self.list(record, offset, "user metadata") };
        metas.flatten().any(|meta| self.type_of(meta) == meta_type)
    }

    /// Returns the index of the surface of `frame`.
    pub(super) fn batch_id(&self, frame: FrameMeta<'_>) -> usize {
        // SAFETY: the frame has this field in every layout.
        unsafe { frame.0.read::<u32>(frame::BATCH_ID) as usize }
    }

    /// Returns the index of the muxer's pad that `frame` came from.
    pub fn pad_index(&self, frame: FrameMeta<'_>) -> u32 {
        // SAFETY: the frame has this field in every layout.
        unsafe { frame.0.read(frame::PAD_INDEX) }
    }

    /// Returns the id of the source of `frame`.
    pub fn source_id(&self, frame: FrameMeta<'_>) -> u32 {
        // SAFETY: the frame has this field in every layout.
        unsafe { frame.0.read(frame::SOURCE_ID) }
    }

    /// Returns the timestamp of `frame` in nanoseconds, if it has one.
    pub fn timestamp(&self, frame: FrameMeta<'_>) -> Option<u64> {
        // SAFETY: the frame has this field in every layout.
        let timestamp = unsafe { frame.0.read(frame::TIMESTAMP) };
        Some(timestamp).filter(|&timestamp| timestamp != gst::ffi::GST_CLOCK_TIME_NONE)
    }

    /// Returns the wall-clock time of `frame` in nanoseconds since 1970, if it has one.
    pub fn unix_time(&self, frame: FrameMeta<'_>) -> Option<u64> {
        // SAFETY: the frame has this field in every layout.
        let time = unsafe { frame.0.read(frame::UNIX_TIME) };
        Some(time).filter(|&time| time != 0 && time != gst::ffi::GST_CLOCK_TIME_NONE)
    }

    /// Returns the size to which the muxer has scaled `frame`, or `None` if the frame's metadata does not have it:
    /// the new nvstreammux does not write the size, and a copy of a buffer (for example behind a tee) does not
    /// contain it.
    pub(super) fn muxed_size(&self, frame: FrameMeta<'_>) -> Option<[u32; 2]> {
        // SAFETY: the frame has these fields in every layout.
        let size = unsafe { [frame.0.read(frame::WIDTH), frame.0.read(frame::HEIGHT)] };
        (!size.contains(&0)).then_some(size)
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
            if let Some([width, height]) = original.muxed_size(original_frame) {
                // SAFETY: the frame has these fields in every layout, and the lock is held.
                unsafe {
                    frame.0.write(frame::WIDTH, width);
                    frame.0.write(frame::HEIGHT, height);
                }
            }
            self.copy_models(frame, original, original_frame)?;
        }
        Ok(())
    }

    /// Marks `frame` as a frame on which a model was run, so that trackers update their objects.
    pub fn set_infer_done(&self, frame: FrameMeta<'_>) {
        // SAFETY: the frame has this field in every layout, and the lock is held.
        unsafe { frame.0.write(frame::INFER_DONE, i32::from(true)) };
    }

    /// Returns the type of user metadata.
    pub(super) fn type_of(&self, meta: Record) -> i32 {
        // SAFETY: user metadata of every type begins with this field.
        unsafe { meta.read(user::BASE + base::TYPE) }
    }

    /// Returns the entries of the `GList` in the field at `offset`. The iterator ends after an error.
    ///
    /// # Safety
    /// `record` must have a field of type `GList *` at this offset. The list must not change while the lock is
    /// held.
    pub(super) unsafe fn list(
        &self,
        record: Record,
        offset: usize,
        what: &'static str,
    ) -> impl Iterator<Item = Result<Record, DeepStreamError>> + Clone + use<> {
        let version = self.version();
        // SAFETY: the caller guarantees the field.
        let mut link: *const glib::ffi::GList = unsafe { record.read(offset) };
        let mut count = 0;
        std::iter::from_fn(move || {
            if link.is_null() {
                return None;
            }
            count += 1;
            if count > MAX_LIST {
                link = std::ptr::null();
                return Some(Err(DeepStreamError::Endless { what, version }));
            }
            // SAFETY: the link is not null, and the list does not change.
            let entry = unsafe { link.read() };
            link = entry.next;
            let data = NonNull::new(entry.data).map(Record);
            Some(data.ok_or(DeepStreamError::Null { what, version }))
        })
    }
}

/// The metadata of a frame, `NvDsFrameMeta`.
#[derive(Clone, Copy, Debug)]
pub struct FrameMeta<'l>(pub(super) Record, PhantomData<&'l ()>);
