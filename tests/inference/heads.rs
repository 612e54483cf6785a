// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detectors whose last tensors before the decode step are outputs, as in models that are cut for NPUs.

use gst_video::VideoRegionOfInterestMeta;

use crate::element::{file_of_bytes, has_onnx_runtime, inference};
use crate::support::data;
use crate::support::onnx::with_outputs;
use crate::support::pipeline::{Region, parse, regions, run, watch};
use crate::support::scratch::Scratch;

/// A region, and the number of pixels that its mask sets; 0 without a mask.
type Found = (Region, f64);

/// The regions that the model's own output and its heads have, found by a decoder and its relative for heads. The model
/// has an input of 320x320 pixels.
fn own_and_of_heads(model: &str, parts: &[&str], decoders: [&str; 2]) -> Option<[Vec<Found>; 2]> {
    let (model, picture) = (data::path(model)?, data::path("data/images/bus.jpg")?);
    let head = |part: &&str, level: usize| {
        format!("/model.22/{part}.{level}/{part}.{level}.2/Conv_output_0")
    };
    let heads: Vec<String> =
        (0..3).flat_map(|level| parts.iter().map(move |part| head(part, level))).collect();
    let model = file_of_bytes(&with_outputs(&std::fs::read(model).unwrap(), &heads));
    Some(decoders.map(|properties| {
        let pipeline = parse(&format!(
            "filesrc location={} ! jpegdec ! videoconvert ! {} ! nmsfilter name=nms {properties} ! fakesink",
            picture.display(),
            inference(&model, "provider=cpu"),
        ));
        let seen = watch(&pipeline, "nms", |buffer| {
            regions(buffer).into_iter().zip(mask_areas(buffer)).collect::<Vec<Found>>()
        });
        assert_eq!(run(&pipeline).error, None);
        seen.lock().unwrap().remove(0)
    }))
}

/// The number of pixels that the mask of each region sets.
fn mask_areas(buffer: &gst::BufferRef) -> Vec<f64> {
    let area = |region: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
        let mask = region.params().find(|structure| structure.name() == "mask");
        let bytes = mask.map(|mask| mask.get::<gst::glib::Bytes>("data").unwrap());
        bytes.map_or(0.0, |bytes| bytes.iter().map(|byte| f64::from(byte.count_ones())).sum())
    };
    buffer.iter_meta::<VideoRegionOfInterestMeta>().map(area).collect()
}

/// Asserts that the regions are equal up to the rounding of the model's quantized decode step, which the heads do not
/// pass.
fn assert_near(heads: &[Found], expected: &[Found]) {
    assert!(expected.len() >= 4, "{expected:?}");
    assert_eq!(heads.len(), expected.len());
    for (((label, found), area), ((expected_label, expected), expected_area)) in
        heads.iter().zip(expected)
    {
        assert_eq!(label, expected_label);
        // Boxes have up to 786 pixels; one bin of a head of stride 32 is 108 pixels of the picture.
        let near = |(a, b): (&u32, &u32)| a.abs_diff(*b) <= 12;
        assert!(found.iter().zip(expected).all(near), "{found:?}, expected {expected:?}");
        assert!((area - expected_area).abs() <= 0.05 * expected_area, "{area}, {expected_area}");
    }
}

#[test]
fn the_heads_of_yolov8_have_its_detections() {
    if !has_onnx_runtime() {
        return;
    }
    let decoders = ["decoder=yolov8", "decoder=yolov8-heads score-activation=sigmoid"];
    let model = "data/models/yolov8n_int8_320.onnx";
    let Some([own, heads]) = own_and_of_heads(model, &["cv2", "cv3"], decoders) else { return };
    assert_near(&heads, &own);
}

#[test]
fn the_heads_of_yolov8_seg_have_its_masks() {
    if !has_onnx_runtime() {
        return;
    }
    let decoders = ["decoder=yolov8-seg", "decoder=yolov8-heads-seg score-activation=sigmoid"];
    let model = "data/models2026/models/yolov8n-seg_int8.onnx";
    let parts = ["cv2", "cv3", "cv4"];
    let Some([own, heads]) = own_and_of_heads(model, &parts, decoders) else { return };
    assert!(own.iter().all(|(_, area)| *area > 100.0), "{own:?}");
    assert_near(&heads, &own);
}

/// UltraFace's postprocessing and the decoder `ultraface-raw` give one box for each of the 4420 anchors, also for
/// those that are larger than the model's input. Tensor 460 has the offsets. The decoder is chosen by the ids.
#[test]
fn ultraface_without_postprocessing_has_the_boxes_of_its_postprocessing() {
    if !has_onnx_runtime() {
        return;
    }
    let paths =
        ["data/models/version-RFB-320.onnx", "data/images/crowd_selfie.jpg"].map(data::path);
    let [Some(model), Some(picture)] = paths else { return };
    let folder = Scratch::new();
    let file = folder.join("model.onnx");
    std::fs::write(&file, with_outputs(&std::fs::read(model).unwrap(), &["460".to_owned()]))
        .unwrap();
    let found = |decoder: &str, boxes: &str, id: &str| -> Vec<Region> {
        let family = "ultra-lightweight-face-detection-rfb-320-v1";
        let info = format!(
            "[modelinfo]\nversion=1.0\ngroup-id={family}-{decoder}\n\
             [input]\ndir=input\ntype=float32\ndims=1,3,240,320\nranges=-1.0,1.0\n\
             [scores]\ndir=output\ntype=float32\ndims=1,4420,2\nid={family}-variant-1-out-scores\n\
             [{boxes}]\ndir=output\ntype=float32\ndims=1,4420,4\nid={id}\n"
        );
        std::fs::write(folder.join("model.onnx.modelinfo"), info).unwrap();
        let pipeline = parse(&format!(
            "filesrc location={} ! jpegdec ! videoconvert ! {} ! nmsfilter name=nms method=none score-threshold=0
               max-detections=0 ! fakesink",
            picture.display(),
            inference(&file, "provider=cpu letterbox=none"),
        ));
        let seen = watch(&pipeline, "nms", regions);
        assert_eq!(run(&pipeline).error, None, "{decoder}");
        seen.lock().unwrap().remove(0)
    };
    let expected = found("variant-1-out", "boxes", "ssd-mobilenet-v1-variant-1-out-boxes");
    let id = "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes-without-postproc";
    let raw = found("without-postproc-out", "460", id);
    assert!(expected.len() > 4000, "{}", expected.len());
    assert_eq!(raw.len(), expected.len());
    for ((label, found), (expected_label, expected)) in raw.iter().zip(&expected) {
        assert_eq!(label, expected_label);
        let near = |(a, b): (&u32, &u32)| a.abs_diff(*b) <= 1;
        assert!(found.iter().zip(expected).all(near), "{found:?}, expected {expected:?}");
    }
}
