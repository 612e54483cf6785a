// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `.launch` files in `pipelines/` that run a model, as `pipelines/play.sh` plays them: boxes on a
//! picture, a video and a camera's pictures.

use std::path::{Path, PathBuf};

use gst::prelude::*;

use crate::detections::{Region, ULTRAFACE, YOLOV8, regions};
use crate::element::{has_onnx_runtime, init};
use crate::support::play::{play_sh, words};
use crate::support::scratch::Scratch;
use crate::support::{data, pipeline};

/// Runs the pipeline of these words; the regions on each buffer that leaves the element `out`.
fn run(words: &[String]) -> Vec<Vec<Region>> {
    init();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let parsed = gst::parse::launchv(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let pipeline: gst::Pipeline = parsed.downcast().expect("several elements make a pipeline");
    let seen = pipeline::watch(&pipeline, "out", regions);
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{words:?}");
    assert_eq!(ended.warnings, [""; 0], "{words:?}");
    std::mem::take(&mut *seen.lock().unwrap())
}

/// The paths of a model and a picture; `None`, which is reported as a skip, without them or ONNX Runtime.
fn inputs(model: &str, picture: &str) -> Option<[PathBuf; 2]> {
    let (Some(model), Some(picture)) = (data::path(model), data::path(picture)) else {
        return None;
    };
    has_onnx_runtime().then_some([model, picture])
}

/// `variable=path`.
fn set(variable: &str, path: &Path) -> String {
    format!("{variable}={}", path.display())
}

#[test]
fn detect_picture_launch_writes_a_picture_with_the_boxes_of_faces() {
    let Some([model, picture]) = inputs(ULTRAFACE.file, "data/images/crowd_selfie.jpg") else {
        return;
    };
    let folder = Scratch::new();
    let output = folder.join("with boxes.png");
    let frames = run(&words(&[
        "detect-picture",
        &set("model", &model),
        &set("input", &picture),
        &set("output", &output),
        "inference=letterbox=none provider=cpu",
        "nms=score-threshold=0.25",
    ]));
    assert_eq!(frames.len(), 1);
    assert!((250..280).contains(&frames[0].len()), "{} regions", frames[0].len());
    let png = std::fs::read(&output).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 100_000, "{} bytes", png.len());
}

#[test]
fn detect_file_launch_writes_a_video_with_the_boxes_of_faces() {
    let Some([model, picture]) = inputs(ULTRAFACE.file, "data/images/crowd_selfie.jpg") else {
        return;
    };
    let folder = Scratch::new();
    let (video, output) = (folder.join("crowd.avi"), folder.join("boxes.avi"));
    let description = format!(
        "filesrc location={} ! decodebin ! imagefreeze num-buffers=3 ! video/x-raw,framerate=25/1
         ! videoconvert ! jpegenc ! avimux ! filesink location={}",
        picture.display(),
        video.display()
    );
    assert_eq!(pipeline::run(&pipeline::parse(&description)).error, None);
    let frames = run(&words(&[
        "detect-file",
        &set("model", &model),
        &set("input", &video),
        &set("output", &output),
    ]));
    assert_eq!(frames.len(), 3);
    for regions in frames {
        assert!((200..300).contains(&regions.len()), "{} regions", regions.len());
    }
    let size = std::fs::metadata(&output).unwrap().len();
    assert!(size > 3 * 100_000, "{size} bytes");
}

/// Another source and sink: there is neither camera nor screen.
#[test]
fn detect_camera_launch_attaches_the_labels_of_the_model() {
    let Some([model, picture]) = inputs(YOLOV8.file, "data/images/street.png") else { return };
    let mut words = words(&["detect-camera", &set("model", &model)]);
    let at = |word: &str| words.iter().position(|is| is == word).expect("it has this word");
    let (source, sink) = (at("v4l2src"), at("autovideosink"));
    assert_eq!(words[source + 1], "device=/dev/video0");
    words[source] = "filesrc".to_owned();
    words[source + 1] = set("location", &picture);
    words[sink] = "fakesink".to_owned();
    let frames = run(&words);
    assert_eq!(frames.len(), 1);
    assert!(frames[0].len() > 10, "{} regions", frames[0].len());
    assert!(frames[0].iter().any(|region| region.label() == "person"), "{frames:?}");
}

#[test]
fn play_sh_refuses_a_variable_without_a_value_and_other_names() {
    for (arguments, expected) in [
        (&["detect-picture", "input=a.png"][..], "model has no value"),
        (&["detect-picture", "image=a.png"], "there is no variable for image=a.png"),
        (&["crowd", "model=a.onnx"], "there is no variable for model=a.onnx"),
        (&["nothing"], "usage: play.sh NAME"),
    ] {
        let output = play_sh(arguments);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn play_sh_keeps_spaces_of_paths_and_splits_further_properties() {
    let words = words(&["detect-picture", "model=a b.onnx", "input=$c d.png", "nms=x=1 y=2"]);
    for word in ["model=a b.onnx", "location=$c d.png", "x=1", "y=2", "location=boxes.png"] {
        assert!(words.iter().any(|is| is == word), "{word}: {words:?}");
    }
    assert!(!words.iter().any(|word| word.contains("$nms") || word.is_empty()), "{words:?}");
}
