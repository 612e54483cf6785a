// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another writer registers and attaches tensor metadata before this copy of the crate does
//! anything.
//!
//! These tests need a separate program: metadata is registered once per process, and the other
//! writer must be the first to register it.

use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{META_NAME, remove};

#[test]
fn tensors_of_a_different_writer_are_read_and_removed() {
    gst::init().unwrap();
    let other = gst_newer::CustomMeta::new(META_NAME, &["video", "nmsfilter-tensor"]);
    let mut buffer = gst::Buffer::new();
    let added = other.add(buffer.get_mut().unwrap(), |structure| {
        structure.set("id", "foreign");
        structure.set("type", "f16");
        structure.set("dims", gst::Array::new([2u64]));
        structure.set("data", gst::Buffer::with_size(4).unwrap());
    });
    added.unwrap();

    assert_eq!(Tensors::of(&buffer).unwrap().views()[0].to_string(), "foreign (f16 2)");
    remove(buffer.get_mut().unwrap());
    assert!(Tensors::of(&buffer).unwrap().is_empty());
}
