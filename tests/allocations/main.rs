// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations per frame: neither engines nor elements make any after the first frames.
//!
//! These tests need a separate program, because a program has a single global allocator, and here
//! it counts its calls.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod counting;
mod details;
mod element;
mod engine;
mod skipped;
mod windows;
