// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources that block, sources that cannot be read, and sources whose pictures are turned or have
//! more than 8 bits.

use std::path::Path;

use gst::prelude::*;

use crate::data;
use crate::program::{Program, run};
use crate::scratch::Scratch;

#[test]
fn a_signal_ends_the_program_while_its_source_waits_for_the_writer_of_a_fifo() {
    let folder = Scratch::new();
    let fifo = folder.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of every system");
    let location = format!("bin:filesrc location={} ! decodebin", fifo.display());
    for has_writer in [false, true] {
        let program = Program::start(&[&location]);
        // If there is no writer, the source blocks in open(). If there is a writer that does not
        // write, the source blocks in read(). The writer is opened while the program reads, and is
        // closed after the program has ended.
        let writer = has_writer.then(|| std::fs::File::options().write(true).open(&fifo).unwrap());
        program.wait_until_signals_are_handled();
        program.signal(libc::SIGINT);
        let ended = program.end();
        assert_eq!((ended.status, ended.lines.len()), (Some(0), 0), "{:?}", ended.errors);
        drop(writer);
    }
}

#[test]
fn a_permanent_failure_ends_the_program() {
    let link = ["bin:videotestsrc ! audio/x-raw ! identity"];
    let negotiated = ["bin:fakesrc ! identity"];
    for (arguments, expected) in [
        (&["bin:nosuchsource ! identity"][..], "nosuchsource"),
        (&["bin:videotestsrc nosuch=1 ! identity"], "nosuch"),
        (&link, "could not link"),
        (&negotiated, "not-negotiated"),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.status, ended.lines.len()), (Some(1), 0), "{arguments:?}");
        let error = ended.errors.last().expect("the error is the last line");
        assert!(error.contains(expected), "{error}");
        let again = |line: &&String| line.contains("starts again");
        assert_eq!(ended.errors.iter().find(again), None, "{arguments:?}");
    }
    let Some(model_file) = data("data/models/yolov8n_int8_320.onnx") else { return };
    for (arguments, expected) in [
        (&["nosuch://camera", "--model", &model_file][..], "nosuch"),
        (&["/no/street.mp4", "--loop", "--model", &model_file], "/no/street.mp4"),
    ] {
        let ended = run(arguments);
        assert_eq!((ended.status, ended.lines.len()), (Some(1), 0), "{arguments:?}");
        let [error] = &ended.errors[..] else { panic!("{:?}", ended.errors) };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn passwords_are_in_no_line() {
    let address = "rtsp://me:geheim@127.0.0.1:1/stream?password=geheim";
    let elements =
        format!("bin:rtspsrc location={address} user-id=me user-pw=geheim ! decodebin ! identity");
    let wrong = format!("{elements} nosuch=1");
    let program = Program::start(&[&elements]);
    let line = program.error();
    assert!(line.contains("rtsp://me:***@127.0.0.1:1/stream?password=***"), "{line}");
    assert!(line.contains("user-pw=***") && line.contains("starts again in 1s"), "{line}");
    program.signal(libc::SIGTERM);
    let ended = program.end();
    let errors = [vec![line], ended.errors, run(&[&wrong]).errors].concat();
    assert!(!errors.iter().any(|line| line.contains("geheim")), "{errors:?}");
}

#[test]
fn frames_of_more_than_8_bits_are_recorded() {
    for format in ["I420_10LE", "ARGB64", "GRAY16_BE", "P010_10LE", "v210"] {
        let folder = Scratch::new();
        let record = folder.join("out.mkv").into_os_string().into_string().unwrap();
        let source = format!("bin:videotestsrc ! video/x-raw,format={format},width=64,height=48");
        let ended = run(&[&source, "--frames", "3", "--record", &record]);
        assert_eq!((ended.status, ended.lines.len()), (Some(0), 3), "{format}: {:?}", ended.errors);
        let again = format!("bin:filesrc location={record} ! matroskademux ! jpegdec");
        let again = run(&[&again, "--frames", "1"]);
        assert_eq!((again.status, again.lines.len()), (Some(0), 1), "{:?}", again.errors);
    }
}

/// Writes `picture` as the JPEG file `to` with the EXIF orientation `orientation`. Before, the
/// picture is turned in the direction `stored`.
fn write_turned(picture: &str, stored: &str, orientation: u8, to: &Path) {
    gst::init().unwrap();
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={picture} ! jpegdec ! videoflip video-direction={stored} ! jpegenc quality=95
         ! filesink location={}",
        to.display()
    ));
    let pipeline = pipeline.unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let types = [gst::MessageType::Eos, gst::MessageType::Error];
    let end = pipeline.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(60), &types);
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(end.expect("the picture is written").type_(), gst::MessageType::Eos);

    let jpeg = std::fs::read(to).unwrap();
    let (start, rest) = jpeg.split_at(2);
    // Marker, length, EXIF, byte order, and offset of a directory with a single entry: the
    // orientation, as one short.
    let mut exif =
        b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    assert_eq!(exif.len(), 2 + 0x22, "the length is that of what follows the marker");
    std::fs::write(to, [start, &exif, rest].concat()).unwrap();
}

#[test]
fn pictures_are_turned_as_their_exif_data_have_it() {
    let (Some(picture), Some(model)) =
        (data("data/images/bus.jpg"), data("data/models/yolov8n_int8_320.onnx"))
    else {
        return;
    };
    let folder = Scratch::new();
    let detections = |picture: &str| {
        let ended = run(&[picture, "--model", &model]);
        let [line] = &ended.lines[..] else { panic!("{:?}", ended.errors) };
        let objects = line["objects"].as_array().unwrap().iter();
        let sure = objects.filter(|object| object["detection"]["confidence"].as_f64() > Some(0.6));
        let sure = sure.map(|object| {
            let edge = |edge: &str| object["detection"]["bounding_box"][edge].as_f64().unwrap();
            let label = object["roi_type"].as_str().unwrap().to_owned();
            (label, ["x_min", "y_min", "x_max", "y_max"].map(edge))
        });
        sure.collect::<Vec<_>>()
    };
    let upright = detections(&picture);
    assert!(upright.len() >= 4, "a bus and people: {upright:?}");
    // For each orientation, how an upright picture must be stored so that a viewer displays it
    // upright.
    let stored = ["identity", "horiz", "180", "vert", "ul-lr", "90l", "ur-ll", "90r"];
    for (index, stored) in stored.into_iter().enumerate() {
        let turned = folder.join(format!("{index}.jpg"));
        write_turned(&picture, stored, index as u8 + 1, &turned);
        let found = detections(turned.to_str().unwrap());
        for (label, area) in &upright {
            let is_same = |(other, at): &(String, [f64; 4])| {
                other == label && at.iter().zip(area).all(|(a, b)| (a - b).abs() < 0.03)
            };
            assert!(found.iter().any(is_same), "{label} of orientation {}: {found:?}", index + 1);
        }
    }
}
