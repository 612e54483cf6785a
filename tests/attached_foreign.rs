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
    gst::meta::CustomMeta::register(META_NAME, &["video", "nmsfilter-tensor"]);
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().unwrap();
    let mut meta = gst::meta::CustomMeta::add(writable, META_NAME).unwrap();
    let structure = meta.mut_structure();
    structure.set("id", "foreign");
    structure.set("type", "f16");
    structure.set("dims", gst::Array::new([2u64]));
    structure.set("data", gst::Buffer::with_size(4).unwrap());

    assert_eq!(Tensors::of(&buffer).unwrap().views()[0].to_string(), "foreign (f16 2)");
    remove(buffer.get_mut().unwrap());
    assert!(Tensors::of(&buffer).unwrap().is_empty());
}
