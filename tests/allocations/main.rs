// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations per frame: none after the first frames, by the engines and by the element.
//!
//! A program of its own: a program has one global allocator, and the one of this program counts its
//! calls.

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "v1_28")]
mod batches;
mod counting;
mod details;
mod element;
mod engine;
mod windows;
