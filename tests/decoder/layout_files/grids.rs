// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoders of grids, and files that describe them.

use super::*;

/// The outputs of YOLOv8 before its decode step: for each stride a tensor, channels first, with 4 x
/// 16 bins and the logits of the classes.
#[test]
fn a_file_describes_the_heads_of_yolov8_before_their_decode_step() {
    let text = "
        name = yolov8-heads

        [tensor head]
        names = head_{stride}
        shape = 64+C,H,W
        per-level = yes

        [anchors]
        strides = 8 16 32
        offset = 0.5

        [score]
        scores = head 64
        activation = sigmoid

        [box]
        box = head 0
        format = distances
        transform = expectation
        bins = 16
    ";
    const CLASSES: usize = 3;
    let mut rng = fastrand::Rng::with_seed(1);
    let heads: Vec<(usize, Vec<f32>)> = [8, 16, 32]
        .map(|stride| {
            let cells = (64 / stride) * (64 / stride);
            (stride, random(&mut rng, (64 + CLASSES) * cells, 3.0))
        })
        .into();
    let mut expected = Vec::new();
    let mut anchor = 0;
    for (stride, head) in &heads {
        let side = 64 / stride;
        for cell in 0..side * side {
            let number = |channel: usize| f64::from(head[channel * side * side + cell]);
            let (class, logit) = best((0..CLASSES).map(|class| number(64 + class)));
            let distance = |side: usize| {
                let weights: Vec<f64> = (0..16).map(|bin| number(side * 16 + bin).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let mean = weights.iter().enumerate().map(|(bin, weight)| bin as f64 * weight);
                mean.sum::<f64>() / sum * *stride as f64
            };
            let point = [cell % side, cell / side].map(|at| (at as f64 + 0.5) * *stride as f64);
            let corners = [
                point[0] - distance(0),
                point[1] - distance(1),
                point[0] + distance(2),
                point[1] + distance(3),
            ];
            if sigmoid(logit) > 0.5 {
                expected.push((anchor, class, sigmoid(logit), corners));
            }
            anchor += 1;
        }
    }
    let shapes: Vec<[usize; 4]> =
        heads.iter().map(|(stride, _)| [1, 64 + CLASSES, 64 / stride, 64 / stride]).collect();
    let decoder = decoder::from_text(text).unwrap();
    let view = |id, index: usize| TensorView::from_slice(id, &shapes[index], &heads[index].1);
    let named = [view("head_32", 2), view("onnx/head_8", 0), view("head_16", 1)];
    compare(&decoded(&named, decoder, model_size(64.0), 0.5), &expected);
    let unnamed = [view("b", 1), view("a", 0), view("c", 2)];
    compare(&decoded(&unnamed, decoder, model_size(64.0), 0.5), &expected);
}

/// MediaPipe's palm detector: 192 x 192 pixels, with 2 anchors in each of 24 x 24 cells and 6 in
/// each of 12 x 12 cells. Box coordinates are in pixels, relative to a point per anchor. Seven
/// keypoints follow.
#[test]
fn a_file_describes_the_palm_detector_of_mediapipe() {
    let text = "
        name = palm
        label = palm

        [tensor regressors]
        names = Identity, regressors
        shape = N,18

        [tensor classificators]
        names = Identity_1, classificators
        shape = N,1

        [anchors]
        strides = 8 16
        offset = 0.5
        sizes = 1 1, 1 1 1 1 1 1

        [score]
        scores = classificators
        activation = sigmoid

        [box]
        box = regressors
        format = center

        [column keypoints]
        numbers = regressors 4
        count = 14
    ";
    let mut rng = fastrand::Rng::with_seed(2);
    let boxes = random(&mut rng, 2016 * 18, 30.0);
    let scores = random(&mut rng, 2016, 5.0);
    let points = [(8, 24, 2), (16, 12, 6)].into_iter().flat_map(|(stride, side, per_cell)| {
        (0..side * side * per_cell).map(move |anchor| {
            let cell = anchor / per_cell;
            [cell % side, cell / side].map(|at| (at as f64 + 0.5) * f64::from(stride))
        })
    });
    let mut expected = Vec::new();
    for (anchor, point) in points.enumerate() {
        let row: Vec<f64> = boxes[anchor * 18..][..4].iter().map(|&n| f64::from(n)).collect();
        let score = sigmoid(f64::from(scores[anchor]));
        if score > 0.7 && row[2] > 0.0 && row[3] > 0.0 {
            let corners = center(point[0] + row[0], point[1] + row[1], row[2], row[3]);
            expected.push((anchor, 0, score, corners));
        }
    }
    let tensors = [
        TensorView::from_slice("regressors", &[1, 2016, 18], &boxes),
        TensorView::from_slice("classificators", &[1, 2016, 1], &scores),
    ];
    let decoder = decoder::from_text(text).unwrap();
    compare(&decoded(&tensors, decoder, model_size(192.0), 0.7), &expected);
    assert_eq!(decoder.label(0), Some("palm"));
    assert_eq!(decoder.label(1), None);

    // Survivors have the keypoints as columns.
    let layout = decoder::choose(&tensors, Some(decoder), model_size(192.0)).unwrap().layout;
    let params = Params { method: Method::None, ..Params::default() };
    let mut engine = Reference::default();
    let outcome =
        engine.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
    let first = outcome.group(0).survivors[0].anchor as usize;
    assert_eq!(outcome.group(0).columns[..14], boxes[first * 18 + 4..][..14]);
}

/// YOLOv5 before its decode step, for 64 x 64 pixels. Each tensor lists the anchors of all cells:
/// first the first anchor of each cell, then the second, and so on.
#[test]
fn yolov5_raw_is_read_from_one_tensor_and_from_one_for_each_stride() {
    const SIZES: [[[f64; 2]; 3]; 3] = [
        [[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]],
        [[30.0, 61.0], [62.0, 45.0], [59.0, 119.0]],
        [[116.0, 90.0], [156.0, 198.0], [373.0, 326.0]],
    ];
    let mut rng = fastrand::Rng::with_seed(3);
    let rows = random(&mut rng, 3 * (64 + 16 + 4) * 7, 3.0);
    let mut expected = Vec::new();
    let mut anchor = 0;
    for (level, stride) in [8, 16, 32].into_iter().enumerate() {
        let side = 64 / stride;
        for size in SIZES[level] {
            for cell in 0..side * side {
                let row: Vec<f64> =
                    rows[anchor * 7..][..7].iter().map(|&n| sigmoid(f64::from(n))).collect();
                let (class, probability) = best(row[5..].iter().copied());
                let score = row[4] * probability;
                if score > 0.3 && row[4] > 0.3 {
                    let at = |axis: usize, cell: usize| {
                        (row[axis] * 2.0 - 0.5 + cell as f64) * stride as f64
                    };
                    let length = |axis: usize| (row[2 + axis] * 2.0).powi(2) * size[axis];
                    let corners =
                        center(at(0, cell % side), at(1, cell / side), length(0), length(1));
                    expected.push((anchor, class, score, corners));
                }
                anchor += 1;
            }
        }
    }
    let decoder = decoder::by_name("yolov5-raw").unwrap();
    let one = [TensorView::from_slice("out", &[1, 252, 7], &rows)];
    compare(&decoded(&one, decoder, model_size(64.0), 0.3), &expected);
    let (large, rest) = rows.split_at(192 * 7);
    let (middle, small) = rest.split_at(48 * 7);
    let levels = [
        TensorView::from_slice("c", &[1, 3, 2, 2, 7], small),
        TensorView::from_slice("a", &[1, 3, 8, 8, 7], large),
        TensorView::from_slice("b", &[1, 3, 4, 4, 7], middle),
    ];
    compare(&decoded(&levels, decoder, model_size(64.0), 0.3), &expected);
}

#[test]
fn nanodet_plus_has_no_half_cell_and_a_fourth_stride() {
    let mut rng = fastrand::Rng::with_seed(4);
    let rows = random(&mut rng, 85 * 34, 3.0);
    let mut expected = Vec::new();
    let mut anchor = 0;
    for stride in [8, 16, 32, 64] {
        let side = 64 / stride;
        for cell in 0..side * side {
            let row: Vec<f64> = rows[anchor * 34..][..34].iter().map(|&n| f64::from(n)).collect();
            let (class, score) = best(row[..2].iter().copied());
            let distance = |side: usize| {
                let weights: Vec<f64> = row[2 + side * 8..][..8].iter().map(|n| n.exp()).collect();
                let mean = weights.iter().enumerate().map(|(bin, weight)| bin as f64 * weight);
                mean.sum::<f64>() / weights.iter().sum::<f64>() * stride as f64
            };
            let [x, y] = [cell % side, cell / side].map(|at| (at * stride) as f64);
            if score > 0.5 {
                let corners = [x - distance(0), y - distance(1), x + distance(2), y + distance(3)];
                expected.push((anchor, class, score, corners));
            }
            anchor += 1;
        }
    }
    let tensors = [TensorView::from_slice("output", &[1, 85, 34], &rows)];
    let decoder = decoder::by_name("nanodet").unwrap();
    compare(&decoded(&tensors, decoder, model_size(64.0), 0.5), &expected);
}
