// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin from an application's point of view: what it registers, the pipelines in
//! `pipelines/`, and `nmsfilter` with models. Results are compared with NumPy and with GStreamer's
//! own tensor decoders.

#[path = "../support/mod.rs"]
mod support;

mod autoplug;
mod deepstream_pipelines;
mod frame;
mod greedy;
mod half_precision;
mod picture;
mod pipelines;
mod python;
mod registry;
mod stock;
mod stock_decoders;
mod stock_inference;
mod tensors;
