// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ortinference` allocates one text for a frame that passes without inference: GStreamer's bindings copy the name of
//! the mark. GStreamer itself allocates the mark, which is not counted.

use gst_check::Harness;
use gstnmsfilter::input::inference_mark::is_inferred;

use crate::counting::allocations;
use crate::support::onnx::{Element, identity};
use crate::support::pipeline;
use crate::support::scratch::ScratchFile;
use crate::support::skip::skip;

#[test]
fn a_frame_that_passes_without_inference_allocates_only_the_name_of_its_mark() {
    if std::env::var_os("ORT_DYLIB_PATH").is_none_or(|path| path.is_empty()) {
        skip("ONNX Runtime: ORT_DYLIB_PATH is not set");
        return;
    }
    pipeline::init();
    gstonnxruntime::plugin_register_static().unwrap();
    let model = ScratchFile::new("onnx", &identity([1, 3, 12, 16], Element::F32).to_bytes());
    let element = gst::ElementFactory::make("ortinference")
        .property("model", model.to_str().unwrap())
        .property_from_str("provider", "cpu")
        .property("inference-interval", 1000u32)
        .property("max-rate", 1.0)
        .build()
        .unwrap();
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=RGB,width=16,height=12,framerate=50/1");
    let mut frame = |number: u64| {
        let mut buffer = gst::Buffer::with_size(16 * 12 * 3).unwrap();
        buffer.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(20 * number));
        let count = allocations(|| assert!(harness.push(buffer).is_ok()));
        (is_inferred(&harness.pull().unwrap()), count)
    };
    let (inferred, count) = frame(0);
    assert!(inferred == Some(true) && count > 0, "{count} allocations are counted");
    for number in 1..20 {
        let (inferred, count) = frame(number);
        assert!(inferred == Some(false) && count <= 1, "frame {number}: {count}");
    }
}
