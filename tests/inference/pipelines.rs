// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `.launch` files in `pipelines/` that run a model, as `pipelines/play.sh` plays them: boxes
//! on a picture, on a video, and on pictures of a camera.

use std::path::{Path, PathBuf};

use gst::prelude::*;

use crate::detections::{Region, ULTRAFACE, YOLOV8, regions};
use crate::element::{has_onnx_runtime, init};
use crate::support::play::{play_sh, play_sh_with, words};
use crate::support::scratch::Scratch;
use crate::support::{data, pipeline};

/// Runs the pipeline. Returns the regions on each buffer that leaves the element `out`.
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

/// Returns the paths of a model and a picture. If one of them or ONNX Runtime is missing, returns
/// `None` and reports a skip.
fn inputs(model: &str, picture: &str) -> Option<[PathBuf; 2]> {
    let (Some(model), Some(picture)) = (data::path(model), data::path(picture)) else {
        return None;
    };
    has_onnx_runtime().then_some([model, picture])
}

/// Returns `variable=path`.
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

/// Source and sink are replaced, because there is neither a camera nor a screen.
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
        (&["nothing"], "usage: play.sh [-m] NAME"),
        (
            &["detect-picture", "model=a.onnx", "input=a.jpg", "output=boxes.jpg"],
            "output=boxes.jpg: expected a name that ends in .png, the format that detect-picture writes",
        ),
        (
            &["detect-file", "model=a.onnx", "input=a.mp4", "output=b.c/boxes.mp4"],
            "output=b.c/boxes.mp4: expected a name that ends in .avi, the format that detect-file writes",
        ),
    ] {
        let output = play_sh(arguments);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn play_sh_names_the_pipeline_for_pictures() {
    let folder = Scratch::new();
    let beginnings: [(&str, &[u8]); 2] =
        [("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"), ("b", b"\x89PNG\r\n\x1a\n")];
    for (name, bytes) in beginnings {
        let file = folder.join(name);
        std::fs::write(&file, bytes).unwrap();
        let input = format!("input={}", file.display());
        let output = play_sh(&["detect-file", "model=a.onnx", &input]);
        let text = String::from_utf8(output.stderr).unwrap();
        let expected =
            format!("{input}: expected a video, got a picture; play detect-picture instead");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn play_sh_does_not_write_a_file_that_is_read() {
    let folder = Scratch::new();
    let at = |name: &str| folder.join(name).into_os_string().into_string().unwrap();
    let (file, hard, soft) = (at("in.avi"), at("hard.avi"), at("soft link.AVI"));
    std::fs::write(&file, b"its contents do not matter").unwrap();
    std::fs::hard_link(&file, &hard).unwrap();
    std::os::unix::fs::symlink("in.avi", &soft).unwrap();
    let dotted = folder.join("./in.avi").into_os_string().into_string().unwrap();
    for output in [&file, &hard, &soft, &dotted] {
        for [model, input, nms] in [
            ["a.onnx", &*file, ""],
            ["a.onnx", &*soft, ""],
            ["a.onnx", &format!("file://{file}"), ""],
            [&*file, "a.mp4", ""],
            ["a.onnx", "a.mp4", &format!("decoder=yolov5 label-file={file}")],
        ] {
            let [model, input, nms] = [("model", model), ("input", input), ("nms", nms)]
                .map(|(variable, value)| format!("{variable}={value}"));
            let output = format!("output={output}");
            let played = play_sh(&["detect-file", &model, &input, &nms, &output]);
            assert_eq!(played.status.code(), Some(2), "{output} {model} {input} {nms}");
            let text = String::from_utf8(played.stderr).unwrap();
            assert!(text.contains("expected another file than those that are read"), "{text}");
        }
    }
    let other = format!("output={}", at("out.avi"));
    let words = words(&["detect-file", "model=a.onnx", &format!("input={file}"), &other]);
    assert!(words.contains(&format!("location={}", at("out.avi"))), "{words:?}");
}

#[test]
fn play_sh_names_demo_sh_if_the_plugins_are_not_built() {
    let played = play_sh_with("echo played", &["crowd"], None);
    assert_eq!(played.status.code(), Some(1));
    let text = String::from_utf8(played.stderr).unwrap();
    let expected = "the plugins are not built: run ./pipelines/demo.sh first, or set GST_PLUGIN_PATH to their \
                    folder\n";
    assert_eq!((text.as_str(), played.stdout), (expected, Vec::new()));
}

/// Returns the beginning of a JPEG file with an EXIF orientation, in big-endian or little-endian
/// byte order.
fn jpeg_with_orientation(orientation: u8, big: bool) -> Vec<u8> {
    let directory: &[u8] = if big {
        b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"
    } else {
        b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"
    };
    let mut jpeg = b"\xff\xd8\xff\xe1\0\x22Exif\0\0".to_vec();
    jpeg.extend(directory);
    jpeg.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    jpeg.truncate(4 + 0x22);
    jpeg
}

#[test]
fn play_sh_turns_a_picture_as_its_exif_data_have_it() {
    let folder = Scratch::new();
    let picture = folder.join("a picture.jpg");
    let direction = |bytes: &[u8], further: &[&str]| {
        std::fs::write(&picture, bytes).unwrap();
        let input = set("input", &picture);
        let words = words(&[&["detect-picture", "model=a.onnx", &input], further].concat());
        let direction = words.iter().find_map(|word| word.strip_prefix("video-direction="));
        direction.expect("there is a videoflip").to_owned()
    };
    let directions = ["identity", "horiz", "180", "vert", "ul-lr", "90r", "ur-ll", "90l"];
    for big in [true, false] {
        for (orientation, expected) in (1..).zip(directions) {
            assert_eq!(direction(&jpeg_with_orientation(orientation, big), &[]), expected);
        }
        for orientation in [0, 9, 10, 255] {
            assert_eq!(direction(&jpeg_with_orientation(orientation, big), &[]), "auto");
        }
    }
    let turned = jpeg_with_orientation(6, true);
    for other in [&b""[..], b"\xff\xd8", b"\x89PNG\r\n", &turned[2..], &turned[..20]] {
        assert_eq!(direction(other, &[]), "auto", "{other:?}");
    }
    assert_eq!(direction(&turned, &["direction=identity"]), "identity");
}

#[test]
fn play_sh_decodes_jpeg_files_with_the_accurate_transform() {
    let folder = Scratch::new();
    let decoder = |bytes: &[u8], further: &[&str]| {
        let picture = folder.join("picture");
        std::fs::write(&picture, bytes).unwrap();
        let input = set("input", &picture);
        let words = words(&[&["detect-picture", "model=m.onnx", &input], further].concat());
        let sink = words.iter().position(|word| word == "videoconvert").expect("it has one");
        words[3..sink - 1].join(" ")
    };
    let jpeg = jpeg_with_orientation(1, true);
    assert_eq!(decoder(&jpeg, &[]), "jpegdec idct-method=islow");
    assert_eq!(decoder(&jpeg, &["decoder=avdec_mjpeg"]), "avdec_mjpeg");
    for other in [&b""[..], b"\xff\xd8", b"\x89PNG\r\n"] {
        assert_eq!(decoder(other, &[]), "decodebin", "{other:?}");
    }
}

#[test]
fn detect_picture_launch_finds_equal_objects_in_turned_and_upright_pictures() {
    let Some([model, picture]) = inputs(YOLOV8.file, "data/images/bus.jpg") else { return };
    let folder = Scratch::new();
    let turned = folder.join("turned.jpg");
    let description = format!(
        "filesrc location={} ! jpegdec ! videoflip video-direction=90l ! jpegenc quality=95
         ! filesink location={}",
        picture.display(),
        turned.display()
    );
    init();
    assert_eq!(pipeline::run(&pipeline::parse(&description)).error, None);
    let jpeg = std::fs::read(&turned).unwrap();
    std::fs::write(&turned, [&jpeg_with_orientation(6, true), &jpeg[2..]].concat()).unwrap();

    let output = set("output", &folder.join("boxes.png"));
    let labels = |input: &Path| {
        let nms = "nms=score-threshold=0.6";
        let words =
            words(&["detect-picture", &set("model", &model), &set("input", input), &output, nms]);
        let frames = run(&words);
        let mut labels: Vec<_> = frames[0].iter().map(|region| region.label().to_owned()).collect();
        labels.sort();
        labels
    };
    let upright = labels(&picture);
    assert!(upright.contains(&"bus".to_owned()) && upright.len() > 3, "{upright:?}");
    assert_eq!(labels(&turned), upright);
}

#[test]
fn play_sh_prints_what_was_found_and_written() {
    init();
    let array = |values: &[&str]| gst::Array::new(values);
    let stats = |frames: u64, missing: u64, labels: &[&str], counts: &[u64]| {
        let stats = gst::Structure::builder("nmsfilter-stats")
            .field("frames", frames)
            .field("frames-without-tensors", missing)
            .field("survivors", counts.iter().sum::<u64>())
            .field("labels", array(labels))
            .field("label-counts", gst::Array::new(counts))
            .field("engine", "cpu");
        format!("Got message #98 from element \"nmsfilter0\" (element): {}", stats.build())
    };
    let play = |arguments: &[&str], lines: &[String]| {
        let folder = Scratch::new();
        let printed = folder.join("printed");
        std::fs::write(&printed, lines.join("\n") + "\n").unwrap();
        let launch = format!("cat '{}'", printed.display());
        let played = play_sh_with(&launch, arguments, Some("/nonexistent"));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (played.status.code(), text(played.stdout), text(played.stderr))
    };
    let picture = ["detect-picture", "model=a.onnx", "input=a.jpg", "output=x y.png"];
    let others = ["Setting pipeline to PAUSED ...", "Got message #1 from element \"a\" (eos): no"];
    let others = others.map(str::to_owned);
    let warning = "WARNING: from element /GstPipeline:pipeline0: odd".to_owned();
    let labels = ["person", "traffic light", "Äpfel, \"rot\" > 1", "class-7"];
    let found = stats(1, 0, &labels, &[8, 2, 1, 1]);
    let lines = [&others[..], &[warning.clone(), found]].concat();
    let expected =
        "wrote x y.png: 12 objects (person 8, traffic light 2, Äpfel, \"rot\" > 1 1, class-7 1)\n";
    assert_eq!(play(&picture, &lines), (Some(0), expected.to_owned(), warning + "\n"));

    let nothing = stats(1, 0, &[], &[]);
    let expected = "wrote x y.png: 0 objects\n".to_owned();
    assert_eq!(play(&picture, &[nothing]), (Some(0), expected, String::new()));

    let two = [stats(50, 0, &["object"], &[3000]), stats(50, 2, &["object"], &[2900])];
    let expected = "50 frames, 3000 objects (object 3000)\n50 frames, 2900 objects (object 2900), 2 of 50 \
                    frames without tensors\n";
    assert_eq!(play(&["tee"], &two), (Some(0), expected.to_owned(), String::new()));

    // If a pipeline fails, its output is discarded because it may be incomplete.
    let played = play_sh_with("echo error >&2; exit 3", &picture, Some("/nonexistent"));
    assert_eq!((played.status.code(), played.stdout), (Some(3), Vec::new()));
    assert_eq!(String::from_utf8(played.stderr).unwrap(), "error\n");
}

#[test]
fn play_sh_keeps_spaces_of_paths_and_splits_further_properties() {
    let words = words(&["detect-picture", "model=a b.onnx", "input=$c d.png", "nms=x=1 y=2"]);
    for word in ["model=a b.onnx", "location=$c d.png", "x=1", "y=2", "location=boxes.png"] {
        assert!(words.iter().any(|is| is == word), "{word}: {words:?}");
    }
    assert!(!words.iter().any(|word| word.contains("$nms") || word.is_empty()), "{words:?}");
}
