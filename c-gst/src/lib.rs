// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of tensors and regions on GStreamer's buffers.
//!
//! In: calls of a C program. Out: calls of `gstnmsfilter::input` and `gstnmsfilter::regions`. The header
//! `include/nmsfilter/gst.h` has the documentation, and is made of the comments in these files.
#![allow(clippy::missing_safety_doc, reason = "the header has the conditions of each function")]

// The core's C interface uses this border, too.
#[path = "../../c/src/border.rs"]
mod border;
mod gstreamer;
mod model;
mod region;
mod status;
mod tensor;
mod version;

pub use gstreamer::nmsfilter_gst_init;
pub use model::{Letterbox, Model, nmsfilter_gst_model_caps};
pub use region::{Class, Region, nmsfilter_gst_read_classes, nmsfilter_gst_read_regions};
pub use status::{Status, nmsfilter_gst_error_text};
pub use tensor::{ElementType, Memory, Tensor, nmsfilter_gst_attach_tensor};
pub use version::nmsfilter_gst_version;
