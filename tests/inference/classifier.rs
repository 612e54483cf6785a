// SPDX-License-Identifier: MIT OR Apache-2.0
//! A detector and a classifier of its objects, from the picture to the metadata of each object.

use crate::element::{WithInfo, file, has_onnx_runtime, inference};
use crate::support::onnx::{Element, Node, OnnxModel, Tensor, constant};
use crate::support::pipeline::{parse, run, watch};

/// A model with a logit for each of the colors red, green and blue: 20 x the mean of the channel.
fn colors() -> OnnxModel {
    OnnxModel::new()
        .input("input", Element::F32, "batch,3,8,8")
        .node(
            Node::new("ReduceMean", &["input"], &["mean"]).ints("axes", &[2, 3]).int("keepdims", 0),
        )
        .initializer("factor", &Tensor::f32(&[], &[20.0]))
        .node(Node::new("Mul", &["mean", "factor"], &["logits"]))
        .output("logits", Element::F32, "batch,3")
        .metadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
}

/// A model that finds a box in each colored bar of the test picture of 320x240 pixels: gray, yellow, cyan, green,
/// magenta, red and blue from the left, 45.7 pixels each.
fn bars() -> OnnxModel {
    let row = |bar: f32, class: f32| {
        let left = bar * 320.0 / 7.0 + 5.0;
        [left, 20.0, left + 30.0, 100.0, 0.9 - 0.1 * bar, class]
    };
    let rows: Vec<f32> =
        [(3.0, 0.0), (5.0, 0.0), (6.0, 1.0)].map(|(bar, class)| row(bar, class)).concat();
    constant([1, 3, 240, 320], "output0", &[1, 3, 6], &rows)
}

#[test]
fn each_object_of_a_detector_has_its_own_class() {
    if !has_onnx_runtime() {
        return;
    }
    let (detector, classifier) = (file(&bars()), file(&colors()));
    for properties in ["", "roi-margin=0.1", "roi-labels=class-0"] {
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=2 pattern=smpte ! video/x-raw,format=RGB,width=320,height=240
               ! ortinference model={} provider=cpu ! nmsfilter decoder=end2end keep-tensors=false
               ! {} ! nmsfilter name=nms decoder=classifier ! fakesink",
            detector.display(),
            inference(&classifier, &format!("provider=cpu batch-size=2 regions=rois {properties}")),
        ));
        let seen = watch(&pipeline, "nms", |buffer| {
            gstnmsfilter::regions::iter(buffer)
                .map(|region| {
                    let classes = region.classes().map(|it| it.label.unwrap().to_str().unwrap());
                    (region.id, classes.map(str::to_owned).collect::<Vec<_>>())
                })
                .collect::<Vec<_>>()
        });
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]), "{properties}");
        let mut expected = [
            (0, vec!["green".to_owned()]),
            (1, vec!["red".to_owned()]),
            (2, vec!["blue".to_owned()]),
        ];
        if properties == "roi-labels=class-0" {
            expected[2].1.clear();
        }
        assert_eq!(*seen.lock().unwrap(), [expected.to_vec(), expected.to_vec()], "{properties}");
    }
}

/// The id in a `.modelinfo` file selects the decoder.
#[test]
fn the_id_of_the_output_selects_the_classifier() {
    if !has_onnx_runtime() {
        return;
    }
    let info = "[modelinfo]\nversion=1.0\n[input]\ntype=float32\ndims=1,3,8,8\ndir=input\nranges=0.0,1.0\n\
                [logits]\nid=classification-generic-out\ntype=float32\ndims=1,3\ndir=output\n";
    let model = WithInfo::new(&colors(), info);
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 pattern=blue ! video/x-raw,format=RGB,width=320,height=240
           ! {} ! nmsfilter name=nms ! fakesink",
        inference(&model.path, "provider=cpu"),
    ));
    let seen = watch(&pipeline, "nms", |buffer| {
        let labels =
            gstnmsfilter::regions::iter(buffer).map(|it| (it.label.to_owned(), it.rectangle));
        labels.collect::<Vec<_>>()
    });
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    assert_eq!(*seen.lock().unwrap(), [[(c"blue".to_owned(), [0, 0, 320, 240])]]);
}
