// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` on DeepStream's metadata, with a stand-in for DeepStream's libraries (`standin/`), for every version.
//!
//! A separate program: a process loads one version of the libraries. The tests of `versions` and `failures` build
//! the stand-in and run this program again with it, for the tests of `inside`, which are ignored
//! otherwise.

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
mod recording;
mod run;
mod standin;
mod versions;
