// SPDX-License-Identifier: MIT OR Apache-2.0
//! `crowdtestsrc`: frames with a crowd, its tensors and the true boxes, which are reproducible;
//! seeks; buffer pools.

use gstnmsfilter::input::Tensors;
use nmsfilter_core::decoder;
use nmsfilter_core::engine::{Detection, Job, Method, Params};

use crate::pool;
use crate::support::engines;
use crate::support::pipeline::{parse, regions, run, watch};

/// The contents of a buffer.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    pts: gst::ClockTime,
    /// Empty if they are not compared.
    pixels: Vec<u8>,
    windows: Vec<Detection>,
    survivors: Vec<Detection>,
    truth: Vec<[u32; 4]>,
}

fn read_frame(buffer: &gst::BufferRef) -> Frame {
    Frame { pixels: buffer.map_readable().unwrap().to_vec(), ..read_boxes(buffer) }
}

fn read_boxes(buffer: &gst::BufferRef) -> Frame {
    let attached = Tensors::of(buffer).unwrap();
    let tensors = attached.views();
    let layout = decoder::choose(&tensors, None, decoder::Options::default()).unwrap().layout;
    let decoded = |method| {
        let params = Params { method, ..Params::default() };
        engines::fast()
            .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
            .unwrap()
            .group(0)
            .survivors
            .to_vec()
    };
    Frame {
        pts: buffer.pts().unwrap(),
        pixels: Vec::new(),
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
    read(description, read_frame)
}

/// Frames without their pixels.
fn boxes_of_frames(description: &str) -> Vec<Frame> {
    read(description, read_boxes)
}

fn read(description: &str, read: fn(&gst::BufferRef) -> Frame) -> Vec<Frame> {
    let pipeline = parse(&format!("{description} ! fakesink name=out"));
    let seen = watch(&pipeline, "out", read);
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{description}");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(!seen.is_empty(), "{description}: no frames");
    seen
}

/// Removes the anchors, which differ between decoders.
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
fn a_frame_of_default_size_has_360_to_698_windows_above_the_default_threshold() {
    for frame in boxes_of_frames("crowdtestsrc num-buffers=500") {
        assert!((360..=698).contains(&frame.windows.len()), "{} windows", frame.windows.len());
    }
}

#[test]
fn four_times_the_area_has_four_times_the_windows() {
    let caps = "video/x-raw,width=3840,height=2160";
    for frame in boxes_of_frames(&format!("crowdtestsrc num-buffers=20 ! {caps}")) {
        assert!((1440..=2792).contains(&frame.windows.len()), "{} windows", frame.windows.len());
    }
}

#[test]
fn frames_are_equal_for_equal_seeds_and_differ_for_different_seeds() {
    let run = |seed: u32| frames(&format!("crowdtestsrc truth=true num-buffers=5 seed={seed}"));
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(a, b)| a.pixels != b.pixels && a.truth != b.truth));
}

#[test]
fn every_decoder_gives_the_same_windows() {
    let run =
        |decoder: &str| boxes_of_frames(&format!("crowdtestsrc num-buffers=12 decoder={decoder}"));
    let windows = run("windows");
    for decoder in ["yolov5", "yolov8"] {
        let frames = run(decoder);
        assert_eq!(frames.len(), windows.len());
        for (expected, found) in windows.iter().zip(frames) {
            assert_eq!(expected.windows.len(), found.windows.len(), "{decoder}");
            assert_eq!(boxes(&expected.windows), boxes(&found.windows), "{decoder}");
            assert_eq!(boxes(&expected.survivors), boxes(&found.survivors), "{decoder}");
        }
    }
}

#[test]
fn greedy_suppression_finds_97_percent_of_the_people_and_duplicates_less_than_1_percent() {
    let (mut present, mut found, mut duplicated, mut without) = (0, 0, 0, 0);
    for frame in boxes_of_frames("crowdtestsrc truth=true num-buffers=250") {
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
fn true_boxes_are_inside_the_frame_and_attached_only_if_truth_is_set() {
    for frame in boxes_of_frames("crowdtestsrc truth=true num-buffers=50") {
        assert!(frame.truth.len() >= 45, "{} people", frame.truth.len());
        for [x, y, w, h] in frame.truth {
            assert!(w > 0 && h > 0 && x + w <= 1920 && y + h <= 1080, "{x},{y} {w}x{h}");
        }
    }
    assert!(frames("crowdtestsrc num-buffers=1")[0].truth.is_empty());
}

#[test]
fn the_property_people_sets_the_number_of_true_boxes() {
    let caps = "video/x-raw,width=320,height=180";
    let present = |people: u32| {
        let source = format!("crowdtestsrc truth=true people={people} num-buffers=300 ! {caps}");
        frames(&source).iter().map(|frame| frame.truth.len()).collect::<Vec<_>>()
    };
    // A person who leaves the frame enters it again on the other side.
    for people in [1, 3] {
        assert_eq!(present(people).into_iter().max(), Some(people as usize));
    }
    let many = &frames("crowdtestsrc truth=true people=400 num-buffers=1")[0];
    assert!((300..=400).contains(&many.truth.len()), "{} of 400 people", many.truth.len());
}

/// A picture. Each pixel has red, green, blue and the fourth byte.
struct Picture {
    width: usize,
    pixels: Vec<[u8; 4]>,
    truth: Vec<[u32; 4]>,
}

/// Returns the last of `count` frames in this format. `order` has the positions of red, green, blue
/// and the fourth byte in a pixel.
fn picture(format: &str, order: [usize; 4], [width, height]: [usize; 2], count: u32) -> Picture {
    let pipeline = parse(&format!(
        "crowdtestsrc truth=true num-buffers={count}
           ! video/x-raw,format={format},width={width},height={height} ! fakesink name=out"
    ));
    let seen = watch(&pipeline, "out", move |buffer| {
        let bytes = buffer.map_readable().unwrap().to_vec();
        assert_eq!(bytes.len(), width * height * 4);
        let pixels = bytes.as_chunks::<4>().0.iter();
        let pixels = pixels.map(|pixel| order.map(|position| pixel[position])).collect();
        let truth = regions(buffer).into_iter().map(|(_, rect)| rect).collect();
        Picture { width, pixels, truth }
    });
    assert_eq!(run(&pipeline).error, None, "{format}");
    let mut seen = seen.lock().unwrap();
    assert_eq!(seen.len(), count as usize, "{format}");
    seen.pop().unwrap()
}

/// Colors of faces, as red, green and blue.
const SKINS: [[u8; 3]; 5] =
    [[244, 208, 180], [226, 178, 142], [192, 140, 104], [142, 96, 66], [98, 64, 46]];

#[test]
fn every_format_has_the_same_colors_in_its_component_order() {
    for (format, order) in [
        ("BGRx", [2, 1, 0, 3]),
        ("RGBx", [0, 1, 2, 3]),
        ("BGRA", [2, 1, 0, 3]),
        ("RGBA", [0, 1, 2, 3]),
    ] {
        let Picture { width, pixels, truth } = picture(format, order, [1920, 1080], 1);
        // The upper edge, which is sky, has a single color. The greatest component of the sky is
        // blue, and the greatest of a face is red.
        assert_eq!(pixels[0], [196, 212, 226, 255], "{format}");
        assert!(pixels[..width].iter().all(|pixel| *pixel == pixels[0]), "{format}");
        assert!(pixels.iter().all(|pixel| pixel[3] == 255), "{format}: not opaque");
        assert!(truth.len() > 30);
        // Two thirds down a face, the pixel is between eyes and mouth.
        let faces = truth.iter().filter(|&&[x, y, w, h]| {
            let (x, y) = ((x + w / 2) as usize, (y + h * 2 / 3) as usize);
            SKINS.contains(pixels[y * width + x].first_chunk().unwrap())
        });
        // Faces can hide other faces.
        let faces = faces.count();
        assert!(faces * 10 >= truth.len() * 9, "{format}: {faces} of {} faces", truth.len());
    }
}

#[test]
fn frames_of_any_size_are_drawn_completely() {
    for size in [[1, 1], [3, 1], [1, 7], [321, 117], [640, 2000]] {
        let picture = picture("RGBA", [0, 1, 2, 3], size, 3);
        assert_eq!(picture.pixels[0], [196, 212, 226, 255], "{size:?}");
        assert!(picture.pixels.iter().all(|pixel| pixel[3] == 255), "{size:?}");
    }
}

#[test]
fn timestamps_follow_the_frame_rate_also_if_live() {
    for live in [false, true] {
        let source = format!("crowdtestsrc num-buffers=4 is-live={live}");
        let caps = "video/x-raw,width=64,height=36,framerate=30000/1001";
        let pts: Vec<_> = frames(&format!("{source} ! {caps}")).iter().map(|f| f.pts).collect();
        // Timestamps of a live source begin at its start time.
        let since_first: Vec<_> = pts.iter().map(|&pts_n| pts_n - pts[0]).collect();
        let expected = [0, 33_366_666, 66_733_333, 100_100_000];
        assert_eq!(since_first, expected.map(gst::ClockTime::from_nseconds), "is-live={live}");
        assert!(live || pts[0] == gst::ClockTime::ZERO);
    }
}

const SMALL: &str = "video/x-raw,width=64,height=36";

/// Returns a paused pipeline that has prerolled.
fn paused() -> gst::Pipeline {
    use gst::prelude::*;
    let pipeline = parse(&format!("crowdtestsrc name=crowd ! {SMALL} ! fakesink name=out"));
    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
    pipeline
}

/// Returns the frames after a flushing seek at this rate, from `start` to `stop` in milliseconds.
fn segment(rate: f64, start: u64, stop: u64) -> Vec<Frame> {
    use gst::prelude::*;
    let pipeline = paused();
    let seen = watch(&pipeline, "out", read_frame);
    let [start, stop] = [start, stop].map(gst::ClockTime::from_mseconds);
    let set = gst::SeekType::Set;
    pipeline.seek(rate, gst::SeekFlags::FLUSH, set, start, set, stop).unwrap();
    assert_eq!(run(&pipeline).error, None);
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn a_segment_gives_the_frames_from_its_start_to_its_stop() {
    let whole = frames(&format!("crowdtestsrc num-buffers=30 ! {SMALL}"));
    assert_eq!(segment(1.0, 400, 500), whole[20..25]);
    assert_eq!(segment(2.0, 400, 500), whole[20..25]);
    // A frame takes 20 ms. The segment begins and ends with the frames at the given times.
    assert_eq!(segment(1.0, 410, 450), whole[20..23]);
    assert_eq!(segment(1.0, 0, 1), whole[..1]);
}

#[test]
fn a_segment_of_negative_rate_gives_its_frames_in_reverse_order() {
    let mut whole = frames(&format!("crowdtestsrc num-buffers=30 ! {SMALL}"));
    let count = whole.len();
    whole.reverse();
    let reversed = |from: usize, to: usize| &whole[count - to..count - from];
    assert_eq!(segment(-1.0, 400, 500), reversed(20, 25));
    assert_eq!(segment(-0.5, 410, 450), reversed(20, 23));
    assert_eq!(segment(-1.0, 0, 100), reversed(0, 5));
}

#[test]
fn a_seek_of_negative_rate_without_a_stop_fails() {
    use gst::prelude::*;
    let pipeline = paused();
    let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
    let result = pipeline.seek(
        -1.0,
        gst::SeekFlags::FLUSH,
        set,
        gst::ClockTime::ZERO,
        none,
        gst::ClockTime::NONE,
    );
    assert!(result.is_err());
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn a_non_flushing_seek_is_executed_after_the_frames_before_it() {
    use gst::prelude::*;
    let whole = frames(&format!("crowdtestsrc num-buffers=30 ! {SMALL}"));
    let pipeline = paused();
    let seen = watch(&pipeline, "out", |buffer| buffer.pts().unwrap());
    let [start, stop] = [400, 500].map(gst::ClockTime::from_mseconds);
    let set = gst::SeekType::Set;
    // The seek waits for the streaming thread. In the state PAUSED, the streaming thread waits for
    // the change of state, so the pipeline must play.
    pipeline.set_state(gst::State::Playing).unwrap();
    pipeline.seek(1.0, gst::SeekFlags::empty(), set, start, set, stop).unwrap();
    assert_eq!(run(&pipeline).error, None);
    let expected: Vec<_> = whole[20..25].iter().map(|frame| frame.pts).collect();
    assert!(seen.lock().unwrap().ends_with(&expected));
}

#[test]
fn a_seek_before_caps_starts_at_the_frame_of_that_time() {
    use gst::prelude::*;
    let whole = frames(&format!("crowdtestsrc num-buffers=30 ! {SMALL}"));
    let pipeline = parse(&format!("crowdtestsrc name=crowd ! {SMALL} ! fakesink name=out"));
    let seen = watch(&pipeline, "out", read_frame);
    pipeline.set_state(gst::State::Ready).unwrap();
    let [start, stop] = [400, 500].map(gst::ClockTime::from_mseconds);
    let (flush, set) = (gst::SeekFlags::FLUSH, gst::SeekType::Set);
    let seek = gst::event::Seek::new(1.0, flush, set, start, set, stop);
    assert!(pipeline.by_name("crowd").unwrap().send_event(seek));
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*seen.lock().unwrap(), whole[20..25]);
}

#[test]
fn a_flushing_seek_continues_at_the_frame_of_that_time() {
    use gst::prelude::*;
    let whole = frames(&format!("crowdtestsrc num-buffers=30 ! {SMALL}"));
    let pipeline = parse(&format!("crowdtestsrc num-buffers=100 ! {SMALL} ! fakesink name=out"));
    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
    let seen = watch(&pipeline, "out", read_frame);
    let target = gst::ClockTime::from_mseconds(400);
    pipeline.seek_simple(gst::SeekFlags::FLUSH, target).unwrap();
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0], whole[20]);
}

/// Returns a source that is linked to a sink. The sink handles the allocation query with `propose`,
/// which gets the query, its caps, and the size of a frame without padding.
fn into_pool(
    caps: &str,
    propose: fn(&mut gst::query::Allocation, &gst::Caps, u32),
) -> gst::Pipeline {
    use gst::prelude::*;
    let pipeline = parse(&format!("crowdtestsrc num-buffers=3 ! {caps} ! fakesink name=out"));
    let pad = pipeline.by_name("out").unwrap().static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
        let Some(query) = info.query_mut() else { return gst::PadProbeReturn::Ok };
        let gst::QueryViewMut::Allocation(query) = query.view_mut() else {
            return gst::PadProbeReturn::Ok;
        };
        let caps = query.get_owned().0.expect("the source has caps");
        let size = gst_video::VideoInfo::from_caps(&caps).unwrap().size() as u32;
        propose(query, &caps, size);
        gst::PadProbeReturn::Handled
    });
    pipeline
}

/// Runs the pipeline, and returns the result of `extract` for each buffer.
fn all<T: Send + 'static>(
    pipeline: &gst::Pipeline,
    extract: impl Fn(&gst::BufferRef) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let seen = watch(pipeline, "out", extract);
    assert_eq!(run(pipeline).error, None);
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn a_pool_that_raises_its_minimum_is_used_with_the_adjusted_configuration() {
    let expected = frames(&format!("crowdtestsrc num-buffers=3 ! {SMALL}"));
    let pipeline = into_pool(SMALL, |query, _, size| {
        query.add_allocation_pool(Some(&pool::adjusting(5)), size, 0, 0);
    });
    let found = all(&pipeline, |buffer| (read_frame(buffer), pool::made(buffer)));
    assert_eq!(found, expected.into_iter().map(|frame| (frame, true)).collect::<Vec<_>>());
}

#[test]
fn a_pool_that_cannot_be_configured_is_not_used() {
    use gst::prelude::*;
    let expected = frames(&format!("crowdtestsrc num-buffers=3 ! {SMALL}"));
    let rejecting = into_pool(SMALL, |query, _, size| {
        query.add_allocation_pool(Some(&pool::rejecting()), size, 0, 0);
    });
    assert_eq!(all(&rejecting, read_frame), expected);
    // An active pool keeps its configuration.
    let active = into_pool(SMALL, |query, _, size| {
        let pool = gst::BufferPool::new();
        let mut config = pool.config();
        config.set_params(Some(&gst::Caps::new_empty_simple("other/caps")), 16, 0, 0);
        pool.set_config(config).unwrap();
        pool.set_active(true).unwrap();
        query.add_allocation_pool(Some(&pool), size, 0, 0);
    });
    assert_eq!(all(&active, read_frame), expected);
}

#[test]
fn frames_with_row_padding_have_the_same_pixels() {
    use gst::prelude::*;
    use gst_video::prelude::*;
    let caps = &format!("{SMALL},format=BGRx");
    let plain =
        all(&into_pool(caps, |_, _, _| ()), |buffer| buffer.map_readable().unwrap().to_vec());
    let padded = into_pool(caps, |query, caps, size| {
        let pool = gst_video::VideoBufferPool::new();
        let mut config = pool.config();
        config.set_params(Some(caps), size, 0, 0);
        config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META.as_ref());
        config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_ALIGNMENT.as_ref());
        config.set_video_alignment(&gst_video::VideoAlignment::new(3, 5, 7, 9, &[63; 4]));
        // The function returns false, since the pool adjusts the size to the alignment.
        let _ = pool.set_config(config);
        query.add_allocation_pool(Some(&pool), size, 0, 0);
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
    });
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Bgrx, 64, 36).build().unwrap();
    let padded = all(&padded, move |buffer| {
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).unwrap();
        let stride = frame.plane_stride()[0] as usize;
        assert!(stride > 64 * 4, "rows have {stride} bytes");
        let rows = frame.plane_data(0).unwrap().chunks(stride).take(36);
        rows.flat_map(|row| row[..64 * 4].to_vec()).collect::<Vec<u8>>()
    });
    assert!(padded == plain);
}

#[test]
fn frames_smaller_than_their_metadata_says_are_an_error() {
    let pipeline = into_pool(SMALL, |query, _, size| {
        query.add_allocation_pool(Some(&pool::short()), size, 0, 0);
    });
    let ended = run(&pipeline);
    assert!(ended.error().contains("plane 0 of the frame"), "{}", ended.error());
}
