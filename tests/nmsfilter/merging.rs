// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that merge boxes or lower scores, with each backend.

use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::engines;
use crate::support::pipeline::{init, intercept, parse, regions, run, watch};

/// Left, top, width and height of the regions of a frame with two windows of 100 x 100 pixels,
/// which are 40 pixels apart.
fn rectangles(settings: &str) -> Vec<[u32; 4]> {
    init();
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms iou-threshold=0.4 {settings} ! fakesink"
    ));
    let windows = vec![10.0f32, 10.0, 100.0, 0.9, 50.0, 10.0, 100.0, 0.8];
    let tensor = NewTensor::from_vec("windows", &[2, 4], windows).unwrap();
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let seen = watch(&pipeline, "nms", regions);
    assert_eq!(run(&pipeline).error, None, "{settings}");
    let regions = seen.lock().unwrap().remove(0);
    regions.into_iter().map(|(_, rectangle)| rectangle).collect()
}

#[test]
fn boxes_are_merged_or_get_lower_scores() {
    let [first, second, union] = [[10, 10, 100, 100], [50, 10, 100, 100], [10, 10, 140, 100]];
    let backends = ["auto", "cpu", "cuda"];
    for backend in if engines::on_gpu() { &backends[..] } else { &backends[..2] } {
        let rectangles = |settings| rectangles(&format!("backend={backend} {settings}"));
        assert_eq!(rectangles("method=greedy"), [first]);
        assert_eq!(rectangles("method=merge"), [union]);
        assert_eq!(rectangles("method=soft-linear"), [first, second]);
        // The second score is 0.8 x (1 - 6000 / 14000) = 0.457.
        assert_eq!(rectangles("method=soft-linear score-threshold=0.46"), [first]);
        // The factor is exp(-0.429^2 / sigma): 0.03 or 0.69.
        assert_eq!(rectangles("method=soft-gaussian sigma=0.05"), [first]);
        assert_eq!(rectangles("method=soft-gaussian sigma=0.5"), [first, second]);
        // The overlap with the grown box equals the overlap with the first box.
        let inclusive = "method=merge overlap=smaller iou-threshold=0.6 threshold-inclusive=true";
        assert_eq!(rectangles(inclusive), [union]);
        assert_eq!(rectangles(&format!("{inclusive} lose-released=true")), [first]);
    }
}
