// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs whose results are not waited for.

use crate::device::{DriverError, OwnedEvent, Stream};

/// The runs that were enqueued and not waited for.
#[derive(Debug, Default)]
pub(super) struct Enqueued {
    /// Recorded after the last of them.
    event: Option<OwnedEvent>,
    is_pending: bool,
}

impl Enqueued {
    /// The event, if there are any.
    pub fn pending(&self) -> Option<&OwnedEvent> {
        self.event.as_ref().filter(|_| self.is_pending)
    }

    /// Makes later work of `stream` wait for them.
    pub fn hold_back(&self, stream: &Stream) -> Result<(), DriverError> {
        match self.pending() {
            // SAFETY: the driver frees the event after the work that waits for it.
            Some(event) => stream.wait_for(unsafe { event.event() }),
            None => Ok(()),
        }
    }

    /// Waits for them.
    pub fn synchronize(&mut self) -> Result<(), DriverError> {
        if let Some(event) = self.pending() {
            event.synchronize()?;
            self.is_pending = false;
        }
        Ok(())
    }

    /// Adds the work of `stream`.
    pub fn record(&mut self, stream: &Stream) -> Result<(), DriverError> {
        if self.event.is_none() {
            self.event = Some(OwnedEvent::new(stream.device())?);
        }
        let event = self.event.as_ref().expect("just made");
        stream.record(event)?;
        self.is_pending = true;
        Ok(())
    }
}
