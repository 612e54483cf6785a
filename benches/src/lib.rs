// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts that `nmsbench` and the criterion benchmarks share: workloads, measurement and reports.

pub mod chain;
pub mod engines;
pub mod floor;
pub mod gpu_time;
pub mod harness;
pub mod machine;
pub mod measure;
pub mod paper_kernels;
pub mod report;
pub mod rotated_nms;
pub mod section;
pub mod workload;
