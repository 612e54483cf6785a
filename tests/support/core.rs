// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of `support` that the programs of the package `nmsfilter-core` use, which are built without GStreamer.
#![allow(dead_code, reason = "each test program uses some of it")]

pub mod data;
pub mod engines;
pub mod layout_scene;
pub mod library;
pub mod methods;
pub mod oriented_scene;
pub mod project;
pub mod random_layout;
pub mod recorded;
pub mod scene;
pub mod skip;
