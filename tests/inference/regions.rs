// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions of a frame: tiles, lists, and regions of interest, from a frame to the metadata of its objects.

use std::path::Path;

use gst::prelude::*;
use gst_check::Harness;
use gst_newer::CustomMeta;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::META_NAME;
use gstonnxruntime::regions::tiles;

use crate::element::{Values, file, has_onnx_runtime, inference, stat, stats, tensors};
use crate::support::data;
use crate::support::onnx::{Element, constant, identity};
use crate::support::pipeline::{self, intercept, parse, watch};

/// A model whose output is its input.
const DIMS: [i64; 4] = [1, 3, 48, 64];

/// Left, top, width and height of a region, its parent, and its tensor.
type Picture = ([i32; 4], Option<i32>, Vec<f32>);

/// Returns the regions and tensors on a buffer, as another program reads them.
fn pictures(buffer: &gst::BufferRef) -> Vec<Picture> {
    let read = |structure: &gst::StructureRef| {
        let region: gst::Array = structure.get("region").ok()?;
        let sides: Vec<i32> = region.iter().map(|side| side.get().unwrap()).collect();
        let data: gst::Buffer = structure.get("data").unwrap();
        let bytes = data.map_readable().unwrap();
        let number = |bytes: &[u8; 4]| f32::from_ne_bytes(*bytes);
        let values = bytes.as_chunks().0.iter().map(number).collect();
        Some((sides.try_into().unwrap(), structure.get("parent").ok(), values))
    };
    CustomMeta::new(META_NAME, &[]).structures(buffer).filter_map(read).collect()
}

/// Runs the model `model` on a frame. Returns its regions and the counts of regions, and of frames without any.
fn run(
    caps: &str,
    model: &Path,
    properties: &str,
    change: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Picture>, [u64; 2]) {
    let (seen, stats) = run_with_stats(caps, model, properties, change);
    (seen, ["regions", "frames-without-regions"].map(|name| stats.get(name).unwrap()))
}

/// Like [`run`], with all statistics.
fn run_with_stats(
    caps: &str,
    model: &Path,
    properties: &str,
    change: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Picture>, gst::Structure) {
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 pattern=smpte ! {caps} ! identity name=in ! {} ! fakesink",
        inference(model, &format!("provider=cpu {properties}"))
    ));
    intercept(&pipeline, "in", change);
    let seen = watch(&pipeline, "inference", pictures);
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    let seen = seen.lock().unwrap().remove(0);
    // A single warning says that the model has not run.
    assert_eq!(ended.warnings.len(), usize::from(seen.is_empty()), "{:?}", ended.warnings);
    assert!(ended.warnings.iter().all(|it| it.contains("the model did not run")));
    (seen, stats(&pipeline))
}

/// Returns the tensor of a frame that `videocrop` has cut out.
fn cropped(caps: &str, [width, height]: [i32; 2], model: &Path, region: [i32; 4]) -> Vec<f32> {
    let [left, top, w, h] = region;
    let (right, bottom) = (width - left - w, height - top - h);
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 pattern=smpte ! {caps}
           ! videocrop left={left} top={top} right={right} bottom={bottom} ! {} ! fakesink",
        inference(model, "provider=cpu")
    ));
    let seen = watch(&pipeline, "inference", tensors);
    assert_eq!(pipeline::run(&pipeline).error, None);
    let found = seen.lock().unwrap().remove(0).remove(0);
    match found.values {
        Values::F32(values) => values,
        other => panic!("expected f32, got {other:?}"),
    }
}

#[test]
fn a_regions_picture_is_the_picture_of_a_cropped_frame() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let regions = [[0, 0, 320, 240], [64, 32, 64, 48], [100, 30, 30, 200], [300, 0, 20, 240]];
    let list: Vec<String> = regions.iter().map(|[x, y, w, h]| format!("{x},{y},{w},{h}")).collect();
    let properties = format!("regions=list region-list={}", list.join(";"));
    for format in ["RGB", "I420", "NV12", "YUY2", "GRAY8", "I420_10LE"] {
        let caps = format!("video/x-raw,format={format},width=320,height=240");
        let (found, counts) = run(&caps, &model, &properties, |_| ());
        assert_eq!(counts, [4, 0]);
        assert_eq!(found.iter().map(|(region, ..)| *region).collect::<Vec<_>>(), regions);
        for (region, parent, picture) in found {
            assert_eq!(parent, None);
            let expected = cropped(&caps, [320, 240], &model, region);
            let differing = picture.iter().zip(&expected).filter(|(a, b)| a != b).count();
            assert_eq!(differing, 0, "{format}, {region:?}");
        }
    }
}

/// A pixel has one color in every region, also where a sample of chroma covers pixels outside of the region.
/// videocrop moves the colors by a pixel then: its first sample of chroma is from the pixel before.
#[test]
fn colors_stay_at_their_pixels_in_regions_at_odd_places() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    // It has the model's size. The frame changes its colors at the columns 45 and 91, and at the row 160.
    let even = [30, 140, 64, 48];
    for format in ["I420", "NV12", "YUY2", "Y41B"] {
        let caps = format!("video/x-raw,format={format},width=320,height=240");
        let shift = if format == "Y41B" { 4 } else { 2 };
        for [right, down] in [[1, 0], [0, 1], [1, 1]] {
            let other = [even[0] + right + shift, even[1] + down, 64, 48];
            let list = [even, other].map(|region| region.map(|side| side.to_string()).join(","));
            let properties = format!("regions=list region-list={}", list.join(";"));
            let (found, _) = run(&caps, &model, &properties, |_| ());
            let at = |region: usize, channel: usize, [x, y]: [i32; 2]| {
                let [column, row] = [x - found[region].0[0], y - found[region].0[1]];
                found[region].2[(channel * 48 + row as usize) * 64 + column as usize]
            };
            // Inside of both regions, without the pixels whose neighbors are outside.
            for channel in 0..3 {
                for y in other[1] + 2..even[1] + 46 {
                    for x in other[0] + 4..even[0] + 60 {
                        let [one, two] = [0, 1].map(|region| at(region, channel, [x, y]));
                        assert_eq!(one, two, "{format} {other:?}: channel {channel} at {x},{y}");
                    }
                }
            }
            if other[0] % shift != 0 {
                assert!(found[1].2 != cropped(&caps, [320, 240], &model, other), "{format}");
            }
        }
    }
}

#[test]
fn a_batch_takes_several_regions() {
    if !has_onnx_runtime() {
        return;
    }
    let caps = "video/x-raw,format=RGB,width=320,height=240";
    let single = file(&identity(DIMS, Element::F32));
    let dynamic = file(&identity("batch,3,48,64", Element::F32));
    let properties = "regions=tiles tile-width=128 tile-height=96";
    let (expected, _) = run(caps, &single, properties, |_| ());
    // 3 columns and 3 rows of tiles, and the whole frame.
    assert_eq!(expected.len(), 10);
    // With batches of 4, the last run has 2 of the 10 regions.
    for (batch, mean) in [(1, 1.0), (4, 3.6), (10, 10.0), (16, 10.0)] {
        let properties = format!("{properties} batch-size={batch}");
        let (found, stats) = run_with_stats(caps, &dynamic, &properties, |_| ());
        assert_eq!(stats.get("batch-mean"), Ok(mean));
        assert_eq!(found.len(), expected.len());
        for (index, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert!(a == b, "batch of {batch}, region {index}: {:?}, expected {:?}", a.0, b.0);
        }
    }
}

/// The slices of SAHI and of Roboflow's slicer, as they recorded them.
#[test]
fn tiles_are_the_slices_of_sahi() {
    let Some(path) = data::path("vectors/merging/slices.json") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let recorded: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    let mut compared = 0;
    for case in cases.iter().filter(|case| case["name"].as_str().unwrap().starts_with("sahi")) {
        let number = |name: &str| case[name].as_u64().unwrap() as u32;
        let overlaps = ["overlap_width_ratio", "overlap_height_ratio"]
            .map(|name| case[name].as_f64().unwrap());
        let frame = [number("width"), number("height")];
        let tile = [number("slice_width"), number("slice_height")];
        if overlaps[0] != overlaps[1] {
            continue;
        }
        let expected: Vec<Vec<u32>> =
            serde_json::from_value(case["expected"]["boxes"].clone()).unwrap();
        let found: Vec<Vec<u32>> = tiles(frame, tile, overlaps[0])
            .unwrap()
            .iter()
            .map(|tile| vec![tile.left, tile.top, tile.left + tile.width, tile.top + tile.height])
            .collect();
        assert_eq!(found, expected, "{}", case["name"]);
        compared += 1;
    }
    assert!(compared >= 3, "{compared} of {} cases", cases.len());
}

/// The slices of Roboflow supervision, whose overlap is in pixels.
#[test]
fn tiles_are_the_slices_of_supervision() {
    let Some(path) = data::path("vectors/merging/supervision_nmm.json") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let recorded: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cases = recorded["cases"].as_array().unwrap().iter();
    let cases: Vec<_> = cases.filter(|case| case["method"] == "slices").collect();
    for case in &cases {
        let pair = |name: &str| [0, 1].map(|axis| case[name][axis].as_u64().unwrap() as u32);
        let (frame, tile, overlap) = (pair("resolution_wh"), pair("slice_wh"), pair("overlap_wh"));
        let [ratio, other] = [0, 1].map(|axis| f64::from(overlap[axis]) / f64::from(tile[axis]));
        assert_eq!(ratio, other);
        let expected: Vec<[u32; 4]> =
            serde_json::from_value(case["expected"]["boxes"].clone()).unwrap();
        let found: Vec<[u32; 4]> = tiles(frame, tile, ratio)
            .unwrap()
            .iter()
            .map(|tile| [tile.left, tile.top, tile.left + tile.width, tile.top + tile.height])
            .collect();
        assert_eq!(found, expected, "{}", case["name"]);
    }
    assert_eq!(cases.len(), 4);
}

/// A model that finds a box at the right edge of each picture: at an edge between tiles, or at the frame's edge.
#[test]
fn boxes_between_tiles_are_kept_dropped_or_lowered() {
    if !has_onnx_runtime() {
        return;
    }
    let row = [40.0, 12.0, 64.0, 36.0, 0.9, 0.0];
    let model = file(&constant(DIMS, "output0", &[1, 1, 6], &row));
    let found = |properties: &str| {
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,width=320,height=240
               ! {} ! nmsfilter name=nms decoder=end2end {properties} ! fakesink",
            inference(
                &model,
                "provider=cpu regions=tiles tile-width=160 tile-height=120 tile-overlap=0"
            ),
        ));
        let seen = watch(&pipeline, "nms", |buffer| {
            gstnmsfilter::regions::iter(buffer)
                .map(|region| (region.rectangle, region.confidence.unwrap() as f32))
                .collect::<Vec<_>>()
        });
        let ended = pipeline::run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]));
        seen.lock().unwrap().remove(0)
    };
    let [left, right] = [100, 260].map(|x| [30, 150].map(|y| [x, y, 60, 60]));
    let whole = [200, 60, 120, 120];
    let with = |rectangles: &[[u32; 4]], score: f32| -> Vec<([u32; 4], f32)> {
        rectangles.iter().map(|rectangle| (*rectangle, score)).collect()
    };
    // By rank: rows of tiles, then the whole frame.
    let all = [left[0], right[0], left[1], right[1], whole];
    assert_eq!(found("region-edges=keep"), with(&all, 0.9));
    let others = with(&[right[0], right[1], whole], 0.9);
    assert_eq!(found("region-edges=drop"), others);
    assert_eq!(found("region-edges=lower"), [others, with(&left, 0.6)].concat());
}

fn add_roi(buffer: &mut gst::BufferRef, label: &str, id: i32, rect: (u32, u32, u32, u32)) {
    VideoRegionOfInterestMeta::add(buffer, label, rect).set_id(id);
}

#[test]
fn regions_of_interest_are_chosen_by_label_with_a_margin_and_a_limit() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let chosen = |properties: &str| {
        let caps = "video/x-raw,format=RGB,width=320,height=240";
        let (found, counts) = run(caps, &model, &format!("regions=rois {properties}"), |buffer| {
            add_roi(buffer, "person", 3, (20, 40, 100, 80));
            add_roi(buffer, "car", 4, (200, 40, 50, 60));
            add_roi(buffer, "person", 5, (300, 200, 40, 60));
            add_roi(buffer, "person", 6, (400, 200, 40, 60));
        });
        let regions: Vec<_> = found.iter().map(|(region, parent, _)| (*region, *parent)).collect();
        (regions, counts)
    };
    let [first, second, third] = [
        ([20, 40, 100, 80], Some(3)),
        ([200, 40, 50, 60], Some(4)),
        // It ends at the frame. The last region has no pixel in the frame.
        ([300, 200, 20, 40], Some(5)),
    ];
    assert_eq!(chosen(""), (vec![first, second, third], [3, 0]));
    assert_eq!(chosen("roi-labels=person"), (vec![first, third], [2, 0]));
    assert_eq!(chosen("roi-labels=\"car, bus\""), (vec![second], [1, 0]));
    assert_eq!(chosen("roi-limit=1"), (vec![first], [1, 0]));
    assert_eq!(chosen("roi-labels=dog"), (vec![], [0, 1]));
    let with_margin = ([10, 32, 120, 96], Some(3));
    assert_eq!(chosen("roi-limit=1 roi-margin=0.1"), (vec![with_margin], [1, 0]));
}

/// An element to which frames of 320x240 pixels are pushed.
struct Stream {
    harness: Harness,
    element: gst::Element,
    bus: gst::Bus,
}

impl Stream {
    fn new(model: &Path) -> Self {
        let element = gst::ElementFactory::make("ortinference")
            .property("model", model.to_str().unwrap())
            .property_from_str("provider", "cpu")
            .build()
            .unwrap();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str("video/x-raw,format=RGB,width=320,height=240,framerate=25/1");
        Self { harness, element, bus }
    }

    /// Returns the regions of the next frame.
    fn next(&mut self) -> Vec<[i32; 4]> {
        self.next_of(320, 240)
    }

    /// Returns the regions of the next frame, which has this size.
    fn next_of(&mut self, width: usize, height: usize) -> Vec<[i32; 4]> {
        self.harness.set_src_caps_str(&format!(
            "video/x-raw,format=RGB,width={width},height={height},framerate=25/1"
        ));
        let frame = gst::Buffer::from_mut_slice(vec![0u8; width * height * 3]);
        let frame = self.harness.push_and_pull(frame).unwrap();
        pictures(&frame).into_iter().map(|(region, ..)| region).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let pop = || self.bus.pop_filtered(&[gst::MessageType::Warning]);
        std::iter::from_fn(pop)
            .map(|message| match message.view() {
                gst::MessageView::Warning(warning) => warning.error().message().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

#[test]
fn regions_change_while_the_stream_runs() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut stream = Stream::new(&model);
    assert_eq!(stream.next(), [[0; 4]; 0], "the tensor of a whole frame has no region");
    stream.element.set_property("region-list", "0,0,100,100");
    stream.element.set_property_from_str("regions", "list");
    assert_eq!(stream.next(), [[0, 0, 100, 100]]);
    stream.element.set_property("region-list", "10,10,50,50;60,60,50,50");
    assert_eq!(stream.next(), [[10, 10, 50, 50], [60, 60, 50, 50]]);
    assert_eq!(stream.warnings(), [""; 0]);

    stream.element.set_property("region-list", "10,10,50");
    for _ in 0..2 {
        assert_eq!(stream.next(), [[10, 10, 50, 50], [60, 60, 50, 50]]);
    }
    let warnings = stream.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("got \"10,10,50\"; the earlier regions stay in force"),
        "{warnings:?}"
    );

    stream.element.set_property("region-list", "0,0,320,240");
    assert_eq!(stream.next(), [[0, 0, 320, 240]]);
    stream.element.set_property_from_str("regions", "frame");
    assert_eq!(stream.next(), [[0; 4]; 0]);
}

#[test]
fn regions_of_a_list_follow_frames_of_other_sizes() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let mut stream = Stream::new(&model);
    stream.element.set_property("region-list", "10,10,52,52;200,100,52,52;center-square");
    stream.element.set_property_from_str("regions", "list");
    let [first, second] = [[10, 10, 52, 52], [200, 100, 52, 52]];
    assert_eq!(stream.next(), [first, second, [40, 0, 240, 240]]);
    stream.element.set_property("region-list", "bad");
    assert_eq!(stream.next(), [first, second, [40, 0, 240, 240]]);
    assert!(stream.warnings()[0].ends_with("got \"bad\"; the earlier regions stay in force"));
    assert_eq!(stream.next_of(300, 200), [first, second, [50, 0, 200, 200]]);
    assert_eq!(stream.warnings(), [""; 0]);
    for expected in [1, 0] {
        assert_eq!(stream.next_of(200, 120), [first, [40, 0, 120, 120]]);
        let warnings = stream.warnings();
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        let text = "the first is 200,100,52,52; they are left out";
        assert!(warnings.iter().all(|warning| warning.ends_with(text)), "{warnings:?}");
        assert_eq!(stream.next(), [first, second, [40, 0, 240, 240]]);
    }
    // A list without a region: the model does not run.
    stream.element.set_property("region-list", "");
    assert_eq!(stream.next(), [[0; 4]; 0]);
    let stats: gst::Structure = stream.element.property("stats");
    assert_eq!(stats.get::<u64>("frames-without-regions").unwrap(), 1);
    assert_eq!(stream.warnings(), [""; 0]);
}

#[test]
fn a_list_that_cannot_be_used_is_an_error_at_the_start() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    for (properties, expected) in [
        ("regions=list", "regions=list needs region-list"),
        ("regions=list region-list=1,2,3", "expected left,top,width,height of each region"),
        ("regions=list region-list=320,0,9,9", "320,0,9,9 is outside of the frame of 320x240"),
        ("regions=tiles tile-width=1 tile-height=1", "the frame has more than 4096 of them"),
    ] {
        let pipeline = parse(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,width=320,height=240 ! {} ! fakesink",
            inference(&model, &format!("provider=cpu {properties}"))
        ));
        let ended = pipeline::run(&pipeline);
        assert!(ended.error().contains(expected), "{properties}: {}", ended.error());
    }
}

/// Where a second model has no object to run on, no tensor is missing.
#[test]
fn frames_without_regions_give_no_warning_of_missing_tensors() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=40 ! video/x-raw,width=320,height=240,framerate=25/1 ! {}
           ! nmsfilter name=nms ! fakesink",
        inference(&model, "provider=cpu regions=rois")
    ));
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings.len()), (None, 1));
    let expected = "none of 40 frames had a region of interest or an object";
    assert!(ended.warnings[0].contains(expected), "{:?}", ended.warnings);
    assert_eq!(stat(&pipeline, "frames-without-regions"), 40);
    let stats: gst::Structure = pipeline.by_name("nms").unwrap().property("stats");
    assert_eq!(stats.get("frames-without-tensors"), Ok(40u64));
}

/// A label that is misspelled selects nothing, for ever.
#[test]
fn labels_that_no_object_has_give_one_warning() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=250 ! video/x-raw,width=64,height=48 ! identity name=in ! {} ! fakesink",
        inference(&model, "provider=cpu regions=rois roi-labels=persons")
    ));
    intercept(&pipeline, "in", |buffer| add_roi(buffer, "person", 3, (0, 0, 20, 20)));
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings.len()), (None, 1));
    let expected = "their labels are person: correct roi-labels";
    assert!(ended.warnings[0].contains(expected), "{:?}", ended.warnings);
}

/// A picture, and a stream that is stopped before its end, show it, too.
#[test]
fn a_model_that_never_ran_is_reported_at_the_end_of_any_stream() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity(DIMS, Element::F32));
    let warnings = |frames: u32, properties: &str, label: Option<&'static str>| {
        let pipeline = parse(&format!(
            "videotestsrc num-buffers={frames} ! video/x-raw,width=64,height=48 ! identity name=in ! {} ! fakesink",
            inference(&model, &format!("provider=cpu regions=rois {properties}"))
        ));
        intercept(&pipeline, "in", move |buffer| {
            label.into_iter().for_each(|label| add_roi(buffer, label, 3, (0, 0, 20, 20)));
        });
        pipeline::run(&pipeline).warnings
    };
    let nothing = "regions=rois: none of 1 frames had";
    let label = "roi-labels=persons: no object of 20 frames with objects has such a label";
    let empty = "regions=rois: none of 300 frames had";
    for (frames, properties, object, expected) in [
        (1, "", None, Some(nothing)),
        (1, "roi-labels=person", None, Some(nothing)),
        (20, "roi-labels=persons", Some("person"), Some(label)),
        (320, "", None, Some(empty)),
        (20, "roi-labels=person", Some("person"), None),
        (1, "", Some("person"), None),
    ] {
        let found = warnings(frames, properties, object);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{properties}: {found:?}");
        let is_expected = found.iter().zip(expected).all(|(text, start)| text.starts_with(start));
        assert!(is_expected, "{properties}: {found:?}");
    }
    // The application stops before the end of the stream.
    let pipeline = parse(&format!(
        "videotestsrc is-live=true ! video/x-raw,width=64,height=48 ! {} ! fakesink name=sink",
        inference(&model, "provider=cpu regions=rois")
    ));
    let frames = watch(&pipeline, "inference", |_| ());
    pipeline.set_state(gst::State::Playing).unwrap();
    while frames.lock().unwrap().len() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let bus = pipeline.bus().unwrap();
    pipeline.set_state(gst::State::Ready).unwrap();
    let warnings: Vec<_> = bus.iter_filtered(&[gst::MessageType::Warning]).collect();
    assert_eq!(warnings.len(), 1);
    pipeline.set_state(gst::State::Null).unwrap();
}

/// Faces of the people that a first model finds: UltraFace in the regions of YOLOv8.
#[test]
fn a_second_model_runs_on_the_objects_of_the_first() {
    if !has_onnx_runtime() {
        return;
    }
    let paths = [
        "data/models/yolov8n_int8_640.onnx",
        "data/models/version-RFB-320.onnx",
        "data/images/crowd_selfie.jpg",
    ];
    let [Some(people), Some(faces), Some(picture)] = paths.map(data::path) else { return };
    let pipeline = parse(&format!(
        "filesrc location={} ! jpegdec ! videoconvert
           ! ortinference model={} provider=cpu ! nmsfilter keep-tensors=false
           ! {} ! nmsfilter name=second score-threshold=0.6 ! fakesink",
        picture.display(),
        people.display(),
        inference(&faces, "provider=cpu regions=rois roi-labels=person roi-margin=0.1"),
    ));
    let seen = watch(&pipeline, "second", |buffer| {
        gstnmsfilter::regions::iter(buffer)
            .map(|region| {
                (
                    region.label.to_str().unwrap().to_owned(),
                    region.id,
                    region.parent_id,
                    region.rectangle,
                )
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    let found = seen.lock().unwrap().remove(0);
    let (people, faces): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(label, ..)| label == "person");
    assert!(
        people.len() >= 5 && faces.len() >= 20,
        "{} people, {} faces",
        people.len(),
        faces.len()
    );
    assert!(people.iter().all(|(_, _, parent, _)| *parent == -1));
    for (_, _, parent, [left, top, width, height]) in faces {
        let (_, _, _, person) =
            people.iter().find(|(_, id, ..)| *id == parent).expect("each face has a person");
        // The center of a face is in the person's region with its margin.
        let center = [left + width / 2, top + height / 2].map(f64::from);
        for axis in 0..2 {
            let [start, length] = [person[axis], person[axis + 2]].map(f64::from);
            let range = start - 0.11 * length - 1.0..=start + 1.11 * length + 1.0;
            assert!(range.contains(&center[axis]), "{person:?}: {center:?}");
        }
    }
}

/// Objects of the analytics library, as GStreamer's own decoders attach them, without regions of interest.
#[test]
fn objects_of_the_analytics_library_are_regions_too() {
    crate::support::needs::needs!(relations);
    use gst_newer::{AnalyticsODMtd, AnalyticsRelationMeta, RelTypes};

    if !has_onnx_runtime() {
        return;
    }
    // The model finds a box in the middle of its input.
    let rows = [16.0, 12.0, 48.0, 36.0, 0.9, 0.0];
    let model = file(&constant(DIMS, "output0", &[1, 1, 6], &rows));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 ! video/x-raw,width=320,height=240 ! identity name=in
           ! {} ! nmsfilter name=nms decoder=end2end attach=analytics ! fakesink",
        inference(&model, "provider=cpu regions=rois roi-labels=person"),
    ));
    intercept(&pipeline, "in", |buffer| {
        let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
        for (label, x) in [("car", 0), ("person", 100)] {
            meta.add_od_mtd(gst::glib::Quark::from_str(label), x, 40, 64, 48, 0.5).unwrap();
        }
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
        let found: Vec<_> = meta
            .iter::<AnalyticsODMtd>()
            .map(|object| {
                let location = object.location().unwrap();
                let parents =
                    meta.iter_direct_related::<AnalyticsODMtd>(object.id(), RelTypes::IS_PART_OF);
                let parents: Vec<u32> = parents.map(|parent| parent.id()).collect();
                ([location.x, location.y, location.w, location.h], parents)
            })
            .collect();
        found
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    let expected =
        [([0, 40, 64, 48], vec![]), ([100, 40, 64, 48], vec![]), ([116, 52, 32, 24], vec![1])];
    assert_eq!(seen.lock().unwrap().remove(0), expected);
}
