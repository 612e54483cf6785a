// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is recorded: zones and lines in the pictures, and a further file where the frames change.

use gst::prelude::*;

use crate::program::run;
use crate::scratch::Scratch;

/// A black source whose width is 320, then 160, then 320.
const CHANGES: &str = "bin:videotestsrc pattern=black num-buffers=20 ! video/x-raw,width=320,height=240 ! c. \
    videotestsrc pattern=black num-buffers=20 ! video/x-raw,width=160,height=240 ! c. \
    videotestsrc pattern=black num-buffers=20 ! video/x-raw,width=320,height=240 ! c. \
    concat name=c ! identity sync=true";

/// The brightness of a frame's pixels, without padding.
struct Frame {
    time: gst::ClockTime,
    size: [usize; 2],
    pixels: Vec<u8>,
}

/// Reads the frames of a recording.
fn frames(file: &str) -> Vec<Frame> {
    gst::init().unwrap();
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={file} ! matroskademux ! jpegdec ! videoconvert ! video/x-raw,format=GRAY8
         ! appsink name=out sync=false"
    ));
    let pipeline: gst::Pipeline = pipeline.unwrap().downcast().unwrap();
    let out: gst_app::AppSink = pipeline.by_name("out").unwrap().downcast().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let frames = std::iter::from_fn(|| out.pull_sample().ok()).map(|sample| {
        let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
        let frame =
            gst_video::VideoFrameRef::from_buffer_ref_readable(sample.buffer().unwrap(), &info);
        let frame = frame.unwrap();
        let size = [info.width(), info.height()].map(|side| side as usize);
        let rows = frame.plane_data(0).unwrap().chunks(info.stride()[0] as usize);
        let pixels = rows.take(size[1]).flat_map(|row| &row[..size[0]]).copied().collect();
        Frame { time: sample.buffer().unwrap().pts().unwrap(), size, pixels }
    });
    let frames = frames.collect();
    pipeline.set_state(gst::State::Null).unwrap();
    frames
}

#[test]
fn a_recording_goes_on_in_a_new_file_when_the_frames_change() {
    let folder = Scratch::new();
    let path = |name: &str| folder.join(name).into_os_string().into_string().unwrap();
    // No other file is overwritten.
    std::fs::write(path("out-3.mkv"), "of somebody else").unwrap();
    let ended = run(&[CHANGES, "--frames", "55", "--record", &path("out.mkv")]);
    assert_eq!((ended.status, ended.lines.len()), (Some(0), 55), "{:?}", ended.errors);
    let goes_on = ended.errors.iter().filter(|line| line.contains("goes on in"));
    let goes_on: Vec<_> = goes_on.collect();
    assert_eq!(goes_on.len(), 2, "{:?}", ended.errors);
    for (name, width, line) in
        [("out.mkv", 320, None), ("out-2.mkv", 160, Some(0)), ("out-4.mkv", 320, Some(1))]
    {
        let frames = frames(&path(name));
        assert!((8..=20).contains(&frames.len()), "{} frames in {name}", frames.len());
        let sizes: Vec<_> = frames.iter().map(|frame| frame.size).collect();
        assert!(sizes.iter().all(|size| *size == [width, 240]), "{name}: {sizes:?}");
        assert_eq!(frames[0].time, gst::ClockTime::ZERO, "{name}");
        assert!(frames.is_sorted_by_key(|frame| frame.time), "{name}");
        assert!(line.is_none_or(|line: usize| goes_on[line].contains(name)), "{goes_on:?}");
    }
    assert_eq!(std::fs::read(path("out-3.mkv")).unwrap(), b"of somebody else");
}

#[test]
fn zones_and_lines_are_in_the_recorded_pictures() {
    let folder = Scratch::new();
    let record = folder.join("out.mkv").into_os_string().into_string().unwrap();
    let source =
        "bin:videotestsrc pattern=black ! video/x-raw,width=320,height=240 ! identity sync=true";
    let drawn =
        ["--zone", "z=0.1,0.25,0.25,0.5", "--line", "d=0.5,0.25,0.75,0.75", "--line", "r=1,0,1,1"];
    let ended = run(&[&[source, "--frames", "5", "--record", &record][..], &drawn].concat());
    assert_eq!(ended.status, Some(0), "{:?}", ended.errors);
    let frame = &frames(&record)[0];
    let is_bright = |x: usize, y: usize| frame.pixels[y * 320 + x] > 80;
    // The zone's edges are at 32, 60, 112 and 180.
    for y in 65..175 {
        assert!(is_bright(32, y) && is_bright(111, y), "row {y} of the zone");
        assert!((40..104).all(|x| !is_bright(x, y)), "row {y} of the zone");
    }
    assert!((37..107).all(|x| is_bright(x, 60) && is_bright(x, 179)), "the zone's top and bottom");
    // The line goes from (160, 60) to (240, 180); its label is above.
    for y in 65..175 {
        let x = 160 + (y - 60) * 2 / 3;
        assert!((x - 1..=x + 1).any(|x| is_bright(x, y)), "row {y} of the line");
        assert!((120..x - 4).chain(x + 5..310).all(|x| !is_bright(x, y)), "beside row {y}");
    }
    assert!((20..220).all(|y| is_bright(319, y)), "a line at the edge of the picture");
}
