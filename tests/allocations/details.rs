// SPDX-License-Identifier: MIT OR Apache-2.0
//! After the first frames, neither `nmsfilter` nor `roioverlay` allocates per frame for keypoints,
//! masks and oriented boxes. Only calls of Rust's allocator are counted (see `element`).

use gst_check::Harness;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::counting::allocations;
use crate::support::pipeline;

/// Anchors of the model; only some of them become detections.
const ANCHORS: usize = 256;

/// The tensor of a one-class YOLO model: `count` boxes in columns, followed by their scores and by
/// `numbers` more rows, whose elements `number` returns.
fn output(count: usize, numbers: usize, number: impl Fn(usize, usize) -> f32) -> NewTensor {
    let mut rows = vec![0.0; (5 + numbers) * ANCHORS];
    for i in 0..count {
        let [x, y] = [i % 20 * 32 + 16, i / 20 * 32 + 16].map(|center| center as f32);
        let score = 0.9 - i as f32 * 1e-3;
        let own = [x, y, 28.0, 24.0, score].into_iter();
        for (row, value) in own.chain((0..numbers).map(|n| number(i, n))).enumerate() {
            rows[row * ANCHORS + i] = value;
        }
    }
    NewTensor::from_vec("output0", &[1, 5 + numbers, ANCHORS], rows).unwrap()
}

/// The tensors of a frame with this many boxes.
type MakeTensors = fn(usize) -> Vec<NewTensor>;

fn pose(count: usize) -> Vec<NewTensor> {
    // The points are inside of the box: points outside would be reported.
    let point = |i: usize, n: usize| match n % 3 {
        0 => (i % 20 * 32 + 6 + n / 3) as f32,
        1 => (i / 20 * 32 + 8 + n / 3) as f32,
        _ => 0.8,
    };
    vec![output(count, 51, point)]
}

fn masks(count: usize) -> Vec<NewTensor> {
    let prototypes = (0..4 * 160 * 120).map(|i| (i % 7) as f32 - 3.0).collect();
    vec![
        output(count, 4, |i, n| ((i + n) % 3) as f32 - 1.0),
        NewTensor::from_vec("output1", &[1, 4, 120, 160], prototypes).unwrap(),
    ]
}

fn oriented(count: usize) -> Vec<NewTensor> {
    vec![output(count, 1, |i, _| i as f32 * 0.1)]
}

/// The number of allocations for each of twenty frames, whose number of boxes differs from frame to frame.
fn warm_frames(elements: &str, make: MakeTensors) -> Vec<usize> {
    pipeline::init();
    let mut harness = Harness::new_parse(elements);
    harness.set_src_caps_str("video/x-raw,format=I420,width=640,height=480,framerate=50/1");
    let tensors = [200, 40, 150, 3].map(make);
    // Without timestamps, the system clock would decide which frame posts a warning.
    let mut pts = gst::ClockTime::ZERO;
    let mut frame = |tensors: &[NewTensor]| {
        let mut buffer = gst::Buffer::with_size(640 * 480 * 3 / 2).unwrap();
        buffer.get_mut().unwrap().set_pts(pts);
        pts += gst::ClockTime::from_mseconds(20);
        for tensor in tensors {
            attach(buffer.get_mut().unwrap(), tensor).unwrap();
        }
        let count = allocations(|| assert!(harness.push(buffer).is_ok()));
        let metas = harness.pull().unwrap().iter_meta::<gst::Meta>().count();
        assert!(metas > 3, "{elements}: {metas} metadata items");
        count
    };
    // The ninth frame is the first that a GPU runs, if there is one.
    tensors.iter().cycle().take(16).for_each(|tensors| {
        frame(tensors);
    });
    (0..20).map(|i| frame(&tensors[i % tensors.len()])).collect()
}

const MODELS: [(&str, MakeTensors); 4] = [
    ("yolov8-pose", pose),
    ("yolov8-seg", masks),
    ("yolov8-seg mask-size=frame", masks),
    ("yolov8-obb", oriented),
];

#[test]
fn a_warm_element_allocates_nothing_for_keypoints_masks_and_angles() {
    for (decoder, make) in MODELS {
        let element = format!("nmsfilter num-classes=1 decoder={decoder}");
        assert_eq!(warm_frames(&element, make), [0; 20], "{element}");
    }
}

#[test]
fn a_warm_overlay_allocates_nothing() {
    for (decoder, make) in MODELS {
        for labels in ["auto", "always", "never"] {
            let elements =
                format!("nmsfilter num-classes=1 decoder={decoder} ! roioverlay labels={labels}");
            assert_eq!(warm_frames(&elements, make), [0; 20], "{elements}");
        }
    }
}
