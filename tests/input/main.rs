// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's tensor metadata, attached by this crate and by a Python program. The program
//! `attached_foreign` tests the metadata of a different writer.

#[path = "../support/mod.rs"]
mod support;

mod attached;
mod model;
mod regions;
