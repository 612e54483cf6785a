// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for decoded detections on a GPU.
//!
//! In: the numbers of images, of detections of an image, and of components in a row of columns. Out: memory with a row
//! for each image: its counts, its detections, its columns. The engine writes a single row itself.

use std::sync::Arc;

use nmsfilter_core::cuda::{Device, DeviceRows, Stream};
use nmsfilter_core::nms::{Detection, DeviceCounts, DeviceOutcome, ResultMemory};
use pyo3::prelude::*;

use crate::array::Memory;
use crate::device::{allocate, foreign};
use crate::dlpack::ExchangeApi;
use crate::dtype::Dtype;
use crate::error::{Error, Result};

/// The bytes of the unit of sizes and offsets.
const WORD: usize = 4;

/// The sizes of rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub images: usize,
    /// The number of detections of an image that fit in its row.
    pub room: usize,
    /// The number of components in the columns of a detection.
    pub components: usize,
}

impl Rows {
    /// The words of a detection.
    pub const DETECTION: usize = size_of::<Detection>() / WORD;
    /// The offset of detections in words. They follow the counts.
    pub const DETECTIONS: usize = size_of::<DeviceCounts>() / WORD;

    /// The offset of the columns in words.
    pub fn columns(&self) -> usize {
        Self::DETECTIONS + self.room * Self::DETECTION
    }

    /// The words of a row.
    pub fn row(&self) -> usize {
        self.columns() + self.room * self.components
    }

    /// The words of all rows.
    fn words(&self) -> Result<usize> {
        let words = self.images.checked_mul(self.row());
        words.filter(|&words| i64::try_from(words * WORD).is_ok()).ok_or_else(|| {
            let Self { images, room, .. } = self;
            Error::Input(format!(
                "max_detections: {room} detections of {images} images exceed memory"
            ))
        })
    }

    /// Memory for the rows, whose bytes are not initialized.
    pub fn allocate(
        &self,
        py: Python<'_>,
        library: Option<&'static ExchangeApi>,
        device: &Arc<Device>,
        stream: usize,
    ) -> Result<Memory> {
        allocate(py, library, device, stream, Dtype::F32, self.words()?)
    }

    /// Sets the memory of a single row to zero, in the order of `stream`, for the engine that writes its result there.
    pub fn zeroed(
        &self,
        memory: &Memory,
        device: &Arc<Device>,
        stream: usize,
    ) -> Result<ResultMemory> {
        let first = memory.address() as u64;
        let stream = Stream::of_other_code(device, foreign(stream));
        // SAFETY: the memory was allocated for the row.
        unsafe { stream.write_zeros(first, self.row() * WORD)? };
        let at = |offset: usize| first + (offset * WORD) as u64;
        Ok(ResultMemory {
            counts: first,
            detections: at(Self::DETECTIONS),
            columns: at(self.columns()),
        })
    }

    /// Copies an outcome to the rows, in the order of `stream`.
    pub fn copy(&self, outcome: &DeviceOutcome<'_>, memory: &Memory, stream: usize) -> Result<()> {
        let first = memory.address() as u64;
        let stream = Stream::of_other_code(&outcome.device, foreign(stream));
        let pitch = self.row() * WORD;
        let to = |offset: usize| DeviceRows { address: first + (offset * WORD) as u64, pitch };
        let (capacity, counts) = (outcome.capacity, size_of::<DeviceCounts>());
        let present = self.room.min(capacity);
        let from = |address: u64, bytes: usize| DeviceRows { address, pitch: capacity * bytes };
        let (detection, columns) = (Self::DETECTION * WORD, self.components * WORD);
        // SAFETY: the outcome's memory is valid in the order of the stream, and the rows were allocated for this.
        unsafe {
            if present < self.room {
                stream.write_zeros(first, self.images * pitch)?;
            }
            let of_counts = DeviceRows { address: outcome.counts, pitch: counts };
            stream.copy_rows(of_counts, to(0), counts, self.images)?;
            let detections = from(outcome.detections, detection);
            stream.copy_rows(detections, to(Self::DETECTIONS), present * detection, self.images)?;
            let of_columns = from(outcome.columns, columns);
            stream.copy_rows(of_columns, to(self.columns()), present * columns, self.images)?;
        }
        Ok(())
    }
}
