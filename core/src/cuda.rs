// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a producer of tensors in device memory needs of the CUDA driver: a GPU and its primary context,
//! memory, streams, events and kernels; and what a reader of device memory waits for.
//!
//! The driver is loaded at run time. Calls make the GPU's primary context current on the calling thread
//! and restore the one before; the CUDA runtime, and libraries that use it, work in the same context.

pub use crate::device::{
    Device, DeviceBuffer, DeviceError, DeviceRows, DriverError, Event, ForeignStream, Kernel,
    Module, OwnedEvent, PinnedBuffer, Ready, Stream,
};
