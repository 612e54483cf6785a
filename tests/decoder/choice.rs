// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which decoder is chosen for which tensors, with the reason, and the errors.

use nmsfilter_core::decoder::{self, BoxFormat, Choice, ChoiceError, Layout, Options, Reason};
use nmsfilter_core::engine::{Job, Params};
use nmsfilter_core::tensor::{ElementType, TensorView};

use crate::support::engines;
use crate::with_zeros;

const FACE_SCORES: &str = "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores";
const FACE_BOXES: &str = "ssd-mobilenet-v1-variant-1-out-boxes";

/// The choice for tensors of zeros with these ids and shapes.
fn choose(tensors: &[(&str, &[usize])], decoder: Option<&str>) -> Result<Choice, ChoiceError> {
    choose_with(tensors, decoder, Options::default())
}

fn choose_with(
    tensors: &[(&str, &[usize])],
    decoder: Option<&str>,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let decoder = decoder.map(|name| decoder::by_name(name).unwrap());
    with_zeros(tensors, |tensors| {
        let choice = decoder::choose(tensors, decoder, options)?;
        // The layout can be run without an index out of bounds.
        engines::fast()
            .run(Job::new(
                tensors,
                &choice.layout,
                &Params::default(),
                &engines::places(&choice.layout),
            ))
            .unwrap()
            .group(0);
        Ok(choice)
    })
}

/// Returns decoder name, anchors, classes and reason.
fn chosen(tensors: &[(&str, &[usize])]) -> (&'static str, usize, usize, Reason) {
    let choice = choose(tensors, None).unwrap_or_else(|error| panic!("{tensors:?}: {error}"));
    (choice.decoder.name(), choice.layout.anchors(), choice.layout.classes, choice.reason)
}

fn message(tensors: &[(&str, &[usize])], decoder: Option<&str>) -> String {
    choose(tensors, decoder).err().expect("no decoder is chosen").to_string()
}

#[test]
fn tensor_ids_determine_the_decoder() {
    use Reason::Id;
    assert_eq!(chosen(&[("windows", &[7, 4])]), ("windows", 7, 1, Id));
    assert_eq!(chosen(&[("yolo-v8-out", &[1, 84, 8400])]), ("yolov8", 8400, 80, Id));
    assert_eq!(chosen(&[("yolo-v8-out", &[1, 8400, 84])]), ("yolov8", 8400, 80, Id));
    assert_eq!(chosen(&[("yolo-v8-out-normalized", &[1, 5, 2100])]), ("yolov8", 2100, 1, Id));
    assert_eq!(chosen(&[("yolo-v5-out", &[1, 25200, 85])]), ("yolov5", 25200, 80, Id));
    let boxes: [(&str, &[usize]); 2] = [("scores", &[9, 3]), ("boxes", &[9, 4])];
    assert_eq!(chosen(&boxes), ("boxes", 9, 3, Id));
    let faces: [(&str, &[usize]); 2] = [(FACE_SCORES, &[1, 9, 2]), (FACE_BOXES, &[1, 9, 4])];
    assert_eq!(chosen(&faces), ("ultraface", 9, 1, Id));
}

/// Returns the decoder whose id contradicts `decoder`, and the tensor with this id.
fn contradicting(tensors: &[(&str, &[usize])], decoder: &str) -> Option<(String, &'static str)> {
    let choice = choose(tensors, Some(decoder)).unwrap();
    with_zeros(tensors, |tensors| {
        let (tensor, other) =
            decoder::misread::contradicting_id(tensors, &choice, Options::default())?;
        Some((tensor.id.to_owned(), other.name()))
    })
}

#[test]
fn an_id_of_another_decoder_contradicts_the_decoder_that_is_set() {
    let yolov5: [(&str, &[usize]); 1] = [("yolo-v5-out", &[1, 100, 85])];
    let expected = ("yolo-v5-out".to_owned(), "yolov5");
    assert_eq!(contradicting(&yolov5, "yolov8"), Some(expected));
    assert_eq!(contradicting(&yolov5, "yolov5"), None);
    assert_eq!(contradicting(&[("output", &[1, 100, 85])], "yolov8"), None);
    // Both decoders read these numbers alike.
    assert_eq!(contradicting(&yolov5, "yolox"), None);
    assert_eq!(contradicting(&[("yolox-out", &[1, 100, 85])], "yolov5"), None);
    // The decoder of the id cannot read this tensor.
    let eighty: [(&str, &[usize]); 1] = [("windows", &[1, 84, 100])];
    assert_eq!(contradicting(&eighty, "yolov8"), Some(("windows".to_owned(), "windows")));
}

#[test]
fn ids_of_boxes_contradict_no_decoder_and_those_of_ultraface_contradict_boxes() {
    let faces =
        |scores, boxes| -> [(&str, &[usize]); 2] { [(scores, &[1, 9, 2]), (boxes, &[1, 9, 4])] };
    assert_eq!(contradicting(&faces("scores", "boxes"), "ultraface"), None);
    let expected = (FACE_BOXES.to_owned(), "ultraface");
    assert_eq!(contradicting(&faces(FACE_SCORES, FACE_BOXES), "boxes"), Some(expected));
}

/// Options that set the number of classes, as the property `num-classes` does.
fn num_classes(num_classes: usize) -> Options {
    Options { num_classes, ..Options::default() }
}

/// Options for a label file with this number of labels.
fn labels(labels: usize) -> Options {
    Options { labels, ..Options::default() }
}

/// Chooses a decoder for one tensor of unknown id. Returns decoder and classes, or the error's
/// text.
fn by_shape(shape: &[usize], options: Options) -> Result<(&'static str, usize), String> {
    let choice =
        choose_with(&[("out", shape)], None, options).map_err(|error| error.to_string())?;
    assert_eq!(choice.reason, Reason::Shape);
    Ok((choice.decoder.name(), choice.layout.classes))
}

/// Asserts that the error for an ambiguous shape contains `parts`.
fn assert_ambiguous(shape: &[usize], options: Options, parts: &[&str]) {
    let text = by_shape(shape, options).expect_err("the shape is ambiguous");
    for part in parts.iter().chain(&["can be read as", "set `decoder` to the right one"]) {
        assert!(text.contains(part), "{shape:?}: expected {part:?} in: {text}");
    }
}

#[test]
fn yolov8_is_chosen_by_shape_if_the_number_of_classes_is_the_known_one() {
    for options in [num_classes(52), labels(52), Options { labels: 9, ..num_classes(52) }] {
        assert_eq!(by_shape(&[1, 56, 8400], options), Ok(("yolov8", 52)));
        assert_eq!(by_shape(&[56, 8400], options), Ok(("yolov8", 52)));
    }
    let parts = ["yolov8 with 52 classes", "(set `options.num_classes = 52` too)"];
    assert_ambiguous(&[1, 56, 8400], num_classes(80), &parts);
    let parts = ["yolov8 with 52 classes", "there are 80 labels"];
    assert_ambiguous(&[1, 56, 8400], labels(80), &parts);
    assert_ambiguous(&[1, 84, 8400], labels(79), &["yolov8 with 80 classes"]);
    assert_ambiguous(&[1, 5, 8400], num_classes(2), &["yolov8 with 1 class"]);
}

#[test]
fn yolov8_is_chosen_by_shape_for_1_or_80_classes_if_no_number_is_known() {
    let unknown = Options::default();
    assert_eq!(by_shape(&[1, 84, 8400], unknown), Ok(("yolov8", 80)));
    assert_eq!(by_shape(&[84, 8400], unknown), Ok(("yolov8", 80)));
    assert_eq!(by_shape(&[1, 5, 2100], unknown), Ok(("yolov8", 1)));
}

#[test]
fn outputs_of_pose_segmentation_and_oriented_box_models_are_ambiguous_by_shape() {
    for rows in [56, 116, 20, 6, 85] {
        let reading = format!("yolov8 with {} classes", rows - 4);
        let parts = [reading.as_str()];
        assert_ambiguous(&[1, rows, 8400], Options::default(), &parts);
    }
}

/// Ultralytics' export with `nms=True` has rows of corners, score and class.
#[test]
fn readings_that_contradict_the_known_number_of_classes_are_left_out() {
    let size = Some([640.0; 2]);
    for shape in
        [&[1, 300, 6][..], &[1, 6, 300], &[300, 6], &[1, 100, 6], &[1, 300, 7], &[1, 300, 38]]
    {
        for known in [num_classes(80), labels(80)] {
            for options in [known, Options { model_size: size, ..known }] {
                let text = by_shape(shape, options).unwrap_err();
                let readings = text.split_once(" can be read as ").map_or("", |(_, rest)| rest);
                let readings = readings.split(';').next().unwrap();
                for (_, number) in
                    readings.match_indices(" with ").map(|(at, _)| (at, &readings[at + 6..]))
                {
                    assert!(number.starts_with("80 ") || number.starts_with("model"), "{text}");
                }
                assert!(text.len() < 6 * 80, "{text}");
            }
        }
    }
    let text = by_shape(&[1, 300, 6], labels(80)).unwrap_err();
    assert_eq!(
        text,
        "the tensors (out (f32 1x300x6)) can be read as end2end or detr-end2end or paddle-nms; set `decoder` to the \
         right one; if it is none of these, describe the tensors in a layout file"
    );
    for shape in [&[1, 7, 7, 3][..], &[1, 9, 9, 9, 9]] {
        let text = by_shape(shape, Options::default()).unwrap_err();
        assert!(text.len() < 6 * 80, "{text}");
    }
}

#[test]
fn a_transposed_output_is_ambiguous_by_shape() {
    // Rows of RT-DETR, MMDetection, end-to-end models, and end-to-end models with an angle.
    for (columns, reading) in [
        (84, "yolov8 with 80 classes"),
        (5, "yolov8 with 1 class"),
        (6, "end2end"),
        (7, "end2end-obb"),
    ] {
        for options in [Options::default(), num_classes(columns - 4), labels(columns - 4)] {
            assert_ambiguous(&[1, 300, columns], options, &[reading]);
        }
    }
}

#[test]
fn windows_and_yolov5_are_never_chosen_by_shape() {
    assert_ambiguous(&[1, 30, 4], Options::default(), &["can be read as windows; set `decoder`"]);
    let text = by_shape(&[1, 25200, 85], Options::default()).unwrap_err();
    assert_eq!(
        text,
        "the tensors (out (f32 1x25200x85)) can be read as yolov5 with 80 classes or yolox with 80 classes or yolox-raw \
         with 80 classes (set `model_size` too); set `decoder` to the right one (yolov5 and yolox read decoded boxes, \
         YOLOX exported with --decode_in_inference; yolox-raw and yolov5-raw read others); if it is none of these, \
         describe the tensors in a layout file"
    );
    for (decoder, anchors, classes) in
        [("yolov5", 25200, 80), ("yolov8", 25200, 81), ("yolox", 25200, 80)]
    {
        let choice = choose(&[("out", &[1, 25200, 85])], Some(decoder)).unwrap();
        assert_eq!((choice.layout.anchors(), choice.layout.classes), (anchors, classes));
    }
}

#[test]
fn boxes_with_scores_are_never_chosen_by_shape() {
    for scores in [&[30][..], &[1, 30], &[30, 1], &[1, 30, 80]] {
        let text = message(&[("a", &[1, 30, 4]), ("b", scores)], None);
        assert!(text.contains("can be read as boxes"), "{text}");
        assert!(choose(&[("a", &[1, 30, 4]), ("b", scores)], Some("boxes")).is_ok());
    }
    let text = message(&[("a", &[1, 9, 2]), ("b", &[1, 9, 4])], None);
    assert!(text.contains("can be read as ultraface or boxes with 2 classes or detr"), "{text}");
}

/// The error suggests only decoders that can be right.
#[test]
fn boxes_with_fewer_scores_do_not_suggest_windows() {
    for scores in [&[90][..], &[1, 90], &[1, 90, 80]] {
        let text = message(&[("a", &[1, 100, 4]), ("b", scores)], None);
        assert!(text.contains("has 100 boxes, tensor b (f32 "), "{text}");
        assert!(text.contains(" has scores for 90; expected one row of scores"), "{text}");
        assert!(!text.contains("windows"), "{text}");
    }
}

#[test]
fn the_error_recognizes_a_classifiers_output() {
    let one_row: [&[usize]; 5] = [&[1, 1000], &[1000], &[1, 1000, 1, 1], &[1, 1, 1001], &[10, 1]];
    for shape in one_row {
        let text = message(&[("out", shape)], None);
        assert!(text.contains("one row of numbers each, as a classifier's output has"), "{text}");
        assert!(!text.contains("detr"), "{text}");
    }
    let text = message(&[("age", &[1, 101]), ("emotion", &[1, 8])], None);
    assert!(text.contains("as a classifier's output has"), "{text}");
    // The tensor could be a detector's output for a single detection.
    for shape in [&[1, 1, 6][..], &[1, 7], &[1, 4]] {
        let text = message(&[("out", shape)], None);
        assert!(text.contains("can be read as"), "{text}");
    }
    let text = message(&[("class", &[1, 1000]), ("box", &[1, 30, 4])], None);
    assert!(!text.contains("as a classifier's output has"), "{text}");
}

/// Only a limited number of assignments is tried. If one of them fits, another one that was not
/// tried could fit, too, so the choice is an error.
#[test]
fn one_fit_among_too_many_assignments_is_an_error() {
    let mut tensors: Vec<(&str, &[usize])> = vec![("other", &[1, 3, 3, 3, 3]); 60];
    tensors[0] = ("a", &[1, 9, 4]);
    tensors[1] = ("b", &[1, 9]);
    let text = message(&tensors, Some("boxes"));
    assert!(text.contains("can be read as boxes in many ways"), "{text}");
    assert_eq!(choose(&tensors[..10], Some("boxes")).unwrap().reason, Reason::Shape);
}

#[test]
fn scores_that_look_like_a_yolov8_output_are_not_read_as_one() {
    // The tensors can be boxes with scores of 8400 classes, and the scores alone have the shape of
    // a YOLOv8 output.
    let pair: [(&str, &[usize]); 2] = [("a", &[1, 84, 4]), ("b", &[1, 84, 8400])];
    let text = message(&pair, None);
    assert!(text.contains("can be read as yolov8 with 80 classes"), "{text}");
}

#[test]
fn an_id_of_boxes_without_the_other_is_an_error() {
    for (id, missing) in [("boxes", "scores"), ("scores", "boxes or boxes-normalized")] {
        let text = message(&[(id, &[1, 30, 4])], None);
        assert!(text.starts_with(&format!("tensor {id} (f32 1x30x4) has an id of decoder boxes")));
        assert!(text.contains(&format!("also needs a tensor with the id {missing};")), "{text}");
    }
    let text = message(&[("boxes", &[1, 30, 4]), ("logits", &[1, 30, 80])], None);
    assert!(text.contains("has an id of decoder boxes"), "{text}");
    let text = message(&[(FACE_SCORES, &[1, 30, 2])], None);
    assert!(text.contains(&format!("id {FACE_BOXES} or ultra-lightweight")), "{text}");
    // An output with another name is still chosen by shape.
    let other: [(&str, &[usize]); 2] = [("scores", &[1, 30]), ("a", &[1, 84, 8400])];
    assert_eq!(chosen(&other).0, "yolov8");
}

#[test]
fn another_number_of_classes_than_num_classes_is_an_error_also_with_an_id_or_a_decoder() {
    let yolov8: [(&str, &[usize]); 1] = [("yolo-v8-out", &[1, 84, 8400])];
    assert_eq!(choose_with(&yolov8, None, num_classes(80)).unwrap().layout.classes, 80);
    for (id, decoder) in [("yolo-v8-out", None), ("out", Some("yolov8"))] {
        let error = choose_with(&[(id, &[1, 84, 8400])], decoder, num_classes(79)).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "tensor {id} (f32 1x84x8400): read by decoder yolov8 it has 80 classes, but \
                 `options.num_classes` is 79; correct `options.num_classes`, or set it to 0 to take what the tensor has, or \
                 if one score is the background's, set `options.background` to first or last"
            )
        );
    }
    let windows: [(&str, &[usize]); 1] = [("windows", &[9, 4])];
    assert!(choose_with(&windows, None, num_classes(2)).is_err());
    let boxes: [(&str, &[usize]); 2] = [("scores", &[9, 3]), ("boxes", &[9, 4])];
    assert!(choose_with(&boxes, None, num_classes(3)).is_ok());
    assert!(choose_with(&boxes, None, num_classes(4)).is_err());
}

#[test]
fn a_label_file_of_another_length_is_no_error_with_an_id_or_a_decoder() {
    for (id, decoder) in [("yolo-v8-out", None), ("out", Some("yolov8"))] {
        let choice = choose_with(&[(id, &[1, 56, 8400])], decoder, labels(80)).unwrap();
        assert_eq!(choice.layout.classes, 52, "all rows beyond the box's are classes");
    }
}

#[test]
fn num_classes_selects_the_tensor_and_the_dimension_of_anchors() {
    let two: [(&str, &[usize]); 2] = [("a", &[1, 116, 300]), ("b", &[1, 84, 300])];
    let choice = choose_with(&two, Some("yolov8"), num_classes(80)).unwrap();
    assert_eq!(choice.layout.groups[0].boxes.tensor, 1);
    // There are fewer anchors than numbers per anchor.
    for (shape, anchors) in [(&[1, 84, 21], 21), (&[1, 21, 84], 21)] {
        let tensor: [(&str, &[usize]); 1] = [("yolo-v8-out", shape)];
        let layout = choose_with(&tensor, None, num_classes(80)).unwrap().layout;
        assert_eq!((layout.anchors(), layout.classes), (anchors, 80), "{shape:?}");
    }
}

#[test]
fn tensors_that_no_decoder_reads_are_ignored() {
    let (embedding, mask): (&[usize], &[usize]) = (&[1, 128, 1, 1], &[1, 32, 160, 160]);
    assert_eq!(
        chosen(&[("a", mask), ("yolo-v8-out", &[1, 84, 2100]), ("c", embedding)]).0,
        "yolov8"
    );
    let choice = choose(&[("a", embedding), ("b", &[1, 84, 2100])], None).unwrap();
    assert_eq!(choice.layout.groups[0].boxes.tensor, 1, "the layout points at the second tensor");
}

#[test]
fn a_decoder_that_fits_several_tensors_is_an_error_that_says_to_set_ids() {
    let text = message(&[("a", &[9, 4]), ("b", &[9, 4])], Some("boxes"));
    assert!(text.contains("boxes in 2 ways; give the tensor that holds the detections an id"));
    let text = message(&[("a", &[1, 84, 210]), ("b", &[1, 84, 420])], None);
    assert!(text.contains("yolov8 in 2 ways; give the tensor"), "{text}");
    let named: [(&str, &[usize]); 2] = [("scores", &[9, 4]), ("boxes", &[9, 4])];
    assert_eq!(chosen(&named), ("boxes", 9, 4, Reason::Id));
}

#[test]
fn a_yolov8_output_is_an_error_with_decoder_yolov5() {
    let text = message(&[("yolo-v8-out", &[1, 84, 8400])], Some("yolov5"));
    assert!(text.contains("decoder yolov5 expects one tensor [1,N,5+C], N >= 5+C"), "{text}");
}

#[test]
fn duplicate_ids_batches_and_missing_tensors_are_errors() {
    let text = message(&[("yolo-v8-out", &[1, 6, 9]), ("yolo-v8-out", &[1, 6, 9])], None);
    assert!(text.contains("two tensors have the id yolo-v8-out"), "{text}");
    let text = message(&[("out", &[4, 84, 8400])], None);
    assert!(text.contains("expected a batch dimension of 1, got 4"), "{text}");
    let text = message(&[], None);
    assert!(text.contains("no tensor fits any decoder"), "{text}");
}

#[test]
fn a_batch_dimension_is_read_only_if_the_option_batch_is_set() {
    type Shapes<'a> = &'a [(&'a str, &'a [usize])];
    let batches: [(Shapes<'_>, &str, usize, usize); 9] = [
        (&[("windows", &[3, 7, 4])], "windows", 7, 1),
        (&[("boxes", &[3, 9, 4]), ("scores", &[3, 9, 5])], "boxes", 9, 5),
        (&[("boxes", &[3, 9, 4]), ("scores", &[3, 9])], "boxes", 9, 1),
        (&[("yolo-v5-out", &[3, 30, 8])], "yolov5", 30, 3),
        (&[("yolox-out", &[3, 30, 8])], "yolox", 30, 3),
        (&[("yolo-v8-out", &[3, 8, 30])], "yolov8", 30, 4),
        (&[("yolo-v8-out", &[3, 30, 8])], "yolov8", 30, 4),
        (&[("out", &[3, 84, 210])], "yolov8", 210, 80),
        (&[(FACE_SCORES, &[3, 9, 2]), (FACE_BOXES, &[3, 9, 4])], "ultraface", 9, 1),
    ];
    let batch = Options { batch: true, ..Options::default() };
    for (tensors, decoder, anchors, classes) in batches {
        let choice = choose_with(tensors, None, batch).unwrap();
        let found_anchors = choice.layout.anchors();
        let Layout { images, classes: found_classes, .. } = choice.layout;
        let found = (choice.decoder.name(), images, found_anchors, found_classes);
        assert_eq!(found, (decoder, 3, anchors, classes), "{tensors:?}");
        let text = message(tensors, None);
        assert!(text.contains("a batch dimension of 1, got 3"), "{tensors:?}: {text}");
    }
    // A single image is read with and without the option.
    for options in [batch, Options::default()] {
        let choice = choose_with(&[("windows", &[1, 7, 4])], None, options).unwrap();
        assert_eq!((choice.layout.images, choice.layout.anchors()), (1, 7));
    }
    // A batch has at least one image.
    let error = choose_with(&[("windows", &[0, 7, 4])], None, batch).err().unwrap().to_string();
    assert!(error.contains("a batch of at least one image, got none"), "{error}");
}

#[test]
fn different_batch_sizes_of_boxes_and_scores_are_an_error_with_both_sizes() {
    let batch = Options { batch: true, ..Options::default() };
    let text = |tensors: &[(&str, &[usize])]| {
        choose_with(tensors, None, batch).err().expect("the sizes differ").to_string()
    };
    assert_eq!(
        text(&[("boxes", &[2, 9, 4]), ("scores", &[3, 9, 5])]),
        "tensor boxes (f32 2x9x4) is a batch of 2, tensor scores (f32 3x9x5) one of 3; \
         expected the same number of images"
    );
    for scores in [&[1, 9, 5][..], &[9, 5], &[9]] {
        let found = text(&[("boxes", &[2, 9, 4]), ("scores", scores)]);
        assert!(found.contains("is a batch of 2") && found.contains("one of 1"), "{found}");
    }
    let found = text(&[(FACE_BOXES, &[2, 9, 4]), (FACE_SCORES, &[3, 9, 2])]);
    assert!(found.contains("is a batch of 3") && found.contains("one of 2"), "{found}");
}

#[test]
fn different_numbers_of_boxes_and_scores_are_an_error_with_both_numbers() {
    let expected = |boxes: &str, scores: &str| {
        format!(
            "tensor {boxes} (f32 9x4) has 9 boxes, tensor {scores} (f32 8x3) has scores for 8; \
             expected one row of scores for each box"
        )
    };
    let text = message(&[("boxes", &[9, 4]), ("scores", &[8, 3])], None);
    assert_eq!(text, expected("boxes", "scores"));
    let text = message(&[("b", &[8, 3]), ("a", &[9, 4])], Some("boxes"));
    assert_eq!(text, expected("a", "b"));
    let text = message(&[("boxes", &[9, 4]), ("scores", &[8])], None);
    assert!(text.contains("tensor scores (f32 8) has scores for 8"), "{text}");
    let text = message(&[(FACE_SCORES, &[1, 8, 2]), (FACE_BOXES, &[1, 9, 4])], None);
    assert!(text.contains("has 8 anchors") && text.contains("has 9;"), "{text}");
}

#[test]
fn boxes_of_another_format_are_an_error_that_says_what_to_set() {
    let text = |boxes: &[usize], box_format| {
        let options = Options { box_format, ..Options::default() };
        let named: [(&str, &[usize]); 2] = [("boxes", boxes), ("scores", &[9])];
        let unnamed: [(&str, &[usize]); 2] = [("a", boxes), ("b", &[9])];
        let text = choose_with(&named, None, options).err().unwrap().to_string();
        let other = choose_with(&unnamed, Some("boxes"), options).err().unwrap().to_string();
        assert_eq!(text.replace("boxes (", "a ("), other);
        text
    };
    assert_eq!(
        text(&[9, 4], BoxFormat::Square),
        "tensor boxes (f32 9x4): `options.box_format = square` needs [N,3], got 4 numbers per box; \
         set `options.box_format` to corners or center"
    );
    assert_eq!(
        text(&[1, 9, 3], BoxFormat::Corners),
        "tensor boxes (f32 1x9x3): `options.box_format = corners` needs [N,4], got 3 numbers per box; \
         set `options.box_format` to square"
    );
}

#[test]
fn integer_tensors_of_unknown_id_are_an_error_with_the_element_type() {
    let mut tensor = TensorView::from_slice::<f32>("out", &[1, 84, 0], &[]);
    tensor.element = ElementType::Other("i8");
    for decoder in [None, decoder::by_name("yolov8")] {
        let error = decoder::choose(&[tensor.clone()], decoder, Options::default()).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("out (i8 1x84x0): expected elements of type f32 or f16"), "{text}");
    }
}

#[test]
fn a_box_has_as_many_components_as_its_format() {
    for (format, numbers) in
        [(BoxFormat::Corners, 4), (BoxFormat::Center, 4), (BoxFormat::Square, 3)]
    {
        let (boxes, scores) = (vec![0.0f32; 9 * numbers], [0.0f32; 9]);
        let tensors = [
            TensorView::from_slice("boxes", &[9, numbers], &boxes),
            TensorView::from_slice("scores", &[9], &scores),
        ];
        let options = Options { box_format: format, ..Options::default() };
        assert_eq!(decoder::choose(&tensors, None, options).unwrap().layout.boxes.format, format);
        let wrong = [TensorView::from_slice("boxes", &[numbers, 9], &boxes), tensors[1].clone()];
        assert!(decoder::choose(&wrong, None, options).is_err(), "{format:?}");
    }
}

#[test]
fn decoders_of_face_detectors_name_their_single_class() {
    for name in ["ultraface", "ultraface-raw", "yunet", "scrfd", "retinaface"] {
        let decoder = decoder::by_name(name).unwrap();
        assert_eq!([0, 1].map(|class| decoder.label(class)), [Some("face"), None], "{name}");
    }
}

#[test]
fn an_error_says_what_ultraface_expects() {
    let error = choose(&[("scores", &[1, 4420, 3])], Some("ultraface")).err().unwrap().to_string();
    let expected = "scores [1,N,2] (background, face) and boxes [1,N,4] (corners, 0 to 1)";
    assert!(error.contains(expected), "{error}");
}
