// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipelines with other elements.

use std::collections::BTreeSet;

use gst::prelude::*;
use gstnmsfilter::regions;
use serde_json::Value;

use super::camera::{Camera, init, square};
use crate::support::pipeline::{parse, run, watch};

#[test]
fn lines_of_json_have_ids_and_say_what_is_predicted() {
    init();
    let mut camera = Camera::new("");
    let mut json = gst_check::Harness::new("detectionjson");
    json.set_src_caps_str("video/x-raw,format=GRAY8,width=640,height=480,framerate=25/1");
    let mut line = |inferred: bool, time: u64| -> Value {
        let objects = [("person", square(100.0, 100.0, 80.0), 0.9)];
        let objects = if inferred { &objects[..] } else { &[] };
        camera.harness.push(super::camera::frame(time, Some(inferred), objects)).unwrap();
        json.push(camera.harness.pull().unwrap()).unwrap();
        serde_json::from_slice(&json.pull().unwrap().map_readable().unwrap()).unwrap()
    };
    let (first, second) = (line(true, 0), line(false, 40));
    let id = first["objects"][0]["id"].as_u64().unwrap();
    assert!(id > 0);
    assert_eq!(first["objects"][0].get("predicted"), None);
    assert_eq!(second["objects"].as_array().unwrap().len(), 1);
    assert_eq!(second["objects"][0]["id"], id);
    assert_eq!(second["objects"][0]["predicted"], true);
    assert_eq!(second["objects"][0]["x"], 100);
    assert_eq!(second["inferred"], false);
}

/// The people of the test source, whose true boxes have their numbers as ids of regions: each has one id, and detections
/// of the background have none.
#[test]
fn people_of_the_crowd_have_ids() {
    init();
    let pipeline = parse(
        "crowdtestsrc truth=true num-buffers=50 people=10 ! video/x-raw,width=640,height=480,framerate=25/1 ! nmsfilter \
         ! objecttracker classes=object name=tracker ! roioverlay tail-length=20 ! fakesink",
    );
    let frames = watch(&pipeline, "tracker", |frame| {
        let (people, found): (Vec<_>, Vec<_>) = regions::iter(frame)
            .map(|it| (it.label == c"truth", it.id, it.rectangle, it.track_id))
            .partition(|it| it.0);
        let person = |(_, _, [x, y, w, h], track): (bool, i32, [u32; 4], Option<i32>)| {
            // The head that has the center of the box in its middle half.
            let person = people.iter().find(|(_, _, [left, top, width, height], _)| {
                (2 * x + w).abs_diff(2 * left + width) < width / 2
                    && (2 * y + h).abs_diff(2 * top + height) < height / 2
            });
            track.map(|track| (person.expect("the background has no tracks").1, track))
        };
        let tracked: Vec<(i32, i32)> = found.into_iter().filter_map(person).collect();
        assert_eq!(tracked.len(), people.len());
        tracked
    });
    assert_eq!(run(&pipeline).error, None);
    let frames = frames.lock().unwrap();
    assert_eq!(frames.len(), 50);
    let pairs: BTreeSet<(i32, i32)> = frames.iter().flatten().copied().collect();
    let people: BTreeSet<i32> = pairs.iter().map(|it| it.0).collect();
    let tracks: BTreeSet<i32> = pairs.iter().map(|it| it.1).collect();
    assert_eq!([pairs.len(), people.len(), tracks.len()], [10; 3], "{pairs:?}");
}

/// Behind a tee, the other branch does not get ids.
#[test]
fn a_shared_frame_is_copied() {
    init();
    let pipeline = parse(
        "crowdtestsrc num-buffers=5 people=10 ! video/x-raw,width=640,height=480,framerate=25/1 ! nmsfilter ! tee name=tee \
         tee. ! queue ! objecttracker name=tracker ! fakesink sync=false tee. ! queue ! identity name=other ! fakesink sync=false",
    );
    let count = |frame: &gst::BufferRef| {
        let tracked = super::camera::tracked(frame);
        [tracked.len(), tracked.iter().filter(|it| it.id.is_some()).count()]
    };
    let tracked = watch(&pipeline, "tracker", count);
    let other = watch(&pipeline, "other", count);
    assert_eq!(run(&pipeline).error, None);
    for ([all, ids], [all_other, ids_other]) in
        tracked.lock().unwrap().iter().zip(&*other.lock().unwrap())
    {
        assert!(*ids > 0 && all == all_other && *ids_other == 0);
    }
}

#[test]
fn properties_that_need_a_restart_say_so() {
    let camera = Camera::new("");
    let element = camera.harness.element().unwrap();
    element.set_property("predict", false);
    assert!(camera.bus.pop_filtered(&[gst::MessageType::Warning]).is_none());
    element.set_property("max-age", 2.0);
    assert!(camera.bus.pop_filtered(&[gst::MessageType::Warning]).is_some());
}
