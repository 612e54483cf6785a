// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of all engines: results of other projects, recorded tensors, random scenes, layouts that
//! do not fit their tensors, and the interface for programs without GStreamer.

#[path = "../support/core.rs"]
mod support;

mod box_nms;
mod by_column;
mod candidates;
mod edges;
mod examples;
mod facade;
mod groups;
mod images;
mod layout;
mod layouts;
mod masks;
mod merging;
mod merging_vectors;
mod nvinfer;
mod oriented;
mod oriented_vectors;
mod paper;
mod properties;
mod recorded;
#[allow(dead_code, reason = "this program has no element to set them")]
mod settings;
mod supervision_vectors;
mod through_pipeline;
mod vectors;
