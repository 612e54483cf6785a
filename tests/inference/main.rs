// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element `ortinference`: what models take and give, its messages, real detectors, and its states.
//!
//! ONNX Runtime's library is the one at `ORT_DYLIB_PATH`; tests that need it skip themselves if that is not
//! set.

#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod alone;
mod bad_frames;
mod batches;
mod detections;
mod element;
mod frames;
mod input;
mod libraries;
mod lifecycle;
mod messages;
mod on_gpu;
mod outputs;
mod pipelines;
mod several;
#[cfg(feature = "v1_28")]
mod stock;
#[cfg(feature = "v1_28")]
mod streams;
