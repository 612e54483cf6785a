//! When device memory may be read.

use super::{Event, ForeignStream};

/// What must have completed before device memory may be read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ready {
    /// Nothing: it may be read at once.
    Now,
    /// This event.
    After(Event),
    /// The work that has been submitted to this stream so far. The GPU waits, and no thread.
    AfterStream(ForeignStream),
    /// All work in the context that owns the memory. The calling thread waits.
    AfterOwner,
}
