// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results that stay in device memory.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::Device;

/// The result of a run in device memory. Unless it is in memory of the caller ([`ResultMemory`]), it belongs to the engine
/// and is valid, in the order of the run's stream, until the engine's next run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceOutcome<'a> {
    /// The GPU.
    pub device: Arc<Device>,
    /// The number of groups of images.
    pub groups: usize,
    /// The number of detections per group that fit in memory: at least the number of anchors in the
    /// group's images.
    pub capacity: usize,
    /// The number of components in each survivor's columns.
    pub column_components: usize,
    /// The device address of `groups` x [`DeviceCounts`].
    pub counts: u64,
    /// The device address of `groups` x `capacity` x [`Detection`](super::Detection), row-major. A group's detections are
    /// its survivors in descending rank, followed by zeros.
    pub detections: u64,
    /// The device address of `groups` x `capacity` x `column_components` f32, row-major, with one row per detection.
    /// Rows after the survivors' rows are zero. The address is 0 if there are no columns.
    pub columns: u64,
    pub(super) engine: PhantomData<&'a ()>,
}

/// Memory of the caller for the result of one group of images, as device addresses. The caller has set it to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultMemory {
    /// For one [`DeviceCounts`], aligned to 16 bytes.
    pub counts: u64,
    /// For [`Params::max_detections`](super::Params::max_detections) x [`Detection`](super::Detection), aligned to 16
    /// bytes. The number is not 0.
    pub detections: u64,
    /// For as many rows of the layout's columns; not used without columns.
    pub columns: u64,
}

/// The counts of a group of images, in the form that the GPU writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
#[non_exhaustive]
pub struct DeviceCounts {
    /// For runs that are waited for: becomes nonzero once the group's result is complete.
    pub(super) sequence: u32,
    /// The number of anchors, or of pairs with [`Params::multi_label`](super::Params::multi_label), that became candidates.
    pub candidates: u32,
    /// The number of anchors, or of pairs, that were rejected.
    pub rejected: u32,
    /// The number of survivors.
    pub survivors: u32,
    /// The greatest dependency depth of a decision.
    pub rounds: u32,
    /// The time from the start of the first kernel to the end of the last kernel.
    pub nanoseconds: u32,
    pub(super) reserved: [u32; 2],
}
