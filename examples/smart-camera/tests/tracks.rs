// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crossings of lines, counted from the tracks of a tracker.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::program::run;
use crate::refused::error;

/// Returns whether this machine's GStreamer has the element.
fn has_element(name: &str) -> bool {
    gst::init().unwrap();
    gst::ElementFactory::find(name).is_some()
}

#[test]
fn lines_have_two_points_and_names_that_differ() {
    let line = ["--line", "door=0.5,0,0.5,1"];
    let message = error(&[&["test"][..], &line, &line].concat());
    assert_eq!(message, "--line: expected names that differ, got \"door\"");
    let message = error(&["test", "--line", "door=0,0,0,0"]);
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

#[test]
fn people_who_cross_a_line_in_a_street_are_counted_as_by_hand() {
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
    let arguments = [&video, "--model", &model, "--labels", "person"];
    // From GStreamer 1.28 on, ioutracker gives the same counts.
    let other = has_element("ioutracker").then_some(&["--tracker", "ioutracker"][..]);
    for tracker in [&[][..]].into_iter().chain(other) {
        let ended = run(&[&arguments[..], &lines, tracker].concat());
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
        assert_eq!(counts("shops", ["up", "down"]), [8, 0], "{tracker:?}");
        // A woman goes up, and another one comes down with a pushchair.
        assert_eq!(counts("bin", ["up", "down"]), [1, 1], "{tracker:?}");
        // 3 people go right. One of them passes behind a man on the line, and gets another track.
        assert_eq!(counts("crossing", ["left", "right"]), [1, 2], "{tracker:?}");
    }
}

/// Where people were seen first and last on one way through the picture, as the source says it.
fn ways(lines: &[Value]) -> Vec<[f64; 2]> {
    let mut ways: HashMap<u64, Vec<[f64; 2]>> = HashMap::new();
    for object in lines.iter().flat_map(|line| line["objects"].as_array().unwrap()) {
        if object["roi_type"] == "truth" {
            let edge = |edge: &str| object["detection"]["bounding_box"][edge].as_f64().unwrap();
            let x = (edge("x_min") + edge("x_max")) / 2.0;
            let ways = ways.entry(object["region_id"].as_u64().unwrap()).or_default();
            match ways.last_mut() {
                Some([_, last]) if (*last - x).abs() < 0.5 => *last = x,
                // At the end of their way, people come again at the other side.
                _ => ways.push([x, x]),
            }
        }
    }
    ways.into_values().flatten().collect()
}

#[test]
fn people_of_a_drawn_crowd_who_cross_a_line_are_counted_as_the_source_knows_them() {
    let source = "bin:crowdtestsrc truth=true is-live=true people=30 \
                  ! video/x-raw,width=640,height=360,framerate=25/1 ! identity";
    let doors = [0.3, 0.5, 0.7];
    let lines = doors.map(|x| format!("{x}={x},0,{x},1"));
    let lines: Vec<&str> = lines.iter().flat_map(|line| ["--line", line]).collect();
    let ended = run(&[&[source, "--frames", "250"][..], &lines].concat());
    assert_eq!((ended.status, ended.lines.len()), (Some(0), 250), "{:?}", ended.errors);
    let ways = ways(&ended.lines);
    let mut all = 0;
    for door in doors {
        for direction in ["left", "right"] {
            let passes = |margin: f64| {
                let is_there = |[first, last]: &&[f64; 2]| {
                    let from = if direction == "left" { first - door } else { door - first };
                    let to = if direction == "left" { door - last } else { last - door };
                    from > margin && to > margin
                };
                ways.iter().filter(is_there).count() as u64
            };
            // A track that begins or ends at the line is not counted.
            let expected = passes(0.05)..=passes(0.0);
            let counts = &ended.lines[249]["lines"][door.to_string()]["object"];
            let counted = counts[direction].as_u64().unwrap();
            assert!(expected.contains(&counted), "{counted} at {door}, expected {expected:?}");
            all += counted;
        }
    }
    assert!(all >= 30, "{all} crossings");
}
