//! Allocations per frame: none, once the engine and the element are warm. Separate from other
//! tests, because a program has one global allocator, and this one's counts.

#[path = "../support/mod.rs"]
mod support;

mod counting;
mod element;
mod engine;
mod windows;
