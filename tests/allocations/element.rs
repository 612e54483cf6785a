// SPDX-License-Identifier: MIT OR Apache-2.0
//! After the first frames the element allocates nothing per frame. It forwards allocation queries,
//! since it does not access pixels.
//!
//! The tests count calls of Rust's allocator in the thread that pushes buffers: allocations of the
//! element, its engine and the Rust bindings. GStreamer and GLib allocate with their own functions,
//! so allocations by GStreamer for the attached metadata are not counted. The tests prove that the
//! element allocates no vector, string or message per frame.

use gst::prelude::*;
use gst_check::Harness;
use gstnmsfilter::input::custom_meta::{NewTensor, attach, attach_of};
use gstnmsfilter::input::model::{Letterbox, ModelInfo};

use crate::counting::allocations;
use crate::support::pipeline;
use crate::windows::windows;

const CAPS: &str = "video/x-raw,format=GRAY8,width=640,height=480,framerate=50/1";

/// A pool of three buffers.
fn pool() -> gst::BufferPool {
    let pool = gst::BufferPool::new();
    let mut config = pool.config();
    let caps: gst::Caps = CAPS.parse().unwrap();
    config.set_params(Some(&caps), 640 * 480, 3, 3);
    pool.set_config(config).unwrap();
    pool.set_active(true).unwrap();
    pool
}

/// Corners and scores of two classes for `count` boxes that overlap their neighbors, and outputs that
/// no decoder reads.
fn several(count: usize) -> Vec<NewTensor> {
    let (mut boxes, mut scores) = (Vec::new(), Vec::new());
    for i in 0..count {
        let [x, y] = [i % 50, i / 50].map(|step| step as f32 * 12.0);
        boxes.extend([x, y, x + 20.0, y + 20.0]);
        let score = 0.9 - i as f32 * 1e-4;
        scores.extend(if i % 2 == 0 { [score, 0.1] } else { [0.1, score] });
    }
    let tensor = |id: &str, shape: &[usize], elements: Vec<f32>| {
        NewTensor::from_vec(id, shape, elements).unwrap()
    };
    vec![
        tensor("embedding", &[1, 128, 1, 1], vec![0.0; 128]),
        tensor("scores", &[count, 2], scores),
        tensor("prototypes", &[1, 32, 4, 4], vec![0.0; 512]),
        tensor("boxes", &[count, 4], boxes),
    ]
}

fn attach_all(buffer: &mut gst::BufferRef, tensors: &[NewTensor]) {
    tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
}

/// Returns the number of allocations for each of twenty frames with pooled buffers. `write`
/// attaches the tensors; the number of boxes differs from frame to frame.
fn warm_frames(
    properties: &[(&str, &str)],
    write: fn(&mut gst::BufferRef, &[NewTensor]),
) -> Vec<usize> {
    pipeline::init();
    let mut element = gst::ElementFactory::make("nmsfilter");
    for (name, value) in properties {
        element = element.property_from_str(name, value);
    }
    let element = element.build().unwrap();
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(CAPS);
    let pool = pool();
    let mut seen = std::collections::BTreeSet::new();
    let tensors = [700, 400, 650, 20].map(several);
    let mut frame = |tensors: &[NewTensor]| {
        let mut buffer = pool.acquire_buffer(None).unwrap();
        seen.insert(buffer.as_ptr() as usize);
        write(buffer.get_mut().unwrap(), tensors);
        let count = allocations(|| assert!(harness.push(buffer).is_ok()));
        let regions = harness.pull().unwrap().iter_meta::<gst::Meta>().count();
        assert!(regions > 5, "{properties:?}: {regions} metadata items");
        count
    };
    // The first frame chooses the decoder, formats the labels, opens the GPU if there is one, and
    // allocates buffers. The ninth frame is the first that a GPU runs, if there is one.
    for tensors in tensors.iter().cycle().take(16) {
        frame(tensors);
    }
    let counts = (0..20).map(|i| frame(&tensors[i % tensors.len()])).collect();
    assert!(seen.len() <= 3, "buffers come from the pool");
    counts
}

#[test]
fn the_element_allocates_nothing_once_warm() {
    pipeline::init();
    let mut harness = Harness::new("nmsfilter");
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=640,height=480,framerate=50/1");
    let tensors = [700, 400, 650]
        .map(|count| NewTensor::from_vec("windows", &[count, 4], windows(count)).unwrap());
    let mut frame = |tensor: &NewTensor| {
        let mut buffer = gst::Buffer::with_size(640 * 480).unwrap();
        attach(buffer.get_mut().unwrap(), tensor).unwrap();
        let count = allocations(|| assert!(harness.push(buffer).is_ok()));
        let regions = pipeline::regions(&harness.pull().unwrap()).len();
        assert!(regions > 100, "{regions} regions");
        count
    };
    // The first frame chooses the decoder, formats the labels and allocates buffers.
    frame(&tensors[0]);
    for tensor in &tensors {
        assert_eq!(frame(tensor), 0, "{:?}", tensor.shape);
    }
}

/// Settings: the defaults, a limit that every frame reaches, removed tensors, and class rules.
const PROPERTIES: [&[(&str, &str)]; 5] = [
    &[],
    &[("max-detections", "12")],
    &[("attach", "roi"), ("keep-tensors", "false")],
    &[("classes", "0,1"), ("class-thresholds", "1:0.5"), ("method", "map-reduce")],
    &[
        ("class-iou-thresholds", "0:0.6"),
        ("class-max-detections", "0:5"),
        ("class-sizes", "1:4x4.."),
    ],
];

#[test]
fn a_warm_element_allocates_nothing_for_several_tensors_of_its_own_metadata() {
    for properties in PROPERTIES {
        assert_eq!(warm_frames(properties, attach_all), [0; 20], "{properties:?}");
    }
}

#[test]
fn a_warm_element_allocates_nothing_for_the_tensors_of_one_of_two_elements() {
    fn attach_from_two(buffer: &mut gst::BufferRef, tensors: &[NewTensor]) {
        for (source, tensor) in
            ["one", "two"].into_iter().flat_map(|s| tensors.iter().map(move |t| (s, t)))
        {
            attach_of(buffer, tensor, Some(source), None).unwrap();
        }
    }
    for selected in ["", "0", "1", "two"] {
        for keep in ["true", "false"] {
            let properties = [("tensors-from", selected), ("keep-tensors", keep)];
            assert_eq!(warm_frames(&properties, attach_from_two), [0; 20], "{properties:?}");
        }
    }
}

/// Caps that describe a model with labels.
fn model() -> gst::Caps {
    let info = ModelInfo {
        size: Some([640, 480]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    ModelInfo { labels: ["person", "bicycle"].map(Into::into).into(), ..info }.to_caps().unwrap()
}

#[test]
fn a_warm_element_allocates_nothing_for_tensors_that_describe_their_model() {
    fn with_model(buffer: &mut gst::BufferRef, tensors: &[NewTensor], caps: &gst::Caps) {
        for tensor in tensors {
            attach(buffer, &tensor.clone().with_model(caps.clone())).unwrap();
        }
    }
    fn shared(buffer: &mut gst::BufferRef, tensors: &[NewTensor]) {
        static CAPS: std::sync::OnceLock<gst::Caps> = std::sync::OnceLock::new();
        with_model(buffer, tensors, CAPS.get_or_init(model));
    }
    fn equal(buffer: &mut gst::BufferRef, tensors: &[NewTensor]) {
        with_model(buffer, tensors, &model());
    }
    for properties in PROPERTIES {
        assert_eq!(warm_frames(properties, shared), [0; 20], "the same caps: {properties:?}");
        assert_eq!(warm_frames(properties, equal), [0; 20], "equal caps: {properties:?}");
    }
    assert_eq!(warm_frames(&[("classes", "person,bicycle")], shared), [0; 20]);
}

#[test]
fn a_warm_element_allocates_nothing_for_several_tensors_of_gstreamers_metadata() {
    crate::support::needs::needs!(tensors);
    use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};
    fn add(buffer: &mut gst::BufferRef, tensors: &[NewTensor]) {
        let tensors = tensors.iter().map(|tensor| {
            let id = gst::glib::Quark::from_str(&tensor.id);
            let (order, data) = (TensorDimOrder::RowMajor, tensor.data.clone());
            Tensor::new_simple(id, TensorDataType::Float32, data, order, &tensor.shape)
        });
        TensorMeta::add(buffer).unwrap().set(tensors.collect::<Vec<_>>());
    }
    for properties in PROPERTIES {
        assert_eq!(warm_frames(properties, add), [0; 20], "{properties:?}");
    }
}

#[test]
fn allocations_for_a_new_plan_are_counted() {
    pipeline::init();
    let mut harness = Harness::new("nmsfilter");
    harness.set_src_caps_str(CAPS);
    let mut buffer = gst::Buffer::new();
    attach_all(buffer.get_mut().unwrap(), &several(20));
    assert!(allocations(|| assert!(harness.push(buffer).is_ok())) > 0);
}

#[test]
fn allocation_queries_pass_the_metadata_and_pool_that_downstream_proposes() {
    let pipeline = pipeline::parse(&format!(
        "videotestsrc name=in num-buffers=9 ! {CAPS} ! nmsfilter name=nms ! fakesink name=out"
    ));
    let offered = gst::BufferPool::new();
    let sink = pipeline.by_name("out").unwrap().static_pad("sink").unwrap();
    sink.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, {
        let offered = offered.clone();
        move |_, info| {
            let Some(gst::QueryViewMut::Allocation(query)) =
                info.query_mut().map(|query| query.view_mut())
            else {
                return gst::PadProbeReturn::Ok;
            };
            query.add_allocation_pool(Some(&offered), 640 * 480, 4, 0);
            query.add_allocation_meta::<gst_video::VideoMeta>(None);
            query.add_allocation_meta::<gst_video::VideoCropMeta>(None);
            gst::PadProbeReturn::Handled
        }
    });

    let upstream = pipeline.by_name("nms").unwrap().static_pad("sink").unwrap();
    let seen = pipeline::watch(&pipeline, "out", {
        let (upstream, offered) = (upstream.clone(), offered.clone());
        move |buffer| {
            let mut query = gst::query::Allocation::new(upstream.current_caps().as_ref(), true);
            assert!(upstream.query(&mut query));
            let metas = [
                query.find_allocation_meta::<gst_video::VideoMeta>(),
                query.find_allocation_meta::<gst_video::VideoCropMeta>(),
            ];
            let pools: Vec<_> = query.allocation_pools().collect();
            // SAFETY: the buffer is alive, and its pool was set when it was acquired.
            let from = unsafe { (*buffer.as_ptr()).pool };
            (metas, pools == [(Some(offered.clone()), 640 * 480, 4, 0)], from == offered.as_ptr())
        }
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    assert_eq!(*seen.lock().unwrap(), [([Some(0), Some(1)], true, true); 9]);
}
