// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs of detectors as their authors' programs export them, with the boxes that went into them.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{
    ClassThresholds, Cpu, Detection, Engine, ImagePlace, Job, Method, Params, Reference,
};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines;

/// A frame of 1280x720 in a model input of 640x640 with borders: x1, y1, x2, y2, class and score of each object.
const OBJECTS: [([f32; 4], u32, f32); 3] = [
    ([50.0, 180.0, 150.0, 330.0], 0, 0.9),
    ([300.0, 240.0, 420.0, 320.0], 2, 0.8),
    ([450.0, 340.0, 510.0, 465.0], 16, 0.7),
];
const SIDE: f32 = 640.0;

/// The result of a decoder.
struct Found {
    survivors: Vec<Detection>,
    /// The points of each survivor.
    points: Vec<Vec<[f32; 2]>>,
}

/// The survivors of both engines, which are compared.
fn decode(decoder: &str, tensors: &[TensorView<'_>], side: f32) -> Found {
    let options = Options { model_size: Some([side; 2]), ..Options::default() };
    let choice = decoder::choose(tensors, decoder::by_name(decoder), options);
    let mut layout = choice.unwrap_or_else(|error| panic!("{decoder}: {error}")).layout;
    let details = Details::prepare(&mut layout, true);
    let params = Params {
        thresholds: ClassThresholds::uniform(0.25),
        method: Method::None,
        ..Params::default()
    };
    let places = [ImagePlace::in_model([side; 2])];
    let mut reference = Reference::default();
    let outcome = reference.run(Job::new(tensors, &layout, &params, &places)).unwrap();
    let (components, found) = (outcome.column_components.max(1), outcome.group(0));
    let unit = places[0].unit(&layout);
    let of_survivor = |(survivor, row): (&Detection, &[f32])| {
        let points = details.of(&layout, unit, survivor, row).points;
        points.iter().map(|point| [point.x, point.y]).collect()
    };
    let points = found.survivors.iter().zip(found.columns.chunks(components)).map(of_survivor);
    let found = Found { survivors: found.survivors.to_vec(), points: points.collect() };
    let mut fast = engines::fast();
    if let Err(error) = fast.supports(&layout, &params) {
        assert!(engines::on_gpu(), "{decoder}: {error}");
        return found;
    }
    let outcome = fast.run(Job::new(tensors, &layout, &params, &places)).unwrap();
    assert_eq!(outcome.group(0).survivors, found.survivors, "{decoder}");
    found
}

/// Checks that the objects come out, with the number `first` for class 0.
fn assert_objects(decoder: &str, tensors: &[TensorView<'_>], first: u32) {
    assert_objects_at(decoder, tensors, first, SIDE);
}

/// Like [`assert_objects`], for a model input of `side`.
fn assert_objects_at(decoder: &str, tensors: &[TensorView<'_>], first: u32, side: f32) {
    let found = decode(decoder, tensors, side).survivors;
    assert_eq!(found.len(), OBJECTS.len(), "{decoder}: {found:?}");
    for (found, (corners, class, score)) in found.iter().zip(OBJECTS) {
        assert_eq!(found.class, class + first, "{decoder}");
        assert!((found.score - score).abs() < 1e-5, "{decoder}: {found:?}");
        let Detection { x1, y1, x2, y2, .. } = *found;
        let off = [x1, y1, x2, y2].into_iter().zip(corners).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 0.01, "{decoder}: {found:?}, expected {corners:?}");
    }
}

/// Rows of the objects, with further rows of `padding`.
fn rows<const N: usize>(
    row: impl Fn([f32; 4], f32, f32) -> [f32; N],
    padding: [f32; N],
) -> Vec<f32> {
    let objects = OBJECTS.iter().map(|&(corners, class, score)| row(corners, class as f32, score));
    objects.chain([padding; 2]).flatten().collect()
}

fn center([x1, y1, x2, y2]: [f32; 4]) -> [f32; 4] {
    [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1]
}

fn logit(probability: f32) -> f32 {
    (probability / (1.0 - probability)).ln()
}

#[test]
fn rows_of_one_tensor_are_read_in_the_order_of_each_exporter() {
    let image = 0.0;
    let yolov7 = rows(|[a, b, c, d], class, score| [image, a, b, c, d, class, score], [0.0; 7]);
    let yolonas = rows(|[a, b, c, d], class, score| [image, a, b, c, d, score, class], [0.0; 7]);
    let openvino = rows(
        |corners, class, score| {
            let [a, b, c, d] = corners.map(|edge| edge / SIDE);
            [image, class + 1.0, score, a, b, c, d]
        },
        [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    );
    let efficientdet =
        rows(|[a, b, c, d], class, score| [image, b, a, d, c, score, class + 1.0], [0.0; 7]);
    for (decoder, shape, rows, first) in [
        ("yolov7-end2end", &[5, 7][..], &yolov7, 0),
        ("yolonas-flat", &[5, 7], &yolonas, 0),
        ("detection-output", &[1, 1, 5, 7], &openvino, 1),
        ("efficientdet", &[1, 5, 7], &efficientdet, 1),
    ] {
        assert_objects(decoder, &[TensorView::from_slice("a", shape, rows)], first);
    }
    let detr = rows(
        |corners, class, score| {
            let [x, y, width, height] = center(corners).map(|number| number / SIDE);
            [x, y, width, height, score, class]
        },
        [0.5, 0.5, 0.5, 0.5, 0.0, 0.0],
    );
    assert_objects("detr-end2end", &[TensorView::from_slice("a", &[1, 5, 6], &detr)], 0);
}

/// Rows beyond the number of rows would be objects, too.
#[test]
fn rows_of_paddle_have_the_class_first_and_their_number_beside_them() {
    let padding = [1.0, 0.9, 10.0, 10.0, 20.0, 20.0];
    let six = rows(|[a, b, c, d], class, score| [class, score, a, b, c, d], padding);
    let count = [3i32];
    let rows_of = TensorView::from_slice("multiclass_nms3_0.tmp_0", &[5, 6], &six);
    let count = TensorView::from_slice("multiclass_nms3_0.tmp_2", &[1], &count);
    assert_objects("paddle-nms", &[rows_of.clone(), count.clone()], 0);
    assert_objects("paddle-nms", &[count, rows_of.clone()], 0);
    assert_eq!(decode("paddle-nms", &[rows_of], SIDE).survivors.len(), 5);
}

#[test]
fn tensors_beside_each_other_are_found_by_their_names() {
    let dets = rows(|[a, b, c, d], _, score| [a, b, c, d, score], [0.0; 5]);
    let labels: Vec<i64> = vec![0, 2, 16, -1, -1];
    let mmdetection = [
        TensorView::from_slice("dets", &[1, 5, 5], &dets),
        TensorView::from_slice("labels", &[1, 5], &labels),
    ];
    assert_objects("mmdetection", &mmdetection, 0);

    let boxes = rows(|corners, _, _| corners, [0.0; 4]);
    let scores = rows(|_, _, score| [score], [0.0]);
    let labels: Vec<i64> = vec![1, 3, 17, 0, 0];
    for [first, second, third] in [["boxes", "labels", "scores"], ["6379", "6381", "6383"]] {
        let torchvision = [
            TensorView::from_slice(third, &[5], &scores),
            TensorView::from_slice(second, &[5], &labels),
            TensorView::from_slice(first, &[5, 4], &boxes),
        ];
        assert_objects("torchvision", &torchvision, 1);
    }
}

/// The output has a row of scores for each class, and boxes with y before x. The indices of the model's own suppression
/// are another tensor.
#[test]
fn scores_class_by_class_are_those_of_the_columns() {
    let boxes = rows(|[a, b, c, d], _, _| [b, a, d, c], [0.0; 4]);
    let mut scores = vec![0.001f32; 80 * 5];
    for (index, (_, class, score)) in OBJECTS.iter().enumerate() {
        scores[*class as usize * 5 + index] = *score;
    }
    let indices: Vec<i32> = vec![0, 0, 0, 0, 2, 1, 0, 16, 2];
    let yolov3 = [
        TensorView::from_slice("yolonms_layer_1/ExpandDims_1:0", &[1, 5, 4], &boxes),
        TensorView::from_slice("yolonms_layer_1/ExpandDims_3:0", &[1, 80, 5], &scores),
        TensorView::from_slice("yolonms_layer_1/concat_2:0", &[3, 3], &indices),
    ];
    assert_objects("yolov3", &yolov3, 0);
}

/// pytorch-YOLOv4 has a dimension of 1 in its boxes, and PaddleDetection without suppression a row for each class.
#[test]
fn boxes_can_have_a_dimension_of_1_and_scores_rows_of_classes() {
    let boxes = rows(|corners, _, _| corners, [0.0; 4]);
    let (mut by_box, mut by_class) = (vec![0.001f32; 5 * 80], vec![0.001f32; 80 * 5]);
    for (index, (_, class, score)) in OBJECTS.iter().enumerate() {
        by_box[index * 80 + *class as usize] = *score;
        by_class[*class as usize * 5 + index] = *score;
    }
    let scores = |shape: &[usize]| TensorView::from_slice("confs", shape, &by_box);
    for shape in [&[1, 5, 1, 4][..], &[1, 5, 4]] {
        let boxes = TensorView::from_slice("boxes", shape, &boxes);
        assert_objects("boxes", &[boxes.clone(), scores(&[1, 5, 80])], 0);
        let scores = TensorView::from_slice("concat_14.tmp_0", &[1, 80, 5], &by_class);
        assert_objects("boxes", &[scores, boxes], 0);
    }
    let boxes = TensorView::from_slice("boxes", &[5, 4], &boxes);
    let scores = TensorView::from_slice("scores", &[80, 5], &by_class);
    assert_objects("boxes", &[boxes, scores], 0);
}

#[test]
fn no_rows_are_no_objects() {
    let (floats, integers): (&[f32], &[i64]) = (&[], &[]);
    for (decoder, shape) in [
        ("yolov7-end2end", &[0, 7][..]),
        ("yolonas-flat", &[0, 7]),
        ("detection-output", &[1, 1, 0, 7]),
        ("efficientdet", &[1, 0, 7]),
        ("paddle-nms", &[0, 6]),
        ("detr-end2end", &[1, 0, 6]),
    ] {
        let none = decode(decoder, &[TensorView::from_slice("a", shape, floats)], SIDE);
        assert_eq!(none.survivors, [], "{decoder}");
    }
    let dets = TensorView::from_slice("dets", &[1, 0, 5], floats);
    let labels = TensorView::from_slice("labels", &[1, 0], integers);
    assert_eq!(decode("mmdetection", &[dets, labels], SIDE).survivors, []);
    let tensors = [
        TensorView::from_slice("boxes", &[0, 4], floats),
        TensorView::from_slice("labels", &[0], integers),
        TensorView::from_slice("scores", &[0], floats),
    ];
    assert_eq!(decode("torchvision", &tensors, SIDE).survivors, []);
}

/// The anchors and the formula of the model's authors: distances in pixels from the middle of a cell, and the square
/// root of two probabilities. The names of AdelaiDet's outputs have no slash, and its distances are in cells.
#[test]
fn heads_of_fcos_are_distances_in_pixels_or_cells() {
    const STRIDES: [usize; 5] = [8, 16, 32, 64, 128];
    // 608 is no multiple of 64 and 128.
    for (side, slash) in [(640usize, "/"), (608, "/"), (640, ""), (608, "")] {
        let cells = STRIDES.map(|stride| side.div_ceil(stride));
        let maps = |channels: usize| cells.map(|n| vec![-9.0f32; channels * n * n]);
        let (mut logits, mut distances, mut centerness) = (maps(80), maps(4), maps(1));
        for (index, (corners, class, score)) in OBJECTS.iter().enumerate() {
            let level = index + 1;
            let (stride, n) = (STRIDES[level] as f32, cells[level]);
            let [x, y, ..] = center(*corners);
            let [column, row] = [x, y].map(|at| (at / stride) as usize);
            let at = row * n + column;
            let point = [column, row].map(|cell| cell as f32 * stride + stride / 2.0);
            for (side, edge) in corners.iter().enumerate() {
                let unit = if slash.is_empty() { stride } else { 1.0 };
                distances[level][side * n * n + at] = (edge - point[side % 2]).abs() / unit;
            }
            // The square root of the product of `score` and itself.
            logits[level][*class as usize * n * n + at] = logit(*score);
            centerness[level][at] = logit(*score);
        }
        let mut tensors = Vec::new();
        let names = ["P3", "P4", "P5", "P6", "P7"].map(|level| {
            ["logits", "bbox_reg", "centerness"].map(|name| format!("{level}{slash}{name}"))
        });
        for level in 0..5 {
            let n = cells[level];
            let all = [(&logits, 80), (&distances, 4), (&centerness, 1)];
            for (name, (maps, channels)) in names[level].iter().zip(all) {
                tensors.push(TensorView::from_slice(name, &[1, channels, n, n], &maps[level]));
            }
        }
        assert_objects_at("fcos", &tensors, 0, side as f32);
    }
}

/// A cell beside a peak has a lower score, and a size, too. Of two classes in one cell, the greater one that is a peak
/// counts. Peaks are found as by `max_pool2d` with 3x3 cells.
#[test]
fn peaks_of_heat_maps_are_objects() {
    const CELLS: usize = SIDE as usize / 4;
    let mut heat = vec![-9.0f32; 80 * CELLS * CELLS];
    let [mut sizes, mut positions] = [0, 1].map(|_| vec![0.0f32; 2 * CELLS * CELLS]);
    let at = |class: usize, row: usize, column: usize| (class * CELLS + row) * CELLS + column;
    for (corners, class, score) in OBJECTS {
        let [x, y, width, height] = center(corners).map(|number| number / 4.0);
        let (column, row) = (x as usize, y as usize);
        for beside in [column - 1, column, column + 1] {
            let score = if beside == column { score } else { score - 0.2 };
            heat[at(class as usize, row, beside)] = logit(score);
            // A greater score of class 5, but the peak of that class is one row further down.
            heat[at(5, row, beside)] = logit(0.95);
            heat[at(5, row + 1, beside)] = logit(0.96);
            sizes[at(0, row, beside)] = width;
            sizes[at(1, row, beside)] = height;
        }
        positions[at(0, row, column)] = x - column as f32;
        positions[at(1, row, column)] = y - row as f32;
    }
    let shape = |channels| [1, channels, CELLS, CELLS];
    let tensors = [
        TensorView::from_slice("hm", &shape(80), &heat),
        TensorView::from_slice("wh", &shape(2), &sizes),
        TensorView::from_slice("reg", &shape(2), &positions),
    ];
    // The peaks of class 5 have no size, and are dropped.
    assert_objects("centernet", &tensors, 0);
}

/// Objects are cells: one of 8 pixels in the row 2, column 5 is the box 40, 16, 48, 24. The background's score is greater
/// than every class's in all other cells, and no object.
#[test]
fn cells_of_fomo_are_objects() {
    for (side, stride, cells, classes) in [(96, 8, 12, 1), (96, 8, 12, 3), (64, 4, 16, 2)] {
        let mut heat = vec![0.0f32; cells * cells * (1 + classes)];
        heat.iter_mut().step_by(1 + classes).for_each(|background| *background = 1.0);
        let last = classes as u32 - 1;
        for (row, column, class, score) in [(2, 5, last, 0.75), (11, 0, 0, 0.5)] {
            let at = (row * cells + column) * (1 + classes);
            heat[at] = 1.0 - score;
            heat[at + 1 + class as usize] = score;
        }
        let tensor = TensorView::from_slice("out", &[1, cells, cells, 1 + classes], &heat);
        let found = decode("fomo", &[tensor], side as f32).survivors;
        let found: Vec<_> =
            found.iter().map(|it| ([it.x1, it.y1, it.x2, it.y2], it.class, it.score)).collect();
        let cell = |row: usize, column: usize| {
            [column, row, column + 1, row + 1].map(|edge| (edge * stride) as f32)
        };
        assert_eq!(found, [(cell(2, 5), last, 0.75), (cell(11, 0), 0, 0.5)]);
    }
}

/// Scores of few values, so that many cells are equal, beside NaN and infinity, at the edges of small grids.
#[test]
fn every_engine_finds_the_same_peaks() {
    let mut rng = fastrand::Rng::with_seed(7);
    for scene in 0..400 {
        let side = 16 + 4 * rng.usize(0..6);
        let cells = side / 4;
        let score = |rng: &mut fastrand::Rng| match rng.u8(0..40) {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 => f32::NEG_INFINITY,
            number => f32::from(number / 6) - 4.0,
        };
        let heat: Vec<f32> = (0..3 * cells * cells).map(|_| score(&mut rng)).collect();
        let [sizes, positions] =
            [2.0, 1.0].map(|most| (0..2 * cells * cells).map(|_| rng.f32() * most).collect());
        let (sizes, positions): (Vec<f32>, Vec<f32>) = (sizes, positions);
        let shape = |channels| [1, channels, cells, cells];
        let tensors = [
            TensorView::from_slice("hm", &shape(3), &heat),
            TensorView::from_slice("wh", &shape(2), &sizes),
            TensorView::from_slice("reg", &shape(2), &positions),
        ];
        let options = Options { model_size: Some([side as f32; 2]), ..Options::default() };
        let choice = decoder::choose(&tensors, decoder::by_name("centernet"), options);
        let layout = choice.unwrap().layout;
        let params = Params {
            thresholds: ClassThresholds::uniform([0.0, 0.1, 0.5][scene % 3]),
            method: Method::None,
            multi_label: rng.bool(),
            max_candidates: 0,
            ..Params::default()
        };
        let places = [ImagePlace::in_model([side as f32; 2])];
        let mut reference = Reference::default();
        let expected = reference.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
        let mut cpu = Cpu::default();
        let found = cpu.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
        assert_eq!(engines::bits(&found.group(0)), engines::bits(&expected.group(0)), "{scene}");
        let [of_cpu, of_reference] = [&found, &expected].map(|outcome| outcome.group(0).rejected);
        assert_eq!(of_cpu, of_reference, "{scene}");
    }
}

/// The authors' formula: x = (scale sigmoid(v) - (scale - 1) / 2 + column) stride, w = exp(v) anchor. YOLOv3 has no
/// scale, and logits in place of probabilities.
#[test]
fn heads_of_yolov4_and_yolov3_are_logits_within_a_cell() {
    const STRIDES: [usize; 3] = [8, 16, 32];
    let sizes4 = [[19.0, 36.0], [76.0, 55.0], [192.0, 243.0]];
    let sizes3 = [[16.0, 30.0], [62.0, 45.0], [156.0, 198.0]];
    for (decoder, scales, sizes, is_logit) in
        [("yolov4-raw", [1.2, 1.1, 1.05], sizes4, false), ("yolov3-raw", [1.0; 3], sizes3, true)]
    {
        let stored = |probability: f32| if is_logit { logit(probability) } else { probability };
        let cells = STRIDES.map(|stride| SIDE as usize / stride);
        let mut heads = cells.map(|n| vec![stored(0.001); n * n * 3 * 85]);
        for (level, (corners, class, score)) in OBJECTS.iter().enumerate() {
            let (stride, n, scale) = (STRIDES[level] as f32, cells[level], scales[level]);
            let [x, y, width, height] = center(*corners);
            let [column, row] = [x, y].map(|at| (at / stride).floor());
            // The second of three anchors.
            let anchor = (row as usize * n + column as usize) * 3 + 1;
            let numbers = &mut heads[level][anchor * 85..][..85];
            let inverse = |at: f32, cell: f32| {
                let part = (at / stride - cell + (scale - 1.0) / 2.0) / scale;
                // Without a scale, the edge of a cell is infinitely far.
                logit(part.clamp(1e-6, 1.0 - 1e-6))
            };
            numbers[0] = inverse(x, column);
            numbers[1] = inverse(y, row);
            numbers[2] = (width / sizes[level][0]).ln();
            numbers[3] = (height / sizes[level][1]).ln();
            numbers[4] = stored(0.999);
            numbers[5 + *class as usize] = stored(score / 0.999);
        }
        let names = STRIDES.map(|stride| format!("output_{stride}"));
        let tensors: Vec<_> = (0..3)
            .map(|level| {
                let n = cells[level];
                TensorView::from_slice(&names[level], &[1, n, n, 3, 85], &heads[level])
            })
            .collect();
        assert_objects(decoder, &tensors, 0);
    }
}

/// The anchors of MediaPipe: two in each cell of 8 pixels, then six in each cell of 16; the camera at the back has twice
/// the sizes.
#[test]
fn blazeface_has_896_anchors_and_six_points() {
    for side in [128.0f32, 256.0] {
        let mut anchors = Vec::new();
        for (cells, per_cell) in [(16, 2), (8, 6)] {
            for cell in 0..cells * cells {
                let at = |index: usize| (index as f32 + 0.5) / cells as f32 * side;
                anchors.extend(vec![[at(cell % cells), at(cell / cells)]; per_cell]);
            }
        }
        assert_eq!(anchors.len(), 896);
        let (mut regressors, mut scores) = (vec![0.0f32; 896 * 16], vec![-9.0f32; 896]);
        let faces = [(3, [20.0, 24.0, 30.0, 40.0], 0.9), (700, [90.0, 60.0, 50.0, 50.0], 0.75)];
        for (anchor, [x, y, width, height], score) in faces {
            let [ax, ay] = anchors[anchor];
            let row = &mut regressors[anchor * 16..][..16];
            row[..4].copy_from_slice(&[x - ax, y - ay, width, height]);
            for point in 0..6 {
                row[4 + 2 * point] = x + point as f32 - ax;
                row[5 + 2 * point] = y - point as f32 - ay;
            }
            scores[anchor] = logit(score);
        }
        let tensors = [
            TensorView::from_slice("regressors", &[1, 896, 16], &regressors),
            TensorView::from_slice("classificators", &[1, 896, 1], &scores),
        ];
        let Found { survivors, points } = decode("blazeface", &tensors, side);
        assert_eq!((survivors.len(), points.len()), (2, 2), "{side}");
        for ((found, points), (anchor, expected, score)) in survivors.iter().zip(&points).zip(faces)
        {
            assert_eq!((found.class, found.anchor), (0, anchor as u32));
            assert!((found.score - score).abs() < 1e-5);
            let Detection { x1, y1, x2, y2, .. } = *found;
            let found = center([x1, y1, x2, y2]);
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f32::max) < 0.01, "{found:?}, expected {expected:?}");
            let [x, y, ..] = expected;
            assert_eq!(points.len(), 6);
            for (index, [px, py]) in points.iter().enumerate() {
                let of = index as f32;
                assert!((px - x - of).abs() < 0.01 && (py - y + of).abs() < 0.01, "{points:?}");
            }
        }
    }
}
