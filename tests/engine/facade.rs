// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter_core::nms`, the interface for programs without GStreamer.

use nmsfilter_core::nms::{Backend, Bounds, Coordinates, Detection, Nms, NmsError};
use nmsfilter_core::tensor::{Quantization, TensorView};

use crate::support::engines;

/// Returns an `Nms` with the engine under test.
fn nms() -> Nms {
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    Nms::new(backend, Some(0)).unwrap()
}

/// Returns the left, upper, right and lower edge.
fn corners(detection: &Detection) -> [f32; 4] {
    let &Detection { x1, y1, x2, y2, .. } = detection;
    [x1, y1, x2, y2]
}

/// Two windows, of which the first suppresses the second.
const IMAGE: [f32; 8] = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6];

#[test]
fn an_unknown_decoder_name_is_an_error_with_all_names() {
    let names: Vec<&str> = Nms::decoders().collect();
    assert_eq!(names[..6], ["windows", "boxes", "yolov5", "yolov8", "ultraface", "yolox"]);
    assert_eq!(names[6..9], ["end2end", "detr", "yolox-raw"]);
    let mut nms = nms();
    let error = nms.set_decoder(Some("yolov9")).unwrap_err();
    assert!(matches!(&error, NmsError::UnknownDecoder { name, .. } if name == "yolov9"));
    let expected = format!("there is no decoder yolov9; expected one of {}", names.join(", "));
    assert_eq!(error.to_string(), expected);
    // The decoder chosen by id is still in use.
    let tensors = [TensorView::from_slice("windows", &[2, 4], &IMAGE)];
    assert_eq!(nms.run(&tensors).unwrap().group(0).survivors.len(), 1);
}

#[test]
fn an_overlap_threshold_outside_0_to_1_is_an_error() {
    let tensors = [TensorView::from_slice("windows", &[2, 4], &IMAGE)];
    let mut nms = nms();
    for (threshold, got) in
        [(45.0, "45"), (f32::NAN, "NaN"), (-0.1, "-0.1"), (f32::INFINITY, "inf"), (1.1, "1.1")]
    {
        nms.params.iou_threshold = threshold;
        let error = nms.run(&tensors).unwrap_err();
        assert!(matches!(error, NmsError::Param(_)), "{error:?}");
        let expected = format!("iou_threshold: expected a number from 0 to 1, got {got}");
        assert_eq!(error.to_string(), expected);
    }
    for threshold in [0.0, 0.45, 1.0] {
        nms.params.iou_threshold = threshold;
        assert!(nms.run(&tensors).is_ok(), "{threshold}");
    }
}

#[test]
fn parameters_that_cannot_work_are_errors_of_a_run() {
    let tensors = [TensorView::from_slice("windows", &[2, 4], &IMAGE)];
    type Change = fn(&mut Nms);
    let changes: [(Change, &str); 3] = [
        (|nms| nms.params.thresholds.default = f32::NAN, "thresholds: expected a number, got NaN"),
        (
            |nms| nms.params.sizes.max = [-5.0; 2],
            "sizes.max: expected numbers above 0, infinity for no limit, got [-5.0, -5.0]",
        ),
        (
            |nms| nms.model_size = [0.0, 640.0],
            "model_size: expected width and height in pixels, each at least 1, got [0.0, 640.0]",
        ),
    ];
    for (change, expected) in changes {
        let mut nms = nms();
        change(&mut nms);
        assert_eq!(nms.run(&tensors).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_decoder_that_is_set_reads_tensors_of_any_id_until_it_is_unset() {
    let tensors = [TensorView::from_slice("out", &[2, 4], &IMAGE)];
    let mut nms = nms();
    let error = nms.run(&tensors).unwrap_err();
    assert!(matches!(error, NmsError::Choice(_)), "{error}");
    nms.set_decoder(Some("windows")).unwrap();
    assert_eq!(nms.run(&tensors).unwrap().group(0).survivors.len(), 1);
    nms.set_decoder(None).unwrap();
    assert!(nms.run(&tensors).is_err());
}

#[test]
fn a_batch_dimension_is_read_only_if_the_option_batch_is_set() {
    // The second image has its windows in the opposite order, and apart from each other.
    let second = [300.0, 60.0, 90.0, 0.5, 100.0, 50.0, 80.0, 0.7];
    let output = [IMAGE, second].concat();
    let tensors = [TensorView::from_slice("windows", &[2, 2, 4], &output)];
    let mut nms = nms();
    let error = nms.run(&tensors).unwrap_err().to_string();
    assert!(error.contains("expected a batch dimension of 1, got 2"), "{error}");
    nms.options.batch = true;
    let outcome = nms.run(&tensors).unwrap();
    let anchors: Vec<Vec<u32>> = outcome
        .groups()
        .map(|image| image.survivors.iter().map(|survivor| survivor.anchor).collect())
        .collect();
    assert_eq!(anchors, [vec![0], vec![1, 0]]);
    let candidates: Vec<usize> = outcome.groups().map(|image| image.candidates).collect();
    assert_eq!(candidates, [2, 2]);
}

#[test]
fn normalized_coordinates_are_multiplied_by_the_model_size_and_pixels_are_not() {
    let normalized = [0.5, 0.25, 0.125, 0.9f32];
    let tensors = [TensorView::from_slice("windows", &[1, 4], &normalized)];
    let mut nms = nms();
    nms.options.coordinates = Coordinates::Normalized;
    let one = |nms: &mut Nms, tensors: &[TensorView<'_>]| {
        corners(&nms.run(tensors).unwrap().group(0).survivors[0])
    };
    assert_eq!(one(&mut nms, &tensors), [0.5, 0.25, 0.625, 0.375], "by default 1 by 1");
    nms.model_size = [640.0, 480.0];
    assert_eq!(one(&mut nms, &tensors), [320.0, 120.0, 400.0, 180.0]);
    nms.options.coordinates = Coordinates::Auto;
    let pixels = [TensorView::from_slice("windows", &[2, 4], &IMAGE)];
    assert_eq!(one(&mut nms, &pixels), [100.0, 50.0, 180.0, 130.0]);
}

/// Survivors would differ if an outdated plan were used.
#[test]
fn other_tensors_and_settings_have_an_effect_at_the_next_run() {
    let mut nms = nms();
    let anchors = |nms: &mut Nms, tensors: &[TensorView<'_>]| -> Vec<u32> {
        let outcome = nms.run(tensors).unwrap();
        outcome.group(0).survivors.iter().map(|survivor| survivor.anchor).collect()
    };
    let windows = [TensorView::from_slice("windows", &[2, 4], &IMAGE)];
    assert_eq!(anchors(&mut nms, &windows), [0]);
    nms.params.iou_threshold = 1.0;
    assert_eq!(anchors(&mut nms, &windows), [0, 1]);
    nms.params.thresholds.default = 0.8;
    assert_eq!(anchors(&mut nms, &windows), [0]);
    nms.params.thresholds.per_class = vec![0.95];
    assert!(anchors(&mut nms, &windows).is_empty());
    nms.params.thresholds.per_class[0] = f32::NEG_INFINITY;
    assert_eq!(anchors(&mut nms, &windows), [0, 1]);
    // One window is followed by the output of another model family.
    let one = [TensorView::from_slice("windows", &[1, 4], &IMAGE)];
    assert_eq!(anchors(&mut nms, &one), [0]);
    let rows = [9.0, 9.0, 4.0, 4.0, 0.9f32].map(|number| [number; 8]).concat();
    let yolov8 = [TensorView::from_slice("yolo-v8-out", &[1, 5, 8], &rows)];
    assert_eq!(corners(&nms.run(&yolov8).unwrap().group(0).survivors[0]), [7.0, 7.0, 11.0, 11.0]);
    // An error does not change what follows.
    nms.options.num_classes = 3;
    assert!(nms.run(&yolov8).is_err());
    assert!(nms.run(&windows).is_err());
    nms.options.num_classes = 0;
    assert_eq!(anchors(&mut nms, &windows), [0, 1]);
}

/// Returns rows of corners, score and class.
fn end_to_end() -> Vec<f32> {
    let mut rows = [0.0; 6].repeat(300);
    rows[..6].copy_from_slice(&[40.0, 50.0, 340.0, 250.0, 0.9, 5.0]);
    rows
}

#[test]
fn misread_tensors_give_warnings_once_in_the_words_of_each_interface() {
    let rows = end_to_end();
    let tensors = [TensorView::from_slice("output0", &[1, 300, 6], &rows)];
    let mut nms = nms();
    nms.set_decoder(Some("yolov8")).unwrap();
    for _ in 0..3 {
        nms.run(&tensors).unwrap();
    }
    let texts: Vec<String> = nms.warnings().iter().map(ToString::to_string).collect();
    let [columns, score] = &texts[..] else { panic!("{:?}", nms.warnings()) };
    let expected = "decoder yolov8 reads rows of six numbers in tensor output0 (f32 1x300x6) as a box and 2 classes, but \
                    six numbers are usually a box, a score and a class; set `decoder = end2end`, or `options.num_classes = 2` \
                    if the model has that many";
    assert_eq!(columns, expected);
    assert!(score.starts_with("a score is 5, but scores of decoder yolov8 are probabilities"));
    nms.set_decoder(Some("end2end")).unwrap();
    nms.run(&tensors).unwrap();
    assert_eq!(nms.warnings(), []);
}

/// A window of 0.3 pixels at a place that differs from run to run.
fn run_of_one_window(nms: &mut Nms, run: usize) {
    let window = [0.01 * run as f32, 0.2, 0.3, 0.9];
    nms.run(&[TensorView::from_slice("windows", &[1, 4], &window)]).unwrap();
}

#[test]
fn boxes_are_judged_when_there_are_enough_of_them_or_no_more_come() {
    let mut nms = nms();
    nms.model_size = [640.0; 2];
    for run in 1..=12 {
        run_of_one_window(&mut nms, run);
        assert_eq!(nms.warnings().len(), usize::from(run >= 8), "{run}: {:?}", nms.warnings());
    }
    let text = nms.warnings()[0].to_string();
    let expected = "all 8 boxes are within the first pixel of the model's input of 640x640, so they are probably \
                    normalized; set `options.coordinates = normalized`";
    assert!(text.starts_with(expected), "{text}");

    nms.set_decoder(Some("windows")).unwrap();
    run_of_one_window(&mut nms, 1);
    assert_eq!(nms.warnings(), []);
    nms.finish();
    assert!(nms.warnings()[0].to_string().starts_with("all 1 boxes are within the first pixel"));
    nms.finish();
    assert_eq!(nms.warnings().len(), 1);
}

/// 400 anchors of YOLOv8 with one class, of which twenty at a place each have a score, of a picture of 640x640.
fn yolov8_of_four_objects(unit: f32) -> Vec<f32> {
    let mut rows = vec![0.0; 5 * 400];
    for anchor in 0..80 {
        let object = (anchor / 20) as f32;
        let numbers = [100.0 + 120.0 * object, 200.0, 80.0, 160.0, 0.9];
        for (row, number) in numbers.into_iter().enumerate() {
            rows[row * 400 + anchor] = if row < 4 { number / unit } else { number };
        }
    }
    rows
}

#[test]
fn normalized_boxes_are_noticed_in_the_first_image() {
    let texts = |unit: f32, change: fn(&mut Nms)| -> Vec<String> {
        let numbers = yolov8_of_four_objects(unit);
        let mut nms = nms();
        change(&mut nms);
        nms.run(&[TensorView::from_slice("yolo-v8-out", &[1, 5, 400], &numbers)]).unwrap();
        nms.warnings().iter().map(ToString::to_string).collect()
    };
    let has_size = |nms: &mut Nms| nms.model_size = [640.0; 2];
    let letterboxed = |nms: &mut Nms| {
        nms.model_size = [640.0; 2];
        nms.visible = Bounds { left: 0.0, top: 80.0, right: 640.0, bottom: 560.0 };
    };
    for change in [|_: &mut Nms| {}, has_size, letterboxed] {
        assert_eq!(texts(1.0, change), [""; 0]);
        let found = texts(640.0, change);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("set `options.coordinates = normalized`"), "{found:?}");
    }
    assert!(texts(640.0, |_| {})[0].contains("and `model_size` for boxes in pixels"));
}

/// End-to-end rows with numbers of classes from 0 to 90, as COCO has them, and 80 labels.
#[test]
fn a_class_without_a_label_is_noticed() {
    let texts = |class: f32, labels: usize| -> Vec<String> {
        let mut nms = nms();
        nms.set_decoder(Some("end2end")).unwrap();
        nms.options.labels = labels;
        // Objects of a class with a label come first.
        for class in [[5.0; 15].as_slice(), &[class]].concat() {
            let row = [100.0, 100.0, 200.0, 300.0, 0.9, class];
            nms.run(&[TensorView::from_slice("out", &[1, 1, 6], &row)]).unwrap();
        }
        nms.warnings().iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(79.0, 80), [""; 0]);
    assert_eq!(texts(90.0, 0), [""; 0]);
    let [text] = &texts(90.0, 80)[..] else { panic!("one warning") };
    let expected = "a box has class 90, but there are 80 labels, for classes 0 to 79, so labels are probably those of \
                    other classes; check `options.labels`, and with which number the classes of decoder end2end begin";
    assert_eq!(text, expected);
}

#[test]
fn ten_images_in_which_nothing_is_found_give_the_best_score() {
    let (mut output, scores) = (vec![0.0f32; 84 * 100], [0.0625f32, 0.125]);
    for (row, number) in output.chunks_mut(100).zip([100.0, 100.0, 40.0, 40.0]) {
        row.fill(number);
    }
    (output[5 * 100], output[7 * 100 + 3]) = scores.into();
    let tensors = [TensorView::from_slice("yolo-v8-out", &[1, 84, 100], &output)];
    let mut nms = nms();
    for run in 1..=12 {
        nms.run(&tensors).unwrap();
        assert_eq!(nms.warnings().len(), usize::from(run >= 10), "{run}: {:?}", nms.warnings());
    }
    let text = nms.warnings()[0].to_string();
    let expected = "no detection in 10 images with decoder yolov8: the best score is 0.125 (class 3), below the threshold 0.25; if \
                    there are objects in them, check `decoder`, `params.thresholds.default`, ";
    assert!(text.starts_with(expected), "{text}");
    // Once an image has had a candidate, later images without candidates are taken for empty
    // scenes.
    nms.set_decoder(None).unwrap();
    nms.params.thresholds.default = 0.1;
    assert_eq!(nms.run(&tensors).unwrap().group(0).survivors.len(), 1);
    let background = [0.0f32; 84 * 100];
    for _ in 0..12 {
        nms.run(&[TensorView::from_slice("yolo-v8-out", &[1, 84, 100], &background)]).unwrap();
    }
    assert_eq!(nms.warnings(), []);
}

#[test]
fn a_zero_point_outside_the_type_is_an_error() {
    let windows = [100i8, 50, 80, 9];
    let tensor = TensorView::from_slice("windows", &[1, 4], &windows);
    for (zero_point, is_valid) in [(-128, true), (127, true), (128, false), (300, false)] {
        let quantization = Quantization::new(0.1, zero_point);
        let result = nms().run(&[tensor.clone().with_quantization(quantization)]).map(|_| ());
        assert_eq!(result.is_ok(), is_valid, "{zero_point}: {result:?}");
        if let Err(error) = result {
            let expected = format!(
                "tensor windows (i8 1x4): the zero point is {zero_point}; expected -128 to 127"
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}
