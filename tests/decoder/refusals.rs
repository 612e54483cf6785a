// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refusals of tensors of unknown models are short, and what they and notices advise works.

use std::collections::HashSet;

use fastrand::Rng;
use nmsfilter_core::decoder::{self, Choice, ChoiceError, Coordinates, KeypointShape, Options};
use nmsfilter_core::nms::{Backend, Bounds, Nms};
use nmsfilter_core::tensor::TensorView;

use crate::with_zeros;

/// Six lines of 120 characters.
const LONGEST: usize = 6 * 120;

type Shapes = Vec<Vec<usize>>;

fn choose(shapes: &Shapes, decoder: Option<&str>, options: Options) -> Result<Choice, ChoiceError> {
    let ids: Vec<String> = (0..shapes.len()).map(|index| format!("output{index}")).collect();
    let tensors: Vec<(&str, &[usize])> =
        ids.iter().zip(shapes).map(|(id, shape)| (id.as_str(), shape.as_slice())).collect();
    let decoder = decoder.map(|name| decoder::by_name(name).expect("the decoder exists"));
    with_zeros(&tensors, |tensors| decoder::choose(tensors, decoder, options))
}

/// Numbers of dimensions that outputs of detectors have.
const NUMBERS: [usize; 32] = [
    1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 17, 20, 32, 38, 40, 56, 57, 65, 80, 84, 85, 100, 116,
    200, 300, 900, 1029, 2100, 8400,
];

fn random_shapes(rng: &mut Rng) -> Shapes {
    let mut shapes = Shapes::new();
    let anchors = rng.choice(NUMBERS).unwrap();
    for _ in 0..[1, 1, 1, 2, 2, 3, 4, 9][rng.usize(0..8)] {
        let mut shape: Vec<usize> =
            (0..rng.usize(1..5)).map(|_| rng.choice(NUMBERS).unwrap()).collect();
        shape[0] = if rng.u8(0..8) == 0 { shape[0] } else { 1 };
        if rng.bool() && shape.len() > 1 {
            shape[1] = anchors;
        }
        let elements: usize = shape.iter().product();
        if elements < 2_000_000 {
            shapes.push(shape);
        }
    }
    shapes
}

fn options(rng: &mut Rng) -> Options {
    let classes = [1, 2, 20, 80][rng.usize(0..4)];
    let with = Options::default();
    match rng.u8(0..4) {
        0 => with,
        1 => Options { num_classes: classes, ..with },
        2 => Options { labels: classes, ..with },
        _ => Options { model_size: Some([640.0, 640.0]), ..with },
    }
}

/// The decoders that a text of an ambiguity offers, each with the setting that it needs.
fn offers(text: &str) -> Vec<(&str, Option<&str>)> {
    let (_, offers) = text.split_once(" can be read as ").expect("it has readings");
    let (offers, rest) = offers.split_once("; set `decoder` to the right one").expect("they end");
    let contradicted = rest.strip_prefix(", or read ");
    offers
        .split(" or ")
        .chain(contradicted)
        .map(|offer| {
            let name = offer.split(' ').next().expect("there is a first word");
            let with = offer.split_once("(set `").map(|(_, rest)| rest.split('`').next().unwrap());
            (name, with)
        })
        .collect()
}

/// True if the decoder reads the tensors with some value of the setting.
fn reads(shapes: &Shapes, decoder: &str, with: Option<&str>, options: Options) -> bool {
    let is_read = |options| choose(shapes, Some(decoder), options).is_ok();
    match with {
        None => is_read(options),
        Some("model_size") => (1..=96).any(|width| {
            (1..=96).any(|height| {
                let model_size = Some([32.0 * width as f32, 32.0 * height as f32]);
                is_read(Options { model_size, ..options })
            })
        }),
        Some("options.keypoints") => (1..=133).any(|count| {
            [2, 3].into_iter().any(|components| {
                let keypoints = Some(KeypointShape { count, components });
                is_read(Options { keypoints, ..options })
            })
        }),
        Some(other) => {
            let classes = other.strip_prefix("options.num_classes = ").expect("a known setting");
            is_read(Options { num_classes: classes.parse().unwrap(), ..options })
        }
    }
}

fn check_refusal(shapes: &Shapes, options: Options) -> Option<String> {
    let error = choose(shapes, None, options).err()?;
    let text = error.to_string();
    assert!(text.len() <= LONGEST, "{} characters: {text}", text.len());
    if matches!(error, ChoiceError::Ambiguous { .. }) {
        let offers = offers(&text);
        assert!((1..=4).contains(&offers.len()), "{text}");
        for (decoder, with) in offers {
            assert!(reads(shapes, decoder, with, options), "{shapes:?}, {options:?}: {text}");
        }
    }
    Some(text)
}

#[test]
fn refusals_are_short_and_offer_only_decoders_that_read_the_tensors() {
    let known: [&[&[usize]]; 24] = [
        &[&[1, 25200, 85]],
        &[&[1, 8400, 85]],
        &[&[1, 8400, 84]],
        &[&[1, 1, 200, 7]],
        &[&[1, 300, 6]],
        &[&[1, 300, 7]],
        &[&[1, 300, 38]],
        &[&[1, 300, 57]],
        &[&[1, 56, 8400]],
        &[&[1, 57, 8400]],
        &[&[1, 116, 8400]],
        &[&[1, 20, 8400]],
        &[&[1, 300, 84]],
        &[&[1, 3549, 38]],
        &[&[1, 100, 4], &[1, 100, 92]],
        &[&[1, 300, 4], &[1, 300, 80]],
        &[&[1, 4420, 4], &[1, 4420, 2]],
        &[&[1, 100, 4], &[1, 100], &[1, 100], &[1]],
        &[&[1, 3, 80, 80, 85], &[1, 3, 40, 40, 85], &[1, 3, 20, 20, 85]],
        &[&[1, 144, 80, 80], &[1, 144, 40, 40], &[1, 144, 20, 20]],
        &[&[8, 200, 4], &[2, 2]],
        &[&[1, 7, 7, 3]],
        &[&[1, 9, 9, 9, 9]],
        &[&[100, 7]],
    ];
    for shapes in known {
        let shapes: Shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
        for options in [
            Options::default(),
            Options { labels: 80, ..Options::default() },
            Options { num_classes: 1, ..Options::default() },
        ] {
            if let Some(text) = check_refusal(&shapes, options) {
                println!("{shapes:?} {} {}: {text}\n", options.labels, options.num_classes);
            }
        }
    }
    let mut rng = Rng::with_seed(48);
    let (mut refused, mut ambiguous) = (0, 0);
    for _ in 0..1500 {
        let (shapes, options) = (random_shapes(&mut rng), options(&mut rng));
        if let Some(text) = check_refusal(&shapes, options) {
            refused += 1;
            ambiguous += usize::from(text.contains(" can be read as "));
        }
    }
    assert!(refused > 500 && ambiguous > 100, "{refused} refused, {ambiguous} of them ambiguous");
}

/// The names of the offered decoders for tensors of unknown models with these numbers.
fn offered(tensors: &[(&str, &[usize], &[f32])], model: [f32; 2]) -> Vec<String> {
    let views: Vec<TensorView<'_>> =
        tensors.iter().map(|(id, shape, all)| TensorView::from_slice(id, shape, all)).collect();
    let options = Options { model_size: Some(model), ..Options::default() };
    match decoder::choose(&views, None, options).err().expect("no id is known") {
        error @ ChoiceError::Ambiguous { .. } => {
            let text = error.to_string();
            offers(&text).into_iter().map(|(name, _)| name.to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// A reading is not offered that the numbers contradict.
#[test]
fn readings_that_the_numbers_contradict_are_not_offered() {
    let mut rng = Rng::with_seed(4848);
    let mut within = |low: f32, high: f32| low + rng.f32() * (high - low);
    // Corners and centers with sizes, in units of the model's input.
    let corners: Vec<[f32; 4]> = (0..8400)
        .map(|_| {
            let [x, y] = [within(0.0, 0.8), within(0.0, 0.8)];
            [x, y, x + within(0.01, 0.2), y + within(0.01, 0.2)]
        })
        .collect();
    let center =
        |&[x1, y1, x2, y2]: &[f32; 4]| [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1];
    let centers: Vec<[f32; 4]> = corners.iter().map(center).collect();
    let offsets: Vec<f32> = (0..4420 * 4).map(|_| within(-2.0, 2.0)).collect();
    let two_scores: Vec<f32> = (0..4420).flat_map(|_| [0.9, 0.1]).collect();
    let faces = |boxes: &[f32]| {
        let scores: (&str, &[usize], &[f32]) = ("onnx/scores", &[1, 4420, 2], &two_scores);
        offered(&[scores, ("onnx/boxes", &[1, 4420, 4], boxes)], [320.0, 240.0])
    };
    assert_eq!(faces(&corners[..4420].concat()), ["ultraface"]);
    // 5 % of the boxes reach beyond the picture.
    let beyond: Vec<[f32; 4]> =
        corners.iter().map(|&[x1, y1, x2, y2]| [x1 - 0.04, y1, x2, y2]).collect();
    assert_eq!(faces(&beyond[..4420].concat()), ["ultraface"]);
    assert_eq!(faces(&offsets), ["ultraface-raw"]);
    // Nothing is known of zeros.
    let zeros = [0.0; 4420 * 4];
    assert!(faces(&zeros).contains(&"ultraface-raw".to_owned()));
    // Rows of 85 numbers.
    let rows = |boxes: &[[f32; 4]]| -> Vec<f32> {
        let row = |of: &[f32; 4]| [&of.map(|it| 640.0 * it)[..], &[0.01; 81]].concat();
        boxes.iter().flat_map(row).collect()
    };
    let offered_rows = |boxes| offered(&[("output", &[1, 8400, 85], &rows(boxes))], [640.0; 2]);
    assert_eq!(offered_rows(&centers)[..2], ["yolov5", "yolox"]);
    assert!(!offered_rows(&centers).contains(&"yolox-raw".to_owned()));
    assert_eq!(offered_rows(&corners), [""; 0]);
    // Selected detections, of which three are there.
    let list = |boxes: &[[f32; 4]], by: f32| {
        let row = |of: &[f32; 4]| [&of.map(|it| by * it)[..], &[0.9, 3.0]].concat();
        let mut rows: Vec<f32> = boxes[..3].iter().flat_map(row).collect();
        rows.resize(300 * 6, 0.0);
        offered(&[("output0", &[1, 300, 6], &rows)], [640.0; 2])
    };
    assert_eq!(list(&corners, 640.0), ["end2end"]);
    assert!(list(&centers, 1.0).contains(&"detr-end2end".to_owned()));
    assert!(!list(&centers, 1.0).contains(&"end2end".to_owned()));
}

#[test]
fn refusals_of_many_tensors_and_of_each_decoder_are_short() {
    let many: Shapes = (0..60).map(|index| vec![1, 3, 3, 3, 3 + index]).collect();
    let mut rng = Rng::with_seed(49);
    for decoder in decoder::decoders() {
        let mut all = vec![many.clone()];
        all.extend((0..40).map(|_| random_shapes(&mut rng)));
        for shapes in all {
            if let Err(error) = choose(&shapes, Some(decoder.name()), Options::default()) {
                let text = error.to_string();
                assert!(text.len() <= LONGEST, "{} characters: {text}", text.len());
            }
        }
    }
    let text = choose(&many, None, Options::default()).err().unwrap().to_string();
    assert!(text.contains(" and ") && text.contains(" others;"), "{text}");
}

/// A user's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Set {
    decoder: String,
    coordinates: Option<String>,
    num_classes: usize,
}

/// The first notice or the refusal of rows of numbers, in ten images.
fn advice(rows: &[f32], shape: &[usize], set: &Set, in_frame: bool) -> Option<String> {
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    nms.set_decoder(Some(set.decoder.as_str())).unwrap();
    nms.model_size = [640.0; 2];
    if in_frame {
        nms.visible = Bounds { left: 0.0, top: 0.0, right: 640.0, bottom: 640.0 };
    }
    nms.options.num_classes = set.num_classes;
    nms.options.coordinates = match set.coordinates.as_deref() {
        None => Coordinates::Auto,
        Some("pixels") => Coordinates::Pixels,
        Some("normalized") => Coordinates::Normalized,
        Some(other) => panic!("{other}"),
    };
    let tensors = [TensorView::from_slice("output0", shape, rows)];
    for _ in 0..10 {
        if let Err(error) = nms.run(&tensors) {
            return Some(error.to_string());
        }
    }
    nms.finish();
    nms.warnings().first().map(ToString::to_string)
}

/// Makes the first setting that a text names with a value.
fn follow(set: &mut Set, text: &str) -> bool {
    let spans = text.split('`').skip(1).step_by(2);
    for (name, value) in spans.filter_map(|span| span.split_once(" = ")) {
        match name {
            "decoder" => set.decoder = value.to_owned(),
            "options.coordinates" => set.coordinates = Some(value.to_owned()),
            "options.num_classes" => set.num_classes = value.parse().unwrap(),
            _ => continue,
        }
        return true;
    }
    false
}

/// Rows of a box, as corners or center and size, in pixels or normalized, with a score, a class, and an angle if the box is
/// oriented.
fn rows(rng: &mut Rng, centers: bool, normalized: bool, oriented: bool) -> Vec<f32> {
    let mut rows = Vec::new();
    for row in 0..300 {
        let [width, height] = [0; 2].map(|_| 20.0 + 80.0 * rng.f32());
        let [x, y] = [0; 2].map(|_| 60.0 + 500.0 * rng.f32());
        let unit = if normalized { 1.0 / 640.0 } else { 1.0 };
        let box_ = match centers {
            true => [x, y, width, height],
            false => [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0],
        };
        rows.extend(box_.map(|number| unit * number));
        let score = if row < 20 { 0.5 + 0.4 * rng.f32() } else { 0.1 * rng.f32() };
        rows.extend([score, rng.u32(1..80) as f32]);
        if oriented {
            rows.push(rng.f32() - 0.5);
        }
    }
    rows
}

/// RT-DETR's and other models' rows that are read by any decoder: following the first advice, again and again, ends with
/// the right decoder and unit, and never comes back to settings that were tried.
#[test]
fn advice_leads_to_the_right_reading_without_a_circle() {
    let mut rng = Rng::with_seed(50);
    let kinds = [
        (false, false, false),
        (false, true, false),
        (true, false, false),
        (true, true, false),
        (true, false, true),
    ];
    for (kind, in_frame) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let (centers, normalized, oriented) = kind;
        let numbers = rows(&mut rng, centers, normalized, oriented);
        let shape = [1, 300, 6 + usize::from(oriented)];
        let expected = match (centers, oriented) {
            (_, true) => "end2end-obb",
            (true, _) => "detr-end2end",
            (false, _) => "end2end",
        };
        for decoder in decoder::decoders().iter().map(|decoder| decoder.name()) {
            let mut set = Set { decoder: decoder.to_owned(), ..Set::default() };
            if choose(&vec![shape.to_vec()], Some(decoder), Options::default()).is_err() {
                continue;
            }
            let mut tried = HashSet::new();
            let mut told = Vec::new();
            while let Some(text) = advice(&numbers, &shape, &set, in_frame) {
                assert!(tried.insert(set.clone()), "a circle: {set:?}: {told:#?}");
                let has_advice = follow(&mut set, &text);
                told.push(text);
                if !has_advice {
                    break;
                }
            }
            println!("{decoder} ({centers}, {normalized}, {oriented}): {set:?}: {told:#?}");
            let is_told = || told.last().is_some_and(|text| text.contains("correct `decoder`"));
            assert!(set.decoder == expected || is_told(), "{set:?}: {told:#?}");
            let is_normalized = match set.coordinates.as_deref() {
                Some(coordinates) => coordinates == "normalized",
                None => set.decoder == "detr-end2end",
            };
            assert!(set.decoder != expected || is_normalized == normalized, "{set:?}: {told:#?}");
        }
    }
}

/// Tensors with the anchors of each other, of which one has boxes, keypoints or maps: a reading of one alone would take scores
/// or edges for sizes.
#[test]
fn one_of_several_tensors_of_the_same_anchors_is_not_offered_alone() {
    let cases: [&[&[usize]]; 4] = [
        // SSD by NVIDIA: boxes and scores, each by coordinate or class.
        &[&[1, 4, 8732], &[1, 81, 8732]],
        // RTMO by MMDeploy: a score in the row of a box, and keypoints.
        &[&[1, 300, 5], &[1, 300, 17, 3]],
        // CenterFace: a heat map, sizes, offsets, and five points.
        &[&[1, 1, 120, 160], &[1, 2, 120, 160], &[1, 2, 120, 160], &[1, 10, 120, 160]],
        // Distances over bins and scores of YOLOv8, before the decoding.
        &[&[1, 64, 8400], &[1, 80, 8400]],
    ];
    for case in cases {
        let shapes: Shapes = case.iter().map(|shape| shape.to_vec()).collect();
        let text = check_refusal(&shapes, Options::default()).expect("nothing is chosen");
        assert!(!text.contains(" can be read as "), "{text}");
        assert!(text.contains("layout file"), "{text}");
    }
    // A second output with the same numbers, or without boxes, is no part of the first one's detections.
    for other in [[1, 84, 8400], [1, 1, 8400]] {
        let shapes = vec![vec![1, 84, 8400], other.to_vec()];
        let read = choose(&shapes, None, Options::default());
        let text = read.map(|choice| choice.decoder.name().to_owned());
        let text = text.unwrap_or_else(|error| error.to_string());
        assert!(text.contains("yolov8"), "{text}");
    }
}
