// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that are refused, and recordings that would overwrite a file that the program reads.

use std::path::Path;
use std::process::Command;

use crate::data;
use crate::program::run;
use crate::scratch::Scratch;

/// Returns the only line on standard error. The run must end with status 1, and without a JSON
/// line.
pub fn error(arguments: &[&str]) -> String {
    let ended = run(arguments);
    assert_eq!(
        (ended.status, ended.lines.len()),
        (Some(1), 0),
        "{arguments:?}: {:?}",
        ended.errors
    );
    let [error] = &ended.errors[..] else { panic!("{arguments:?}: {:?}", ended.errors) };
    error.strip_prefix("smart-camera: ").expect("the program's name comes first").to_owned()
}

#[test]
fn numbers_that_make_no_sense_are_refused_with_the_name_of_their_option() {
    for (option, value, expected) in [
        ("--frames", "0", "a whole number, 1 or more"),
        ("--frames", "-1", "a whole number, 1 or more"),
        ("--frames", "many", "a whole number, 1 or more"),
        ("--timeout", "0", "a number of seconds above 0"),
        ("--timeout", "-3", "a number of seconds above 0"),
        ("--timeout", "nan", "a number of seconds above 0"),
        ("--timeout", "soon", "a number of seconds above 0"),
        ("--record", "out.mp4", "a name that ends in .mkv, since it is Matroska"),
        ("--labels", "person, 5", "labels; for classes by number set --nms classes=0,5"),
        ("--labels", "", "at least one label, such as person,bicycle"),
        ("--labels", " ,", "at least one label, such as person,bicycle"),
    ] {
        let assigned = format!("{option}={value}");
        let got = value.rsplit(", ").next().unwrap();
        assert_eq!(
            error(&["test", "--preview", &assigned]),
            format!("{option}: expected {expected}, got {got:?}")
        );
    }
    assert!(error(&["test", "--zone", "a=0,0,x,1"]).starts_with("--zone: expected NAME=x,y,w,h"));
}

/// As `smart-camera --help | head -1`, whose reader closes the pipe.
#[test]
fn help_that_nobody_reads_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let program = env!("CARGO_BIN_EXE_smart-camera");
    let ended = Command::new(program).arg("--help").stdout(writer).output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn two_zones_of_one_name_are_refused() {
    let zones = ["--zone", "door=0,0,1,1", "--zone", "b=0,0,1,1", "--zone", "door=0,0,0.5,1"];
    let message = error(&[&["test"][..], &zones].concat());
    assert_eq!(message, "--zone: expected names that differ, got \"door\"");
}

#[test]
fn a_recording_onto_a_file_that_is_read_is_refused_and_the_file_is_unchanged() {
    let folder = Scratch::new();
    let at = |name: &str| folder.join(name).into_os_string().into_string().unwrap();
    let (file, hard, soft) = (at("in.mkv"), at("hard.mkv"), at("soft.mkv"));
    let bytes = b"what is in the file does not matter";
    std::fs::write(&file, bytes).unwrap();
    std::fs::hard_link(&file, &hard).unwrap();
    std::os::unix::fs::symlink("in.mkv", &soft).unwrap();
    let dotted = folder.join("./in.mkv").into_os_string().into_string().unwrap();
    let upward =
        at("../") + &format!("{}/in.mkv", Path::new(&*folder).file_name().unwrap().display());
    let uri = format!("file://{file}");
    let location = format!("bin:filesrc location={file} ! decodebin");
    let labels = format!("label-file={file}");

    let refused = |arguments: &[&str]| {
        let message = error(arguments);
        assert!(message.contains("it is the same file as"), "{arguments:?}: {message}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{arguments:?}");
    };
    for record in [&file, &hard, &soft, &dotted, &upward] {
        for source in [&file, &uri, &hard] {
            refused(&[source, "--model", "/no/model.onnx", "--record", record]);
        }
        refused(&[&location, "--record", record]);
        refused(&[&location, "--output", record]);
        refused(&["test", "--nms", &labels, "--record", record]);
        refused(&["/no/street.mp4", "--model", &file, "--record", record]);
    }
}

#[test]
fn a_recording_beside_the_file_that_is_read_is_made() {
    let (Some(picture), Some(model)) =
        (data("data/images/bus.jpg"), data("data/models/yolov8n_int8_320.onnx"))
    else {
        return;
    };
    let folder = Scratch::new();
    let record = folder.join("out.MKV").into_os_string().into_string().unwrap();
    for _ in 0..2 {
        let ended = run(&[&picture, "--model", &model, "--record", &record]);
        assert_eq!((ended.status, ended.lines.len()), (Some(0), 1), "{:?}", ended.errors);
        assert!(std::fs::metadata(&record).unwrap().len() > 10_000);
    }
}
