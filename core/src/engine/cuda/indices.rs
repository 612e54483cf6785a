// SPDX-License-Identifier: MIT OR Apache-2.0
//! The anchors of survivors as 64-bit integers in device memory.
//!
//! In: the device address of detections, which a launch writes. Out: their anchors, written by a
//! kernel that runs after the launch. It is submitted before the number of survivors is known.

use std::ffi::c_void;

use super::interface::PUBLISH_THREADS;
use super::kernels::Kernels;
use crate::device::{DriverError, Stream};

/// The kernel's name.
pub(super) const NAME: &std::ffi::CStr = c"indices";

/// Writes the anchors of the first `count` detections to the device address `to`, in stream order.
/// Anchors after the last survivor have no meaning.
///
/// # Safety
/// Until the kernel has completed, `detections` must be valid for reads of `count` detections, and
/// `to` for writes of `count` integers.
pub(super) unsafe fn write(
    kernels: &Kernels,
    stream: &Stream,
    mut detections: u64,
    mut count: u32,
    mut to: u64,
) -> Result<(), DriverError> {
    let mut parameters: [*mut c_void; 3] =
        [(&raw mut detections).cast(), (&raw mut count).cast(), (&raw mut to).cast()];
    let kernel = kernels.kernel(NAME)?;
    // SAFETY: the parameters match the kernel's signature. The caller guarantees the memory.
    unsafe { kernel.launch(stream, [1; 3], [PUBLISH_THREADS, 1, 1], &mut parameters) }
}
