// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crossings of lines, counted from the tracks of a tracker.

#[cfg(feature = "v1_24")]
use serde_json::json;

#[cfg(feature = "v1_24")]
use crate::program::run;
use crate::refused::error;

/// Returns whether this machine's GStreamer has the element.
fn has_element(name: &str) -> bool {
    gst::init().unwrap();
    gst::ElementFactory::find(name).is_some()
}

#[test]
fn lines_need_a_tracker_and_names_that_differ() {
    let line = ["--line", "door=0.5,0,0.5,1"];
    let message = error(&[&["test"][..], &line].concat());
    assert_eq!(message, "--line: expected --tracker, too, since tracks are counted, got \"door\"");
    let message = error(&[&["test", "--tracker", "identity"][..], &line, &line].concat());
    assert_eq!(message, "--line: expected names that differ, got \"door\"");
    let message = error(&["test", "--tracker", "identity", "--line", "door=0,0,0,0"]);
    assert!(message.starts_with("--line: expected NAME=x1,y1,x2,y2"), "{message}");
}

#[test]
fn a_missing_tracker_is_an_error_that_says_where_ioutracker_comes_from() {
    let tracker = if has_element("ioutracker") { "notracker" } else { "ioutracker" };
    let message = error(&["test", "--tracker", tracker]);
    let version = gst::version_string();
    let expected = format!(
        "--tracker {tracker}: no element \"{tracker}\"; ioutracker is one of GStreamer's bad \
         plugins from 1.28 on, and this is {version}"
    );
    assert_eq!(message, expected);
}

#[test]
fn a_property_that_the_tracker_lacks_is_an_error() {
    let message = error(&["test", "--tracker", "identity speed=3"]);
    assert!(message.starts_with("--tracker identity speed=3: no property \"speed\""), "{message}");
}

#[cfg(not(feature = "v1_24"))]
#[test]
fn a_program_that_does_not_attach_analytics_objects_says_how_to_build_it() {
    let message = error(&["test", "--tracker", "identity"]);
    assert!(message.contains("GstAnalyticsODMtd"), "{message}");
    assert!(message.contains("--features v1_24"), "{message}");
}

#[cfg(feature = "v1_24")]
#[test]
fn elements_that_track_nothing_are_an_error_after_a_hundred_frames() {
    let ended = run(&["test", "--tracker", "identity", "--line", "door=0.5,0,0.5,1"]);
    assert_eq!((ended.status, ended.lines.len()), (Some(1), 99));
    let [message] = &ended.errors[..] else { panic!("{:?}", ended.errors) };
    assert!(
        message.contains("--tracker identity: expected a GstAnalyticsTrackingMtd"),
        "{message}"
    );
}

#[cfg(feature = "v1_24")]
#[test]
fn people_who_cross_a_line_in_a_street_are_counted_as_by_hand() {
    if !has_element("ioutracker") {
        return crate::skip::skip("ioutracker");
    }
    let video = crate::data("data/videos/towncentre_96f_1080p.mp4");
    let (Some(video), Some(model)) = (video, crate::data("data/models/yolov8n_int8_640.onnx"))
    else {
        return;
    };
    let lines = [
        "--line",
        "shops=0,0.4,1,0.4",
        "--line",
        "bin=0.7,0.6,1,0.6",
        "--line",
        "crossing=0.51,0.15,0.51,0.5",
    ];
    let arguments = [&video, "--model", &model, "--labels", "person", "--tracker", "ioutracker"];
    let ended = run(&[&arguments[..], &lines].concat());
    assert_eq!((ended.status, ended.lines.len()), (Some(0), 96), "{:?}", ended.errors);
    assert_eq!(
        ended.lines[0]["lines"],
        json!({
            "shops": {"person": {"up": 0, "down": 0}},
            "bin": {"person": {"up": 0, "down": 0}},
            "crossing": {"person": {"left": 0, "right": 0}},
        })
    );
    let last = &ended.lines[95]["lines"];
    let counts = |line: &str, directions: [&str; 2]| {
        directions.map(|direction| last[line]["person"][direction].as_u64().unwrap())
    };
    // Counted in the pictures: 9 people go up. One of them is hidden by a sign.
    assert_eq!(counts("shops", ["up", "down"]), [8, 0]);
    // A woman goes up, and another one comes down with a pushchair.
    assert_eq!(counts("bin", ["up", "down"]), [1, 1]);
    // 3 people go right. One of them passes behind a man on the line, and gets another track.
    assert_eq!(counts("crossing", ["left", "right"]), [1, 2]);
}
