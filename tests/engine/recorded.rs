// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw tensors that NNStreamer's tests recorded, compared with the results of NNStreamer's decoder.
//!
//! NNStreamer's decoder has these rules: edges are rounded to pixels of a 320 x 320 picture,
//! classes are not compared, and the IoU adds a pixel to the sides of the intersection but not to
//! the areas. For YOLOv5, the decoder compares the objectness with the threshold before it
//! multiplies, as this project does. The engines of this project suppress per class and do not
//! round. The tests show that the surviving anchors are equal nevertheless.

use nmsfilter_core::decoder::{self, Coordinates, Options};
use nmsfilter_core::engine::{Detection, Engine, ImagePlace, Job, Method, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::settings::Settings;
use crate::support::{data, engines};
use crate::through_pipeline;

const SIDE: f32 = 320.0;

fn read(name: &str) -> Option<Vec<f32>> {
    let bytes = std::fs::read(data::path(&format!("data/recorded/{name}"))?).unwrap();
    Some(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// Returns the survivors. Both engines must agree.
fn survivors(decoder: &str, shape: &[usize], elements: &[f32], params: Params) -> Vec<Detection> {
    let tensors = [TensorView::from_slice("recorded", shape, elements)];
    let options = Options { coordinates: Coordinates::Normalized, ..Options::default() };
    let layout = decoder::choose(&tensors, decoder::by_name(decoder), options).unwrap().layout;
    let places = [ImagePlace::in_model([SIDE; 2])];
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let expected = reference
        .run(Job::new(&tensors, &layout, &params, &places))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    let found = fast
        .run(Job::new(&tensors, &layout, &params, &places))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    assert_eq!(expected, found);
    found
}

/// Returns the anchors that survive by the rules of NNStreamer's decoder.
fn nnstreamer_survivors(candidates: &[Detection], threshold: f32) -> Vec<u32> {
    let whole = |d: &Detection| {
        let (x, y) = (d.x1.max(0.0) as i32, d.y1.max(0.0) as i32);
        [x, y, (d.x2 - d.x1) as i32, (d.y2 - d.y1) as i32]
    };
    let iou = |a: [i32; 4], b: [i32; 4]| {
        let side = |i: usize| ((a[i] + a[i + 2]).min(b[i] + b[i + 2]) - a[i].max(b[i]) + 1).max(0);
        let both = (side(0) * side(1)) as f32;
        both / ((a[2] * a[3] + b[2] * b[3]) as f32 - both)
    };
    let mut kept: Vec<&Detection> = Vec::new();
    for candidate in candidates {
        if kept.iter().all(|other| iou(whole(other), whole(candidate)) <= threshold) {
            kept.push(candidate);
        }
    }
    kept.iter().map(|d| d.anchor).collect()
}

fn compare(decoder: &str, shape: &[usize], elements: &[f32], counts: [usize; 2]) {
    let all = Params { method: Method::None, ..Params::default() };
    let candidates = survivors(decoder, shape, elements, all);
    let kept = survivors(decoder, shape, elements, Params::default());
    assert_eq!([candidates.len(), kept.len()], counts);
    through_pipeline::expect_counts(
        &[("recorded", shape, elements)],
        Settings::Properties(&[("decoder", decoder), ("coordinates", "normalized")]),
        counts,
    );
    let kept: Vec<u32> = kept.iter().map(|d| d.anchor).collect();
    assert_eq!(kept, nnstreamer_survivors(&candidates, 0.45));
}

#[test]
fn yolov5_gives_56_candidates_and_4_survivors() {
    let Some(elements) = read("yolov5_decoder_input.raw") else {
        return;
    };
    compare("yolov5", &[1, 6300, 85], &elements, [56, 4]);
}

#[test]
fn yolov8_gives_29_candidates_and_3_survivors() {
    let Some(elements) = read("yolov8_decoder_input.raw") else {
        return;
    };
    compare("yolov8", &[1, 2100, 84], &elements, [29, 3]);
}

#[test]
fn anchors_in_columns_give_the_survivors_of_anchors_in_rows() {
    let Some(elements) = read("yolov8_decoder_input.raw") else {
        return;
    };
    let columns: Vec<f32> =
        (0..84).flat_map(|number| elements.iter().skip(number).step_by(84).copied()).collect();
    let by_rows = survivors("yolov8", &[1, 2100, 84], &elements, Params::default());
    let by_columns = survivors("yolov8", &[1, 84, 2100], &columns, Params::default());
    assert_eq!(by_rows.len(), 3);
    assert_eq!(by_rows, by_columns);
}

/// NNStreamer's decoder drew its survivors on an empty picture, which was recorded.
#[test]
fn survivors_have_the_edges_that_nnstreamer_drew() {
    for (decoder, shape, count) in [("yolov5", [1, 6300, 85], 4), ("yolov8", [1, 2100, 84], 3)] {
        let Some(elements) = read(&format!("{decoder}_decoder_input.raw")) else {
            return;
        };
        let Some(golden) = data::path(&format!("data/recorded/{decoder}_result_golden.raw")) else {
            return;
        };
        let golden = std::fs::read(golden).unwrap();
        let drawn = |x: i32, y: i32| {
            let inside = (0..320).contains(&x) && (0..320).contains(&y);
            inside && golden[((y * 320 + x) * 4 + 3) as usize] != 0
        };
        let survivors = survivors(decoder, &shape, &elements, Params::default());
        assert_eq!(survivors.len(), count, "{decoder}");
        for d in survivors {
            // A line is within one pixel of each edge. Upper edges may be hidden by labels.
            let (x1, y1) = (d.x1.max(0.0) as i32, d.y1.max(0.0) as i32);
            let (x2, y2) = (d.x2.min(319.0) as i32, d.y2.min(319.0) as i32);
            let near = |x: i32, y: i32| (-1..=1).any(|dx| (-1..=1).any(|dy| drawn(x + dx, y + dy)));
            let share = |drawn: usize, all: i32| drawn as f32 / all as f32;
            let top = share((x1..x2).filter(|&x| near(x, y1)).count(), x2 - x1);
            let bottom = share((x1..x2).filter(|&x| near(x, y2)).count(), x2 - x1);
            let left = share((y1..y2).filter(|&y| near(x1, y)).count(), y2 - y1);
            let right = share((y1..y2).filter(|&y| near(x2, y)).count(), y2 - y1);
            let edges = [bottom, left, right];
            assert!(edges.iter().all(|&edge| edge > 0.95), "{decoder}: {d:?}, {edges:?}");
            assert!(top > 0.5, "{decoder}: {d:?}, {top} of the upper edge");
        }
    }
}
