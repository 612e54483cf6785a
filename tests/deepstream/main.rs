// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` on DeepStream's metadata, with a stand-in for DeepStream's libraries (`standin/`),
//! for every version.
//!
//! This is a separate program, because a process can load only one version of the libraries. The
//! tests of `versions` and `failures` build the stand-in and start this program again with it. That
//! process runs tests of `inside`, which are ignored otherwise.

#[path = "../support/mod.rs"]
mod support;

mod batch;
mod failures;
mod inside;
mod kit;
mod layout;
mod libraries;
mod nvinfer;
mod nvmsgconv;
mod nvstreammux;
mod object;
mod parts;
mod recording;
mod run;
mod standin;
mod versions;
