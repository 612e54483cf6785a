// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a run in device memory.

use std::mem::offset_of;

use nmsfilter_core::nms;

use crate::border::sized_struct;

/// The counts of an image in device memory. Its beginning does not change; it has NmsfilterDeviceResult.count_size bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeviceCounts {
    /// Reserved.
    pub reserved0: u32,
    /// The number of anchors (with `multi_label`, of anchors with a class) that reached the threshold.
    pub candidates: u32,
    /// The number of anchors that were rejected.
    pub rejected: u32,
    /// The number of detections.
    pub detections: u32,
    /// The greatest dependency depth of a decision.
    pub rounds: u32,
    /// The time from the start of the first kernel to the end of the last kernel.
    pub nanoseconds: u32,
    /// Reserved.
    pub reserved: [u32; 2],
}

const _: () = {
    assert!(size_of::<DeviceCounts>() == size_of::<nms::DeviceCounts>());
    assert!(offset_of!(DeviceCounts, candidates) == offset_of!(nms::DeviceCounts, candidates));
    assert!(offset_of!(DeviceCounts, rejected) == offset_of!(nms::DeviceCounts, rejected));
    assert!(offset_of!(DeviceCounts, detections) == offset_of!(nms::DeviceCounts, survivors));
    assert!(offset_of!(DeviceCounts, rounds) == offset_of!(nms::DeviceCounts, rounds));
    assert!(offset_of!(DeviceCounts, nanoseconds) == offset_of!(nms::DeviceCounts, nanoseconds));
};

/// The result of a run in device memory. It belongs to the handle and is valid, in the order of the run's stream, until the
/// handle's next run.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceResult {
    /// sizeof(NmsfilterDeviceResult), which the caller sets.
    pub size: usize,
    /// The number of the GPU.
    pub cuda_device: u32,
    /// The number of bytes from the NmsfilterDeviceCounts of an image to the next.
    pub count_size: u32,
    /// The number of images.
    pub image_count: usize,
    /// The number of detections per image for which there is memory.
    pub capacity: usize,
    /// The device address of `image_count` x NmsfilterDeviceCounts.
    pub counts: u64,
    /// The device address of `image_count` x `capacity` x NmsfilterDetection. Each image's detections are best first, and
    /// followed by zeros.
    pub detections: u64,
    /// The device address of `image_count` x `capacity` x `columns_per_detection` numbers of type float that detections
    /// carry along; 0 if there are none.
    pub columns: u64,
    /// The number of these numbers per detection.
    pub columns_per_detection: usize,
}

sized_struct!(DeviceResult, "NmsfilterDeviceResult", columns_per_detection: usize);

impl DeviceResult {
    pub fn new(outcome: &nms::DeviceOutcome<'_>) -> Self {
        Self {
            size: size_of::<Self>(),
            cuda_device: outcome.device.ordinal(),
            count_size: size_of::<nms::DeviceCounts>() as u32,
            image_count: outcome.groups,
            capacity: outcome.capacity,
            counts: outcome.counts,
            detections: outcome.detections,
            columns: outcome.columns,
            columns_per_detection: outcome.column_components,
        }
    }
}
