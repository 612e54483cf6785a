//! Pixels pass untouched, so the element must not stand between upstream and downstream when
//! they agree on memory.

use gst::prelude::*;

#[test]
fn upstream_sees_what_downstream_proposes() {
    gst::init().unwrap();
    gstnmsfilter::plugin_register_static().unwrap();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=RGB,width=64,height=48,framerate=50/1");
    harness.set_sink_caps_str("video/x-raw,format=RGB,width=64,height=48,framerate=50/1");
    harness.add_propose_allocation_meta(gst_video::VideoMeta::meta_api(), None);

    let caps = harness.sinkpad().unwrap().current_caps();
    let mut query = gst::query::Allocation::new(caps.as_ref(), true);
    let element = harness.element().unwrap();
    assert!(element.static_pad("sink").unwrap().query(&mut query));
    let position = query.find_allocation_meta::<gst_video::VideoMeta>();
    assert_eq!(position, Some(0), "downstream takes GstVideoMeta, and upstream is told so");
}
