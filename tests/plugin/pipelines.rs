// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every `.launch` file in `pipelines/` runs to its end, and regions reach its sink. Files that run
//! a model are tested in the program `inference`, files for DeepStream in the module
//! `deepstream_pipelines`.

use crate::support::pipeline::{Region, init, parse, regions, run, watch};
use crate::support::skip;

/// Runs a file, and returns the regions of each buffer at its sink. If an element is missing,
/// returns `None` and reports a skip.
fn play(name: &str) -> Option<Vec<Vec<Region>>> {
    init();
    let folder = crate::support::project::path("pipelines");
    let text = std::fs::read_to_string(folder.join(format!("{name}.launch"))).unwrap();
    let description: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let description = description.join(" ");
    for element in ["ioutracker", "objectdetectionoverlay"] {
        if description.contains(element) && gst::ElementFactory::find(element).is_none() {
            skip::skip(element);
            return None;
        }
    }
    let pipeline = parse(&description);
    let seen = watch(&pipeline, "out", regions);
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{name}");
    assert!(ended.warnings.is_empty(), "{name}: {:?}", ended.warnings);
    assert!(!ended.stats.is_empty(), "{name}: stats are posted at the end");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Some(seen)
}

/// Asserts that each frame has about sixty people, and few false detections.
fn assert_a_crowd(frames: &[Vec<Region>], count: usize) {
    assert_eq!(frames.len(), count);
    for regions in frames {
        assert!((50..90).contains(&regions.len()), "{} regions", regions.len());
    }
}

#[test]
fn crowd_launch_attaches_the_regions_of_a_crowd() {
    assert_a_crowd(&play("crowd").unwrap(), 50);
}

#[test]
fn yolov8_launch_attaches_regions_labeled_by_class_number() {
    let frames = play("yolov8").unwrap();
    assert_a_crowd(&frames, 50);
    assert_eq!(frames[0][0].0, "class-0");
}

#[test]
fn tee_launch_attaches_the_regions_of_crowd_launch() {
    let frames = play("tee").unwrap();
    assert_a_crowd(&frames, 50);
    assert_eq!(frames, play("crowd").unwrap());
}

#[test]
fn scale_launch_attaches_the_regions_in_scaled_pixels() {
    let (full, half) = (play("crowd").unwrap(), play("scale").unwrap());
    assert_a_crowd(&half, 50);
    let counts = |frames: &[Vec<Region>]| frames.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(counts(&full), counts(&half));
    for (full, half) in full.iter().flatten().zip(half.iter().flatten()) {
        let close = |a: u32, b: u32| a.abs_diff(b * 2) <= 2;
        assert!(full.1.iter().zip(half.1).all(|(&a, b)| close(a, b)), "{full:?}, {half:?}");
    }
}

#[test]
fn overlay_launch_attaches_the_regions_of_a_crowd() {
    assert_a_crowd(&play("overlay").unwrap(), 10);
}

#[test]
fn stock_overlay_launch_attaches_the_regions_of_a_crowd() {
    if let Some(frames) = play("stock-overlay") {
        assert_a_crowd(&frames, 10);
    }
}

#[test]
fn track_launch_assigns_far_fewer_tracks_than_detections() {
    crate::support::needs::needs!(relations);
    use gst_newer::{AnalyticsRelationMeta, AnalyticsTrackingMtd};
    let Some(frames) = play("track") else { return };
    assert_a_crowd(&frames, 50);

    // People walk a few pixels per frame, so there are far fewer tracks than detections.
    let description = "crowdtestsrc num-buffers=50 ! nmsfilter score-threshold=0.5 ! ioutracker
        ! fakesink name=out";
    let pipeline = parse(description);
    let seen = watch(&pipeline, "out", |buffer| {
        let relation = buffer.meta::<AnalyticsRelationMeta>().expect("attached to each frame");
        let tracks = relation.iter::<AnalyticsTrackingMtd>();
        tracks.map(|track| track.info().unwrap().id).collect::<Vec<_>>()
    });
    assert_eq!(run(&pipeline).error, None);
    let seen = seen.lock().unwrap();
    let detections: usize = seen.iter().map(Vec::len).sum();
    let tracks: std::collections::HashSet<_> = seen.iter().flatten().collect();
    assert!(detections > 50 * 50, "{detections} detections");
    assert!(tracks.len() < 100, "{} tracks of {detections} detections", tracks.len());
}

#[test]
fn every_launch_file_has_a_test() {
    let folder = crate::support::project::path("pipelines");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "launch"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let here = ["crowd", "overlay", "scale", "stock-overlay", "tee", "track", "yolov8"];
    let in_inference = ["detect-camera", "detect-file", "detect-picture"];
    let for_deepstream = ["deepstream-camera", "deepstream-file", "deepstream-streams"];
    let mut tested = [&here[..], &in_inference, &for_deepstream].concat();
    tested.sort_unstable();
    assert_eq!(files, tested);
}
