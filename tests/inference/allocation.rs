// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer to the query ALLOCATION, and frames that follow it.

use gst::prelude::*;
use gst_check::Harness;
use gst_video::VideoFormat;

use crate::element::{self, file, has_onnx_runtime};
use crate::input::{padded, returns_its_input};

/// A source asks for the layouts that the element reads, as decoders do, and copies frames with padding otherwise.
#[test]
fn a_source_that_pads_rows_copies_no_frame() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&returns_its_input([16, 16]));
    for (format, [width, height]) in [
        (VideoFormat::Rgb, [30, 24]),
        (VideoFormat::I420, [32, 24]),
        (VideoFormat::Nv12, [3840, 2160]),
    ] {
        let info = gst_video::VideoInfo::builder(format, width, height).build().unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let bytes: Vec<u8> = (0..info.size()).map(|_| random.u8(..)).collect();
        let tight = gst::Buffer::from_mut_slice(bytes);
        let mut harness = Harness::new_parse(&element::inference(&model, "provider=cpu"));
        harness.set_src_caps(info.to_caps().unwrap());
        let expected = element::tensors(&harness.push_and_pull(tight.clone()).unwrap());

        let mut query = gst::query::Allocation::new(Some(&info.to_caps().unwrap()), false);
        assert!(harness.srcpad().expect("it has one").peer_query(&mut query));
        assert_eq!(query.allocation_metas().count(), 1);
        assert!(query.find_allocation_meta::<gst_video::VideoMeta>().is_some());
        let padded = padded(&tight, format, [width, height]);
        let memory = padded.peek_memory(0).as_ptr();
        let passed = harness.push_and_pull(padded).unwrap();
        assert_eq!(passed.peek_memory(0).as_ptr(), memory);
        assert_eq!(element::tensors(&passed), expected, "{format}");
    }
}

#[test]
fn any_layout_is_proposed_for_frames_in_cuda_memory() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&returns_its_input([16, 16]));
    let mut harness = Harness::new_parse(&element::inference(&model, "provider=cpu"));
    let caps = "video/x-raw(memory:CUDAMemory),format=NV12,width=32,height=24,framerate=30/1";
    harness.set_src_caps_str(caps);
    let caps: gst::Caps = caps.parse().unwrap();
    let mut query = gst::query::Allocation::new(Some(&caps), true);
    assert!(harness.srcpad().expect("it has one").peer_query(&mut query));
    assert!(query.find_allocation_meta::<gst_video::VideoMeta>().is_some());
}
