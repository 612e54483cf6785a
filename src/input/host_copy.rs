// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of device memory in host memory.
//!
//! In: a device address. Out: the bytes, which are copied when they are first needed. The next copy uses the allocation and
//! the stream of a discarded one.

use std::sync::{Mutex, PoisonError};

use once_cell::sync::OnceCell;

use nmsfilter_core::device::{DeviceError, Event, Stream};

/// The copy, and what the next one will use.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    bytes: OnceCell<Vec<u8>>,
    spare: Mutex<Spare>,
}

/// Parts of discarded copies that are used again.
#[derive(Debug, Default)]
struct Spare {
    bytes: Vec<u8>,
    stream: Option<Stream>,
}

impl HostCopy {
    /// Returns the `len` bytes at `address` of the GPU `ordinal`, as they were when they were copied. A copy waits for
    /// `ready`. `open` opens a stream of this GPU.
    ///
    /// # Errors
    /// If they cannot be copied.
    ///
    /// # Safety
    /// The address must be valid for reads of this many bytes.
    pub unsafe fn get(
        &self,
        (address, len): (u64, usize),
        ordinal: u32,
        ready: Option<Event>,
        open: impl FnOnce() -> Result<Stream, DeviceError>,
    ) -> Result<&[u8], DeviceError> {
        let copy = || {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            let known = spare.stream.take().filter(|it| it.device().ordinal() == ordinal);
            let stream = known.map_or_else(open, Ok)?;
            if let Some(ready) = ready {
                stream.wait_for(ready)?;
            }
            let mut bytes = std::mem::take(&mut spare.bytes);
            bytes.resize(len, 0);
            // SAFETY: the caller guarantees the address.
            unsafe { stream.download(address, &mut bytes) }?;
            spare.stream = Some(stream);
            Ok(bytes)
        };
        self.bytes.get_or_try_init(copy).map(Vec::as_slice)
    }

    /// Makes the next call of [`get`](Self::get) copy again.
    pub fn discard(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.spare.get_mut().unwrap_or_else(PoisonError::into_inner).bytes = bytes;
        }
    }
}
