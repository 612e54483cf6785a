// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why an engine cannot run.

use super::MAX_IMAGES;
use crate::decoder::MAX_CLASSES;
use crate::device::{DeviceError, DriverError};
use crate::tensor::TensorError;
use crate::wording::Setting::{self, MultiLabel};

/// The reason why an engine returns no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A tensor's memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The layout has more anchors than a 32-bit index can address.
    #[error("{anchors} anchors are more than the {} supported", u32::MAX)]
    Anchors {
        /// The number of anchors.
        anchors: usize,
    },
    /// The number of places differs from the number of images.
    #[error(
        "there are {places} places for {images} images; pass one place per image of the layout"
    )]
    Places {
        /// The number of places.
        places: usize,
        /// The number of images of the layout.
        images: usize,
    },
    /// The place of an image cannot be used.
    #[error("the place of image {image}: expected {expected}; correct the place")]
    Place {
        /// The index of the image.
        image: usize,
        /// Describes a valid place.
        expected: &'static str,
    },
    /// The layout has no class, or more than 65536.
    #[error("the layout has {classes} classes; expected 1 to {MAX_CLASSES}")]
    Classes {
        /// The number of classes.
        classes: usize,
    },
    /// The layout has no image, or more than [`MAX_IMAGES`].
    #[error("the layout has {images} images; expected 1 to {MAX_IMAGES}")]
    Images {
        /// The number of images.
        images: usize,
    },
    /// The engine does not implement a feature that the layout or the parameters need.
    #[error(
        "the engine {engine} does not support the {what} {value}; choose the backend {instead}"
    )]
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// The feature, such as "overlap measure".
        what: &'static str,
        /// The feature's value, which the engine does not implement.
        value: &'static str,
        /// The backend that supports it.
        instead: &'static str,
    },
    /// The measure of overlap is not defined for the layout's boxes.
    #[error("the overlap measure {overlap} is not defined for {boxes} boxes; choose {instead}")]
    Overlap {
        /// The measure.
        overlap: &'static str,
        /// The kind of boxes.
        boxes: &'static str,
        /// A measure that is defined for them.
        instead: &'static str,
    },
    /// The method is not defined for oriented boxes.
    #[error(
        "the method {method} is not defined for oriented boxes; choose greedy, map-reduce or none"
    )]
    OrientedMethod {
        /// The method.
        method: &'static str,
    },
    /// The layout has no column of the kind by which the method decides.
    #[error(
        "the method {method} reads a column of the kind {kind}, but decoder {decoder} has none; describe the \
         tensors in a layout file with this column, or choose another method"
    )]
    MethodColumn {
        /// The method.
        method: &'static str,
        /// The kind of the column.
        kind: &'static str,
        /// The decoder that made the layout.
        decoder: &'static str,
    },
    /// With [`Params::multi_label`](super::Params::multi_label), there are more pairs of anchor and class than a 32-bit index
    /// can address.
    #[error(
        "{anchors} anchors of {classes} classes are more pairs than the {} that {MultiLabel} supports; set {MultiLabel} \
         to false",
        u32::MAX
    )]
    Pairs {
        /// The number of anchors.
        anchors: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A field of the layout has the index of a tensor that does not exist.
    #[error(
        "the layout's {field} are of tensor {index}, but there are {tensors} tensors; \
         make the layout for the tensors that are passed"
    )]
    NoTensor {
        /// The field.
        field: &'static str,
        /// The tensor's index.
        index: usize,
        /// The number of tensors.
        tensors: usize,
    },
    /// A field of the layout addresses elements beyond the last element of its tensor.
    #[error(
        "tensor {tensor}: the layout's {field} need element {last}, but it has {held} elements; \
         correct the layout's offset, strides or number of anchors"
    )]
    FieldOutside {
        /// The field.
        field: &'static str,
        /// The tensor, as displayed.
        tensor: String,
        /// The index of the last element that the field addresses.
        last: u128,
        /// The number of elements of the tensor.
        held: usize,
    },
    /// The images of a tensor are in separate allocations, and a field of the layout addresses
    /// different elements in different images.
    #[error(
        "tensor {tensor}: its images are in separate allocations of {held} elements each, but the \
         layout's {field} are of {images} images at a stride of {stride} elements and need element \
         {last} of an image; make the layout for all of the tensor's images, with that stride"
    )]
    FieldAcrossImages {
        /// The field.
        field: &'static str,
        /// The tensor, as displayed.
        tensor: String,
        /// The number of images of the layout.
        images: usize,
        /// The image stride of the field.
        stride: usize,
        /// The index of the last element of an image that the field addresses.
        last: u128,
        /// The number of elements of an image of the tensor.
        held: usize,
    },
    /// A row has the number of another image.
    #[error(
        "tensor {tensor}: row {row} is of image {number}; expected rows of one image, with the number 0, or below 0 for \
         none: pass the rows of each image in a tensor of their own, or correct `decoder`"
    )]
    OtherImage {
        /// The tensor, as displayed.
        tensor: String,
        /// The index of the row.
        row: usize,
        /// The number in the row.
        number: String,
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
    /// Parts of the layout do not fit each other.
    #[error("the layout: expected {expected}; correct the layout")]
    Layout {
        /// Describes a valid layout.
        expected: &'static str,
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
    /// A tensor's memory has a device address that is not in the memory of any GPU.
    #[error("tensor {tensor}: its memory gives the address {address:#x}, which is on no GPU")]
    NotOnDevice {
        /// The tensor, as displayed.
        tensor: String,
        /// The device address.
        address: u64,
    },
    /// A tensor's memory is on the engine's GPU, but the engine's context cannot access it.
    #[error(
        "tensor {tensor}: its memory at {address:#x} is on GPU {ordinal}, where the engine's \
         context cannot access it; allocate it in the GPU's primary context \
         (cuDevicePrimaryCtxRetain), or attach the tensor in host memory"
    )]
    Inaccessible {
        /// The tensor, as displayed.
        tensor: String,
        /// The device address.
        address: u64,
        /// The number of the GPU.
        ordinal: u32,
    },
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
