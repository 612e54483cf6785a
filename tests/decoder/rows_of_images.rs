// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that name their image: the pairs of class and box that ONNX's NonMaxSuppression selects, and detections of a batch in
//! one list.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{ClassThresholds, Cpu, Engine, Job, Method, Params, Reference};
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines;

const IMAGES: usize = 3;
const CLASSES: usize = 4;
const BOXES: usize = 7;

/// A detection: class, box, and the box's left edge and score.
type Found = (u32, u32, f32, f32);

/// Boxes with edges that tell their image and index, and scores of few values.
fn boxes_and_scores(rng: &mut fastrand::Rng) -> (Vec<f32>, Vec<f32>) {
    let boxes = (0..IMAGES * BOXES).flat_map(|index| {
        let left = index as f32 * 5.0;
        [10.0, left, 14.0, left + 3.0]
    });
    let scores = (0..IMAGES * CLASSES * BOXES).map(|_| match rng.u8(0..20) {
        0 => f32::NAN,
        number => f32::from(number) / 20.0,
    });
    (boxes.collect(), scores.collect())
}

/// The pairs of an image, of those rows that name it, by rank: score, box, class.
fn expected(rows: &[[i64; 3]], scores: &[f32], image: usize, threshold: f32) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for &[of, class, index] in rows {
        let is_pair = (0..CLASSES as i64).contains(&class) && (0..BOXES as i64).contains(&index);
        if of != image as i64 || !is_pair {
            continue;
        }
        let (class, index) = (class as usize, index as usize);
        let score = scores[(image * CLASSES + class) * BOXES + index];
        let left = (image * BOXES + index) as f32 * 5.0;
        let pair = (class as u32, index as u32, left, score);
        if score >= threshold && !found.contains(&pair) {
            found.push(pair);
        }
    }
    found.sort_by(|a, b| b.3.total_cmp(&a.3).then((a.1, a.0).cmp(&(b.1, b.0))));
    found
}

#[test]
fn the_pairs_that_a_model_selects_are_its_detections() {
    let mut rng = fastrand::Rng::with_seed(48);
    for scene in 0..300 {
        let (boxes, scores) = boxes_and_scores(&mut rng);
        let count = rng.usize(0..30);
        // Some rows are of no image, class or box, or stand there twice.
        let row = |rng: &mut fastrand::Rng| {
            [rng.i64(-1..3), rng.i64(0..5).min(rng.i64(0..9)), rng.i64(-1..8)]
        };
        let rows: Vec<[i64; 3]> = (0..count).map(|_| row(&mut rng)).collect();
        let numbers = rows.concat();
        let fewer: Vec<i32> = numbers.iter().map(|&it| it as i32).collect();
        let flat = [count, 3];
        let nested = [1, count, 3];
        let shape = if rng.bool() { &flat[..] } else { &nested };
        let indices = match rng.bool() {
            true => TensorView::from_slice("indices", shape, &numbers),
            false => TensorView::from_slice("indices", shape, &fewer),
        };
        let tensors = [
            TensorView::from_slice("boxes", &[IMAGES, BOXES, 4], &boxes),
            TensorView::from_slice("scores", &[IMAGES, CLASSES, BOXES], &scores),
            indices,
        ];
        let options = Options { batch: true, ..Options::default() };
        let choice = decoder::choose(&tensors, decoder::by_name("yolov3"), options);
        let layout = choice.unwrap_or_else(|error| panic!("{error}")).layout;
        let params = Params {
            thresholds: ClassThresholds::uniform(0.25),
            method: Method::None,
            multi_label: rng.bool(),
            ..Params::default()
        };
        let places = engines::places(&layout);
        let mut reference = Reference::default();
        let found = reference.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
        let mut cpu = Cpu::default();
        let fast = cpu.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
        for image in 0..IMAGES {
            let group = found.group(image);
            assert_eq!(engines::bits(&fast.group(image)), engines::bits(&group), "{scene}");
            assert_eq!(fast.group(image).rejected, group.rejected, "{scene}");
            let of = group.survivors.iter();
            let found: Vec<Found> = of.map(|it| (it.class, it.anchor, it.x1, it.score)).collect();
            assert_eq!(found, expected(&rows, &scores, image, 0.25), "{scene}, image {image}");
        }
    }
}

/// The kernels refuse a layout with pairs, so that `auto` takes the CPU.
#[test]
fn an_engine_has_pairs_or_refuses_them() {
    let boxes = [10.0f32, 20.0, 30.0, 40.0].repeat(2);
    let scores = [0.9f32, 0.8];
    let indices = [0i64, 0, 1];
    let tensors = [
        TensorView::from_slice("boxes", &[1, 2, 4], &boxes),
        TensorView::from_slice("scores", &[1, 1, 2], &scores),
        TensorView::from_slice("indices", &[1, 3], &indices),
    ];
    let mut nms = Nms::new(Backend::Auto, None).unwrap();
    nms.set_decoder(Some("yolov3")).unwrap();
    let outcome = nms.run(&tensors).unwrap();
    let found: Vec<u32> = outcome.group(0).survivors.iter().map(|it| it.anchor).collect();
    assert_eq!(found, [1]);
    let layout = decoder::choose(&tensors, decoder::by_name("yolov3"), Options::default());
    let supports = engines::fast().supports(&layout.unwrap().layout, &Params::default());
    assert_eq!(supports.is_err(), engines::on_gpu());
}

/// Lists of detections of two images, without a dimension for images: image 1 would be in image 0.
#[test]
fn rows_of_another_image_are_an_error() {
    for (name, row) in [
        ("yolov7-end2end", [0.0f32, 10.0, 20.0, 30.0, 40.0, 2.0, 0.9]),
        ("yolonas-flat", [0.0, 10.0, 20.0, 30.0, 40.0, 0.9, 2.0]),
        ("detection-output", [0.0, 2.0, 0.9, 0.1, 0.2, 0.3, 0.4]),
    ] {
        let decode = |images: &[f32], batch: bool| {
            let rows = images.iter().flat_map(|&image| [&[image][..], &row[1..]].concat());
            let rows: Vec<f32> = rows.collect();
            let shape = [1, 1, images.len(), 7];
            let from = if name == "detection-output" { 0 } else { 2 };
            let tensors = [TensorView::from_slice("output", &shape[from..], &rows)];
            let mut nms = Nms::new(Backend::Auto, None).unwrap();
            nms.set_decoder(Some(name)).unwrap();
            nms.options.batch = batch;
            nms.params.method = Method::None;
            let found = nms.run(&tensors).map(|outcome| outcome.group(0).survivors.len());
            found.map_err(|error| error.to_string())
        };
        for batch in [false, true] {
            assert_eq!(decode(&[0.0, 0.0], batch), Ok(2), "{name}");
            let error = decode(&[0.0, 0.0, 1.0], batch).unwrap_err();
            assert!(error.contains("row 2 is of image 1; expected rows of one image"), "{error}");
        }
        // Rows after the last one.
        assert!(decode(&[0.0, -1.0], false).is_ok());
    }
}

/// Two images' rows, of which another tensor counts those of each: neither is read, nor both as one image.
#[test]
fn counts_of_several_images_are_an_error() {
    let rows = [2.0f32, 0.9, 10.0, 20.0, 30.0, 40.0].repeat(3);
    for batch in [false, true] {
        let counts = [2i32, 1];
        let tensors = [
            TensorView::from_slice("multiclass_nms3_0.tmp_0", &[3, 6], &rows),
            TensorView::from_slice("multiclass_nms3_0.tmp_2", &[2], &counts),
        ];
        let mut nms = Nms::new(Backend::Auto, None).unwrap();
        nms.set_decoder(Some("paddle-nms")).unwrap();
        nms.options.batch = batch;
        let error = nms.run(&tensors).map(|outcome| outcome.group(0).survivors.len()).unwrap_err();
        assert!(error.to_string().contains("multiclass_nms3_0.tmp_2"), "{error}");
    }
}
