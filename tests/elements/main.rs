// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements `crowdtestsrc`, `roioverlay` and `tensorreplay`, the destinations of
//! `detectionjson`, and string properties of all elements.

#[path = "../support/mod.rs"]
mod support;

mod crowdtestsrc;
mod json_outputs;
mod pool;
mod roioverlay;
mod strings;
mod tensorreplay;
