// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heads of YOLO, cut in front of the decode step for NPUs. The numbers are random, and the expected detections, masks
//! and keypoints are computed in double precision from what the stored elements stand for.

mod expected;
mod levels;
mod order;
mod recorded;
mod stored;

use nmsfilter_core::engine::detail::Details;

use self::expected::{Boxes, Corners, candidates};
use self::stored::{Format, Level, Stored};
use super::*;

/// The side of the model's input.
const SIDE: usize = 64;
const STRIDES: [usize; 3] = [8, 16, 32];
const THRESHOLD: f32 = 0.4987;

const ELEMENTS: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::I8];

/// Every element type, with the channels first and last.
fn formats() -> impl Iterator<Item = Format> {
    ELEMENTS.into_iter().flat_map(|element| {
        [false, true].map(|is_channels_last| Format { element, is_channels_last })
    })
}

/// Logits of the distributions of distances, of which most are short.
fn bins(rng: &mut fastrand::Rng, channel: usize) -> f32 {
    (rng.f32() - 0.5) * 4.0 - 0.7 * (channel % 16) as f32
}

fn probability(rng: &mut fastrand::Rng, _channel: usize) -> f32 {
    rng.f32()
}

fn signed(rng: &mut fastrand::Rng, _channel: usize) -> f32 {
    (rng.f32() - 0.5) * 6.0
}

/// The sum of the scores of each cell, from 0 to 1.
fn sums(scores: &[Level]) -> Vec<Level> {
    let format = Format { element: ElementType::F32, is_channels_last: false };
    let sum = |level: &Level| {
        let row = |row: &Vec<f64>| vec![row.iter().sum::<f64>().min(1.0) as f32];
        Level::new(level.stride, level.rows.iter().map(row).collect(), format)
    };
    scores.iter().map(sum).collect()
}

/// A survivor with the numbers that belong to it.
struct Decoded {
    detection: Detection,
    columns: Vec<f32>,
    points: Vec<[f32; 3]>,
    /// The pixels of the prototypes that are set; empty without a mask.
    mask: Vec<[usize; 2]>,
}

/// The candidates in the order of anchors.
fn survivors(tensors: &[TensorView<'_>], name: &str, options: Options) -> Vec<Decoded> {
    let thresholds = ClassThresholds::uniform(THRESHOLD);
    let params = Params { thresholds, method: Method::None, ..Params::default() };
    let mut decoded = suppressed(tensors, name, options, &params);
    decoded.sort_by_key(|it| it.detection.anchor);
    decoded
}

/// The survivors of the reference engine, after a comparison with the engine under test.
fn suppressed(
    tensors: &[TensorView<'_>],
    name: &str,
    options: Options,
    params: &Params,
) -> Vec<Decoded> {
    let choice = decoder::choose(tensors, decoder::by_name(name), options);
    let mut layout = choice.unwrap_or_else(|error| panic!("{error}")).layout;
    let details = Details::prepare(&mut layout, true);
    let place = ImagePlace::in_model(options.model_size.unwrap());
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let outcome = reference.run(Job::new(tensors, &layout, params, &[place])).unwrap();
    let found = fast.run(Job::new(tensors, &layout, params, &[place])).unwrap();
    let (group, other) = (outcome.group(0), found.group(0));
    assert_eq!(engines::bits(&other), engines::bits(&group));
    assert_eq!(other.columns, group.columns);
    assert_eq!(engines::masks(&other), engines::masks(&group));
    let components = outcome.column_components;
    let decoded = group.survivors.iter().enumerate().map(|(index, detection)| {
        let columns = &group.columns[index * components..][..components];
        let detail = details.of(&layout, place.unit(&layout), detection, columns);
        let points = detail.points;
        let numbers = points.iter().map(|point| [point.x, point.y, point.visibility]);
        Decoded {
            detection: *detection,
            columns: columns.to_vec(),
            points: numbers.collect(),
            mask: engines::masks(&group)[index].map(pixels).unwrap_or_default(),
        }
    });
    decoded.collect()
}

/// The pixels that a mask sets.
fn pixels(mask: nmsfilter_core::engine::Mask<'_>) -> Vec<[usize; 2]> {
    let [left, top, width, height] =
        [mask.left, mask.top, mask.width, mask.height].map(|number| number as usize);
    let positions = (0..height).flat_map(|y| (0..width).map(move |x| [x, y]));
    let is_set =
        |[x, y]: &[usize; 2]| mask.bytes[y * width.div_ceil(8) + x / 8] & (0x80 >> (x % 8)) != 0;
    positions.filter(is_set).map(|[x, y]| [left + x, top + y]).collect()
}

/// Compares the detections alone.
fn compare_boxes(found: &[Decoded], expected: &[Expected]) {
    let detections: Vec<Detection> = found.iter().map(|it| it.detection).collect();
    compare(&detections, expected);
}

#[test]
fn detectors_have_16_bins_for_each_side_or_a_distance() {
    let mut rng = fastrand::Rng::with_seed(6);
    for format in formats() {
        let boxes = Level::all(&mut rng, 64, bins, format);
        let scores = Level::all(&mut rng, 5, probability, format);
        let tensors = Level::views(&[&boxes, &scores]);
        let found = survivors(&tensors, "yolov8-heads", model_size(SIDE as f32));
        compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Bins, 0));
    }
    // Four channels of 4 x 4 cells are read as channels first.
    for element in ELEMENTS {
        let format = Format { element, is_channels_last: false };
        let boxes = Level::all(&mut rng, 4, |rng, _| rng.f32() * 2.0, format);
        let scores = Level::all(&mut rng, 5, probability, format);
        let tensors = Level::views(&[&boxes, &scores]);
        let found = survivors(&tensors, "yolov8-heads", model_size(SIDE as f32));
        compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Distances, 0));
    }
}

/// RKNN's exports have the sum of the scores of each cell, too. With one class it has the shape of the score, and equals it.
#[test]
fn sums_of_scores_are_ignored_if_the_number_of_classes_is_known() {
    let mut rng = fastrand::Rng::with_seed(8);
    let format = Format { element: ElementType::F32, is_channels_last: false };
    for classes in [1, 5] {
        let boxes = Level::all(&mut rng, 64, bins, format);
        let scores = Level::all(&mut rng, classes, probability, format);
        let sums = sums(&scores);
        let expected = candidates(&boxes, &scores, Boxes::Bins, 0);
        for heads in [[&boxes, &scores, &sums], [&boxes, &sums, &scores]] {
            let tensors = Level::views(&heads);
            let unknown = model_size(SIDE as f32);
            for known in [
                Options { num_classes: classes, ..unknown },
                Options { labels: classes, ..unknown },
            ] {
                compare_boxes(&survivors(&tensors, "yolov8-heads", known), &expected);
                // A sum is not a level that is left out.
                let mut nms = Nms::new(Backend::Cpu, None).unwrap();
                nms.set_decoder(Some("yolov8-heads")).unwrap();
                (nms.options, nms.model_size) = (known, [SIDE as f32; 2]);
                nms.run(&tensors).unwrap();
                assert_eq!(nms.warnings(), []);
            }
            let error = decoder::choose(&tensors, decoder::by_name("yolov8-heads"), unknown);
            let error = error.err().unwrap().to_string();
            let numbers = if classes == 1 { "1 class;" } else { " classes;" };
            for part in [numbers, "set `options.num_classes` to the model's number of classes"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}

/// Hailo's exports have ten tensors, in descending order of strides; RKNN's have sums of scores, too.
#[test]
fn segmentation_models_have_coefficients_for_each_stride_and_prototypes() {
    const COEFFICIENTS: usize = 6;
    let mut rng = fastrand::Rng::with_seed(9);
    for format in formats() {
        let boxes = Level::all(&mut rng, 64, bins, format);
        let scores = Level::all(&mut rng, 5, probability, format);
        let coefficients = Level::all(&mut rng, COEFFICIENTS, signed, format);
        let side = SIDE / 4;
        let rows = (0..side * side)
            .map(|_| (0..COEFFICIENTS).map(|channel| signed(&mut rng, channel)).collect());
        let prototypes = Level::new(SIDE / side, rows.collect(), format);
        let expected = candidates(&boxes, &scores, Boxes::Bins, 0);

        let sums = sums(&scores);
        let mut of_rknn = Level::views(&[&boxes, &scores, &sums, &coefficients]);
        of_rknn.push(prototypes.tensor.view("z"));
        let known = Options { num_classes: 5, ..model_size(SIDE as f32) };
        let mut of_hailo = Level::views(&[&boxes, &scores, &coefficients]);
        of_hailo.rotate_left(6);
        of_hailo.push(prototypes.tensor.view("z"));
        for (tensors, options) in [(of_rknn, known), (of_hailo, model_size(SIDE as f32))] {
            let found = survivors(&tensors, "yolov8-heads-seg", options);
            compare_boxes(&found, &expected);
            let (mut set, mut clear) = (0, 0);
            for found in &found {
                let of_anchor = Level::row(&coefficients, found.detection.anchor as usize);
                let is_near = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-5;
                assert!(found.columns.iter().zip(of_anchor).all(is_near));
                let corners = Corners::of(&found.detection).scaled(side as f64 / SIDE as f64);
                for (pixel, prototype) in prototypes.rows.iter().enumerate() {
                    let logit: f64 = of_anchor.iter().zip(prototype).map(|(a, b)| a * b).sum();
                    let at = [pixel % side, pixel / side];
                    if logit.abs() < 1e-3 {
                        continue;
                    }
                    let is_expected = logit > 0.0 && corners.contains(at);
                    assert_eq!(
                        found.mask.contains(&at),
                        is_expected,
                        "{format:?}, {at:?}: {logit}"
                    );
                    set += usize::from(is_expected);
                    clear += usize::from(corners.contains(at) && !is_expected);
                }
            }
            assert!(set > 200 && clear > 200, "{set}, {clear}");
        }
    }
}

/// The keypoints of Hailo's exports are (2 v + column) stride, and their visibilities are logits.
#[test]
fn pose_models_have_keypoints_relative_to_the_cell_for_each_stride() {
    const KEYPOINTS: usize = 5;
    let mut rng = fastrand::Rng::with_seed(10);
    for format in formats() {
        let boxes = Level::all(&mut rng, 64, bins, format);
        let scores = Level::all(&mut rng, 1, probability, format);
        let keypoints = Level::all(&mut rng, 3 * KEYPOINTS, signed, format);
        let tensors = Level::views(&[&boxes, &scores, &keypoints]);
        let found = survivors(&tensors, "yolov8-heads-pose", model_size(SIDE as f32));
        compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Bins, 0));
        for found in &found {
            let anchor = found.detection.anchor as usize;
            let (stride, cell) = Level::cell(&keypoints, anchor);
            let numbers = Level::row(&keypoints, anchor).chunks(3);
            assert_eq!(found.points.len(), KEYPOINTS);
            for (point, numbers) in found.points.iter().zip(numbers) {
                let coordinate =
                    |axis: usize| (2.0 * numbers[axis] + cell[axis] as f64) * stride as f64;
                let expected = [coordinate(0), coordinate(1), sigmoid(numbers[2])];
                let is_near = |(a, b): (&f32, f64)| (f64::from(*a) - b).abs() < 1e-3;
                assert!(point.iter().zip(expected).all(is_near), "{point:?}, {expected:?}");
            }
        }
    }
}

/// RKNN's exports have bins and logits of scores in one tensor for each stride, and a tensor `[1,K,3,N]` of keypoints in
/// pixels, which is f16 where the others are quantized.
#[test]
fn pose_models_of_rknn_have_decoded_keypoints_in_one_tensor() {
    const KEYPOINTS: usize = 5;
    let mut rng = fastrand::Rng::with_seed(11);
    for format in formats() {
        let number = |rng: &mut fastrand::Rng, channel: usize| match channel {
            ..64 => bins(rng, channel),
            _ => signed(rng, channel),
        };
        let heads = Level::all(&mut rng, 64 + 1, number, format);
        let anchors: usize = heads.iter().map(|level| level.rows.len()).sum();
        let element = match format.element {
            ElementType::I8 => ElementType::F16,
            element => element,
        };
        let numbers: Vec<f32> =
            (0..3 * KEYPOINTS * anchors).map(|_| rng.f32() * SIDE as f32).collect();
        let (keypoints, stored) = Stored::new(&[1, KEYPOINTS, 3, anchors], &numbers, element);
        let mut tensors = Level::views(&[&heads]);
        tensors.insert(1, keypoints.view("k"));
        let found = survivors(&tensors, "yolov8-heads-pose", model_size(SIDE as f32));
        compare_boxes(&found, &candidates(&heads, &heads, Boxes::Bins, 64));
        for found in &found {
            for (index, point) in found.points.iter().enumerate() {
                let expected = [0, 1, 2].map(|component| {
                    stored[(index * 3 + component) * anchors + found.detection.anchor as usize]
                });
                assert_eq!(point.map(f64::from), expected);
            }
            assert_eq!(found.points.len(), KEYPOINTS);
        }
    }
}

/// `[32,80,80]` could be 80 images of 80x32, beside 32 scores and 80 coefficients, but then the model's input were not
/// square.
#[test]
fn prototypes_have_the_aspect_ratio_of_the_input() {
    let shapes: Vec<[usize; 4]> = STRIDES
        .into_iter()
        .flat_map(|stride| [64, 80, 32].map(|channels| [1, channels, 320 / stride, 320 / stride]))
        .collect();
    let mut tensors: Vec<(&str, &[usize])> =
        shapes.iter().map(|shape| ("a", shape.as_slice())).collect();
    tensors.push(("a", &[1, 32, 80, 80]));
    let layout = choose(&tensors, "yolov8-heads-seg", model_size(320.0)).unwrap().layout;
    assert_eq!((layout.classes, layout.columns[0].components), (80, 32));
}

/// Shapes do not distinguish 32 scores from 32 coefficients.
#[test]
fn names_decide_where_coefficients_have_the_shape_of_scores() {
    let shapes = |part: &'static str, channels: usize| {
        STRIDES
            .map(|stride| (format!("{part}_{stride}"), vec![1, channels, 64 / stride, 64 / stride]))
    };
    let mut tensors: Vec<(String, Vec<usize>)> =
        [shapes("cls", 32), shapes("mask", 32), shapes("box", 64)].into_iter().flatten().collect();
    tensors.push(("proto".to_owned(), vec![1, 16, 16, 32]));
    let choose_named = |is_named: bool| {
        let named = |(name, shape): &'static (String, Vec<usize>)| {
            (if is_named { name.as_str() } else { "a" }, shape.as_slice())
        };
        let leaked: &'static [(String, Vec<usize>)] = tensors.clone().leak();
        let tensors: Vec<(&str, &[usize])> = leaked.iter().map(named).collect();
        choose(&tensors, "yolov8-heads-seg", model_size(64.0))
    };
    let layout = choose_named(true).unwrap().layout;
    let indices = |field: fn(&nmsfilter_core::decoder::layout::Group) -> usize| -> Vec<usize> {
        layout.groups.iter().map(field).collect()
    };
    assert_eq!(indices(|group| group.scores.tensor), [0, 1, 2]);
    assert_eq!(indices(|group| group.columns[0].tensor), [3, 4, 5]);
    let error = choose_named(false).err().unwrap().to_string();
    assert!(error.contains("2 "), "{error}");
}

#[test]
fn the_levels_have_equal_numbers_of_coefficients_and_of_keypoints() {
    let tensors = |part: &'static str, channels: [usize; 3]| {
        let level = |(stride, channels): (usize, usize)| {
            let side = 64 / stride;
            (&*format!("{part}_{stride}").leak(), &*vec![1, channels, side, side].leak())
        };
        STRIDES.into_iter().zip(channels).map(level).collect::<Vec<(&str, &[usize])>>()
    };
    for (decoder, channels, fits) in [
        ("yolov8-heads-seg", [8, 8, 8], true),
        ("yolov8-heads-seg", [8, 8, 7], false),
        ("yolov8-heads-pose", [15, 15, 15], true),
        ("yolov8-heads-pose", [15, 12, 15], false),
        ("yolov8-heads-pose", [16, 16, 16], false),
    ] {
        let is_seg = decoder.ends_with("seg");
        let mut all = [tensors("box", [64; 3]), tensors("cls", [5; 3])].concat();
        all.extend(tensors(if is_seg { "mask" } else { "kpt" }, channels));
        if is_seg {
            all.push(("proto", &[1, 8, 16, 16]));
        }
        let options = Options { num_classes: 5, ..model_size(64.0) };
        assert_eq!(choose(&all, decoder, options).is_ok(), fits, "{decoder}, {channels:?}");
    }
}

/// A file can describe heads of one tensor for each stride.
#[test]
fn a_tensor_for_each_stride_can_have_scores_and_coefficients() {
    const TEXT: &str = "
        name = heads
        [tensor head]
        shape = 4+C+M,H,W
        per-level = yes
        [tensor prototypes]
        shape = M,H,W
        [anchors]
        strides = 16 32
        [score]
        scores = head 4
        [box]
        box = head
        format = distances
        [column mask]
        numbers = head C+4
        count = M
        prototypes = prototypes
    ";
    let decoder = decoder::from_text(TEXT).unwrap();
    for (channels, fits) in [([15, 15], true), ([15, 14], false), ([15, 16], false)] {
        let tensors: [(&str, &[usize]); 3] = [
            ("a", &[1, channels[0], 4, 4]),
            ("b", &[1, channels[1], 2, 2]),
            ("c", &[1, 8, 16, 16]),
        ];
        let found = with_zeros(&tensors, |tensors| {
            decoder::choose(tensors, Some(decoder), model_size(64.0)).map(|it| it.layout.classes)
        });
        assert_eq!(found.ok(), fits.then_some(3), "{channels:?}");
    }
}
