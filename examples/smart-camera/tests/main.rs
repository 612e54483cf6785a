// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the built program: its lines are JSON with correct counts, sources that fail are
//! restarted, a signal ends it, and each error is a single line.
//!
//! Tests with a model need ONNX Runtime (`ORT_DYLIB_PATH`), and inputs that are not part of the
//! project.

mod camera;
mod program;
#[path = "../../../tests/support/project.rs"]
mod project;
mod recordings;
mod refused;
#[path = "../../../tests/support/scratch.rs"]
#[allow(dead_code, reason = "other test programs use the rest")]
mod scratch;
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod sources;
mod tracks;
mod view;
mod support {
    pub(crate) use crate::project;
}
#[path = "../../../tests/support/data.rs"]
#[allow(dead_code, reason = "other test programs use the rest")]
mod data;

use serde_json::Value;

use camera::Camera;
use program::{Program, run};
use scratch::Scratch;

const HALVES: [&str; 4] = ["--zone", "left=0,0,0.5,1", "--zone", "right=0.5,0,0.5,1"];

/// Returns the path of an input for tests with a model. If it is missing, returns `None` and
/// reports a skip.
fn data(relative: &str) -> Option<String> {
    if std::env::var_os("ORT_DYLIB_PATH").is_none() {
        skip::skip("ONNX Runtime (ORT_DYLIB_PATH)");
        return None;
    }
    Some(data::path(relative)?.into_os_string().into_string().unwrap())
}

/// Returns how many detections of a label have their center between `left` and `right`.
fn between(line: &Value, label: &str, left: f64, right: f64) -> u64 {
    let is_there = |object: &&Value| {
        let [low, high] = ["x_min", "x_max"]
            .map(|edge| object["detection"]["bounding_box"][edge].as_f64().unwrap());
        object["roi_type"] == label && (left..right).contains(&((low + high) / 2.0))
    };
    line["objects"].as_array().unwrap().iter().filter(is_there).count() as u64
}

#[test]
fn the_test_source_gives_a_line_per_frame_with_the_counts_of_each_zone() {
    let ended = run(&[&["test", "--frames", "5"][..], &HALVES].concat());
    assert_eq!(ended.status, Some(0), "{:?}", ended.errors);
    assert_eq!(ended.lines.len(), 5);
    for (index, line) in ended.lines.iter().enumerate() {
        assert!(line["frame"].as_u64().unwrap() >= index as u64);
        assert!(line["time"].as_f64().unwrap() > 1.7e9, "seconds since 1970");
        assert!(line["latency"].is_f64() && line["provider"].is_null());
        assert!(["cpu", "cuda"].contains(&line["engine"].as_str().unwrap()));
        let [left, right] = [(0.0, 0.5), (0.5, 1.0)].map(|(l, r)| between(line, "object", l, r));
        assert_eq!(line["zones"]["left"]["object"], left);
        assert_eq!(line["zones"]["right"]["object"], right);
        assert!((50..90).contains(&(left + right)), "about sixty people, {}", left + right);
    }
}

#[test]
fn lines_go_to_a_file_or_a_tcp_server_instead_of_standard_output() {
    let folder = Scratch::new();
    let file = folder.join("out.ndjson").into_os_string().into_string().unwrap();
    let lines = |text: &str| {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    for count in [3, 6] {
        let ended = run(&["test", "--frames", "3", "--output", &file]);
        assert_eq!((ended.status, ended.lines.len()), (Some(0), 0), "{:?}", ended.errors);
        let found = lines(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(found.len(), count, "lines are appended");
        assert!(found.iter().all(|line| between(line, "object", 0.0, 1.0) > 10));
    }

    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", server.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let (stream, _) = server.accept().unwrap();
        std::io::read_to_string(stream).unwrap()
    });
    let ended = run(&["test", "--frames", "3", "--output", &address]);
    assert_eq!((ended.status, ended.lines.len()), (Some(0), 0), "{:?}", ended.errors);
    assert_eq!(lines(&reader.join().unwrap()).len(), 3);
}

#[test]
fn a_file_gives_every_frame_with_the_labels_of_the_model() {
    let video = data("data/videos/towncentre_96f_1080p.mp4");
    let (Some(video), Some(model)) = (video, data("data/models/yolov8n_int8_320.onnx")) else {
        return;
    };
    let arguments = [&video, "--model", &model, "--labels", "person,dog"];
    let ended = run(&[&arguments[..], &HALVES].concat());
    assert_eq!(ended.status, Some(0), "{:?}", ended.errors);
    assert_eq!(ended.lines.len(), 96);
    for (index, line) in ended.lines.iter().enumerate() {
        assert_eq!(line["frame"], index);
        let position = line["position"].as_f64().unwrap();
        assert!((position - index as f64 / 25.0).abs() < 0.001, "{position} of frame {index}");
        assert!(line["latency"].is_null());
        let [left, right] = [(0.0, 0.5), (0.5, 1.0)].map(|(l, r)| between(line, "person", l, r));
        assert_eq!(line["zones"]["left"]["person"], left);
        assert_eq!(line["zones"]["right"]["person"], right);
        // The requested labels are present even without detections, and other labels are absent.
        assert_eq!(line["zones"]["left"].as_object().unwrap().len(), 2);
        assert_eq!(line["zones"]["left"]["dog"], between(line, "dog", 0.0, 0.5));
        assert!(left + right >= 3, "a busy street: {left} and {right} in frame {index}");
    }
}

#[test]
fn lines_say_which_frames_were_inferred_and_others_have_no_counts() {
    let video = data("data/videos/towncentre_96f_1080p.mp4");
    let (Some(video), Some(model)) = (video, data("data/models/yolov8n_int8_320.onnx")) else {
        return;
    };
    let inference = ["--inference", "inference-interval=2"];
    let ended = run(&[&[&*video, "--model", &model, "--frames", "9"][..], &inference].concat());
    assert_eq!(ended.lines.len(), 9, "{:?}", ended.errors);
    for (index, line) in ended.lines.iter().enumerate() {
        let inferred = index % 3 == 0;
        assert_eq!(line["inferred"], inferred, "frame {index}");
        assert_eq!(line["zones"].is_null(), !inferred, "frame {index}");
        assert_eq!(between(line, "person", 0.0, 1.0) > 0, inferred, "frame {index}");
    }
}

#[test]
fn a_picture_has_as_many_faces_as_onnx_runtime_and_numpy_find() {
    let picture = data("data/images/crowd_selfie.jpg");
    let (Some(picture), Some(model)) = (picture, data("data/models/version-RFB-640.onnx")) else {
        return;
    };
    let inference = ["--inference", "letterbox=none provider=cpu"];
    let nms = ["--nms", "score-threshold=0.25 iou-threshold=0.45"];
    let ended = run(&[&[&*picture, "--model", &model][..], &inference, &nms].concat());
    assert_eq!(ended.status, Some(0), "{:?}", ended.errors);
    let [line] = &ended.lines[..] else { panic!("{} lines", ended.lines.len()) };
    assert_eq!(line["provider"], "cpu");
    // Another program, which scales the picture, found 266.
    let faces = line["zones"]["frame"]["face"].as_u64().unwrap();
    assert!((256..=276).contains(&faces), "{faces}");
    assert_eq!(faces, between(line, "face", 0.0, 1.0));
}

#[test]
fn a_signal_ends_the_program_after_the_last_line_and_closes_the_recording() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = Scratch::new();
        let file = folder.join("out.mkv").into_os_string().into_string().unwrap();
        let program = Program::start(&["test", "--record", &file]);
        let mut frames = vec![program.line(), program.line(), program.line()];
        program.signal(signal);
        let ended = program.end();
        assert_eq!((ended.status, &ended.errors[..]), (Some(0), &[][..]));
        frames.extend(ended.lines);
        assert!(frames.is_sorted_by(|a, b| a["frame"].as_u64() < b["frame"].as_u64()));

        // If the file was closed properly, it has a duration and its frames can be read.
        let source = format!("bin:filesrc location={file} ! matroskademux ! jpegdec");
        let again = run(&[&source, "--frames", "1"]);
        assert_eq!((again.status, again.lines.len()), (Some(0), 1), "{:?}", again.errors);
    }
}

#[test]
fn a_camera_that_is_not_there_goes_away_or_hangs_is_started_again() {
    let camera = Camera::off();
    let program = Program::start(&[&camera.source(), "--timeout", "1"]);
    // There is no model and therefore no tensors, so nmsfilter posts a warning.
    let restart = || loop {
        let error = program.error();
        if error.contains("starts again") {
            return error;
        }
    };
    // Waits for a frame whose number is at least `number`, since a live source may lose frames.
    let mut lines = Vec::new();
    let mut wait_for = |number: u64| {
        while lines.last().is_none_or(|line: &Value| line["frame"].as_u64() < Some(number)) {
            lines.push(program.line());
        }
    };

    let error = restart();
    assert!(error.contains("Connection refused") && error.contains("again in 1s"), "{error}");
    let error = restart();
    assert!(error.contains("again in 2s"), "the pause is doubled: {error}");

    let on = camera.switch_on();
    drop(on.send(10));
    wait_for(0);
    let error = restart();
    assert!(error.contains("the end; starts again in 1s"), "the pause is short again: {error}");

    let hangs = on.send(10);
    wait_for(10);
    let error = restart();
    assert!(error.contains("no frame for 1s; starts again in 1s"), "{error}");
    drop(hangs);

    drop(on.send(10));
    wait_for(20);
    program.signal(libc::SIGTERM);
    let ended = program.end();
    assert_eq!(ended.status, Some(0), "{:?}", ended.errors);

    lines.extend(ended.lines);
    let numbers: Vec<u64> = lines.iter().map(|line| line["frame"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let positions = lines.iter().map(|line| line["position"].as_f64().unwrap());
    assert!(positions.is_sorted_by(|a, b| a < b), "timestamps go on");
}

#[test]
fn errors_are_one_line_and_status_1() {
    let zone = ["test", "--zone", "door=0.5,0.5,0.6,0.1"];
    for (arguments, expected) in [
        (&[][..], "no SOURCE"),
        (&["test", "--colour"], "--colour"),
        (&["test", "--model", "a.onnx"], "leave --model out"),
        (&["street.mp4"], "no --model"),
        (&zone, "--zone: expected NAME=x,y,w,h"),
        (&["test", "--nms", "overlap=most"], "overlap"),
        (&["test", "--output", "/no/folder/out.ndjson"], "--output /no/folder/out.ndjson: "),
        (&["test", "--output", "tcp://127.0.0.1:1"], "--output tcp://127.0.0.1:1: "),
        (
            &["street.mp4", "--model", "a.onnx", "--inference", "library=/no/library.so"],
            "/no/library.so",
        ),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.status, ended.lines.len()), (Some(1), 0), "{arguments:?}");
        let [error] = &ended.errors[..] else { panic!("{:?}", ended.errors) };
        assert!(error.starts_with("smart-camera: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_wrong_model_label_or_file_is_one_line_and_status_1() {
    let picture = data("data/images/crowd_selfie.jpg");
    let (Some(picture), Some(model)) = (picture, data("data/models/version-RFB-640.onnx")) else {
        return;
    };
    for (arguments, expected) in [
        (&[&*picture, "--model", "/no/model.onnx"][..], "/no/model.onnx"),
        (&[&*picture, "--model", &picture], "crowd_selfie.jpg"),
        (&[&*picture, "--model", &model, "--labels", "horse"], "horse"),
        (&["/no/street.mp4", "--model", &model], "/no/street.mp4"),
        (&[&*picture, "--model", &model, "--record", "/no/out.mkv"], "/no/out.mkv"),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.status, ended.lines.len()), (Some(1), 0), "{arguments:?}");
        let [error] = &ended.errors[..] else { panic!("{:?}", ended.errors) };
        assert!(error.starts_with("smart-camera: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn help_lists_every_option() {
    let program =
        std::process::Command::new(env!("CARGO_BIN_EXE_smart-camera")).arg("--help").output();
    let output = program.unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let help = String::from_utf8(output.stdout).unwrap();
    let source =
        std::fs::read_to_string(project::path("examples/smart-camera/src/options.rs")).unwrap();
    let options: Vec<&str> =
        source.split("Long(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(options.len() > 8);
    for option in options.iter().filter(|option| **option != "help") {
        assert!(help.contains(&format!("  --{option}")), "{option}");
    }
}
