// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says when device memory may be read.
//!
//! In: the way in which a producer of memory announces that its work has completed. Out: [`Ready`], with which a
//! reader makes its stream wait.

use super::{Event, ForeignStream};

/// The work that must have completed before device memory may be read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ready {
    /// No work. The memory may be read immediately.
    Now,
    /// This event. The reader's stream waits.
    After(Event),
    /// The work that has been submitted to this stream so far. The reader's stream waits.
    AfterStream(ForeignStream),
    /// All work in the context that owns the memory. The calling thread waits.
    AfterOwner,
}

/// The name of the qdata (`gst_mini_object_set_qdata`) of a `GstMemory` with the event (a `CUevent`) after which
/// the memory may be read. The event must exist as long as the memory. A producer that sets this qdata also sets
/// `GST_CUDA_MEMORY_TRANSFER_NEED_SYNC`, for readers that do not support the event.
pub const READY_EVENT: &str = "nmsfilter.cuda.ready-event";
