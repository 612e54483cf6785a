// SPDX-License-Identifier: MIT OR Apache-2.0
//! The properties `layout-file` and `score-activation`.

use gst::prelude::*;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::{Ended, Region, init, intercept, parse, regions, run, watch};
use crate::support::scratch::ScratchFile;

/// Rows of score, class and corners. No decoder of the crate reads them.
const LAYOUT: &str = "name = mine
about = rows of score, class, x1, y1, x2, y2

[tensor rows]
names = out
shape = N,6

[score]
scores = rows 0
class = rows 1

[box]
box = rows 2
format = corners
";

fn file(text: &str) -> ScratchFile {
    ScratchFile::new("layout", text.as_bytes())
}

/// Returns two boxes, whose scores are logits between 0 and 1.
fn rows() -> NewTensor {
    init();
    let rows = [[0.9, 3.0, 10.0, 20.0, 40.0, 60.0], [0.1, 1.0, 50.0, 20.0, 70.0, 60.0]];
    NewTensor::from_vec("out", &[1, 2, 6], rows.as_flattened().to_vec()).unwrap()
}

/// Returns the regions of each of three frames, and the messages. The properties in `change` are
/// set before frame 1.
fn stream(properties: &str, change: &[(&'static str, String)]) -> (Vec<Vec<Region>>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=96,height=64,framerate=10/1
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    let nms = pipeline.by_name("nms").unwrap();
    let (tensor, change) = (rows(), change.to_vec());
    intercept(&pipeline, "in", move |buffer| {
        attach(buffer, &tensor).unwrap();
        if buffer.offset() == 1 {
            change.iter().for_each(|(name, value)| nms.set_property_from_str(name, value));
        }
    });
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, ended)
}

fn first() -> Region {
    ("class-3".to_owned(), [10, 20, 30, 40])
}

fn second() -> Region {
    ("class-1".to_owned(), [50, 20, 20, 40])
}

#[test]
fn tensors_are_read_as_the_file_describes_them() {
    let layout = file(LAYOUT);
    let (seen, ended) = stream(&format!("decoder=layout layout-file={}", layout.display()), &[]);
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
    assert_eq!(seen, [[first()], [first()], [first()]]);
}

#[test]
fn the_activation_of_scores_can_be_set() {
    let layout = file(LAYOUT);
    let properties = format!("decoder=layout layout-file={}", layout.display());
    // The sigmoid of 0.1 is 0.52.
    let (seen, ended) = stream(&properties, &[("score-activation", "sigmoid".to_owned())]);
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
    assert_eq!(seen, [vec![first()], vec![first(), second()], vec![first(), second()]]);
    // The property overrides the file's activation.
    let logits = file(&LAYOUT.replace("[box]", "activation = sigmoid\n\n[box]"));
    let properties = format!("decoder=layout layout-file={}", logits.display());
    assert_eq!(stream(&properties, &[]).0[0], [first(), second()]);
    assert_eq!(stream(&format!("{properties} score-activation=none"), &[]).0[0], [first()]);
}

#[test]
fn another_file_comes_into_force_with_the_next_frame() {
    let (layout, other) =
        (file(LAYOUT), file(&LAYOUT.replace("format = corners", "format = center")));
    let properties = format!("decoder=layout layout-file={}", layout.display());
    let change = ("layout-file", other.display().to_string());
    let (seen, ended) = stream(&properties, &[change]);
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
    let moved = ("class-3".to_owned(), [0, 0, 30, 50]);
    assert_eq!(seen, [[first()], [moved.clone()], [moved]]);
}

#[test]
fn an_invalid_file_is_an_error_with_its_name_the_line_and_the_reason() {
    let wrong = file(&LAYOUT.replace("format = corners", "format = corner"));
    let name = wrong.display().to_string();
    let (seen, ended) = stream(&format!("decoder=layout layout-file={name}"), &[]);
    assert!(seen.is_empty());
    let expected = format!("the layout file {name:?}, line 14: ");
    assert!(ended.error().starts_with(&expected), "{}", ended.error());
    for (properties, expected) in [
        (
            "decoder=layout",
            "decoder=layout needs a description of the tensors; set layout-file to its path",
        ),
        (
            "decoder=layout layout-file=/nowhere/mine.layout",
            "the layout file \"/nowhere/mine.layout\" cannot be read: No such file or directory (os error 2)",
        ),
        (
            "decoder=layout layout-file=/tmp",
            "the layout file \"/tmp\" is a directory; expected a regular file",
        ),
    ] {
        let (seen, ended) = stream(properties, &[]);
        assert!(seen.is_empty());
        assert!(ended.error().starts_with(expected), "{}", ended.error());
    }
}

#[test]
fn an_invalid_file_that_is_set_later_leaves_the_earlier_one_in_force() {
    let layout = file(LAYOUT);
    let properties = format!("decoder=layout layout-file={}", layout.display());
    let (seen, ended) = stream(&properties, &[("layout-file", "/nowhere/mine.layout".to_owned())]);
    assert_eq!(ended.error, None);
    assert_eq!(seen, [[first()], [first()], [first()]]);
}

#[test]
fn a_file_that_no_decoder_needs_is_warned_of() {
    let layout = file(LAYOUT);
    let properties = format!("decoder=end2end layout-file={}", layout.display());
    let (_, ended) = stream(&properties, &[]);
    let expected = "layout-file is set, but decoder end2end reads the tensors; set decoder=layout, or unset layout-file";
    assert!(ended.warnings.iter().any(|warning| warning == expected), "{:?}", ended.warnings);
}
