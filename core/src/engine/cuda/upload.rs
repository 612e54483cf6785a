// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uploads of host memory to the GPU.
//!
//! In: bytes in host memory. Out: the device address of a copy, which is complete in the order of
//! the stream. The copy goes through pinned memory, because the driver copies pageable memory
//! synchronously.

use std::cell::Cell;
use std::sync::Arc;

use bytemuck::Pod;

use crate::device::{DeviceBuffer, DriverError, OwnedEvent, PinnedBuffer, Stream};

/// The stream of a run's uploads.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadStream<'a> {
    pub stream: &'a Stream,
    /// Completes with earlier runs that were not waited for.
    pub enqueued: Option<&'a OwnedEvent>,
    /// The number of bytes that were uploaded.
    pub uploaded: &'a Cell<u64>,
}

/// Pinned memory and device memory of equal size, reused for later runs.
#[derive(Debug, Default)]
pub(super) struct Upload {
    buffers: Option<(PinnedBuffer, DeviceBuffer)>,
}

impl Upload {
    /// Starts a copy of `bytes` in the order of `stream`; returns the device address of the copy.
    pub fn copy(&mut self, stream: UploadStream<'_>, bytes: &[u8]) -> Result<u64, DriverError> {
        self.fill(stream, bytes.len(), |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Starts a copy of the `len` bytes that `write` writes, in the order of `stream`; returns the device
    /// address of the copy.
    pub fn fill<E: From<DriverError>>(
        &mut self,
        UploadStream { stream, enqueued, uploaded }: UploadStream<'_>,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        if let Some(enqueued) = enqueued {
            enqueued.synchronize()?;
        }
        let fits = |(pinned, _): &(PinnedBuffer, DeviceBuffer)| pinned.len() >= len;
        if !self.buffers.as_ref().is_some_and(fits) {
            self.buffers = None;
            let (device, len) = (stream.device(), len.next_multiple_of(4096));
            self.buffers = Some((PinnedBuffer::new(device, len)?, DeviceBuffer::new(device, len)?));
        }
        let (pinned, on_device) = self.buffers.as_mut().expect("allocated above");
        // The previous copy from this memory has completed: either a run waits for its result, or
        // the call above waits. After a failed run, the engine drops the uploads.
        write(&mut pinned.as_mut_slice()[..len])?;
        stream.upload(pinned, on_device, len)?;
        uploaded.set(uploaded.get() + len as u64);
        Ok(on_device.address())
    }

    /// The device address of the last copy, or 0 before the first copy.
    fn address(&self) -> u64 {
        self.buffers.as_ref().map_or(0, |(_, on_device)| on_device.address())
    }
}

/// Values on the GPU, which are uploaded again only if they change.
#[derive(Debug, Default)]
pub(super) struct Cached<T> {
    upload: Upload,
    /// The values on the GPU.
    values: Vec<T>,
    /// The memory that values are computed in.
    computed: Vec<T>,
}

impl<T: Pod> Cached<T> {
    /// The device address of `values`, or 0 if there are none. After an error, the values on the GPU
    /// are unknown: drop `self`.
    pub fn provide(
        &mut self,
        stream: UploadStream<'_>,
        values: impl Iterator<Item = T>,
    ) -> Result<u64, DriverError> {
        self.computed.clear();
        self.computed.extend(values);
        if self.computed.is_empty() {
            return Ok(0);
        }
        // Compares bytes, because NaN does not equal itself as a number.
        let bytes: &[u8] = bytemuck::cast_slice(&self.computed);
        if bytemuck::cast_slice::<T, u8>(&self.values) == bytes {
            return Ok(self.upload.address());
        }
        let address = self.upload.copy(stream, bytes)?;
        self.values.clone_from(&self.computed);
        Ok(address)
    }
}

/// The table of priors on the GPU.
#[derive(Debug, Default)]
pub(super) struct PriorTable {
    values: Cached<[f32; 4]>,
    /// The table that was provided last. It does not change while a reference exists.
    table: Option<Arc<[[f32; 4]]>>,
}

impl PriorTable {
    /// See [`Cached::provide`], which compares all values. The table that was provided last is
    /// recognized without a comparison.
    pub fn provide(
        &mut self,
        stream: UploadStream<'_>,
        table: &Arc<[[f32; 4]]>,
    ) -> Result<u64, DriverError> {
        if self.table.as_ref().is_some_and(|last| Arc::ptr_eq(last, table)) {
            return Ok(self.values.upload.address());
        }
        self.table = Some(table.clone());
        self.values.provide(stream, table.iter().copied())
    }
}
