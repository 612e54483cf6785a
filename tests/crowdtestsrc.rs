//! The crowd: known people, a detector's windows, the same on every run.

mod engines;
mod pipeline;

use gstnmsfilter::engine::{Detection, Method, Params};
use gstnmsfilter::{head, tensor};
use pipeline::{parse, regions, run, watch};

/// What a buffer carries.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    pts: gst::ClockTime,
    pixels: u64,
    windows: Vec<Detection>,
    survivors: Vec<Detection>,
    truth: Vec<[u32; 4]>,
}

fn look(buffer: &gst::BufferRef) -> Frame {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut pixels = DefaultHasher::new();
    buffer.map_readable().unwrap().as_slice().hash(&mut pixels);

    let tensors = tensor::read(buffer).unwrap();
    let layout = head::choose(&tensors, None, head::Options::default()).unwrap().layout;
    let decoded = |method| {
        let params = Params { method, ..Params::default() };
        engines::fast().run(&tensors, &layout, &params).unwrap().survivors.to_vec()
    };
    Frame {
        pts: buffer.pts().unwrap(),
        pixels: pixels.finish(),
        windows: decoded(Method::None),
        survivors: decoded(Method::Greedy),
        truth: regions(buffer)
            .into_iter()
            .filter(|(kind, _)| kind == "truth")
            .map(|(_, rect)| rect)
            .collect(),
    }
}

fn frames(description: &str) -> Vec<Frame> {
    let pipeline = parse(&format!("{description} ! fakesink name=out"));
    let seen = watch(&pipeline, "out", look);
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{description}");
    std::mem::take(&mut *seen.lock().unwrap())
}

/// Boxes without the row they come from: heads put them in different rows.
fn boxes(windows: &[Detection]) -> Vec<[f32; 4]> {
    let mut boxes: Vec<_> = windows.iter().map(|d| [d.x1, d.y1, d.x2, d.y2]).collect();
    boxes.sort_by(|a, b| a.partial_cmp(b).unwrap());
    boxes
}

fn iou(d: &Detection, [x, y, w, h]: [u32; 4]) -> f32 {
    let [x1, y1, x2, y2] = [x, y, x + w, y + h].map(|edge| edge as f32);
    let width = (d.x2.min(x2) - d.x1.max(x1)).max(0.0);
    let height = (d.y2.min(y2) - d.y1.max(y1)).max(0.0);
    let both = width * height;
    both / ((d.x2 - d.x1) * (d.y2 - d.y1) + (x2 - x1) * (y2 - y1) - both)
}

#[test]
fn a_default_frame_has_360_to_698_windows_all_above_the_default_threshold() {
    for frame in frames("crowdtestsrc num-buffers=500") {
        assert!((360..=698).contains(&frame.windows.len()), "{} windows", frame.windows.len());
    }
}

#[test]
fn four_times_the_area_has_four_times_the_windows() {
    let caps = "video/x-raw,width=3840,height=2160";
    for frame in frames(&format!("crowdtestsrc num-buffers=20 ! {caps}")) {
        assert!((1440..=2792).contains(&frame.windows.len()), "{} windows", frame.windows.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_crowd_and_another_seed_another() {
    let run = |seed: u32| frames(&format!("crowdtestsrc truth=true num-buffers=5 seed={seed}"));
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(a, b)| a.pixels != b.pixels && a.truth != b.truth));
}

#[test]
fn every_head_carries_the_same_windows() {
    let run = |head: &str| frames(&format!("crowdtestsrc num-buffers=12 head={head}"));
    let windows = run("windows");
    for head in ["yolov5", "yolov8"] {
        for (expected, found) in windows.iter().zip(run(head)) {
            assert_eq!(expected.windows.len(), found.windows.len(), "{head}");
            assert_eq!(boxes(&expected.windows), boxes(&found.windows), "{head}");
            assert_eq!(boxes(&expected.survivors), boxes(&found.survivors), "{head}");
        }
    }
}

#[test]
fn greedy_suppression_finds_the_people_once_each() {
    let (mut present, mut found, mut duplicated, mut without) = (0, 0, 0, 0);
    for frame in frames("crowdtestsrc truth=true num-buffers=250") {
        let on = |d: &Detection| frame.truth.iter().position(|&person| iou(d, person) >= 0.5);
        let mut people: Vec<usize> = frame.survivors.iter().filter_map(on).collect();
        let hits = people.len();
        people.sort_unstable();
        people.dedup();
        present += frame.truth.len();
        found += people.len();
        duplicated += hits - people.len();
        without += frame.windows.iter().filter_map(on).count();
    }
    println!("{present} people present, {found} found, {duplicated} duplicated");
    assert!(found * 100 >= present * 97, "{found} of {present} found");
    assert!(duplicated * 100 < present, "{duplicated} of {present} found twice");
    assert!(without > present * 4, "without suppression there are {without} windows on people");
}

#[test]
fn true_boxes_lie_in_the_frame_and_only_where_asked() {
    for frame in frames("crowdtestsrc truth=true num-buffers=50") {
        assert!(frame.truth.len() >= 45, "{} people", frame.truth.len());
        for [x, y, w, h] in frame.truth {
            assert!(w > 0 && h > 0 && x + w <= 1920 && y + h <= 1080, "{x},{y} {w}x{h}");
        }
    }
    assert!(frames("crowdtestsrc num-buffers=1")[0].truth.is_empty());
}

#[test]
fn the_number_of_people_can_be_set() {
    let few = &frames("crowdtestsrc truth=true people=3 num-buffers=1")[0];
    assert!(few.truth.len() <= 3);
    let many = &frames("crowdtestsrc truth=true people=400 num-buffers=1")[0];
    assert!(many.truth.len() > 300, "{} of 400 people", many.truth.len());
}

#[test]
fn any_size_and_every_format_is_drawn() {
    for size in ["width=1,height=1", "width=321,height=117", "width=640,height=2000"] {
        let frames = frames(&format!("crowdtestsrc num-buffers=3 ! video/x-raw,{size}"));
        assert_eq!(frames.len(), 3, "{size}");
    }
    for format in ["BGRx", "RGBx", "BGRA", "RGBA"] {
        let frames = frames(&format!("crowdtestsrc num-buffers=1 ! video/x-raw,format={format}"));
        assert_eq!(frames.len(), 1, "{format}");
    }
}

#[test]
fn time_runs_at_the_frame_rate_live_or_not() {
    for live in [false, true] {
        let source = format!("crowdtestsrc num-buffers=4 is-live={live}");
        let caps = "video/x-raw,width=64,height=36,framerate=30000/1001";
        let pts: Vec<_> = frames(&format!("{source} ! {caps}")).iter().map(|f| f.pts).collect();
        // A live stream begins at the time when it was started.
        let since_first: Vec<_> = pts.iter().map(|&pts_n| pts_n - pts[0]).collect();
        let expected = [0, 33_366_666, 66_733_333, 100_100_000];
        assert_eq!(since_first, expected.map(gst::ClockTime::from_nseconds), "is-live={live}");
        assert!(live || pts[0] == gst::ClockTime::ZERO);
    }
}

#[test]
fn a_seek_goes_to_the_frame_of_that_time() {
    use gst::prelude::*;
    let whole = frames("crowdtestsrc num-buffers=30 ! video/x-raw,width=64,height=36");
    let pipeline =
        parse("crowdtestsrc num-buffers=100 ! video/x-raw,width=64,height=36 ! fakesink name=out");
    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
    let seen = watch(&pipeline, "out", look);
    let target = gst::ClockTime::from_mseconds(400);
    pipeline.seek_simple(gst::SeekFlags::FLUSH, target).unwrap();
    assert_eq!(run(&pipeline).error, None);
    let first = &seen.lock().unwrap()[0];
    assert_eq!((first.pts, first.pixels), (target, whole[20].pixels));
}
