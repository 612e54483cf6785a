// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need the libraries of one DeepStream version in their process. `versions`,
//! `failures`, `nvinfer`, `nvmsgconv` and `nvstreammux` start such processes.

mod alone;
mod cameras;
mod details;
mod device;
mod errors;
mod json;
mod letterbox;
mod memory;
mod messages;
mod models;
mod nvinfer;
mod nvinfer_objects;
mod nvstreammux;
mod objects;
mod outputs;
mod pipelines;
mod regions;
mod secondary;
mod structures;
mod surfaces;
