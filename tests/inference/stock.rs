// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ortinference` and GStreamer's own inference element, compared on equal pictures and models.
//!
//! GStreamer's element is linked with an ONNX Runtime library whose version can differ from the one
//! that `ortinference` loads. By default it runs models without optimization. Therefore tensors
//! differ by rounding in single precision.

use crate::detections::{DetectorCase, Region, ULTRAFACE, YOLOV8, picture, regions};
use crate::element::{self, Tensor, has_onnx_runtime, tensors};
use crate::support::skip::skip;
use crate::support::{data, pipeline};

/// Returns the tensors and regions of a picture with this inference element.
fn infer(source: &str, inference: &str) -> (Vec<Tensor>, Vec<Region>) {
    let description = format!("{source} ! {inference} ! nmsfilter name=nms ! fakesink");
    let pipeline = pipeline::parse(&description);
    let seen = pipeline::watch(&pipeline, "nms", |buffer| (tensors(buffer), regions(buffer)));
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{description}");
    seen.lock().unwrap().remove(0)
}

/// Returns the greatest difference between corresponding elements.
fn difference(a: &Tensor, b: &Tensor) -> f32 {
    assert_eq!(a.shape, b.shape);
    let pairs = a.f32().iter().zip(b.f32());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Asserts that the tensors of both elements differ by at most `tolerances`, one per output.
/// Asserts that the regions are equal in number, class and order, and that their positions agree to
/// a thousandth of the picture's side.
fn equals_onnxinference(model: &DetectorCase, file: &str, tolerances: &[f32]) {
    if !has_onnx_runtime() {
        return;
    }
    if gst::ElementFactory::find("onnxinference").is_none() {
        skip("onnxinference");
        return;
    }
    let (Some(source), Some(path)) = (picture(file), data::path(model.file)) else { return };
    let [width, height] = model.size;
    let source = format!(
        "{source} ! videoscale ! video/x-raw,format=RGB,width={width},height={height},\
         pixel-aspect-ratio=1/1"
    );
    let stock = format!("onnxinference model-file={}", path.display());
    let (theirs, their_regions) = infer(&source, &stock);
    let (ours, our_regions) = infer(&source, &element::inference(&path, "provider=cpu"));
    assert_eq!(ours.len(), theirs.len());
    for (ours, tolerance) in ours.iter().zip(tolerances) {
        let theirs = theirs.iter().find(|tensor| tensor.id == ours.id).expect("the same ids");
        let difference = difference(ours, theirs);
        println!("{file}: {} differs by {difference}", ours.id);
        assert!(difference <= *tolerance, "{} differs by {difference}", ours.id);
    }
    println!("{file}: {} regions", our_regions.len());
    assert_eq!(our_regions.len(), their_regions.len());
    let mut worst = [0.0f64; 2];
    for (ours, theirs) in our_regions.iter().zip(&their_regions) {
        let [score, edges] = ours.difference(theirs).expect("the same classes, in the same order");
        worst = [worst[0].max(score), worst[1].max(edges)];
    }
    println!("{file}: scores differ by {}, edges by {}", worst[0], worst[1]);
    assert!(worst[1] < 1e-3, "{worst:?}");
}

#[test]
fn faces_of_a_crowd_equal_onnxinference_results() {
    crate::support::needs::needs!(tensor_caps);
    equals_onnxinference(&ULTRAFACE, "data/images/crowd_selfie.jpg", &[1e-4, 1e-4]);
}

#[test]
fn faces_of_the_papers_picture_equal_onnxinference_results() {
    crate::support::needs::needs!(tensor_caps);
    equals_onnxinference(&ULTRAFACE, "data/oscars/oscars.png", &[1e-4, 1e-4]);
}

#[test]
fn objects_of_a_street_equal_onnxinference_results() {
    crate::support::needs::needs!(tensor_caps);
    equals_onnxinference(&YOLOV8, "data/images/street.png", &[1.0]);
}
