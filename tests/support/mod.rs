// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers that several test programs use.
//!
//! `emulated`, `pipeline` and `replay` need GStreamer; the others do not.
#![allow(dead_code, reason = "each test program uses some of it")]

pub mod data;
#[cfg(feature = "gstreamer")]
pub mod emulated;
pub mod engines;
pub mod library;
pub mod onnx;
#[cfg(feature = "gstreamer")]
pub mod pipeline;
pub mod play;
pub mod process;
pub mod project;
#[cfg(feature = "gstreamer")]
pub mod replay;
pub mod scene;
pub mod scratch;
pub mod skip;
