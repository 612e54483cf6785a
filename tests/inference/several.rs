// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several models in series, followed by `nmsfilter`: the choice of the model whose tensors are
//! decoded.

use crate::element::{file, has_onnx_runtime, ids};
use crate::support::onnx::{OnnxModel, constant};
use crate::support::pipeline::{self, Region, parse, regions, watch};
use crate::support::scratch::ScratchFile;

/// Returns a model for frames of 64x48 that always finds one window of 8 pixels, with this left
/// edge and label.
fn finds(left: f32, label: &str) -> ScratchFile {
    file(&model(left).metadata("names", &format!("{{0: '{label}'}}")))
}

fn model(left: f32) -> OnnxModel {
    let values = [left, 4.0, 8.0, 0.9];
    constant([1, 3, 48, 64], "found", &[1, 4], &values).metadata("found", "windows")
}

fn face() -> Region {
    ("face".to_owned(), [8, 4, 8, 8])
}

fn person() -> Region {
    ("person".to_owned(), [40, 4, 8, 8])
}

/// Runs three frames through two models, named `faces` and `people`, and through `elements`, of
/// which the last is named `nms`. Returns the regions and tensor ids of the last frame, and the
/// warnings.
fn run(elements: &str) -> (Vec<Region>, Vec<String>, Vec<String>) {
    let (faces, people) = (finds(8.0, "face"), finds(40.0, "person"));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=48
           ! ortinference name=faces provider=cpu model={}
           ! ortinference name=people provider=cpu model={} ! {elements} ! fakesink",
        faces.display(),
        people.display(),
    ));
    let seen = watch(&pipeline, "nms", |buffer| (regions(buffer), ids(buffer)));
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{elements}");
    let (regions, ids) = seen.lock().unwrap().pop().expect("there are frames");
    (regions, ids, ended.warnings)
}

#[test]
fn without_a_choice_the_first_model_is_decoded_and_a_warning_names_all() {
    if !has_onnx_runtime() {
        return;
    }
    let (regions, _, warnings) = run("nmsfilter name=nms");
    assert_eq!(regions, [face()]);
    assert_eq!(
        warnings,
        [
            "the frames carry tensors of 2 inference elements: 0 (faces), 1 (people); those of 0 are decoded: \
          set tensors-from to the number or the name of the one to decode"
        ]
    );
}

#[test]
fn each_nmsfilter_decodes_the_model_that_it_names() {
    if !has_onnx_runtime() {
        return;
    }
    for [first, second] in [["faces", "people"], ["0", "1"]] {
        let elements =
            format!("nmsfilter tensors-from={first} ! nmsfilter name=nms tensors-from={second}");
        let (regions, ids, warnings) = run(&elements);
        assert_eq!(
            (regions, ids.len(), warnings),
            (vec![face(), person()], 2, vec![]),
            "{elements}"
        );
    }
    // The models are decoded in the opposite order.
    let elements = "nmsfilter tensors-from=people ! nmsfilter name=nms tensors-from=faces";
    assert_eq!(run(elements).0, [person(), face()]);
}

#[test]
fn the_tensors_of_the_named_model_alone_are_removed() {
    if !has_onnx_runtime() {
        return;
    }
    for (first, second) in [("people", "faces"), ("1", "0"), ("1", "\"\"")] {
        let first = format!("nmsfilter tensors-from={first} keep-tensors=false");
        let elements = format!("{first} name=nms");
        let (regions, ids, warnings) = run(&elements);
        assert_eq!((regions, ids.len(), warnings), (vec![person()], 1, vec![]), "{elements}");
        let elements =
            format!("{first} ! nmsfilter tensors-from={second} keep-tensors=false name=nms");
        let (regions, ids, warnings) = run(&elements);
        assert_eq!(
            (regions, ids.len(), warnings),
            (vec![person(), face()], 0, vec![]),
            "{elements}"
        );
    }
}

#[test]
fn a_choice_without_tensors_is_a_warning_that_names_the_available_models() {
    if !has_onnx_runtime() {
        return;
    }
    for name in ["nobody", "2", "99999999999999999999999"] {
        let elements = format!("nmsfilter name=nms keep-tensors=false tensors-from={name}");
        let (regions, ids, warnings) = run(&elements);
        assert_eq!((regions.len(), ids.len()), (0, 2), "{elements}");
        let index = if name == "99999999999999999999999" { &usize::MAX.to_string() } else { name };
        assert_eq!(
            warnings,
            [format!(
                "no buffer of the stream carried tensors of the inference element {index}, so nothing is \
                 detected; there are those of 0 (faces), 1 (people): set tensors-from to one of these \
                 numbers or names"
            )]
        );
    }
}

#[test]
fn a_model_that_no_decoder_reads_does_not_hide_the_one_that_is_named() {
    if !has_onnx_runtime() {
        return;
    }
    let classifier = file(&constant([1, 3, 48, 64], "logits", &[1, 10], &[0.0; 10]));
    let people = finds(40.0, "person");
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=64,height=48
           ! ortinference name=kind provider=cpu model={}
           ! ortinference name=people provider=cpu model={}
           ! nmsfilter name=nms tensors-from=people ! fakesink",
        classifier.display(),
        people.display(),
    ));
    let seen = watch(&pipeline, "nms", regions);
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    assert_eq!(seen.lock().unwrap()[0], [person()]);
}
