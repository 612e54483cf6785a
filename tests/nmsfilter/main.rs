// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element `nmsfilter`: regions and analytics metadata, properties, streams that change, errors
//! for invalid input, and warnings.

#[path = "../support/mod.rs"]
mod support;

mod analytics;
mod analytics_batch;
mod background;
mod bad_input;
mod by_column;
mod classifier;
mod clock;
mod contradictions;
mod details;
mod json;
mod label_counts;
mod layout_file;
mod masks;
mod merging;
mod model;
mod models2026;
mod notices;
mod nvinfer_config;
mod one_to_one;
mod overlap;
mod quantization;
mod recorded_readings;
mod regions;
mod settings;
mod shapes;
mod stream;
mod tensor_regions;
