//! Allocations per frame: none, once the engine and the element are warm.
//!
//! A program of its own: a program has one global allocator, and the one of this program counts its
//! calls.

#[path = "../support/mod.rs"]
mod support;

mod counting;
mod element;
mod engine;
mod windows;
