// SPDX-License-Identifier: MIT OR Apache-2.0
//! What DeepStream's payload generator, compiled from its published source, makes of objects.
//!
//! A program of its own, because protobuf's registry and the libraries of DeepStream exist once per process.

#[path = "../../support/mod.rs"]
mod support;

mod library;
mod objects;
