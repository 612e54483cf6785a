// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element `objecttracker`.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod camera;
mod cost;
mod foreign;
mod memory;
mod pipelines;
mod prediction;
mod restarts;
mod sequences;
