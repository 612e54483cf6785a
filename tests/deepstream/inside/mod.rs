// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests in a process that has the libraries of one version. `versions`, `failures`,
//! `nvinfer`, `nvmsgconv` and `nvstreammux` run them.

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
mod nvstreammux;
mod objects;
mod outputs;
mod pipelines;
mod structures;
mod surfaces;
