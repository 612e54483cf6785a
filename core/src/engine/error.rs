// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why an engine cannot run.

use crate::device::{DeviceError, DriverError};
use crate::tensor::TensorError;
use crate::wording::Setting;

/// The reason why an engine returns no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A tensor's memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The layout cannot be used, or does not fit the tensors or the places of images.
    #[error("{0}")]
    Layout(String),
    /// The place of an image cannot be used.
    #[error("the place of image {image}: expected {expected}; correct the place")]
    Place {
        /// The index of the image.
        image: usize,
        /// Describes a valid place.
        expected: &'static str,
    },
    /// The engine cuda does not implement a feature that the layout or the parameters need.
    #[error("the engine cuda does not support the {what} {value}; choose the backend cpu")]
    Unsupported {
        /// The feature, such as "overlap measure".
        what: &'static str,
        /// The feature's value, which the engine does not implement.
        value: &'static str,
    },
    /// The method is not defined for the layout.
    #[error("{0}")]
    Method(String),
    /// The measure of overlap is not defined for the layout's boxes.
    #[error("the overlap measure {overlap} is not defined for {boxes} boxes; choose iou")]
    Overlap {
        /// The measure.
        overlap: &'static str,
        /// The kind of boxes.
        boxes: &'static str,
    },
    /// The rows of a tensor in device memory have the numbers of their images.
    #[error(
        "tensor {tensor}: its rows have the numbers of their images, which are not compared in device memory; choose the \
         backend auto, which copies memory of GStreamer, or pass the tensor in host memory"
    )]
    ImagesOnDevice {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The GPU cannot be used, or a call of the driver failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tensor is in the memory of a GPU that is not the engine's GPU.
    #[error(
        "tensor {tensor} is on GPU {is}, and the engine is on GPU {expected}; set {}, or leave its default, to follow the \
         tensors",
        Setting::Device.to(is)
    )]
    OtherDevice {
        /// The tensor, as displayed.
        tensor: String,
        /// The number of the GPU that the tensor is on.
        is: u32,
        /// The number of the engine's GPU.
        expected: u32,
    },
    /// A tensor has a device address at which kernels of the engine's GPU cannot read.
    #[error("{0}")]
    Address(String),
    /// A producer's work on a tensor's memory is pending, and its stream and its context are unknown.
    #[error(
        "tensor {tensor}: work on its memory is pending, but neither its stream nor its context is known; wait for that \
         work before the tensors are passed on, or attach an event ({})",
        crate::device::READY_EVENT
    )]
    UnknownProducer {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The layout or the parameters need the host, but the run is without it ([`Nms::enqueue`](crate::nms::Nms::enqueue)).
    #[error("results in device memory: {what}; {instead}")]
    NeedsHost {
        /// The unsupported operation.
        what: &'static str,
        /// The recommended alternative.
        instead: &'static str,
    },
    /// The kernels completed without writing a result.
    #[error("the GPU ended its work without a result")]
    NoResult,
    /// The GPU did not complete a launch in time.
    #[error(
        "the GPU has not completed the suppression within {seconds} s; other work on it hangs, or it has failed"
    )]
    Hung {
        /// The time limit.
        seconds: u64,
    },
}

impl From<DriverError> for EngineError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

impl EngineError {
    pub(super) const NEEDS_GPU: Self = Self::NeedsHost {
        what: "this engine does not use a GPU",
        instead: "choose the backend cuda",
    };

    /// Returns true if the GPU or its driver failed. Errors in the tensors, the layout or the
    /// parameters return false.
    pub fn is_device_error(&self) -> bool {
        matches!(self, Self::Device(_) | Self::NoResult | Self::Hung { .. })
    }
}
