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

/// The name of the data (`gst_mini_object_set_qdata`) by which memory carries the event, a `CUevent`,
/// after which it may be read. The event must exist for as long as the memory. Whoever attaches one
/// to memory also sets `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC`, for readers that do not know of it.
pub const READY_EVENT: &str = "nmsfilter.cuda.ready-event";
