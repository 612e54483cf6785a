// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about numbers and settings that contradict the way in which tensors are read. Each
//! warning is posted once, within the first second or at the end of a shorter stream. Tensors that
//! are read correctly give no warning.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};
use gstnmsfilter::input::model::{Letterbox, ModelInfo};

use crate::support::engines;
use crate::support::pipeline::{init, intercept, parse, run, watch};
use crate::support::scratch::ScratchFile;

/// Ids of raw outputs, by decoder.
const YOLOV5: &str = "yolo-v5-out";
const YOLOV8: &str = "yolo-v8-out";

/// Number of anchors in the tensors of this file.
const ANCHORS: usize = 100;

/// A box (left, top, right, bottom), its score and its class.
type Object = ([f32; 4], f32, usize);

/// Two objects, in pixels of a frame of 640x480.
const OBJECTS: [Object; 2] =
    [([40.0, 50.0, 140.0, 250.0], 0.9, 0), ([300.0, 200.0, 400.0, 260.0], 0.7, 2)];

/// Converts the objects to fractions of 640x480.
fn normalized(objects: &[Object]) -> Vec<Object> {
    let to_fraction = |&([x1, y1, x2, y2], score, class): &Object| {
        ([x1 / 640.0, y1 / 480.0, x2 / 640.0, y2 / 480.0], score, class)
    };
    objects.iter().map(to_fraction).collect()
}

fn tensor(id: &str, shape: &[usize], elements: Vec<f32>) -> NewTensor {
    init();
    NewTensor::from_vec(id, shape, elements).unwrap()
}

/// Returns the output of a YOLOv8 with this id and number of classes.
fn yolov8(id: &str, classes: usize, objects: &[Object]) -> NewTensor {
    let mut elements = vec![0.0; (4 + classes) * ANCHORS];
    for (anchor, &([x1, y1, x2, y2], score, class)) in objects.iter().enumerate() {
        let numbers = [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1];
        for (row, number) in numbers.into_iter().enumerate() {
            elements[row * ANCHORS + anchor] = number;
        }
        elements[(4 + class) * ANCHORS + anchor] = score;
    }
    tensor(id, &[1, 4 + classes, ANCHORS], elements)
}

/// Returns the output of a YOLOv5 or YOLOX with this id and 80 classes.
fn yolov5(id: &str, objects: &[Object]) -> NewTensor {
    let mut elements = vec![0.0; 85 * ANCHORS];
    for (row, &([x1, y1, x2, y2], score, class)) in elements.chunks_mut(85).zip(objects) {
        let numbers = [(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1, score];
        row[..5].copy_from_slice(&numbers);
        row[5 + class] = 1.0;
    }
    tensor(id, &[1, ANCHORS, 85], elements)
}

/// Returns corners, and scores of one class, with these ids.
fn boxes(ids: [&str; 2], objects: &[Object]) -> Vec<NewTensor> {
    let edges = objects.iter().flat_map(|(edges, ..)| *edges).collect();
    let scores = objects.iter().map(|(_, score, _)| *score).collect();
    let count = objects.len();
    vec![tensor(ids[0], &[count, 4], edges), tensor(ids[1], &[count], scores)]
}

/// Returns scores of background and face, and boxes from 0 to 1.
fn ultraface(ids: [&str; 2], objects: &[Object]) -> Vec<NewTensor> {
    let mut scores = [1.0, 0.0].repeat(ANCHORS);
    let mut edges = [0.2, 0.2, 0.3, 0.3].repeat(ANCHORS);
    for (anchor, (object, score, _)) in objects.iter().enumerate() {
        edges[anchor * 4..][..4].copy_from_slice(object);
        scores[anchor * 2..][..2].copy_from_slice(&[1.0 - score, *score]);
    }
    vec![tensor(ids[0], &[1, ANCHORS, 2], scores), tensor(ids[1], &[1, ANCHORS, 4], edges)]
}

const ULTRAFACE: [&str; 2] = [
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
    "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes",
];

/// Runs `frames` frames of 640x480 at ten frames per second. Returns the warnings, each with the
/// number of frames that had left the element when it was posted.
fn stream(frames: usize, properties: &str, tensors: Vec<NewTensor>) -> Vec<(usize, String)> {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={frames} ! video/x-raw,width=640,height=480,framerate=10/1
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let passed = watch(&pipeline, "nms", |_| ());
    let posted = Arc::new(Mutex::new(Vec::new()));
    pipeline.bus().unwrap().set_sync_handler({
        let posted = posted.clone();
        move |_, message| {
            if let gst::MessageView::Warning(warning) = message.view() {
                let text = warning.error().to_string();
                posted.lock().unwrap().push((passed.lock().unwrap().len(), text));
            }
            gst::BusSyncReply::Pass
        }
    });
    let ended = run(&pipeline);
    pipeline.bus().unwrap().unset_sync_handler();
    assert_eq!(ended.error, None, "{properties}");
    std::mem::take(&mut *posted.lock().unwrap())
}

/// Asserts that a single picture and a stream of three seconds give these warnings, each once, and
/// within the first second of the stream. Each warning contains the corresponding item of `texts`.
fn assert_warns(properties: &str, tensors: &[NewTensor], texts: &[&str]) {
    for frames in [1, 30] {
        let posted = stream(frames, properties, tensors.to_vec());
        assert_eq!(posted.len(), texts.len(), "{properties}, {frames} frames: {posted:?}");
        for ((passed, warning), text) in posted.iter().zip(texts) {
            assert!(warning.contains(text), "{properties}: expected {text:?} in: {warning}");
            assert!(*passed <= 10, "{properties}: {passed} frames before: {warning}");
        }
    }
}

/// Asserts that nothing is found in a single picture, or in streams of three and twelve seconds,
/// and that each of them gives one warning with this text: after ten seconds, or at an earlier end.
fn assert_silent(properties: &str, tensors: &[NewTensor], text: &str) {
    for (frames, count) in [(1, "1 image"), (30, "30 images"), (120, "101 images")] {
        let posted = stream(frames, properties, tensors.to_vec());
        let [(passed, warning)] = &posted[..] else { panic!("{properties}: {posted:?}") };
        assert!(
            warning.starts_with(&format!("no detection in {count} with decoder ")),
            "{properties}: {warning}"
        );
        assert!(warning.contains(text), "{properties}: expected {text:?} in: {warning}");
        assert_eq!(*passed, frames.min(100), "{properties}: {warning}");
    }
}

/// Returns the error for a picture with these tensors.
fn error(properties: &str, tensors: Vec<NewTensor>) -> String {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    run(&pipeline).error().to_owned()
}

/// Returns a label file with this number of labels.
fn labels(count: usize) -> ScratchFile {
    let lines: String = (0..count).map(|class| format!("label {class}\n")).collect();
    ScratchFile::new("txt", lines.as_bytes())
}

#[test]
fn tensors_that_are_read_correctly_give_no_warning() {
    for tensor in
        [yolov8(YOLOV8, 80, &OBJECTS), yolov5(YOLOV5, &OBJECTS), yolov5("yolox-out", &OBJECTS)]
    {
        assert_warns("", &[tensor], &[]);
    }
    let ends_in_normalized = yolov8("yolo-v8-out-normalized", 80, &normalized(&OBJECTS));
    assert_warns("", &[ends_in_normalized], &[]);
    assert_warns("", &boxes(["boxes", "scores"], &OBJECTS), &[]);
    assert_warns("", &ultraface(ULTRAFACE, &normalized(&OBJECTS)), &[]);
    assert_warns("decoder=ultraface", &ultraface(["scores", "boxes"], &normalized(&OBJECTS)), &[]);
}

#[test]
fn unusual_scenes_give_no_warning() {
    for objects in [
        // There is one small object: in the upper left corner, in the middle, or in the opposite
        // corner.
        &[([0.0, 0.0, 4.0, 5.0], 0.9, 0)][..],
        &[([300.0, 300.0, 301.0, 301.0], 0.9, 0)],
        &[([639.0, 479.0, 640.0, 480.0], 0.9, 0)],
        // Objects are partly outside of the frame.
        &[([-30.0, -30.0, 5.0, 5.0], 0.9, 0), ([600.0, 400.0, 900.0, 900.0], 0.9, 1)],
        &[([200.0, 300.0, 500.0, 1700.0], 0.9, 0)],
        // The object is as large as the frame.
        &[([0.0, 0.0, 640.0, 480.0], 1.0, 0)],
        // Only one of several objects is outside of the frame.
        &[OBJECTS[0], OBJECTS[1], ([700.0, 500.0, 800.0, 600.0], 0.9, 1)],
    ] {
        assert_warns("", &[yolov8(YOLOV8, 80, objects)], &[]);
        assert_warns("", &[yolov5(YOLOV5, objects)], &[]);
        assert_warns("", &boxes(["boxes", "scores"], objects), &[]);
    }
}

/// The warning contains the best score, which tells users if the scene is empty or the reading
/// wrong.
#[test]
fn streams_in_which_nothing_is_found_give_a_warning() {
    let below = [([40.0, 50.0, 140.0, 250.0], 0.125, 3)];
    let empty = "the best score is 0.125 (class 3), below the threshold 0.25; if there are objects in \
                 them, check decoder, score-threshold";
    assert_silent("", &[yolov8(YOLOV8, 80, &below)], empty);
    let no_box = "none of the 100 anchors has a box; if there are objects";
    assert_silent("", &[yolov5(YOLOV5, &[])], no_box);
    let size = "the size limits exclude 2 boxes with scores up to 0.9; the best one has 100x200 pixels of the \
                model's input; correct min-size, max-size or class-sizes";
    assert_silent("max-size=20", &[yolov8(YOLOV8, 80, &OBJECTS)], size);
    assert_silent("class-sizes=0:..20x20,2:..20x20", &[yolov8(YOLOV8, 80, &OBJECTS)], size);
    // The zero point of this i8 tensor has lost its sign, so each score is below 0.
    let bytes: Vec<i8> = vec![-128; 84 * ANCHORS];
    init();
    let quantized = NewTensor::from_vec("output0", &[1, 84, ANCHORS], bytes).unwrap();
    let properties = "decoder=yolov8 quantization=output0:0.00390625:127";
    let posted = stream(1, properties, vec![quantized]);
    assert_eq!(posted.len(), 1, "{posted:?}");
    // Empty lists have no anchors.
    assert_warns("", &[tensor("windows", &[0, 4], vec![])], &[]);
}

#[test]
fn properties_without_effect_give_a_warning() {
    let tensors = [yolov8(YOLOV8, 80, &OBJECTS)];
    let format = "box-format has no effect: the boxes of decoder yolov8 have a fixed format; unset box-format";
    assert_warns("box-format=center", &tensors, &[format]);
    assert_warns(
        "unique-id=7",
        &tensors,
        &["unique-id=7 has no effect: it selects tensors of DeepStream"],
    );
    assert_warns("attach=0", &tensors, &["attach=0 attaches no detection to a buffer"]);
    // The decoder `boxes` obeys box-format, so there is no warning.
    let centers = [([10.0, 10.0, 200.0, 200.0], 0.9, 0)];
    assert_warns("box-format=center", &boxes(["boxes", "scores"], &centers), &[]);
}

#[test]
fn crowdtestsrc_gives_no_warning() {
    for (turn, decoder) in ["windows", "yolov5", "yolov8"].into_iter().enumerate() {
        // There are more people than by default, so that most anchors of YOLOv8 have a window.
        for (number, people) in [(1, 0), (0, 200)] {
            if !engines::runs_combination(turn + number) {
                continue;
            }
            let pipeline = parse(&format!(
                "crowdtestsrc decoder={decoder} people={people} num-buffers=40
                   ! video/x-raw,framerate=30/1,width=640,height=480 ! nmsfilter max-detections=0 ! fakesink"
            ));
            let ended = run(&pipeline);
            assert_eq!((ended.error, ended.warnings), (None, vec![]), "{decoder}");
        }
    }
}

/// Returns boxes, classes, scores and their number, with the ids of GStreamer's `ssdtensordec`.
fn ssd(class: f32) -> Vec<NewTensor> {
    let id = |name: &str| format!("ssd-mobilenet-v1-variant-1-out-{name}");
    vec![
        tensor(&id("boxes"), &[1, 1, 4], vec![0.2, 0.1, 0.8, 0.4]),
        tensor(&id("classes"), &[1, 1], vec![class]),
        tensor(&id("scores"), &[1, 1], vec![0.9]),
        tensor("generic-variant-1-out-count", &[1], vec![1.0]),
    ]
}

#[test]
fn classes_of_ssd_begin_with_1_and_have_no_background() {
    let file = |text: &str| ScratchFile::new("txt", text.as_bytes());
    let (right, background) = (file("person\nbicycle\n"), file("???\nperson\nbicycle\n"));
    let with = |file: &ScratchFile| format!("label-file={}", file.display());
    assert_warns(&with(&right), &ssd(1.0), &[]);
    let expected = "the first label of the label file is \"???\", but decoder ssd-postprocess has no class for the \
                    background: its first class is 1, so each label is that of another class; remove the first label";
    assert_warns(&with(&background), &ssd(1.0), &[expected]);
    let expected = "a box has class 0, but classes of decoder ssd-postprocess begin with 1";
    assert_warns(&with(&right), &ssd(0.0), &[expected]);
    // With two classes, the numbers are 1 and 2.
    assert_warns(&format!("{} num-classes=2", with(&right)), &ssd(2.0), &[]);
}

#[test]
fn different_numbers_of_labels_and_classes_give_a_warning() {
    let tensor = [yolov8(YOLOV8, 80, &OBJECTS)];
    for count in [91, 2, 79] {
        let file = labels(count);
        let property = format!("label-file={}", file.display());
        let text = format!(
            "the label file has {count} labels, but decoder yolov8 reads 80 classes, so labels are probably \
             wrong; {}",
            match count {
                79 =>
                    "if one of the classes is the background, set background=first or background=last",
                _ => "set label-file",
            }
        );
        assert_warns(&property, &tensor, &[&text]);
    }
    let (all, two) = (labels(80), labels(2));
    assert_warns(&format!("label-file={}", all.display()), &tensor, &[]);
    // Every class that can be detected has a label.
    assert_warns(&format!("label-file={} classes=0,1", two.display()), &tensor, &[]);
    let info =
        ModelInfo { labels: vec!["x".to_owned(); 91], ..ModelInfo::default() }.to_caps().unwrap();
    let [tensor] = tensor.map(|tensor| tensor.with_model(info.clone()));
    assert_warns("", &[tensor], &["the tensors' model has 91 labels, but decoder yolov8 reads 80"]);
}

/// End-to-end rows with COCO's numbers from 1 to 90, of which a person comes first and a toothbrush later.
#[test]
fn a_class_number_beyond_the_labels_gives_a_warning() {
    let rows = |class: f32| {
        let row = [100.0, 100.0, 200.0, 300.0, 0.9, class];
        tensor("output0", &[1, 1, 6], row.to_vec())
    };
    let file = labels(80);
    let warnings = |last: f32, properties: &str| {
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=40 ! video/x-raw,width=640,height=480,framerate=10/1
               ! nmsfilter decoder=end2end {properties} ! fakesink"
        ));
        let [person, other] = [1.0, last].map(rows);
        intercept(&pipeline, "in", move |buffer| {
            attach(buffer, if buffer.offset() == 35 { &other } else { &person }).unwrap();
        });
        run(&pipeline).warnings
    };
    let labels = format!("label-file={}", file.display());
    assert_eq!(warnings(79.0, &labels), [""; 0]);
    assert_eq!(warnings(90.0, ""), [""; 0]);
    let found = warnings(90.0, &labels);
    let [text] = &found[..] else { panic!("one warning, got {found:?}") };
    let expected = "a box has class 90, but there are 80 labels, for classes 0 to 79, so labels are probably those of \
                    other classes; check label-file";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn normalized_boxes_that_are_read_as_pixels_give_a_warning() {
    let objects = normalized(&OBJECTS);
    let text = "all 2 boxes are within the first pixel of the model's input of 640x480, so they are probably \
                normalized; set coordinates=normalized: auto is the unit of the decoder's models and does not look at the \
                numbers";
    let many = "boxes are within the first pixel";
    for tensors in [
        vec![yolov8(YOLOV8, 80, &objects)],
        vec![yolov5(YOLOV5, &objects)],
        boxes(["boxes", "scores"], &objects),
    ] {
        assert_eq!(stream(1, "", tensors.clone()), [(1, text.to_owned())]);
        assert_warns("", &tensors, &[many]);
        assert_warns("coordinates=normalized", &tensors, &[]);
    }
    let faces = ultraface(ULTRAFACE, &objects);
    assert_warns("coordinates=pixels", &faces, &[many]);
}

/// Forty anchors at four objects, as a detector has them. With a letterbox, the boxes are outside of the frame.
#[test]
fn normalized_boxes_are_noticed_in_the_first_frame() {
    let object = |index: usize| {
        let (left, top) = (40.0 + 140.0 * (index / 10) as f32, 100.0 + (index % 10) as f32);
        ([left, top, left + 90.0, top + 120.0], 0.9, 0)
    };
    let objects: Vec<Object> = (0..40).map(object).collect();
    let tensor = yolov8(YOLOV8, 80, &normalized(&objects));
    for properties in ["", "model-width=640 model-height=640 letterbox=center"] {
        let [(frame, text)] = &stream(5, properties, vec![tensor.clone()])[..] else {
            panic!("{properties}: one warning")
        };
        assert_eq!(*frame, 0, "no frame has passed: {properties}: {text}");
        assert!(text.contains("set coordinates=normalized"), "{properties}: {text}");
    }
}

#[test]
fn offsets_of_grid_cells_that_are_read_as_pixels_give_a_warning() {
    // YOLOX outputs such numbers before its decode step: offsets, and logarithms of sides.
    let raw: Vec<Object> = (0..5).map(|i| ([i as f32, 1.0, i as f32 + 0.9, 3.0], 0.8, 0)).collect();
    let text = "boxes are in the upper left corner of the model's input of 640x480: their numbers are not pixels; \
                check decoder and coordinates";
    assert_warns("decoder=yolox", &[yolov5("output", &raw)], &[text]);
    // As normalized coordinates, they are around the whole frame.
    let raw: Vec<Object> =
        (0..5).map(|i| ([-0.3, -0.2, 1.3, 1.1 + 0.1 * i as f32], 0.8, i)).collect();
    let text = "boxes reach beyond the model's input by more than a tenth of its size; coordinates are read as \
                normalized: set coordinates=pixels";
    assert_warns("decoder=yolox coordinates=normalized", &[yolov5("output", &raw)], &[text]);
    let exact: Vec<Object> = (0..5).map(|i| ([-0.05, 0.0, 1.0, 1.05], 0.8, i)).collect();
    assert_warns("decoder=yolox coordinates=normalized", &[yolov5("output", &exact)], &[]);
}

#[test]
fn pixels_that_are_read_as_normalized_give_a_warning() {
    let text = "anchors rejected: 2, candidates: 0; most numbers are not boxes, or their boxes are outside the frame; \
                coordinates are read as normalized: set coordinates=pixels";
    let tensors = [yolov8(YOLOV8, 80, &OBJECTS)];
    assert_eq!(stream(1, "coordinates=normalized", tensors.to_vec()).len(), 1);
    assert!(stream(1, "coordinates=normalized", tensors.to_vec())[0].1.starts_with(text));
    assert_warns("coordinates=normalized", &tensors, &["set coordinates=pixels"]);
    // Boxes at the upper left corner are larger than the frame, so they are not rejected.
    let at_corner = [([0.0, 0.0, 140.0, 250.0], 0.9, 0)];
    let text = "1 of 1 boxes are many times larger than the model's input of 640x480; coordinates are read as";
    let posted = stream(1, "coordinates=normalized", vec![yolov8(YOLOV8, 80, &at_corner)]);
    assert!(posted.len() == 1 && posted[0].1.starts_with(text), "{posted:?}");
}

#[test]
fn faces_of_ultraface_that_are_read_by_decoder_boxes_give_a_warning() {
    let unknown = ultraface(["onnx/scores", "onnx/boxes"], &normalized(&OBJECTS));
    assert_warns("decoder=boxes", &unknown, &["set coordinates=normalized"]);
    // With a letterbox, the corner is outside of the frame.
    let letterbox = "decoder=boxes letterbox=center model-width=640 model-height=640";
    assert_warns(letterbox, &unknown, &["anchors are rejected: their numbers are NaN or"]);
    let known = ultraface(ULTRAFACE, &normalized(&OBJECTS));
    let id = "whose id belongs to decoder ultraface; unset decoder";
    assert_warns("decoder=boxes", &known, &[id, "set coordinates=normalized"]);
}

/// The exports of UltraFace with and without offsets have equal names and shapes.
#[test]
fn corners_that_are_read_as_offsets_give_a_warning() {
    // As many anchors as an input of 320 x 240 has.
    let text = "4419 of 4419 boxes in tensor onnx/boxes (f32 1x4420x4) are corners, but decoder ultraface-raw reads offsets";
    for (row, texts) in [([0.2, 0.1, 0.5, 0.4], &[text][..]), ([0.2, 0.1, -0.5, 0.4], &[])] {
        let scores = tensor("onnx/scores", &[1, 4420, 2], [0.9, 0.1].repeat(4420));
        let mut edges = row.repeat(4420);
        edges[..4].fill(0.0);
        let tensors = [scores, tensor("onnx/boxes", &[1, 4420, 4], edges)];
        let size = "decoder=ultraface-raw model-width=320 model-height=240 score-threshold=0.95";
        let posted = stream(1, size, tensors.to_vec());
        let texts_found = posted.iter().filter(|(_, it)| it.contains("boxes in tensor")).count();
        assert_eq!(texts_found, texts.len(), "{posted:?}");
        assert!(texts.iter().all(|text| posted[0].1.contains(text)), "{posted:?}");
    }
}

/// Sigmoid of a probability is at least 0.5.
#[test]
fn probabilities_that_are_read_as_logits_give_a_warning() {
    for (least, count) in [(0.1, 1), (-4.0, 0)] {
        let mut logits = vec![least; 300];
        logits[4] = 0.9;
        let tensors = [
            tensor("onnx/logits", &[1, 100, 3], logits),
            tensor("onnx/pred_boxes", &[1, 100, 4], vec![0.5; 400]),
        ];
        let posted = stream(1, "decoder=detr num-classes=3", tensors.to_vec());
        let text = "all scores in tensor onnx/logits (f32 1x100x3) are from 0 to 1, but decoder detr takes them for \
                    logits, so scores are wrong; set score-activation=none";
        assert_eq!(posted.iter().filter(|(_, it)| it == text).count(), count, "{posted:?}");
    }
}

/// Where the boxes are correct, the background's scores are taken for scores of class 0.
#[test]
fn background_scores_that_are_read_as_class_scores_give_a_warning() {
    let mut tensors = ultraface(["onnx/scores", "onnx/boxes"], &[]);
    for tensor in &mut tensors {
        let columns = tensor.shape[2];
        let row = if columns == 2 { [0.9, 0.1].as_slice() } else { &[0.2, 0.2, 0.3, 0.3] };
        *tensor = self::tensor(&tensor.id, &[1, 1000, columns], row.repeat(1000));
    }
    let text = "boxes reach the threshold: if the first of the two scores is the background's, set decoder=ultraface";
    assert_warns("decoder=boxes coordinates=normalized", &tensors, &[text]);
}

/// Rows of `[1,N,7]` have the angle last. A whole turn in radians contradicts nothing.
#[test]
fn angles_in_degrees_give_a_warning() {
    let rows = |angles: [f32; 2]| {
        let row = |x: f32, angle: f32| [x, 200.0, 80.0, 30.0, 0.9, 1.0, angle];
        let rows = [row(100.0, angles[0]), row(300.0, angles[1])].concat();
        vec![tensor("output", &[1, 2, 7], rows)]
    };
    let properties = "decoder=end2end-obb num-classes=3";
    assert_warns(properties, &rows([0.5, std::f32::consts::TAU]), &[]);
    let text = "an oriented box has an angle of 88 radians, so angles are probably degrees";
    assert_warns(properties, &rows([12.0, -88.0]), &[text]);
}

/// Farther from the box than a quarter of its size.
#[test]
fn points_on_any_side_of_their_box_give_a_warning() {
    let row = |[x, y]: [f32; 2]| {
        let row = vec![100.0, 200.0, 180.0, 280.0, 0.9, 0.0, x, y, x, y];
        vec![tensor("output", &[1, 1, 10], row)]
    };
    let properties = "decoder=end2end-pose keypoint-shape=2x2";
    for point in [[80.0, 240.0], [200.0, 240.0], [140.0, 180.0], [140.0, 300.0]] {
        assert_warns(properties, &row(point), &[]);
    }
    for point in [[79.0, 240.0], [201.0, 240.0], [140.0, 179.0], [140.0, 301.0]] {
        assert_warns(properties, &row(point), &["keypoints are far from their boxes"]);
    }
}

#[test]
fn numbers_that_are_nan_give_a_warning() {
    let text = "anchors are rejected: their numbers are NaN or infinite";
    for (properties, tensor) in [
        ("", tensor(YOLOV8, &[1, 84, ANCHORS], vec![f32::NAN; 84 * ANCHORS])),
        ("multi-label=true", tensor(YOLOV8, &[1, 84, ANCHORS], vec![f32::NAN; 84 * ANCHORS])),
        ("", tensor(YOLOV5, &[1, ANCHORS, 85], vec![f32::NAN; 85 * ANCHORS])),
        ("", tensor("windows", &[ANCHORS, 4], vec![f32::NAN; 4 * ANCHORS])),
    ] {
        assert_warns(properties, &[tensor], &[text]);
    }
}

#[test]
fn scores_that_are_not_probabilities_give_a_warning() {
    let objects = [(OBJECTS[0].0, 4.59, 0), OBJECTS[1]];
    for (decoder, tensor) in [
        ("yolov8", yolov8(YOLOV8, 80, &objects)),
        ("yolov5", yolov5(YOLOV5, &objects)),
        ("yolox", yolov5("yolox-out", &objects)),
    ] {
        let text = format!(
            "a score is 4.59, but scores of decoder {decoder} are probabilities from 0 to 1, so the tensors belong \
             to another model family"
        );
        assert_warns("", &[tensor], &[&text]);
    }
    let boxes = boxes(["boxes", "scores"], &objects);
    assert_warns(
        "",
        &boxes,
        &["a score is 4.59, and score-threshold is 0.25: scores above 1 are not"],
    );
    assert_warns("score-threshold=2", &boxes, &[]);
    let windows = tensor("windows", &[1, 4], vec![40.0, 50.0, 60.0, 459.0]);
    assert_warns("", &[windows], &[]);
}

#[test]
fn an_end_to_end_output_that_is_read_by_another_decoder_gives_a_warning() {
    // Rows of x1, y1, x2, y2, score, class: a bus and a person.
    let mut rows = [0.0; 6].repeat(300);
    rows[..6].copy_from_slice(&[40.0, 50.0, 340.0, 250.0, 0.9, 5.0]);
    rows[6..12].copy_from_slice(&[300.0, 200.0, 400.0, 460.0, 0.8, 0.0]);
    let output = [tensor("onnx/output0", &[1, 300, 6], rows)];
    let six = "set decoder=end2end, or num-classes=";
    assert_warns("decoder=yolov5", &output, &[six, "a score is 4.5, but scores of decoder yolov5"]);
    assert_warns("decoder=yolov8", &output, &[six, "a score is 5, but scores of decoder yolov8"]);
    // A single label fits a wrong reading of 57 numbers, too: 1 class, and 26 points of two numbers.
    let mut rows = [0.0; 57].repeat(300);
    rows[..5].copy_from_slice(&[40.0, 50.0, 340.0, 250.0, 0.9]);
    let output = [tensor("onnx/output0", &[1, 300, 57], rows)];
    let labels = labels(1);
    let properties = format!("decoder=yolov8-pose label-file={}", labels.display());
    assert_warns(&properties, &output, &["set decoder=end2end-pose, or num-classes=1 if"]);
    assert_warns(&format!("{properties} num-classes=1"), &output, &[]);
}

#[test]
fn a_decoder_that_contradicts_the_id_of_the_tensor_gives_a_warning() {
    let rows = yolov5(YOLOV5, &OBJECTS);
    let text = "decoder yolov8 reads the tensor yolo-v5-out (f32 1x100x85), whose id belongs to decoder yolov5; \
                unset decoder, or correct the tensor's id";
    assert_warns("decoder=yolov8", std::slice::from_ref(&rows), &[text]);
    assert_warns("decoder=yolov5", std::slice::from_ref(&rows), &[]);
    // Both decoders read these numbers alike.
    assert_warns("decoder=yolox", &[rows], &[]);
    assert_warns("decoder=yolov5", &[yolov5("yolox-out", &OBJECTS)], &[]);
    assert_warns("decoder=yolov5", &[yolov5("output", &OBJECTS)], &[]);
}

#[test]
fn a_letterbox_or_size_that_contradicts_the_model_gives_a_warning() {
    let info = ModelInfo {
        size: Some([640, 640]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    let with_model =
        |info: &ModelInfo| [yolov8(YOLOV8, 80, &OBJECTS).with_model(info.to_caps().unwrap())];
    let tensors = with_model(&info);
    for letterbox in ["none", "top-left"] {
        let text = format!(
            "letterbox={letterbox}, but the tensors' model has letterbox center, so boxes are displaced; set \
             letterbox=auto"
        );
        assert_warns(&format!("letterbox={letterbox}"), &tensors, &[&text]);
    }
    assert_warns("letterbox=center model-width=640 model-height=640", &tensors, &[]);
    let text = "model-width=320 and model-height=320, but the tensors' model has an input of 640x640, so boxes \
                are displaced; set both to 0";
    assert_warns("model-width=320 model-height=320", &tensors, &[text]);
    // If the frame has the shape of the input, the letterbox has no borders.
    let same_shape = with_model(&ModelInfo { size: Some([320, 240]), ..info.clone() });
    assert_warns("letterbox=none", &same_shape, &[]);
    // Fractions of the whole frame do not depend on the size.
    let stretched = with_model(&ModelInfo { letterbox: Some(Letterbox::None), ..info });
    let [stretched] = stretched.map(|mut tensor| {
        tensor.data = yolov8(YOLOV8, 80, &normalized(&OBJECTS)).data;
        tensor
    });
    let size = "coordinates=normalized model-width=320 model-height=320";
    assert_warns(size, &[stretched], &[]);
}

#[test]
fn thresholds_that_no_score_reaches_give_a_warning() {
    let tensors = [yolov8(YOLOV8, 80, &OBJECTS)];
    let text = "score-threshold is 50 or more, but scores of decoder yolov8 are probabilities from 0 to 1, so \
                nothing is detected; set it to less than 1, such as 0.5";
    assert_warns("score-threshold=50", &tensors, &[text]);
    let silence = |threshold: f32| {
        format!("the best score is 0.9 (class 0), below the threshold {threshold}; if there are")
    };
    assert_silent("score-threshold=1", &tensors, &silence(1.0));
    // The class thresholds exclude all other classes on purpose.
    assert_warns("score-threshold=50 class-thresholds=0:0.5", &tensors, &[]);
    let both = "the least of score-threshold and class-thresholds is 1.5 or more";
    assert_warns("score-threshold=50 class-thresholds=0:1.5", &tensors, &[both]);
    let boxes_and_scores = boxes(["boxes", "scores"], &OBJECTS);
    assert_silent(
        "score-threshold=50",
        &boxes_and_scores,
        "the best score is 0.9 (class 0), below the threshold 50;",
    );
    let windows = tensor("windows", &[1, 4], vec![40.0, 50.0, 60.0, 459.0]);
    assert_warns("score-threshold=50", &[windows], &[]);
    let text = "classes=80,91 has none of the 80 classes (0 to 79) that decoder yolov8 reads";
    assert_warns("classes=80,91", &tensors, &[text]);
    let excluded = "the best score is 0.9, of class 0, which is excluded";
    assert_silent("classes=79,91", &tensors, excluded);
}

/// Returns rows of six numbers, as from an end-to-end model: corners, score and class.
fn six_columns(id: &str, anchors: usize, objects: &[Object]) -> NewTensor {
    let mut elements = vec![0.0; 6 * anchors];
    for (row, &(edges, score, class)) in elements.chunks_mut(6).zip(objects) {
        row[..4].copy_from_slice(&edges);
        row[4..].copy_from_slice(&[score, class as f32]);
    }
    tensor(id, &[1, anchors, 6], elements)
}

#[test]
fn rows_of_six_numbers_that_are_not_confirmed_are_warned_of_at_once() {
    for anchors in [300, 8400] {
        let none = [six_columns("output0", anchors, &[])];
        for (decoder, classes) in
            [("yolov8", "2 classes"), ("yolov5", "1 class"), ("yolox", "1 class")]
        {
            let text = format!(
                "decoder {decoder} reads rows of six numbers in tensor output0 (f32 1x{anchors}x6) as a box and \
                 {classes}, but six numbers are usually a box, a score and a class; set decoder=end2end, or num-classes="
            );
            // The warning comes with the first frame, even if it has no objects.
            let posted = stream(1, &format!("decoder={decoder}"), none.to_vec());
            let [(0, warning)] = &posted[..] else { panic!("{posted:?}") };
            assert!(warning.contains(&text), "{warning}");
            let count = classes.split(' ').next().unwrap();
            let no_box = "anchors has a box";
            assert_silent(&format!("decoder={decoder} num-classes={count}"), &none, no_box);
            let file = labels(count.parse().unwrap());
            let properties = format!("decoder={decoder} label-file={}", file.display());
            assert_silent(&properties, &none, no_box);
        }
    }
    let known = [six_columns("yolo-v5-out", 300, &[])];
    assert_silent("", &known, "none of the 300 anchors has a box");
}

#[test]
fn a_model_of_another_family_is_an_error_that_names_its_decoder() {
    init();
    let rows = tensor("onnx/output0", &[1, 300, 6], vec![0.0; 1800]);
    let expected = "they are of a pose model (task pose): set decoder=yolov8-pose";
    let pose =
        ModelInfo { task: Some("pose".to_owned()), ..ModelInfo::default() }.to_caps().unwrap();
    let tensor = rows.clone().with_model(pose);
    let message = error("", vec![tensor.clone()]);
    let tensors = "the tensors (onnx/output0 (f32 1x300x6)) cannot be decoded: ";
    assert!(message.starts_with(&format!("{tensors}{expected}")), "{message}");
    // If the decoder is set, it is used, with a warning.
    let warning = format!("decoder yolov5 reads the tensors, but {expected}");
    assert_warns("decoder=yolov5", &[tensor], &[&warning]);
    let detect =
        ModelInfo { task: Some("detect".to_owned()), end2end: true, ..ModelInfo::default() }
            .to_caps()
            .unwrap();
    let message = error("", vec![rows.with_model(detect)]);
    assert!(message.contains("set decoder to the right one"), "{message}");
    // The shape would be enough if there were no metadata.
    let segment =
        ModelInfo { task: Some("segment".to_owned()), ..ModelInfo::default() }.to_caps().unwrap();
    let output = yolov8("onnx/output0", 80, &OBJECTS);
    assert_warns("", std::slice::from_ref(&output), &[]);
    let message = error("", vec![output.with_model(segment)]);
    assert!(message.contains("a segmentation model (task segment)"), "{message}");
}

/// Objects that appear later are judged, too: the second of stream time begins with the first of
/// them.
#[test]
fn the_first_second_begins_with_the_first_object() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=60 ! video/x-raw,width=640,height=480,framerate=10/1
           ! nmsfilter name=nms ! fakesink",
    );
    let [empty, wrong] = [vec![], normalized(&OBJECTS)].map(|objects| yolov8(YOLOV8, 80, &objects));
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, if buffer.offset() < 40 { &empty } else { &wrong }).unwrap();
    });
    let ended = run(&pipeline);
    let [warning] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    assert!(warning.contains("set coordinates=normalized"), "{warning}");
}

#[test]
fn a_property_that_is_corrected_within_a_second_prevents_the_warning() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=30 ! video/x-raw,width=640,height=480,framerate=10/1
           ! nmsfilter name=nms ! fakesink",
    );
    let nms = pipeline.by_name("nms").unwrap();
    let tensor = yolov8(YOLOV8, 80, &normalized(&OBJECTS));
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, &tensor).unwrap();
        if buffer.offset() == 2 {
            nms.set_property_from_str("coordinates", "normalized");
        }
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
}

#[test]
fn a_stream_that_is_stopped_gives_the_warning_and_each_run_gives_it_again() {
    let tensor = yolov8(YOLOV8, 80, &normalized(&OBJECTS));
    let mut harness = gst_check::Harness::new("nmsfilter");
    let (element, bus) = (harness.element().unwrap(), gst::Bus::new());
    element.set_bus(Some(&bus));
    let warnings = || {
        let is_warning = |message: &gst::Message| message.type_() == gst::MessageType::Warning;
        std::iter::from_fn(|| bus.pop()).filter(is_warning).count()
    };
    for run in 1..=2 {
        element.set_state(gst::State::Playing).unwrap();
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=640,height=480,framerate=10/1");
        for frame in 0..3 {
            let mut buffer = gst::Buffer::new();
            let unique = buffer.get_mut().unwrap();
            unique.set_pts(gst::ClockTime::from_mseconds(100 * frame));
            attach(unique, &tensor).unwrap();
            harness.push(buffer).unwrap();
        }
        assert_eq!(warnings(), 0, "six boxes in less than a second");
        element.set_state(gst::State::Ready).unwrap();
        assert_eq!(warnings(), 1, "run {run}");
    }
}
