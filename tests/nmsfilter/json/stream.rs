// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caps, timestamps, events and properties.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use serde_json::json;

use super::reader::read;
use super::{CAPS, harness, text};
use crate::support::pipeline::{init, parse, run, watch};
use crate::support::scratch::Scratch;

const MS: gst::ClockTime = gst::ClockTime::from_mseconds(1);

fn frame(pts: Option<gst::ClockTime>) -> gst::Buffer {
    let mut buffer = gst::Buffer::with_size(640 * 480).unwrap();
    let new = buffer.get_mut().unwrap();
    new.set_pts(pts);
    new.set_duration(20 * MS);
    buffer
}

#[test]
fn lines_have_the_times_of_their_frames_and_the_stream_time_as_a_number() {
    let mut harness = harness(&[]);
    let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
    segment.set_start(1000 * MS);
    segment.set_time(7 * MS);
    harness.push_event(gst::event::Segment::new(&segment));
    let line = harness.push_and_pull(frame(Some(1040 * MS))).unwrap();
    assert_eq!((line.pts(), line.duration()), (Some(1040 * MS), Some(20 * MS)));
    assert_eq!(read(&text(&line)).timestamp, Some(47_000_000));
    let line = harness.push_and_pull(frame(None)).unwrap();
    assert_eq!((line.pts(), read(&text(&line)).timestamp), (None, None));
    let mut flagged = frame(Some(1080 * MS));
    flagged.get_mut().unwrap().set_flags(gst::BufferFlags::DISCONT);
    let line = harness.push_and_pull(flagged).unwrap();
    assert!(line.flags().contains(gst::BufferFlags::DISCONT));

    harness.push_event(gst::event::Gap::builder(1100 * MS).duration(20 * MS).build());
    harness.push_event(gst::event::Eos::new());
    let events: Vec<gst::Event> = std::iter::from_fn(|| harness.try_pull_event()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event.type_()).collect();
    let is_passed = |kind| kinds.contains(&kind);
    assert!(is_passed(gst::EventType::Gap) && is_passed(gst::EventType::Eos), "{kinds:?}");
    let passed = events.iter().rev().find_map(|event| match event.view() {
        gst::EventView::Segment(event) => Some(event.segment().clone()),
        _ => None,
    });
    assert_eq!(passed.as_ref(), Some(segment.upcast_ref()));
    let caps = events.iter().rev().find_map(|event| match event.view() {
        gst::EventView::Caps(event) => Some(event.caps().to_string()),
        _ => None,
    });
    assert_eq!(caps.as_deref(), Some("application/x-ndjson"));
}

#[test]
fn tensors_that_no_element_decodes_are_one_warning() {
    let warnings = |elements: &str| {
        let pipeline = parse(&format!("{elements} ! detectionjson ! fakesink"));
        let ended = run(&pipeline);
        assert_eq!(ended.error, None, "{elements}");
        ended.warnings
    };
    let source = "crowdtestsrc num-buffers=3 ! video/x-raw,width=640,height=480";
    for undecoded in [source, &format!("{source} ! queue"), &format!("( {source} ! queue )")] {
        assert_eq!(
            warnings(undecoded),
            [
                "the frames carry tensors that no element upstream decodes, so there are no detections; put nmsfilter \
              between the inference element and detectionjson"
            ],
            "{undecoded}"
        );
    }
    // The tensors are still attached, but no score reaches the threshold.
    for decoded in [
        format!("{source} ! nmsfilter score-threshold=0.99999"),
        format!("{source} ! nmsfilter score-threshold=0.99999 ! queue ! identity"),
        format!("( {source} ! nmsfilter score-threshold=0.99999 ) ! queue"),
        format!("{source} ! ( nmsfilter score-threshold=0.99999 )"),
        format!("{source} ! nmsfilter score-threshold=0.99999 ! ( queue ! identity )"),
    ] {
        let warnings = warnings(&decoded);
        let is_named = |warning: &String| warning.contains("no element upstream decodes");
        assert!(!warnings.iter().any(is_named), "{decoded}: {warnings:?}");
    }
    assert_eq!(warnings("videotestsrc num-buffers=2"), [""; 0]);
}

#[test]
fn frames_without_detections_have_a_line_unless_they_are_to_have_none() {
    let mut all = harness(&[]);
    assert_eq!(
        text(&all.push_and_pull(frame(None)).unwrap()),
        r#"{"resolution":{"width":640,"height":480},"index":0,"objects":[]}"#
    );
    let mut found_only = harness(&[("add-empty-results", "false")]);
    assert_eq!(found_only.push(frame(None)), Ok(gst::FlowSuccess::Ok));
    assert_eq!(found_only.push(frame(Some(20 * MS))), Ok(gst::FlowSuccess::Ok));
    assert!(found_only.try_pull().is_none());
    // The second frame has a timestamp, so that its time is known to be empty.
    let events: Vec<gst::Event> = std::iter::from_fn(|| found_only.try_pull_event()).collect();
    let gaps = events.iter().filter_map(|event| match event.view() {
        gst::EventView::Gap(gap) => Some(gap.get()),
        _ => None,
    });
    assert_eq!(gaps.collect::<Vec<_>>(), [(20 * MS, Some(20 * MS))]);
    let mut with_region = frame(Some(40 * MS));
    VideoRegionOfInterestMeta::add(with_region.get_mut().unwrap(), "x", (1, 2, 3, 4));
    let line = found_only.push_and_pull(with_region).unwrap();
    assert_eq!((line.pts(), read(&text(&line)).objects.len()), (Some(40 * MS), 1));
    // The index also counts the previous frames, which have no line.
    assert_eq!(index(&text(&line)), 2);
}

/// A sink that waits for the first buffer before the pipeline can play.
#[test]
fn a_pipeline_whose_first_frames_have_no_line_starts() {
    let pipeline = parse(
        "videotestsrc is-live=false ! video/x-raw,width=64,height=48 ! detectionjson add-empty-results=false \
           ! fakesink sync=true",
    );
    pipeline.set_state(gst::State::Paused).unwrap();
    let (result, state, _) = pipeline.state(gst::ClockTime::from_seconds(60));
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!((result, state), (Ok(gst::StateChangeSuccess::Success), gst::State::Paused));
}

/// Returns the field `index` of a line, which `gvametaconvert` does not have.
fn index(line: &str) -> u64 {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["index"]
        .as_u64()
        .expect("every line has it")
}

#[test]
fn lines_number_their_frames_from_the_start_of_the_element_whatever_their_timestamps() {
    let mut harness = harness(&[]);
    for (number, pts) in [None, Some(40 * MS), Some(40 * MS), None].into_iter().enumerate() {
        let line = text(&harness.push_and_pull(frame(pts)).unwrap());
        assert_eq!(index(&line), number as u64, "{line}");
    }
    let element = harness.element().unwrap();
    // A seek does not restart the index. A stop does.
    harness.push_event(gst::event::FlushStart::new());
    harness.push_event(gst::event::FlushStop::new(true));
    harness.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    assert_eq!(index(&text(&harness.push_and_pull(frame(None)).unwrap())), 4);
    element.set_state(gst::State::Null).unwrap();
    harness.play();
    harness.set_src_caps_str(CAPS);
    assert_eq!(index(&text(&harness.push_and_pull(frame(None)).unwrap())), 0);
}

#[test]
fn lines_have_the_wall_clock_time_where_dl_streamers_readers_look_for_it() {
    let mut harness = harness(&[]);
    let mut time = |references: &[(&str, u64)]| {
        let mut frame = frame(None);
        for (caps, time) in references {
            let time = gst::ClockTime::from_nseconds(*time);
            let caps = caps.parse::<gst::Caps>().unwrap();
            let buffer = frame.get_mut().unwrap();
            gst::ReferenceTimestampMeta::add(buffer, &caps, time, gst::ClockTime::NONE);
        }
        let line: serde_json::Value =
            serde_json::from_str(&text(&harness.push_and_pull(frame).unwrap())).unwrap();
        line.get("rtp").map(|rtp| rtp["sender_ntp_unix_timestamp_ns"].as_u64().unwrap())
    };
    // The time that the test of gvametaconvert uses: 2026-02-23, 13:31:02 UTC.
    let ntp = 3_980_842_262_174_494_742;
    let unix = 1_771_853_462_174_494_742;
    let server = "timestamp/x-ntp,host=pool.ntp.org,port=123";
    assert_eq!(time(&[("timestamp/x-ntp", ntp)]), Some(unix));
    assert_eq!(time(&[("timestamp/x-unix", 7), (server, ntp)]), Some(unix));
    assert_eq!(time(&[("timestamp/x-unix", unix + 1)]), Some(unix + 1));
    // Before 1970, another clock, none.
    assert_eq!(time(&[("timestamp/x-ntp", 5)]), None);
    assert_eq!(time(&[("timestamp/x-ptp", ntp)]), None);
    assert_eq!(time(&[]), None);
}

#[test]
fn lines_have_the_file_of_their_stream() {
    init();
    let folder = Scratch::new();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let [first, second, video] = [path("a picture \u{fc} 1.png"), path("2.png"), path("3.mkv")];
    for (file, elements) in [
        (&first, "num-buffers=1 ! pngenc"),
        (&second, "num-buffers=1 pattern=snow ! pngenc"),
        (&video, "num-buffers=2 ! video/x-raw,format=I420 ! matroskamux"),
    ] {
        assert_eq!(
            run(&parse(&format!("videotestsrc {elements} ! filesink location=\"{file}\""))).error,
            None
        );
    }
    let files = |elements: &str| {
        let pipeline = parse(&format!("{elements} ! detectionjson name=json ! fakesink"));
        let lines = watch(&pipeline, "json", |line| {
            serde_json::from_slice::<serde_json::Value>(&line.map_readable().unwrap()).unwrap()
        });
        assert_eq!(run(&pipeline).error, None, "{elements}");
        let lines = std::mem::take(&mut *lines.lock().unwrap());
        let file = |line: &serde_json::Value| Some(line.get("file")?.as_str().unwrap().to_owned());
        lines.iter().map(file).collect::<Vec<_>>()
    };
    let uri = gst::glib::filename_to_uri(&first, None).unwrap();
    let [one, two] = [Some(first.clone()), Some(second.clone())];
    assert_eq!(
        files(&format!("filesrc location=\"{first}\" ! pngdec ! videoconvert")),
        std::slice::from_ref(&one)
    );
    assert_eq!(files(&format!("uridecodebin uri=\"{uri}\" ! queue")), std::slice::from_ref(&one));
    assert_eq!(
        files(&format!("filesrc location={video} ! decodebin")),
        [Some(video.clone()), Some(video)]
    );
    // The first source answers a query of the URI, also while the second one is played.
    let input = |file: &str| format!("filesrc location=\"{file}\" ! pngdec ! all. ");
    let both = format!("concat name=all {} {} all.", input(&first), input(&second));
    assert_eq!(files(&both), [one, two]);
    let pattern = path("%d.png");
    let numbered = format!(
        "multifilesrc location={pattern} start-index=2 stop-index=2 caps=image/png,framerate=1/1 ! pngdec"
    );
    assert_eq!(files(&numbered), [None]);
    assert_eq!(files("videotestsrc num-buffers=1"), [None]);
}

#[test]
fn source_and_tags_are_in_each_line() {
    // A line feed in the value must not end the line.
    let tags = "{\"camera\":\n\"a \\\"quoted\\\" name\", \"floor\": [2, null]}";
    let mut harness = harness(&[("source", "rtsp://camera/\"1\"\n"), ("tags", tags)]);
    for _ in 0..2 {
        let line = read(&text(&harness.push_and_pull(frame(None)).unwrap()));
        assert_eq!(line.source.as_deref(), Some("rtsp://camera/\"1\"\n"));
        assert_eq!(line.tags, Some(json!({"camera": "a \"quoted\" name", "floor": [2, null]})));
    }
}

#[test]
fn tags_that_are_no_json_object_and_unknown_versions_are_errors_at_the_start() {
    for (properties, expected) in [
        ("tags=[1]", "tags: expected a JSON object, such as {\"camera\":\"north\"}, got \"[1]\""),
        ("tags=north", "got \"north\""),
        ("deepstream-version=4.0", "deepstream-version: this plugin knows the structures of"),
        ("deepstream-version=new", "deepstream-version: expected a version such as 7.1"),
    ] {
        let pipeline =
            parse(&format!("videotestsrc num-buffers=1 ! detectionjson {properties} ! fakesink"));
        let ended = run(&pipeline);
        assert!(ended.error().contains(expected), "{properties}: {}", ended.error());
    }
}

#[test]
fn any_raw_video_is_accepted_and_nothing_else() {
    init();
    let pad = gst::ElementFactory::make("detectionjson").build().unwrap();
    let pad = pad.static_pad("sink").unwrap();
    let accepts = |caps: &str| pad.query_accept_caps(&caps.parse::<gst::Caps>().unwrap());
    for caps in [
        CAPS,
        "video/x-raw(memory:NVMM),format=NV12,width=1920,height=1080,framerate=30/1",
        "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=8,height=8,framerate=0/1",
        "video/x-raw(memory:CUDAMemory),format=RGBA,width=1,height=1,framerate=30/1",
    ] {
        assert!(accepts(caps), "{caps}");
    }
    assert!(!accepts("audio/x-raw,format=S16LE,rate=8000,channels=1,layout=interleaved"));
    let without_size = "fakesrc num-buffers=3 ! video/x-raw,format=RGB ! detectionjson ! fakesink";
    assert!(run(&parse(without_size)).error().contains("not-negotiated"));
}
