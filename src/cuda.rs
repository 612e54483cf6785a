// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles of the CUDA driver that other interfaces of this crate take: a GPU and its primary context, and
//! what a reader of device memory waits for.

pub use crate::device::{Device, DeviceError, DriverError, Event, ForeignStream, Ready};
