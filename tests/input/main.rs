// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's tensor metadata, attached by this crate and by a Python program. The test program
//! `attached_foreign` covers metadata that a different writer has registered.

#[path = "../support/mod.rs"]
mod support;

mod attached;
mod model;
mod regions;
