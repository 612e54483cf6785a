// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA engine, and tensors in device memory. Run with `--include-ignored` and
//! `NMSFILTER_TEST_BACKEND=cuda` on a machine with a GPU, or with the emulated driver of
//! `kernels/emulate`.

#[path = "../support/mod.rs"]
mod support;

mod batch;
mod device_tensors;
mod engine;
mod enqueue;
mod foreign_memory;
mod groups;
mod images;
mod layouts;
mod memory;
mod merging;
mod oriented;
mod outcome;
mod pictures;
mod publish;
mod resample;
mod run_kernels;
mod sorted;
