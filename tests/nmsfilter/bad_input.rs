// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of `nmsfilter` for tensors and properties that it cannot use, and the anchors that it
//! rejects.
//!
//! No case may panic, block or produce a box.

use gst::prelude::*;
use gst_newer::CustomMeta;
use gstnmsfilter::input::custom_meta::{META_NAME, NewTensor, attach};
use nmsfilter_core::tensor::ElementType;

use crate::support::pipeline::{self, Ended, intercept, parse, regions, run, watch};

/// Runs two frames of 640x480 through `nmsfilter` with these properties. `prepare` attaches the
/// tensors.
fn filter(
    properties: &str,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Ended {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", prepare);
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let found: usize = seen.lock().unwrap().iter().map(Vec::len).sum();
    assert!(found == 0, "{properties}: expected no box, got {found}");
    ended
}

fn tensor(id: &str, shape: &[usize], elements: Vec<f32>) -> NewTensor {
    pipeline::init();
    NewTensor::from_vec(id, shape, elements).unwrap()
}

/// Returns the error for these tensors.
fn error(properties: &str, tensors: Vec<NewTensor>) -> String {
    let ended = filter(properties, move |buffer| {
        for tensor in &tensors {
            attach(buffer, tensor).unwrap();
        }
    });
    ended.error().to_owned()
}

/// Returns the numbers of candidates and rejected anchors per frame for these tensors.
fn counts(properties: &str, tensors: Vec<NewTensor>) -> [u64; 2] {
    let ended = filter(properties, move |buffer| {
        for tensor in &tensors {
            attach(buffer, tensor).unwrap();
        }
    });
    assert_eq!(ended.error, None, "{properties}");
    ["candidates", "rejected"].map(|name| ended.stats[0].get::<u64>(name).unwrap() / 2)
}

/// Attaches metadata without comparing the shape with the memory.
pub fn claim(buffer: &mut gst::BufferRef, id: &str, dims: &[u64], bytes: usize) {
    add_meta(buffer, |structure| {
        structure.set("id", id);
        structure.set("type", "f32");
        structure.set("dims", gst::Array::new(dims.iter().copied()));
        structure.set("data", gst::Buffer::from_mut_slice(vec![0u8; bytes]));
    });
}

/// Attaches metadata with these fields.
fn add_meta(buffer: &mut gst::BufferRef, set: impl FnOnce(&mut gst::StructureRef)) {
    gstnmsfilter::input::custom_meta::register();
    CustomMeta::new(META_NAME, &[]).add(buffer, set).unwrap();
}

fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "expected {part:?} in: {message}");
    }
}

#[test]
fn memory_shorter_than_the_shape_is_an_error() {
    let ended = filter("", |buffer| claim(buffer, "yolo-v8-out", &[1, 84, 8400], 1024));
    assert_contains(
        ended.error(),
        &["yolo-v8-out (f32 1x84x8400)", "needs 2822400 bytes, but its memory holds 1024"],
    );
}

#[test]
fn ten_million_anchors_in_64_bytes_are_an_error() {
    let ended = filter("", |buffer| claim(buffer, "windows", &[10_000_000, 4], 64));
    assert_contains(ended.error(), &["needs 160000000 bytes, but its memory holds 64"]);
}

#[test]
fn a_shape_of_windows_that_overflows_is_an_error() {
    let ended = filter("", |buffer| claim(buffer, "windows", &[u64::MAX / 2, 4], 64));
    assert_contains(ended.error(), &["anchors are more than the 4294967295 supported"]);
}

#[test]
fn a_shape_of_columns_that_overflows_is_an_error() {
    let ended = filter("", |buffer| claim(buffer, "yolo-v8-out", &[1, 8, 1 << 62], 64));
    assert_contains(ended.error(), &["anchors are more than the 4294967295 supported"]);
}

#[test]
fn more_anchors_than_fit_32_bits_are_an_error() {
    let ended = filter("decoder=boxes", |buffer| {
        claim(buffer, "boxes", &[1 << 33, 4], 0);
        claim(buffer, "scores", &[1 << 33], 0);
    });
    assert_contains(ended.error(), &["8589934592 anchors are more than the 4294967295 supported"]);
}

#[test]
fn more_than_65536_classes_are_an_error() {
    let ended = filter("decoder=boxes", |buffer| {
        claim(buffer, "boxes", &[1, 4], 16);
        claim(buffer, "scores", &[1, 1 << 20], 4 << 20);
    });
    assert_contains(ended.error(), &["1048576 classes are more than the 65536 supported"]);
}

#[test]
fn a_tensor_of_another_rank_is_an_error() {
    let message = error("", vec![tensor("yolo-v8-out", &[84], vec![0.0; 84])]);
    assert_contains(
        &message,
        &["yolo-v8-out (f32 84)", "decoder yolov8 expects one tensor [1,4+C,N]"],
    );
    let message = error("", vec![tensor("out", &[2, 3, 84, 5], vec![0.0; 2520])]);
    assert_contains(&message, &["no tensor fits any decoder of the ", "out (f32 2x3x84x5)"]);
}

#[test]
fn a_shape_that_does_not_fit_the_decoder_that_was_set_is_an_error() {
    let message = error("decoder=windows", vec![tensor("out", &[2, 5], vec![0.0; 10])]);
    assert_contains(&message, &["out (f32 2x5)", "decoder windows expects one tensor [1,N,4]"]);
    let two = vec![tensor("a", &[2, 5], vec![0.0; 10]), tensor("b", &[3], vec![0.0; 3])];
    let message = error("decoder=windows", two);
    assert_contains(
        &message,
        &["decoder windows, which expects one tensor [1,N,4]", "a (f32 2x5), b (f32 3)"],
    );
}

#[test]
fn an_unsupported_element_type_is_an_error() {
    let ended = filter("", |buffer| {
        add_meta(buffer, |structure| {
            structure.set("id", "windows");
            structure.set("type", "i4");
            structure.set("dims", gst::Array::new([1u64, 4]));
            structure.set("data", gst::Buffer::with_size(4).unwrap());
        });
    });
    assert_contains(
        ended.error(),
        &["tensor windows: expected type to be one of f32, f16, i8, u8, i32, i64, got i4"],
    );
    let data = gst::Buffer::with_size(16).unwrap();
    let wrong = NewTensor::new("windows", ElementType::Other("i16"), &[1, 4], data).unwrap();
    let mut buffer = gst::Buffer::new();
    let error = attach(buffer.get_mut().unwrap(), &wrong).unwrap_err().to_string();
    assert_contains(
        &error,
        &["windows (i16 1x4)", "expected elements of type f32, f16, i8, u8, i32 or i64"],
    );
}

#[test]
fn a_batch_dimension_of_2_is_an_error() {
    let mut batch = tensor("yolo-v8-out", &[2, 6, 10], vec![0.0; 120]);
    let message = error("", vec![batch.clone()]);
    assert_contains(
        &message,
        &["expected a batch dimension of 1, got 2", "export the model with a batch size of 1"],
    );
    batch.id = "out".into();
    assert_contains(&error("", vec![batch]), &["expected a batch dimension of 1, got 2"]);
}

#[test]
fn two_tensors_with_the_same_id_are_an_error() {
    let out = tensor("yolo-v8-out", &[1, 6, 10], vec![0.0; 60]);
    let message = error("", vec![out.clone(), out]);
    assert_contains(&message, &["two tensors have the id yolo-v8-out; expected one"]);
}

#[test]
fn an_ambiguous_shape_is_an_error_that_says_which_properties_to_set() {
    let message = error("", vec![tensor("out", &[1, 100, 85], vec![0.0; 8500])]);
    assert_contains(
        &message,
        &[
            "out (f32 1x100x85)",
            "read as yolov5 with 80 classes or yolox with 80 classes",
            "set decoder to the right one",
        ],
    );
    let pair =
        || vec![tensor("a", &[1, 9, 2], vec![0.0; 18]), tensor("b", &[1, 9, 4], vec![0.0; 36])];
    let message = error("", pair());
    assert_contains(
        &message,
        &["read as ultraface or boxes with 2 classes or detr with 2 classes; set decoder"],
    );
    let two = vec![tensor("a", &[9, 4], vec![0.0; 36]), tensor("b", &[7, 4], vec![0.0; 28])];
    assert_contains(
        &error("decoder=windows", two),
        &["windows in 2 ways; give the tensor", "an id"],
    );
}

/// Returns an output with 200 people and 17 keypoints each. All scores would be above the threshold
/// if keypoints were read as scores.
fn pose() -> Vec<NewTensor> {
    let elements = (0..56 * 200).map(|i| if i / 200 < 4 { 40.0 } else { 0.9 });
    vec![tensor("output0", &[1, 56, 200], elements.collect())]
}

#[test]
fn a_pose_output_without_id_gives_an_error_and_no_boxes() {
    let labels = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("person.txt");
    std::fs::write(&labels, "person\n").unwrap();
    let labels = format!("label-file={}", labels.display());
    for (properties, part) in [
        ("", "read as yolov8-pose with 1 class or "),
        ("num-classes=1", "or read yolov8 with 52 classes (set num-classes=52 too)"),
        (labels.as_str(), "there are 1 labels"),
    ] {
        let message = error(properties, pose());
        let of = ["output0 (f32 1x56x200)) can be read as ", "yolov8 with 52 classes"];
        assert_contains(&message, &[of[0], of[1], part]);
    }
    let message = error("decoder=yolov8 num-classes=1", pose());
    assert_contains(&message, &["it has 52 classes, but num-classes is 1"]);
}

#[test]
fn a_tensor_with_the_id_boxes_but_no_scores_is_an_error() {
    let boxes =
        || vec![tensor("boxes", &[1, 2, 4], vec![10.0, 10.0, 50.0, 50.0, 0.0, 0.0, 9.0, 9.0])];
    assert_contains(
        &error("", boxes()),
        &["boxes (f32 1x2x4) has an id of decoder boxes", "scores"],
    );
}

#[test]
fn the_debug_information_of_an_error_has_the_changed_properties_in_gst_launch_syntax() {
    let message = error("backend=cpu model-width=640 iou-threshold=0.5 classes=1,2", window());
    let changed = "; classes=\"1\\,2\" model-width=640 backend=cpu iou-threshold=0.5";
    assert!(message.ends_with(changed), "{message}");
    let message = error("backend=cpu decoder=boxes", window());
    assert!(message.ends_with("frame 640x480; decoder=boxes backend=cpu"), "{message}");
}

#[test]
fn tensors_without_anchors_give_no_candidates() {
    assert_eq!(counts("", vec![tensor("windows", &[0, 4], vec![])]), [0, 0]);
    assert_eq!(counts("", vec![tensor("yolo-v8-out", &[1, 84, 0], vec![])]), [0, 0]);
    assert_eq!(counts("", vec![tensor("yolo-v5-out", &[1, 0, 85], vec![])]), [0, 0]);
    let pair = vec![tensor("boxes", &[0, 4], vec![]), tensor("scores", &[0], vec![])];
    assert_eq!(counts("", pair), [0, 0]);
}

#[test]
fn scores_below_the_threshold_give_no_candidates() {
    let faint = tensor("windows", &[2, 4], vec![1.0, 1.0, 9.0, 0.1, 5.0, 5.0, 9.0, 0.2499]);
    assert_eq!(counts("", vec![faint]), [0, 0]);
}

#[test]
fn scores_that_are_not_finite_are_rejected() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [[1.0, 1.0, 9.0, nan], [1.0, 1.0, 9.0, inf], [1.0, 1.0, 9.0, -inf]];
    let windows = tensor("windows", &[3, 4], rows.as_flattened().to_vec());
    assert_eq!(counts("", vec![windows]), [0, 3]);
    let mut rows = [[5.0, 5.0, 2.0, 2.0, 0.0, 0.0]; 6];
    rows[0][4..].copy_from_slice(&[nan, 0.9]);
    rows[1][4..].copy_from_slice(&[0.9, nan]);
    let yolov5 = tensor("yolo-v5-out", &[1, 6, 6], rows.as_flattened().to_vec());
    assert_eq!(counts("", vec![yolov5]), [0, 2]);
}

#[test]
fn coordinates_that_are_not_finite_are_rejected() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows =
        [[nan, 1.0, 9.0, 0.9], [1.0, inf, 9.0, 0.9], [1.0, 1.0, nan, 0.9], [1.0, 1.0, inf, 0.9]];
    let windows = tensor("windows", &[4, 4], rows.as_flattened().to_vec());
    assert_eq!(counts("", vec![windows]), [0, 4]);
}

#[test]
fn negative_and_huge_sizes_are_rejected_and_empty_slots_dropped() {
    let rows = [
        [1.0, 1.0, -9.0, 0.9],
        [1.0, 1.0, 2.0e9, 0.9],
        [-3.0e38, 1.0, 3.0e38, 0.9],
        [1.0, 1.0, 0.0, 0.9],
    ];
    let windows = tensor("windows", &[4, 4], rows.as_flattened().to_vec());
    assert_eq!(counts("", vec![windows]), [0, 3]);
}

#[test]
fn a_box_outside_the_frame_is_rejected() {
    let outside = tensor("windows", &[1, 4], vec![700.0, 10.0, 50.0, 0.9]);
    assert_eq!(counts("", vec![outside]), [0, 1]);
}

#[test]
fn metadata_without_fields_is_an_error() {
    let ended = filter("", |buffer| add_meta(buffer, |_| {}));
    assert_contains(ended.error(), &["metadata NmsFilterTensor: the field id is missing"]);
}

fn window() -> Vec<NewTensor> {
    vec![tensor("windows", &[1, 4], vec![10.0, 10.0, 50.0, 0.1])]
}

#[test]
fn model_width_without_model_height_is_an_error() {
    let message = error("model-width=640", window());
    assert_contains(&message, &["model-width and model-height go together; got 640 and 0"]);
}

#[test]
fn letterbox_without_the_models_size_is_an_error() {
    let message = error("letterbox=center", window());
    assert_contains(&message, &["letterbox needs the size of the model's input: set model-width"]);
}

#[test]
fn unknown_class_names_are_errors() {
    let message = error("classes=cat", window());
    assert_contains(&message, &["classes: there is no class \"cat\"", "0 labels loaded"]);
    let message = error("class-thresholds=dog:0.5", window());
    assert_contains(&message, &["class-thresholds: there is no class \"dog\""]);
    let message = error("class-thresholds=0.5", window());
    assert_contains(&message, &["cannot read \"0.5\"; expected CLASS:THRESHOLD"]);
}

#[test]
fn a_number_that_is_not_shown_since_the_class_has_a_label_is_an_error() {
    let labels = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("dog.txt");
    std::fs::write(&labels, "dog\n").unwrap();
    let message = error(&format!("classes=class-0 label-file={}", labels.display()), window());
    assert_contains(&message, &["classes: there is no class \"class-0\"", "1 labels loaded"]);
}

#[test]
fn an_empty_label_file_is_an_error_and_an_empty_name_means_no_file() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty labels.txt");
    for bytes in ["", "\n \n", "\u{feff}"] {
        std::fs::write(&file, bytes).unwrap();
        let message = error(&format!("label-file=\"{}\"", file.display()), window());
        assert_contains(
            &message,
            &["empty labels.txt\" has no label; expected one label per line"],
        );
    }
    let pipeline =
        parse("videotestsrc name=in num-buffers=1 ! nmsfilter name=nms label-file=\"\" ! fakesink");
    let tensor = tensor("windows", &[1, 4], vec![10.0, 10.0, 20.0, 0.9]);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let seen = watch(&pipeline, "nms", regions);
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0][0].0, "object");
}

#[test]
fn a_missing_label_file_is_an_error() {
    let message = error("label-file=/nowhere/coco.txt", window());
    assert_contains(&message, &["/nowhere/coco.txt", "No such file or directory"]);
}

#[test]
fn a_label_file_that_is_not_utf8_is_an_error() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("labels.bin");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    let message = error(&format!("label-file={}", file.display()), window());
    assert_contains(&message, &["labels.bin", "valid UTF-8"]);
}

#[test]
fn backend_cuda_without_that_gpu_is_an_error() {
    use nmsfilter_core::device::{Device, DeviceError};
    let message = error("backend=cuda cuda-device-id=77", window());
    let reason = match Device::open(77).unwrap_err() {
        DeviceError::NoDriver => "there is no NVIDIA driver (libcuda cannot be loaded)",
        DeviceError::NoDevice => "the NVIDIA driver finds no GPU",
        _ => "there is no GPU 77; the driver reports",
    };
    assert_contains(
        &message,
        &[reason, "backend=cuda needs an NVIDIA GPU, backend=auto does without"],
    );
}

#[test]
fn attach_analytics_is_an_error_if_gstreamer_has_no_such_metadata() {
    let Err(missing) = gst_newer::Capabilities::get().relations else { return };
    let message = error("attach=analytics", window());
    let expected = format!("attach=analytics: {missing}; set attach=roi");
    assert_contains(&message, &[&expected]);
}

#[test]
fn values_outside_their_range_leave_the_property_unchanged() {
    pipeline::init();
    for (property, value, kept) in
        [("iou-threshold", "1.2", 0.45), ("iou-threshold", "-0.1", 0.45), ("min-size", "-3", 0.0)]
    {
        let pipeline =
            parse(&format!("fakesrc ! nmsfilter name=nms {property}={value} ! fakesink"));
        let nms = pipeline.by_name("nms").unwrap();
        assert_eq!(nms.property::<f32>(property), kept, "{property}={value}");
    }
}

#[test]
fn the_element_runs_again_after_an_error() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let good = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    intercept(&pipeline, "in", {
        let good = good.clone();
        move |buffer| {
            if good.load(std::sync::atomic::Ordering::SeqCst) {
                attach(buffer, &tensor("windows", &[1, 4], vec![9.0, 9.0, 9.0, 0.9])).unwrap()
            } else {
                claim(buffer, "windows", &[9, 4], 8)
            }
        }
    });
    let seen = watch(&pipeline, "nms", regions);
    for _ in 0..3 {
        good.store(false, std::sync::atomic::Ordering::SeqCst);
        assert!(run(&pipeline).error().contains("its memory holds 8"));
        good.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(run(&pipeline).error, None);
    }
    assert_eq!(seen.lock().unwrap().len(), 6);
    assert!(seen.lock().unwrap().iter().all(|regions| regions.len() == 1));
}

#[test]
fn a_buffer_before_caps_is_an_error() {
    pipeline::init();
    let mut harness = gst_check::Harness::new("nmsfilter");
    harness.push_event(gst::event::StreamStart::new("test"));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    harness.push_event(gst::event::Segment::new(&segment));
    let mut buffer = gst::Buffer::new();
    attach(buffer.get_mut().unwrap(), &window()[0]).unwrap();
    assert!(harness.push(buffer).is_err());
}
