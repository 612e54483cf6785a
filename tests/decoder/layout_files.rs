// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout files that users could write, and decoders of grids. The expected results are formulas in
//! this file.

use nmsfilter_core::decoder::layout::{Activation, Reference as BoxReference};
use nmsfilter_core::decoder::{
    self, BoxFormat, Choice, ChoiceError, Coordinates, Decoder, LayoutError, Options, Reason,
};
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, ImagePlace, Method, Params, Reference,
};
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, TensorView};

use super::support::engines;

use crate::with_zeros;

/// Random numbers between `-range` and `range`.
fn random(random: &mut fastrand::Rng, count: usize, range: f32) -> Vec<f32> {
    (0..count).map(|_| (random.f32() * 2.0 - 1.0) * range).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn model_size(side: f32) -> Options {
    Options { model_size: Some([side; 2]), ..Options::default() }
}

/// Returns all candidates whose score is at least `threshold`, in the order of anchors.
fn decoded(
    tensors: &[TensorView<'_>],
    decoder: &'static dyn Decoder,
    options: Options,
    threshold: f32,
) -> Vec<Detection> {
    let layout = decoder::choose(tensors, Some(decoder), options).unwrap().layout;
    let params = Params {
        thresholds: ClassThresholds::uniform(threshold),
        method: Method::None,
        ..Params::default()
    };
    let mut engine = Reference::default();
    let mut found = engine
        .run(tensors, &layout, &params, &engines::places(&layout))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    found.sort_by_key(|detection| detection.anchor);
    found
}

/// An expected candidate: anchor, class, score and corners.
type Expected = (usize, usize, f64, [f64; 4]);

fn compare(found: &[Detection], expected: &[Expected]) {
    assert!(expected.len() > 20, "{} candidates", expected.len());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let (anchor, class, score, corners) = expected;
        let what = format!("{found:?}, {expected:?}");
        assert_eq!((found.anchor as usize, found.class as usize), (*anchor, *class), "{what}");
        assert!((f64::from(found.score) - score).abs() < 1e-5, "{what}");
        let sides = [found.x1, found.y1, found.x2, found.y2];
        let near = |(a, b): (f32, &f64)| (f64::from(a) - b).abs() < 0.01;
        assert!(sides.into_iter().zip(corners).all(near), "{what}");
    }
}

/// Returns the index of the greatest number, and the number.
fn best(numbers: impl Iterator<Item = f64>) -> (usize, f64) {
    numbers.enumerate().fold((0, f64::MIN), |best, new| if new.1 > best.1 { new } else { best })
}

fn center(x: f64, y: f64, width: f64, height: f64) -> [f64; 4] {
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

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
    let outcome = engine.run(&tensors, &layout, &params, &engines::places(&layout)).unwrap();
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

/// The heads of a model with an input of 64x64 pixels, cut in front of the decode step: for each stride the numbers of
/// boxes and of scores, channel by channel.
struct Heads {
    boxes: Vec<Vec<f32>>,
    scores: Vec<Vec<f32>>,
    /// The sum of the scores of each cell, which RKNN's exports have, too.
    sums: Vec<Vec<f32>>,
    classes: usize,
}

impl Heads {
    const STRIDES: [usize; 3] = [8, 16, 32];

    fn random(seed: u64, numbers: usize, classes: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let cells = Self::STRIDES.map(|stride| (64 / stride) * (64 / stride));
        let boxes = cells.map(|cells| random(&mut rng, cells * numbers, 2.0)).into();
        let scores: Vec<Vec<f32>> =
            cells.map(|cells| (0..cells * classes).map(|_| rng.f32()).collect()).into();
        let sum = |scores: &Vec<f32>| {
            let cells = scores.len() / classes;
            (0..cells).map(|cell| scores[cell..].iter().step_by(cells).sum()).collect()
        };
        let sums = scores.iter().map(sum).collect();
        Self { boxes, scores, sums, classes }
    }

    /// The anchors whose best score is above 0.5. `distances` returns the distances to the sides, in cells, from the
    /// numbers of an anchor's box.
    fn expected(
        &self,
        distances: impl Fn(&[f64]) -> [f64; 4],
    ) -> Vec<(usize, usize, f64, [f64; 4])> {
        let mut expected = Vec::new();
        let mut anchor = 0;
        for (level, stride) in Self::STRIDES.into_iter().enumerate() {
            let side = 64 / stride;
            let cells = side * side;
            for cell in 0..cells {
                let of_cell = |numbers: &[f32]| -> Vec<f64> {
                    numbers[cell..].iter().step_by(cells).map(|&number| f64::from(number)).collect()
                };
                let (class, score) = best(of_cell(&self.scores[level]).into_iter());
                if score > 0.5 {
                    let [left, up, right, down] =
                        distances(&of_cell(&self.boxes[level])).map(|it| it * stride as f64);
                    let [x, y] =
                        [cell % side, cell / side].map(|at| (at as f64 + 0.5) * stride as f64);
                    expected.push((anchor, class, score, [x - left, y - up, x + right, y + down]));
                }
                anchor += 1;
            }
        }
        expected
    }

    /// The tensors as `[1,channels,H,W]`, in the order of RKNN's exports.
    fn tensors(&self, has_sums: bool) -> Vec<TensorView<'_>> {
        let mut tensors = Vec::new();
        for (level, stride) in Self::STRIDES.into_iter().enumerate() {
            let side = 64 / stride;
            let numbers = self.boxes[level].len() / (side * side);
            let of = |id, channels, elements| {
                TensorView::from_slice(id, &[1, channels, side, side], elements)
            };
            tensors.push(of("a", numbers, &self.boxes[level]));
            tensors.push(of("b", self.classes, &self.scores[level]));
            if has_sums {
                tensors.push(of("c", 1, &self.sums[level]));
            }
        }
        tensors
    }
}

/// The expectation of 16 bins for each side.
fn expectations(numbers: &[f64]) -> [f64; 4] {
    [0, 1, 2, 3].map(|side| {
        let weights: Vec<f64> = numbers[side * 16..][..16].iter().map(|n| n.exp()).collect();
        let mean = weights.iter().enumerate().map(|(bin, weight)| bin as f64 * weight).sum::<f64>();
        mean / weights.iter().sum::<f64>()
    })
}

#[test]
fn heads_for_npus_have_16_bins_for_each_side_or_a_distance() {
    let decoder = decoder::by_name("yolov8-heads").unwrap();
    let heads = Heads::random(6, 64, 5);
    let found = decoded(&heads.tensors(false), decoder, model_size(64.0), 0.5);
    compare(&found, &heads.expected(expectations));
    let mut without_bins = Heads::random(7, 4, 5);
    without_bins.boxes.iter_mut().flatten().for_each(|distance| *distance = distance.abs());
    let found = decoded(&without_bins.tensors(false), decoder, model_size(64.0), 0.5);
    compare(&found, &without_bins.expected(|numbers| numbers.try_into().unwrap()));
}

#[test]
fn sums_of_scores_are_ignored_if_the_number_of_classes_is_known() {
    let decoder = decoder::by_name("yolov8-heads").unwrap();
    let heads = Heads::random(8, 64, 5);
    let options = Options { num_classes: 5, ..model_size(64.0) };
    let found = decoded(&heads.tensors(true), decoder, options, 0.5);
    compare(&found, &heads.expected(expectations));
}

/// Returns the layout that the decoder `name` chooses for tensors of zeros.
fn choose(
    tensors: &[(&str, &[usize])],
    name: &str,
    options: Options,
) -> Result<Choice, ChoiceError> {
    with_zeros(tensors, |tensors| decoder::choose(tensors, decoder::by_name(name), options))
}

fn message(tensors: &[(&str, &[usize])], name: &str, options: Options) -> String {
    choose(tensors, name, options).err().expect("they do not fit").to_string()
}

#[test]
fn a_grid_of_another_model_size_is_an_error_with_both_numbers() {
    assert_eq!(
        message(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(416.0)),
        "tensor out (f32 1x8400x85): it has 8400 anchors, but decoder yolox-raw expects 3549: grids of \
         stride 8, 16, 32 on a model input of 416x416; set model-width and model-height to the \
         model's input"
    );
    assert_eq!(
        message(&[("out", &[1, 8400, 85])], "yolox-raw", Options::default()),
        "tensor out (f32 1x8400x85): decoder yolox-raw needs the size of the model's input; \
         set model-width and model-height"
    );
    assert!(choose(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(640.0)).is_ok());
    let unnamed: [(&str, &[usize]); 3] =
        [("a", &[1, 3, 8, 8, 7]), ("b", &[1, 3, 4, 4, 7]), ("c", &[1, 3, 2, 2, 7])];
    let text = message(&unnamed, "yolov5-raw", Options::default());
    assert!(text.contains("decoder yolov5-raw needs the size of the model's input"), "{text}");
    for size in [f32::NAN, f32::INFINITY, -1.0, 0.0, 1e30] {
        assert!(choose(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(size)).is_err());
    }
    let levels: [(&str, &[usize]); 6] = [
        ("score_8", &[1, 12800, 1]),
        ("score_16", &[1, 3200, 1]),
        ("score_32", &[1, 800, 1]),
        ("bbox_8", &[1, 12800, 4]),
        ("bbox_16", &[1, 3200, 4]),
        ("bbox_32", &[1, 800, 4]),
    ];
    assert!(choose(&levels, "scrfd", model_size(640.0)).is_ok());
    let text = message(&levels, "scrfd", model_size(320.0));
    assert!(text.starts_with("tensor score_8 (f32 1x12800x1): it has 12800 anchors"), "{text}");
    assert!(text.contains("expects 3200: grids of stride 8 on a model input of 320x320"), "{text}");
    // The input can be rectangular. If a stride does not divide a side, the number of cells is
    // rounded.
    let size = Options { model_size: Some([320.0, 192.0]), ..Options::default() };
    assert!(choose(&[("out", &[1, 1260, 85])], "yolox-raw", size).is_ok());
}

/// The outputs of insightface's models are named by numbers, and have no batch dimension.
#[test]
fn tensors_of_levels_are_found_by_names_or_by_shapes_also_without_a_batch_dimension() {
    let shapes: [&[usize]; 6] =
        [&[12800, 1], &[3200, 1], &[800, 1], &[12800, 4], &[3200, 4], &[800, 4]];
    for (names, reason) in [
        (["448", "471", "494", "451", "474", "497"], Reason::Name),
        (["443", "468", "493", "446", "471", "496"], Reason::Name),
        (["onnx/443", "onnx/468", "onnx/493", "onnx/446", "onnx/471", "onnx/496"], Reason::Name),
        (["a", "b", "c", "d", "e", "f"], Reason::Shape),
    ] {
        let mut tensors: Vec<(&str, &[usize])> = names.into_iter().zip(shapes).collect();
        tensors.reverse();
        for batch in [false, true] {
            let choice = choose(&tensors, "scrfd", Options { batch, ..model_size(640.0) }).unwrap();
            assert_eq!((choice.reason, choice.layout.images), (reason, 1), "{names:?} {batch}");
            let tensors = choice.layout.groups.iter().map(|g| [g.scores.tensor, g.boxes.tensor]);
            assert_eq!(tensors.collect::<Vec<_>>(), [[5, 2], [4, 1], [3, 0]]);
        }
    }
}

#[test]
fn tensors_of_equal_shapes_need_names() {
    let shapes: [&[usize]; 3] = [&[1, 6400, 1], &[1, 1600, 1], &[1, 400, 1]];
    let bbox: [&[usize]; 3] = [&[1, 6400, 4], &[1, 1600, 4], &[1, 400, 4]];
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let all: Vec<&[usize]> = shapes.into_iter().chain(shapes).chain(bbox).collect();
    let unnamed: Vec<(&str, &[usize])> = names.into_iter().zip(all.iter().copied()).collect();
    let text = message(&unnamed, "yunet", model_size(640.0));
    assert!(text.contains("yunet in 8 ways; give the tensor"), "{text}");
    let names =
        ["cls_8", "cls_16", "cls_32", "obj_8", "obj_16", "obj_32", "bbox_8", "bbox_16", "bbox_32"];
    let named: Vec<(&str, &[usize])> = names.into_iter().zip(all).collect();
    let choice = choose(&named, "yunet", model_size(640.0)).unwrap();
    assert_eq!((choice.layout.anchors(), choice.reason), (8400, Reason::Id));
}

/// When 16 tensors have one shape, their orders are not tried one by one.
#[test]
fn many_tensors_of_one_shape_are_matched_quickly() {
    let text = (0..16).fold("name = many\n".to_owned(), |text, index| {
        let shape = if index == 15 { "N,5" } else { "N,4" };
        text + &format!("[tensor t{index}]\nshape = {shape}\n")
    });
    let unused = decoder::from_text(&text).err().unwrap().to_string();
    assert!(unused.contains("expected at most") || unused.contains("needs"), "{unused}");
    let strides = "1 2 4 8 16 32 64 128";
    let text = format!(
        "name = many\n[tensor a]\nshape = N,4\nper-level = yes\n[tensor b]\nshape = N\nper-level = yes\n\
         [anchors]\nstrides = {strides}\nrounding = up\n[score]\nscores = b\n[box]\nbox = a\n"
    );
    let decoder = decoder::from_text(&text).unwrap();
    // The levels have one anchor each. Field `a` has its 8 tensors, but `b` has one fewer than it
    // needs.
    let (boxes, scores) = ([0.0f32; 4], [0.0f32; 1]);
    let mut tensors: Vec<TensorView<'_>> =
        (0..17).map(|_| TensorView::from_slice("a", &[1, 4], &boxes)).collect();
    tensors.extend((0..7).map(|_| TensorView::from_slice("b", &[1, 1], &scores)));
    let error = decoder::choose(&tensors, Some(decoder), model_size(1.0)).err().unwrap();
    assert!(error.to_string().contains("many in many ways"), "{error}");
}

#[test]
fn end2end_rows_are_corners_with_score_and_class() {
    let rows = [[10.0f32, 20.0, 30.0, 40.0, 0.9, 7.0], [1.0, 2.0, 3.0, 4.0, 0.8, 0.5]];
    let tensors = [TensorView::from_slice("yolo-26-end2end-out", &[1, 2, 6], rows.as_flattened())];
    let choice = decoder::choose(&tensors, None, Options::default()).unwrap();
    assert_eq!((choice.decoder.name(), choice.reason), ("end2end", Reason::Id));
    let mut engine = Reference::default();
    let outcome = engine
        .run(&tensors, &choice.layout, &Params::default(), &engines::places(&choice.layout))
        .unwrap();
    let [found] = outcome.group(0).survivors else { panic!("{:?}", outcome.group(0)) };
    let corners = [found.x1, found.y1, found.x2, found.y2];
    assert_eq!((corners, found.score, found.class), ([10.0, 20.0, 30.0, 40.0], 0.9, 7));
    assert_eq!(outcome.group(0).rejected, 1, "a class that is no whole number");
    // The number of classes is a limit.
    let few = Options { num_classes: 7, ..Options::default() };
    let layout = decoder::choose(&tensors, None, few).unwrap().layout;
    assert_eq!(
        engine
            .run(&tensors, &layout, &Params::default(), &engines::places(&layout))
            .unwrap()
            .group(0)
            .rejected,
        2
    );
}

#[test]
fn rows_of_six_numbers_with_another_decoder_may_be_end_to_end() {
    let may_be = |name: &str, shape: &[usize], options: Options| {
        let choice = choose(&[("out", shape)], name, options).unwrap();
        decoder::may_be_end_to_end(&choice, options)
    };
    let unknown = Options::default();
    for shape in [&[1, 300, 6][..], &[1, 8400, 6]] {
        for name in ["yolov8", "yolov5", "yolox", "detr"] {
            assert!(may_be(name, shape, unknown), "{name}");
        }
        assert!(!may_be("end2end", shape, unknown));
        assert!(!may_be("yolov8", shape, Options { num_classes: 2, ..unknown }));
        assert!(!may_be("yolov5", shape, Options { num_classes: 1, ..unknown }));
    }
    assert!(!may_be("yolov8", &[1, 6, 8400], unknown));
    assert!(!may_be("yolov8", &[1, 300, 7], unknown));
}

#[test]
fn the_option_score_activation_replaces_the_description() {
    let (boxes, logits) = ([0.5f32, 0.5, 0.2, 0.2].repeat(2), [3.0f32, -1.0, 0.25, 0.5]);
    let tensors = [
        TensorView::from_slice("pred_boxes", &[1, 2, 4], &boxes),
        TensorView::from_slice("logits", &[1, 2, 2], &logits),
    ];
    let run = |score_activation| {
        let options = Options { score_activation, ..Options::default() };
        // DETR models, which have softmax and a class for "no object", use these names as well. The
        // names therefore choose no decoder.
        assert!(decoder::choose(&tensors, None, options).is_err());
        let choice = decoder::choose(&tensors, decoder::by_name("detr"), options).unwrap();
        assert_eq!(choice.reason, Reason::Name);
        assert!(choice.layout.normalized);
        let mut engine = Reference::default();
        let params = Params { method: Method::None, ..Params::default() };
        let places = [ImagePlace::in_model([100.0; 2])];
        let outcome = engine.run(&tensors, &choice.layout, &params, &places).unwrap();
        outcome.group(0).survivors.iter().map(|found| found.score).collect::<Vec<_>>()
    };
    let near = |found: Vec<f32>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        let pairs = found.iter().zip(expected);
        assert!(pairs.into_iter().all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6), "{found:?}");
    };
    near(run(None), &[sigmoid(3.0), sigmoid(0.5)]);
    near(run(Some(Activation::Sigmoid)), &[sigmoid(3.0), sigmoid(0.5)]);
    near(run(Some(Activation::Softmax)), &[sigmoid(4.0), sigmoid(0.25)]);
    near(run(Some(Activation::None)), &[3.0, 0.5]);
}

/// The background counts in the sum of softmax, and nowhere else.
#[test]
fn the_background_of_retinaface_is_read_with_softmax_only() {
    let tensors: [(&str, &[usize]); 2] = [("loc", &[1, 42, 4]), ("conf", &[1, 42, 2])];
    for (score_activation, offset, background) in [
        (None, 1, false),
        (Some(Activation::Sigmoid), 1, false),
        (Some(Activation::Softmax), 0, true),
    ] {
        let options = Options { score_activation, ..model_size(32.0) };
        let layout = choose(&tensors, "retinaface", options).unwrap().layout;
        let scores = layout.groups[0].scores;
        assert_eq!((scores.offset, scores.anchor_stride), (offset, 2));
        assert_eq!((layout.score.background, layout.score.components), (background, 1));
        assert_eq!(layout.classes, 1);
    }
}

#[test]
fn labels_in_a_tensor_are_the_classes_of_boxes() {
    let (boxes, scores) = ([[0.0f32, 0.0, 9.0, 9.0]; 3], [0.9f32, 0.8, 0.7]);
    let run = |labels: TensorView<'_>, options: Options| {
        let tensors = [
            labels,
            TensorView::from_slice("boxes", &[1, 3, 4], boxes.as_flattened()),
            TensorView::from_slice("scores", &[1, 3], &scores),
        ];
        let choice = decoder::choose(&tensors, None, options).unwrap();
        assert_eq!((choice.decoder.name(), choice.reason), ("boxes", Reason::Id));
        let params = Params { method: Method::None, ..Params::default() };
        let mut engine = Reference::default();
        let outcome = engine
            .run(&tensors, &choice.layout, &params, &engines::places(&choice.layout))
            .unwrap();
        outcome.group(0).survivors.iter().map(|found| found.class).collect::<Vec<_>>()
    };
    let any = Options::default();
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3], &[62i64, 0, -1]), any), [62, 0]);
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3, 1], &[62i32, 0, 7]), any), [62, 0, 7]);
    assert_eq!(run(TensorView::from_slice("labels", &[3], &[62.0f32, 0.5, 7.0]), any), [62, 7]);
    let eight = Options { num_classes: 8, ..any };
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3], &[62i64, 0, 7]), eight), [0, 7]);
    // Without the name, an integer tensor is ignored.
    assert_eq!(run(TensorView::from_slice("indices", &[1, 3], &[62i64, 0, 7]), any), [0, 0, 0]);
}

#[test]
fn integer_tensors_that_no_role_needs_do_not_matter() {
    let (numbers, zeros, rows) = ([1i64; 3], vec![0.0f32; 84 * 2100], [[0.0f32; 6]; 3]);
    let extra = || TensorView::from_slice("indices", &[1, 3], &numbers);
    let yolov8 = [extra(), TensorView::from_slice("out", &[1, 84, 2100], &zeros)];
    for decoder in [None, decoder::by_name("yolov8")] {
        let choice = decoder::choose(&yolov8, decoder, Options::default()).unwrap();
        assert_eq!(choice.layout.tensors().as_slice(), [1]);
    }
    let end2end = [extra(), TensorView::from_slice("out", &[1, 3, 6], rows.as_flattened())];
    let decoder = decoder::by_name("end2end");
    let layout = decoder::choose(&end2end, decoder, Options::default()).unwrap().layout;
    assert_eq!(layout.tensors().as_slice(), [1]);
}

#[test]
fn numbers_of_boxes_and_scores_cannot_be_integers_without_a_scale() {
    let (integers, bytes) = ([0i64; 18], [0u8; 18]);
    let decoder = decoder::by_name("end2end");
    let error = |tensor: TensorView<'_>| {
        decoder::choose(&[tensor], decoder, Options::default()).err().unwrap()
    };
    let found = error(TensorView::from_slice("output0", &[1, 3, 6], &integers));
    assert!(matches!(found, ChoiceError::Layout(LayoutError::ElementType { .. })), "{found}");
    let found = error(TensorView::from_slice("output0", &[1, 3, 6], &bytes));
    assert!(matches!(found, ChoiceError::Layout(LayoutError::NotQuantized { .. })), "{found}");
    let quantized = TensorView::from_slice("output0", &[1, 3, 6], &bytes)
        .with_quantization(Quantization::new(0.5, 0));
    assert!(decoder::choose(&[quantized], decoder, Options::default()).is_ok());
    let mut other = TensorView::from_slice::<f32>("output0", &[1, 0, 6], &[]);
    other.element = ElementType::Other("f64");
    assert!(matches!(error(other), ChoiceError::Layout(LayoutError::ElementType { .. })));
}

/// If the names are unknown, the fixed output order of the postprocessing operations identifies the
/// outputs.
#[test]
fn postprocessed_outputs_are_found_by_their_order() {
    let tflite: [(&str, &[usize]); 4] =
        [("a", &[1, 10, 4]), ("b", &[1, 10]), ("c", &[1, 10]), ("d", &[1])];
    let layout = choose(&tflite, "ssd-postprocess", Options::default()).unwrap().layout;
    let group = &layout.groups[0];
    let roles = [group.boxes.tensor, group.class.unwrap().tensor, group.scores.tensor];
    assert_eq!((roles, layout.count.unwrap().tensor), ([0, 1, 2], 3));
    let tensorflow: [(&str, &[usize]); 4] =
        [("d", &[1]), ("b", &[1, 10]), ("c", &[1, 10]), ("a", &[1, 10, 4])];
    let layout = choose(&tensorflow, "ssd-postprocess", Options::default()).unwrap().layout;
    let group = &layout.groups[0];
    let roles = [group.boxes.tensor, group.class.unwrap().tensor, group.scores.tensor];
    assert_eq!((roles, layout.count.unwrap().tensor), ([3, 1, 2], 0));
    assert!(layout.normalized);
    // Another order is rejected.
    let other: [(&str, &[usize]); 4] =
        [("b", &[1, 10]), ("a", &[1, 10, 4]), ("c", &[1, 10]), ("d", &[1])];
    let text = message(&other, "ssd-postprocess", Options::default());
    assert!(text.contains("ssd-postprocess in 2 ways"), "{text}");
}

#[test]
fn batches_are_read_with_every_form() {
    let batch = Options { batch: true, ..model_size(64.0) };
    type Tensors<'a> = &'a [(&'a str, &'a [usize])];
    let cases: [(&str, Tensors<'_>, usize); 6] = [
        ("end2end", &[("output0", &[3, 300, 6])], 300),
        ("yolox-raw", &[("output", &[3, 84, 7])], 84),
        ("detr", &[("pred_boxes", &[3, 9, 4]), ("logits", &[3, 9, 80])], 9),
        (
            "yolov5-raw",
            &[("a", &[3, 3, 8, 8, 7]), ("b", &[3, 3, 4, 4, 7]), ("c", &[3, 3, 2, 2, 7])],
            252,
        ),
        (
            "efficientnms",
            &[
                ("num_dets", &[3, 1]),
                ("det_boxes", &[3, 9, 4]),
                ("det_scores", &[3, 9]),
                ("det_classes", &[3, 9]),
            ],
            9,
        ),
        (
            "ssd-postprocess",
            &[("count", &[3]), ("boxes", &[3, 9, 4]), ("scores", &[3, 9]), ("classes", &[3, 9])],
            9,
        ),
    ];
    for (name, tensors, anchors) in cases {
        let choice = choose(tensors, name, batch).unwrap();
        assert_eq!((choice.layout.images, choice.layout.anchors()), (3, anchors), "{name}");
        // All elements that the layout addresses exist.
        with_zeros(tensors, |tensors| {
            let mut engine = Reference::default();
            let places = engines::places(&choice.layout);
            let outcome = engine.run(tensors, &choice.layout, &Params::default(), &places).unwrap();
            assert_eq!(outcome.groups().len(), 3);
        });
        let text = message(tensors, name, model_size(64.0));
        assert!(text.contains("a batch dimension of 1, got 3"), "{name}: {text}");
    }
    let text = message(&[("pred_boxes", &[2, 9, 4]), ("logits", &[3, 9, 80])], "detr", batch);
    assert!(text.contains("is a batch of 2") && text.contains("one of 3"), "{text}");
}

#[test]
fn different_numbers_of_anchors_are_an_error_with_both_numbers() {
    let text =
        message(&[("pred_boxes", &[1, 9, 4]), ("logits", &[1, 8, 80])], "detr", Options::default());
    assert_eq!(
        text,
        "tensor pred_boxes (f32 1x9x4) has 9 anchors, tensor logits (f32 1x8x80) has 8; \
         expected the same number"
    );
}

/// If the logits have another number of anchors than the boxes, they must not be read as a single
/// tensor that has both boxes and scores.
#[test]
fn logits_of_other_boxes_are_not_read_as_a_single_tensor() {
    let text = message(&[("a", &[1, 9, 4]), ("b", &[1, 8, 80])], "detr", Options::default());
    assert!(text.contains("has 9 anchors") && text.contains("has 8; expected"), "{text}");
    let choice = choose(&[("b", &[1, 8, 80])], "detr", Options::default()).unwrap();
    assert_eq!(choice.layout.classes, 76);
}

#[test]
fn priors_can_be_in_the_file() {
    let text = "
        name = file-priors
        [tensor boxes]
        shape = N,4
        [tensor scores]
        shape = N,C
        [score]
        scores = scores
        activation = softmax
        background = yes
        [box]
        box = boxes
        format = center
        transform = exp
        variances = 0.1 0.2
        [priors]
        10 20 8 4   # the first anchor
        30 40 16 8
    ";
    let decoder = decoder::from_text(text).unwrap();
    let (boxes, scores) = ([0.0f32; 12], [0.0f32, 1.0, 2.0].repeat(3));
    let choose = |anchors: usize| {
        let tensors = [
            TensorView::from_slice("a", &[1, anchors, 4], &boxes[..anchors * 4]),
            TensorView::from_slice("b", &[1, anchors, 3], &scores[..anchors * 3]),
        ];
        let layout = decoder::choose(&tensors, Some(decoder), Options::default())?.layout;
        assert_eq!(layout.groups[0].reference, BoxReference::Table(0));
        let mut engine = Reference::default();
        let params = Params { method: Method::None, ..Params::default() };
        let outcome = engine.run(&tensors, &layout, &params, &engines::places(&layout)).unwrap();
        let corners = |d: &Detection| (d.class, [d.x1, d.y1, d.x2, d.y2]);
        Ok::<_, ChoiceError>(outcome.group(0).survivors.iter().map(corners).collect::<Vec<_>>())
    };
    let expected = [(1, [6.0, 18.0, 14.0, 22.0]), (1, [22.0, 36.0, 38.0, 44.0])];
    assert_eq!(choose(2).unwrap(), expected);
    let text = choose(3).unwrap_err().to_string();
    assert!(text.contains("it has 3 anchors, but the layout file has 2 priors"), "{text}");
}

/// A file can express the decoder `windows`, with an equal layout.
#[test]
fn a_file_of_windows_has_the_layout_of_the_decoder() {
    let text = "
        name = windows
        values = any
        [tensor windows]
        shape = N,4
        [score]
        scores = windows 3
        [box]
        box = windows
        format = square
    ";
    let decoder = decoder::from_text(text).unwrap();
    let zeros = [0.0f32; 28];
    for shape in [&[7, 4][..], &[1, 7, 4]] {
        let tensors = [TensorView::from_slice("windows", shape, &zeros)];
        for coordinates in [Coordinates::Auto, Coordinates::Normalized, Coordinates::Pixels] {
            let options = Options { coordinates, ..Options::default() };
            let layout = |decoder| decoder::choose(&tensors, decoder, options).unwrap().layout;
            let file_layout = layout(Some(decoder));
            assert_eq!(file_layout, layout(decoder::by_name("windows")));
            assert_eq!(file_layout.plain(&tensors).unwrap().box_format, BoxFormat::Square);
        }
    }
}

/// Files can express the decoders `ultraface` and `yolov5`, with equal layouts.
#[test]
fn files_of_ultraface_and_yolov5_have_the_layouts_of_the_decoders() {
    let ultraface = "
        name = ultraface
        [tensor scores]
        shape = N,2
        [tensor boxes]
        shape = N,4
        [score]
        scores = scores
        background = yes
        [box]
        box = boxes
        unit = normalized
    ";
    let yolov5 = "
        name = yolov5
        [tensor output]
        shape = N,5+C
        [score]
        scores = output 5
        objectness = output 4
        [box]
        box = output
        format = center
    ";
    let zeros = [0.0f32; 9 * 8];
    let face =
        |id, columns: usize| TensorView::from_slice(id, &[1, 9, columns], &zeros[..9 * columns]);
    let cases = [
        ("ultraface", ultraface, vec![face("a", 2), face("b", 4)]),
        ("yolov5", yolov5, vec![face("c", 8)]),
    ];
    for (name, text, tensors) in cases {
        let layout = |decoder, coordinates| {
            let options = Options { coordinates, ..Options::default() };
            decoder::choose(&tensors, decoder, options).unwrap().layout
        };
        let file = Some(decoder::from_text(text).unwrap());
        for coordinates in [Coordinates::Auto, Coordinates::Normalized, Coordinates::Pixels] {
            assert_eq!(layout(file, coordinates), layout(decoder::by_name(name), coordinates));
        }
    }
}

/// Shapes that claim more elements than fit into memory give an error, or a layout that engines
/// refuse.
#[test]
fn enormous_shapes_do_not_overflow() {
    let texts = [
        "name = a\n[tensor t]\nshape = 4+C,N\n[score]\nscores = t 4\nfirst-class = 255\n[box]\nbox = t\n",
        "name = b\n[tensor t]\nshape = N,C+4\n[score]\nscores = t\nbackground = yes\n[box]\nbox = t C\n",
        "name = c\n[tensor t]\nshape = N,6\n[anchors]\nstrides = 1 1 1\nper-cell = 256\n[score]\nscores = t 4\n\
         [box]\nbox = t\n",
    ];
    for text in texts {
        let decoder = decoder::from_text(text).unwrap();
        for shape in
            [[usize::MAX; 3], [1, usize::MAX, 6], [1, 6, usize::MAX], [1, usize::MAX, usize::MAX]]
        {
            let mut tensor = TensorView::from_slice::<f32>("t", &[1, 0, 0], &[]);
            tensor.shape = Shape::new(&shape).unwrap();
            for model_size in [None, Some([f32::MAX; 2]), Some([65_535.0; 2])] {
                let options = Options { batch: true, model_size, ..Options::default() };
                if let Ok(choice) = decoder::choose(&[tensor.clone()], Some(decoder), options) {
                    let mut engine = Reference::default();
                    let run = engine.run(
                        &[tensor.clone()],
                        &choice.layout,
                        &Params::default(),
                        &engines::places(&choice.layout),
                    );
                    assert!(run.is_err());
                }
            }
        }
    }
}

#[test]
fn a_program_reads_tensors_by_a_layout_text() {
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    let error = nms.set_layout("name = a\nsize = 3").unwrap_err();
    assert_eq!(error.line, 2);
    let rows = [[10.0f32, 20.0, 30.0, 40.0, 0.9]];
    let tensors = [TensorView::from_slice("out", &[1, 1, 5], rows.as_flattened())];
    nms.set_layout(
        "name = rows\n[tensor out]\nshape = N,5\n[score]\nscores = out 4\n[box]\nbox = out\n",
    )
    .unwrap();
    assert_eq!(nms.run(&tensors).unwrap().group(0).survivors.len(), 1);
}
