//! Once warm, neither the engine nor the element allocates per frame; what GStreamer allocates for
//! its own metadata is not Rust's and not counted.

use gst_check::Harness;
use gstnmsfilter::engine::{Method, Params};
use gstnmsfilter::head;
use gstnmsfilter::tensor::Tensor;
use gstnmsfilter::tensor::attached::{NewTensor, attach};

use crate::counting::allocations;
use crate::support::{engines, pipeline};

/// Windows in rows that overlap their neighbours.
fn windows(count: usize) -> Vec<f32> {
    (0..count)
        .flat_map(|i| [(i % 50) as f32 * 12.0, (i / 50) as f32 * 12.0, 20.0, 0.9 - i as f32 * 1e-4])
        .collect()
}

#[test]
fn the_engine_allocates_nothing_once_warm() {
    let (windows, columns) = (windows(700), vec![0.5f32; 84 * 2100]);
    let yolov8 = |numbers: usize, anchors: usize| {
        let all = &columns[..numbers * anchors];
        [Tensor::from_slice("yolo-v8-out", &[1, numbers, anchors], all)]
    };
    let tensors = [
        ([Tensor::from_slice("windows", &[700, 4], &windows)], false),
        (yolov8(84, 2100), false),
        // More candidates than anchors.
        (yolov8(8, 200), true),
    ];
    let mut cpu = engines::fast();
    for (tensors, multi_label) in &tensors {
        let layout = head::choose(tensors, None, head::Options::default()).unwrap().layout;
        for method in [Method::None, Method::Greedy, Method::MapReduce] {
            let params = Params { method, multi_label: *multi_label, ..Params::default() };
            let mut run = || assert!(cpu.run(tensors, &layout, &params).unwrap().candidates > 0);
            run();
            assert_eq!(allocations(run), 0, "{method:?}");
        }
    }
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
    // The first frame chooses the head, names the labels and grows the buffers.
    frame(&tensors[0]);
    for tensor in &tensors {
        assert_eq!(frame(tensor), 0, "{:?}", tensor.shape);
    }
}
