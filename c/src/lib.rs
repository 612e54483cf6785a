// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of decoding and suppression, without GStreamer.
//!
//! In: calls of a C program. Out: calls of `nmsfilter_core::nms`. The header `include/nmsfilter/nmsfilter.h` has the
//! documentation, and is made of the comments in these files.
#![allow(clippy::missing_safety_doc, reason = "the header has the conditions of each function")]

mod border;
mod boxes;
mod device_result;
mod enumeration;
mod filter;
mod frame;
mod options;
mod params;
mod result;
mod signature;
mod status;
mod tensor;
mod version;
mod words;

pub use boxes::{
    Boxes, BoxesParams, MergedBoxes, nmsfilter_boxes_enqueue, nmsfilter_boxes_error_text,
    nmsfilter_boxes_free, nmsfilter_boxes_merge, nmsfilter_boxes_new, nmsfilter_boxes_params_init,
    nmsfilter_boxes_run, nmsfilter_boxes_set_params, nmsfilter_boxes_warning,
};
pub use device_result::{DeviceCounts, DeviceResult};
pub use filter::{
    Backend, Filter, nmsfilter_decoder_name, nmsfilter_enqueue, nmsfilter_error_text,
    nmsfilter_finish, nmsfilter_free, nmsfilter_image, nmsfilter_new, nmsfilter_run,
    nmsfilter_set_decoder, nmsfilter_set_layout, nmsfilter_set_options, nmsfilter_set_params,
    nmsfilter_warning,
};
pub use frame::{Letterbox, Region};
pub use options::{Background, BoxFormat, Channels, Coordinates, Options, ScoreActivation};
pub use params::{
    ClassRule, MaskSize, Method, Overlap, Params, RegionEdges, nmsfilter_params_init,
};
pub use result::{Detection, Image, Mask, OrientedBox, Point, Result};
pub use signature::{
    InputNumbers, ModelTensorInfo, PictureLayout, Signature, nmsfilter_signature,
    nmsfilter_signature_tensors,
};
pub use status::Status;
pub use tensor::{ElementType, Memory, Ready, Tensor};
pub use version::nmsfilter_version;
