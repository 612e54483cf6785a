// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error messages: each states what was expected, what came, and what to do. Nothing may panic;
//! GStreamer would post a panic as an error with this word.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::element::{self, WithInfo, file, has_onnx_runtime};
use crate::support::data;
use crate::support::onnx::{
    Dims, Element, Node, OnnxModel, Tensor, constants, f64_output, identity, two_inputs,
};
use crate::support::pipeline::{self, parse};
use crate::support::scratch::{Scratch, ScratchFile};

const DIMS: [i64; 4] = [1, 3, 12, 16];

/// Returns the error that ends a stream through the element with these properties, without debug
/// details.
pub fn error(properties: &str) -> String {
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=12
           ! ortinference name=inference {properties} ! fakesink"
    ));
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.warnings, [""; 0]);
    let text = ended.error();
    assert!(!text.to_lowercase().contains("panic"), "{text}");
    // The debug details begin with a location in the source.
    text.split_once(" inference/src/").map_or(text, |(message, _)| message).to_owned()
}

/// Returns the error for this model with further properties.
fn error_of(model: &OnnxModel, properties: &str) -> String {
    let file = file(model);
    error(&format!("model={} {properties}", file.display()))
}

/// Returns the error for the model file at this path, which is replaced by `MODEL` in the text.
fn error_at(path: &Path) -> String {
    let path = path.display().to_string();
    error(&format!("model={path}")).replace(&path, "MODEL")
}

/// Asserts that a message contains all of these parts, in order.
fn assert_says(message: &str, parts: &[&str]) {
    let mut rest = message;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("expected {part:?} in: {message}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn a_missing_model_is_an_error() {
    element::init();
    assert_eq!(error(""), "no model is set: set model to a file in the ONNX format");
}

#[test]
fn a_model_file_that_is_missing_or_no_file_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let folder = Scratch::new();
    assert_eq!(
        error_at(&folder.join("yolo.onnx")),
        "the model \"MODEL\" cannot be opened: No such file or directory (os error 2); set model to a \
         file in the ONNX format"
    );
    assert_eq!(
        error_at(&folder),
        "the model \"MODEL\" cannot be opened: it is a folder; set model to a file in the ONNX format"
    );
    assert_eq!(
        error_at(Path::new("/dev/null")),
        "the model \"MODEL\" cannot be opened: it is not a regular file; set model to a file in the ONNX \
         format"
    );
}

/// The thread gives up the right to read files while it opens the model, so the test also works for
/// the superuser.
#[test]
fn a_model_file_that_may_not_be_read_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    unsafe extern "C" {
        fn setfsuid(user: u32) -> i32;
    }
    // The library is loaded before the model is opened, here with the rights of the process.
    error_at(Path::new("/"));
    let file = file(&identity(DIMS, Element::F32));
    std::fs::set_permissions(&*file, std::fs::Permissions::from_mode(0o000)).unwrap();
    // SAFETY: the call changes only the rights of this thread, and the element opens the model in
    // the thread that starts it.
    let before = unsafe { setfsuid(65534) };
    let message = error_at(&file);
    // SAFETY: the call restores the rights of this thread.
    unsafe { setfsuid(before as u32) };
    assert_eq!(
        message,
        "the model \"MODEL\" cannot be opened: Permission denied (os error 13); set model to a file in the \
         ONNX format"
    );
}

#[test]
fn weights_in_a_file_that_is_missing_or_truncated_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let folder = Scratch::new();
    let (real, linked) = (folder.join("real"), folder.join("linked"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &linked).unwrap();
    let weights = real.join("model.onnx.data");
    OnnxModel::new()
        .input("input", Element::F32, DIMS)
        .initializer("weights", &Tensor::f32_in_file(&DIMS, "model.onnx.data"))
        .node(Node::new("Mul", &["input", "weights"], &["output"]))
        .output("output", Element::F32, DIMS)
        .write(real.join("model.onnx"));
    // ONNX Runtime's message has the path without symbolic links, no matter which path the property
    // has.
    for path in [real.join("model.onnx"), linked.join("model.onnx")] {
        let expected = "the model \"MODEL\" has its weights in a separate file, which cannot be read: External";
        let advice = "; put that file into the model's folder, under the name that it had when the model was exported";
        let missing = error_at(&path);
        assert_says(&missing, &[expected, ".data", advice]);
        std::fs::write(&weights, [0; 100]).unwrap();
        assert_says(&error_at(&path), &[expected, "100", advice]);
        // The model runs if all weights are present.
        std::fs::write(&weights, [0; 12 * 16 * 3 * 4]).unwrap();
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=12
               ! ortinference model={} ! fakesink",
            path.display()
        ));
        assert_eq!(pipeline::run(&pipeline).error, None);
        std::fs::remove_file(&weights).unwrap();
    }
}

#[test]
fn a_file_that_is_not_a_model_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let whole = identity(DIMS, Element::F32).to_bytes();
    let cut = &whole[..whole.len() - 20];
    let random: Vec<u8> = std::iter::repeat_with({
        let mut rng = fastrand::Rng::with_seed(1);
        move || rng.u8(..)
    })
    .take(10_000)
    .collect();
    for bytes in [&b"hello, this is a text"[..], b"", cut, &random] {
        let file = ScratchFile::new("onnx", bytes);
        let message = error_at(&file);
        let parts = ["the model \"MODEL\" cannot be opened: ", "; set model to a file in the ONNX"];
        assert_says(&message, &parts);
        assert!(!message.contains("Load model from"), "{message}");
    }
}

#[test]
fn a_number_of_inputs_other_than_one_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    assert_eq!(
        error_of(&two_inputs(DIMS), ""),
        "the model has 2 inputs (left [1,3,12,16], right [1,3,12,16]); expected one, the picture: set \
         inputs=NAME=NUMBER,... for each other input, or export the model with the picture alone"
    );
    let none = OnnxModel::new()
        .initializer("one", &Tensor::f32(&[1], &[1.0]))
        .node(Node::new("Identity", &["one"], &["output"]))
        .output("output", Element::F32, [1]);
    assert_says(&error_of(&none, ""), &["the model has 0 inputs; expected one, the picture"]);
}

#[test]
fn a_node_that_onnx_runtime_does_not_have_is_named() {
    if !has_onnx_runtime() {
        return;
    }
    let message = |operator: &str, domain: &str| {
        let inputs = ["input", "input", "input"];
        let outputs = ["count", "output", "scores", "classes"];
        let node = Node::new(operator, &inputs, &outputs).domain(domain);
        let model = OnnxModel::new().input("input", Element::F32, DIMS).node(node).output(
            "output",
            Element::F32,
            "1,100,4",
        );
        let model = if domain.is_empty() { model } else { model.domain(domain) };
        error_of(&model, "")
    };
    for (operator, domain) in [
        ("EfficientNMS_TRT", "TRT"),
        ("EfficientNMS_TRT", ""),
        ("BatchedNMSDynamic_TRT", "trt.plugins"),
        ("TRTBatchedNMS", "mmdeploy"),
    ] {
        let parts = [
            &format!(
                " has a node {operator}, which is a part of TensorRT: set provider=tensorrt, "
            ),
            "; or export the model without suppression (YOLOv7 and YOLOv6: without --end2end), and nmsfilter does it",
        ];
        assert_says(&message(operator, domain), &parts);
    }
    for domain in ["my.domain", ""] {
        let part = " has a node Mine, which ONNX Runtime 1.";
        assert_says(&message("Mine", domain), &[part]);
    }
}

#[test]
fn an_input_that_is_not_a_picture_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = "expected a picture: [1,3,height,width], [1,height,width,3], or 1 channel instead of 3, also \
                   without the first dimension";
    for (dims, shown) in [
        (Dims::from([1, 4, 8, 8]), "[1,4,8,8]"),
        (Dims::from([1, 10]), "[1,10]"),
        (Dims::from([1, 3, 8, 8, 8]), "[1,3,8,8,8]"),
        (Dims::unranked(), "[]"),
    ] {
        let message = error_of(&identity(dims, Element::F32), "");
        let expected = format!("the model's input input has the dimensions {shown}; {picture}");
        assert_eq!(message, expected);
    }
    let message = error_of(&identity([4, 3, 8, 8], Element::F32), "batch-size=2");
    assert_says(&message, &["batch-size=2", "[4,3,8,8]", "leave batch-size at 0"]);
    let message = error_of(&identity("1,c,h,w", Element::F32), "input-width=8 input-height=8");
    assert_says(&message, &["[1,?,?,?]", picture, ": set input-layout"]);
    let message = error_of(&identity([1, 3, 8, 8], Element::F32), "input-layout=nhwc");
    assert_says(&message, &["[1,3,8,8]", picture]);
    assert_eq!(
        error_of(&identity(DIMS, Element::I64), ""),
        "the model's input input is a tensor of i64; expected a tensor of f32, f16, u8 or i8"
    );
}

#[test]
fn dynamic_sides_without_a_size_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity("1,3,height,width", Element::F32);
    for properties in ["", "input-width=16", "input-height=12"] {
        assert_eq!(
            error_of(&model, properties),
            "the model's input input has the dynamic dimensions [1,3,?,?]: set input-width and \
             input-height"
        );
    }
    assert_eq!(
        error_of(&model, "input-width=20000 input-height=12"),
        "the model's input input is 20000x12; expected at most 16384 pixels a side"
    );
}

#[test]
fn a_size_that_differs_from_the_models_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity(DIMS, Element::F32);
    assert_eq!(
        error_of(&model, "input-width=16 input-height=16"),
        "input-height=16, but the model's input input has the dimensions [1,3,12,16]; leave \
         input-height at 0, or use a model of that size"
    );
}

#[test]
fn outputs_that_cannot_be_read_are_an_error_if_there_are_no_others() {
    if !has_onnx_runtime() {
        return;
    }
    assert_eq!(
        error_of(&f64_output(DIMS), ""),
        "the model has no output of type f32, f16, i8, u8, i32 or i64; its outputs are output: a tensor of f64: \
         export the model with its raw outputs"
    );
}

#[test]
fn a_model_that_fails_when_it_runs_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = OnnxModel::new()
        .input("input", Element::F32, DIMS)
        .initializer("shape", &Tensor::i64(&[1], &[7]))
        .node(Node::new("Reshape", &["input", "shape"], &["output"]))
        .output("output", Element::F32, [7]);
    let message = error_of(&model, "provider=cpu");
    assert_says(&message, &["cpu: the model failed: ", "Reshape"]);
}

#[test]
fn invalid_numbers_are_errors() {
    element::init();
    let model = "model=yolo.onnx";
    for range in ["1", "0,0", "0,1,2", "a,b", "\"\"", "0,inf", "nan,1"] {
        let got = range.trim_matches('"');
        assert_eq!(
            error(&format!("{model} range={range}")).trim_end(),
            format!(
                "range: expected two different numbers, the values of black and white, as in 0,1; got \
                 {got}"
            )
            .trim_end()
        );
    }
    for mean in ["1,2", "x", "1,2,3,4", "inf"] {
        assert_eq!(
            error(&format!("{model} mean={mean}")),
            format!(
                "mean: expected one number, or three for red, green and blue as in \
                 0.485,0.456,0.406; got {mean}"
            )
        );
    }
    for std in ["0", "1,-1,1", "nan"] {
        assert_eq!(
            error(&format!("{model} std={std}")),
            format!(
                "std: expected one number greater than 0, or three for red, green and blue as in \
                 0.485,0.456,0.406; got {std}"
            )
        );
    }
}

#[test]
fn a_mean_or_standard_deviation_for_another_range_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity(DIMS, Element::F32);
    for (properties, black, white) in [
        ("std=255", "0.000", "0.004"),
        ("mean=127", "-127.000", "-126.000"),
        ("mean=123.675,116.28,103.53 std=58.395,57.12,57.375", "-2.118", "-2.101"),
    ] {
        let expected = format!(
            "range, mean and std: black becomes {black} and white becomes {white}, which are nearly equal; set range=0,255"
        );
        assert_says(&error_of(&model, properties), &[&expected]);
    }
}

#[test]
fn a_label_file_without_a_label_is_an_error() {
    element::init();
    let empty = ScratchFile::new("txt", b"\n");
    let message = error(&format!("model=yolo.onnx label-file={}", empty.display()));
    assert_says(&message, &["the label file", "has no label; expected one label per line"]);
}

#[test]
fn groups_of_the_modelinfo_file_that_name_neither_input_nor_output_are_errors() {
    if !has_onnx_runtime() {
        return;
    }
    let text = "[modelinfo]\nversion=1.0\n[images]\nranges=0,255\n[input]\nranges=0,1\n\
                [output0]\nid=yolo-v8-out\n";
    let model = WithInfo::new(&identity(DIMS, Element::F32), text);
    let message = error_at(&model.path);
    assert_says(
        &message,
        &[
            ".modelinfo\": expected groups with the names of the model's inputs and outputs, [input], \
             [output]; got [images], [output0] too",
        ],
    );
    let text = "[modelinfo]\nversion=1.0\n[output]\nid=a\n";
    let model = WithInfo::new(&identity(DIMS, Element::F32), text);
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 ! ortinference provider=cpu model={} ! fakesink",
        model.path.display()
    ));
    assert_eq!(pipeline::run(&pipeline).error, None);
}

#[test]
fn a_label_file_that_cannot_be_read_is_an_error() {
    element::init();
    let folder = Scratch::new();
    let missing = folder.join("labels.txt").display().to_string();
    let message = error(&format!("model=yolo.onnx label-file={missing}"));
    assert_says(&message, &["the label file", &missing, "cannot be read: No such file"]);
    let message = error(&format!("model=yolo.onnx label-file={}", folder.display()));
    assert_says(&message, &["the label file", "is a directory; expected a regular file"]);
    let bytes = ScratchFile::new("txt", b"\xff\xfe\xfd");
    let message = error(&format!("model=yolo.onnx label-file={}", bytes.display()));
    assert_says(&message, &["the label file", "UTF-8"]);
}

#[test]
fn an_invalid_modelinfo_file_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let message = |info: &str| {
        let model = WithInfo::new(&identity(DIMS, Element::F32), info);
        error_at(&model.path)
    };
    let groups = "\"MODEL.modelinfo\": expected groups like [output0] with lines like id=...: ";
    assert_says(&message("id=yolo\n"), &[groups]);
    assert_says(&message("[input\nid=yolo\n"), &[groups]);
    assert_says(
        &message("[input]\0"),
        &["\"MODEL.modelinfo\": the file has a zero byte in line 1"],
    );
    for ranges in ["0,1;0,1", "0,0", "a,b", "0,1;0,1;0,1;0,1"] {
        assert_eq!(
            message(&format!("[input]\nranges={ranges}\n")),
            format!(
                "\"MODEL.modelinfo\": ranges of [input]: expected one pair of different numbers, or \
                 three as in 0.0,1.0;0.0,1.0;0.0,1.0; got {ranges}"
            )
        );
    }
}

/// On a machine with a real or emulated NVIDIA driver, the library lacks the provider.
#[test]
fn a_provider_that_this_machine_or_the_library_lacks_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    for provider in ["cuda", "tensorrt"] {
        let description = format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=16,height=12
               ! ortinference model={} provider={provider} ! fakesink",
            model.display()
        );
        let ended = pipeline::run(&parse(&description));
        let Some(message) = ended.error else {
            // The machine has a GPU, and the library has this provider.
            continue;
        };
        let machine = format!("provider={provider} needs an NVIDIA GPU: ");
        let library =
            format!("provider={provider}: this build of ONNX Runtime has no such provider");
        // The library has the provider, which needs further libraries that are missing.
        let installation = format!("provider={provider} cannot be used: Failed to load library");
        let expected = match nmsfilter_core::device::Device::open(0) {
            Err(_) => [&machine; 2],
            Ok(_) => [&library, &installation],
        };
        assert!(expected.iter().any(|text| message.contains(*text)), "{message}");
    }
}

/// Returns the error and the warnings of `nmsfilter` with these properties for the model at `path`.
fn run_nmsfilter(path: &Path, properties: &str) -> pipeline::Ended {
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=12
           ! ortinference provider=cpu model={} ! nmsfilter {properties} ! fakesink",
        path.display()
    ));
    pipeline::run(&pipeline)
}

/// For metadata of each model family, its name in errors and warnings.
const FAMILIES: [(&[(&str, &str)], &str); 3] = [
    (
        &[("task", "segment")],
        "a segmentation model (task segment): set decoder=yolov8-seg or decoder=yolov5-seg",
    ),
    (
        &[("task", "pose"), ("end2end", "True")],
        "a pose model (task pose): set decoder=end2end-pose",
    ),
    (&[("task", "obb")], "a model of oriented boxes (task obb): set decoder=yolov8-obb"),
];

#[test]
fn metadata_that_name_another_family_than_the_output_are_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let output: (&str, &[i64], &[f32]) = ("output0", &[1, 300, 6], &[0.0; 1800]);
    let with = |entries: &[(&str, &str)]| {
        let model = constants(DIMS, &[output]).metadata("names", "{0: 'person', 1: 'bicycle'}");
        let model = entries.iter().fold(model, |model, (key, value)| model.metadata(key, value));
        file(&model)
    };
    for (entries, family) in FAMILIES {
        let model = with(entries);
        let text = format!("they are of {family}");
        let ended = run_nmsfilter(&model, "");
        assert_says(ended.error(), &["(f32 1x300x6)) cannot be decoded: ", &text]);
        // If the decoder is set, it is used, with a warning.
        let ended = run_nmsfilter(&model, "decoder=yolov8");
        assert_eq!(ended.error, None);
        let [warning] = &ended.warnings[..] else { panic!("{family}: {:?}", ended.warnings) };
        let expected = format!("decoder yolov8 reads the tensors, but {text}");
        assert!(warning.starts_with(&expected), "{warning}");
    }
    let ended = run_nmsfilter(&with(&[("task", "classify")]), "");
    let parts =
        ["decoder classifier expects [C], [1,C] or [1,C,1,1]", "set the decoder of the detector"];
    assert_says(ended.error(), &parts);
    let ended = run_nmsfilter(&with(&[("task", "detect"), ("end2end", "False")]), "");
    assert_says(ended.error(), &["can be read as", "set decoder to the right one"]);
}

#[test]
fn a_real_segmentation_model_is_decoded_without_a_property() {
    let Some(path) = data::path("data/models2026/models/yolov8n-seg_int8.onnx") else { return };
    if !has_onnx_runtime() {
        return;
    }
    let ended = run_nmsfilter(&path, "");
    assert_empty_scene(&ended, "yolov8-seg");
}

/// The metadata of an end-to-end model determine an id, which chooses its decoder.
#[test]
fn an_end_to_end_model_is_decoded_without_a_property() {
    if !has_onnx_runtime() {
        return;
    }
    let mut rows = [0.0; 1800];
    rows[..6].copy_from_slice(&[2.0, 3.0, 9.0, 8.0, 0.9, 1.0]);
    let output: (&str, &[i64], &[f32]) = ("output0", &[1, 300, 6], &rows);
    let model = constants(DIMS, &[output])
        .metadata("names", "{0: 'person', 1: 'bicycle'}")
        .metadata("task", "detect")
        .metadata("end2end", "True");
    let ended = run_nmsfilter(&file(&model), "");
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
    let survivors: Option<u64> = ended.stats.last().and_then(|stats| stats.get("survivors").ok());
    assert_eq!(survivors, Some(2));

    let Some(path) = data::path("data/models2026/models/yolo26n_int8.onnx") else { return };
    let ended = run_nmsfilter(&path, "");
    assert_empty_scene(&ended, "end2end");
}

/// Asserts that a real model's output for a test pattern was read, and that nothing was found: the
/// best score is small.
fn assert_empty_scene(ended: &pipeline::Ended, decoder: &str) {
    let [warning] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    let expected =
        format!("no detection in 2 images with decoder {decoder}: the best score is 0.0");
    assert!(ended.error.is_none() && warning.starts_with(&expected), "{:?} {warning}", ended.error);
}

#[test]
fn a_model_for_which_the_library_is_too_old_is_an_error_that_says_so() {
    if !has_onnx_runtime() {
        return;
    }
    for (model, problem) in [
        (identity(DIMS, Element::F32).ir_version(999), "Unsupported model IR version: 999"),
        (identity(DIMS, Element::F32).opset(999), "Opset 999 is under development"),
    ] {
        let message = error_at(&file(&model));
        let begin = format!("the model \"MODEL\" cannot be opened: {problem}");
        let advice =
            "is too old for it: install a newer one, or export the model with an older opset";
        assert!(message.starts_with(&begin), "{message}");
        assert_says(&message, &["; ONNX Runtime 1.", "libonnxruntime", advice]);
        assert!(message.ends_with(advice), "{message}");
    }
    // ONNX Runtime's CPU provider has this operator for f32 only.
    let lacks = OnnxModel::new()
        .input("input", Element::F64, DIMS)
        .node(Node::new("Erf", &["input"], &["output"]))
        .output("output", Element::F64, DIMS);
    let expected = "the model \"MODEL\" has a node Erf, which ONNX Runtime 1.";
    let advice = "libonnxruntime";
    assert_says(
        &error_at(&file(&lacks)),
        &[expected, advice, ") does not have; install a newer one"],
    );
}
