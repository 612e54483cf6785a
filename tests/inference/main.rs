// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element `ortinference`: inputs and outputs of models, messages, real detectors, and states.
//!
//! The variable `ORT_DYLIB_PATH` names ONNX Runtime's library. Tests that need the library skip
//! themselves if it is unset.

#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod allocation;
mod alone;
mod bad_frames;
mod batches;
mod classifier;
mod constants;
mod detections;
mod element;
mod frames;
mod heads;
mod input;
mod libraries;
mod lifecycle;
mod live;
mod messages;
mod on_gpu;
mod outputs;
mod pipelines;
mod plugin_provider;
mod regions;
mod several;
mod signatures;
mod stock;
mod stopping;
mod streams;
mod varying;
