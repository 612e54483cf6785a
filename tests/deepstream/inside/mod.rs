// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests in a process that has the libraries of one version. `versions` and `failures` run them.

mod alone;
mod device;
mod errors;
mod letterbox;
mod memory;
mod models;
mod objects;
mod outputs;
mod pipelines;
