// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that was enqueued without waiting for it.

use crate::device::{DriverError, ForeignStream, OwnedEvent, Stream};

/// The runs and copies of results that were enqueued and not yet waited for.
#[derive(Debug, Default)]
pub(super) struct Enqueued {
    /// Recorded after the last of these runs.
    event: Option<OwnedEvent>,
    /// The stream of the last of these runs; `None` if no run is pending.
    stream: Option<ForeignStream>,
}

impl Enqueued {
    /// The event, if any run is pending.
    pub fn pending(&self) -> Option<&OwnedEvent> {
        self.event.as_ref().filter(|_| self.stream.is_some())
    }

    /// Makes later work of `stream` wait for the pending runs.
    pub fn hold_back(&self, stream: &Stream) -> Result<(), DriverError> {
        // The default stream is never destroyed. The handle of another stream can belong to a new stream by now.
        let follows = stream.is_default() && self.stream == Some(stream.as_foreign());
        match self.pending().filter(|_| !follows) {
            // SAFETY: the driver frees the event after the work that waits for it.
            Some(event) => stream.wait_for(unsafe { event.event() }),
            None => Ok(()),
        }
    }

    /// Waits for the pending runs.
    pub fn synchronize(&mut self) -> Result<(), DriverError> {
        if let Some(event) = self.pending() {
            event.synchronize()?;
            self.stream = None;
        }
        Ok(())
    }

    /// Adds the work of `stream` to the pending runs.
    pub fn record(&mut self, stream: &Stream) -> Result<(), DriverError> {
        if self.event.is_none() {
            self.event = Some(OwnedEvent::new(stream.device())?);
        }
        let event = self.event.as_ref().expect("just made");
        stream.record(event)?;
        self.stream = Some(stream.as_foreign());
        Ok(())
    }
}
