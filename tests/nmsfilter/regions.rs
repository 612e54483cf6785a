// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions that `nmsfilter` attaches: rectangles, structures and labels.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::{init, intercept, parse, regions, run, watch};

/// A region with all fields of its structure.
#[derive(Clone, Debug, PartialEq)]
struct Region {
    kind: String,
    id: i32,
    rect: (u32, u32, u32, u32),
    label_id: i32,
    label: String,
    confidence: f64,
    edges: [f64; 4],
}

fn read_regions(buffer: &gst::BufferRef) -> Vec<Region> {
    buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .map(|meta| {
            let detection = meta.param("detection").expect("each region has the structure");
            let edge = |name: &str| detection.get::<f64>(name).unwrap();
            Region {
                kind: meta.roi_type().to_owned(),
                id: meta.id(),
                rect: meta.rect(),
                label_id: detection.get("label_id").unwrap(),
                label: detection.get("label").unwrap(),
                confidence: edge("confidence"),
                edges: ["x_min", "y_min", "x_max", "y_max"].map(edge),
            }
        })
        .collect()
}

fn tensor(id: &str, shape: &[usize], elements: &[f32]) -> NewTensor {
    init();
    NewTensor::from_vec(id, shape, elements.to_vec()).unwrap()
}

/// Runs one frame of this size with these tensors through `nmsfilter`, and returns the result of
/// `extract`.
fn frame<T: Send + 'static>(
    size: &str,
    properties: &str,
    tensors: Vec<NewTensor>,
    extract: impl Fn(&gst::BufferRef) -> T + Send + Sync + 'static,
) -> T {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,{size}
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        for tensor in &tensors {
            attach(buffer, tensor).unwrap();
        }
    });
    let seen = watch(&pipeline, "nms", extract);
    assert_eq!(run(&pipeline).error, None, "{properties}");
    seen.lock().unwrap().remove(0)
}

const VGA: &str = "width=640,height=480";

fn rects(size: &str, properties: &str, tensors: Vec<NewTensor>) -> Vec<(u32, u32, u32, u32)> {
    frame(size, properties, tensors, |buffer| {
        read_regions(buffer).into_iter().map(|region| region.rect).collect()
    })
}

/// Returns boxes that do not overlap, as corners, with scores for three classes.
fn boxes() -> Vec<NewTensor> {
    let corners = [
        [10.0, 20.0, 40.0, 60.0],
        [100.0, 20.0, 120.0, 40.0],
        [200.0, 20.0, 300.0, 220.0],
        [400.0, 20.0, 480.0, 100.0],
    ];
    let scores = [[0.1, 0.3, 0.0], [0.9, 0.0, 0.0], [0.1, 0.0, 0.6], [0.0, 0.7, 0.1]];
    vec![
        tensor("boxes", &[4, 4], corners.as_flattened()),
        tensor("scores", &[4, 3], scores.as_flattened()),
    ]
}

#[test]
fn survivors_become_regions_in_descending_score() {
    let found = frame(VGA, "", boxes(), read_regions);
    let first = Region {
        kind: "class-0".into(),
        id: found[0].id,
        rect: (100, 20, 20, 20),
        label_id: 0,
        label: "class-0".into(),
        confidence: f64::from(0.9f32),
        edges: [100.0 / 640.0, 20.0 / 480.0, 120.0 / 640.0, 40.0 / 480.0],
    };
    assert_eq!(found[0], first);
    let order: Vec<_> = found.iter().map(|region| (region.label_id, region.rect.0)).collect();
    assert_eq!(order, [(0, 100), (1, 400), (2, 200), (1, 10)]);
    let ids: Vec<_> = found.iter().map(|region| region.id).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
}

/// Returns the ids of the regions after two `nmsfilter` elements. The tensors for the second
/// element are attached after the first. `foreign` has the ids of regions that are attached before
/// both.
fn ids_behind_two(foreign: &'static [i32]) -> Vec<i32> {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=first keep-tensors=false attach=roi
           ! nmsfilter name=second attach=roi ! fakesink",
    );
    intercept(&pipeline, "in", move |buffer| {
        for id in foreign {
            VideoRegionOfInterestMeta::add(buffer, "other", (0, 0, 9, 9)).set_id(*id);
        }
        attach(buffer, &tensor("windows", &[1, 4], &[10.0, 10.0, 20.0, 0.9])).unwrap();
    });
    intercept(&pipeline, "first", |buffer| {
        let two = [50.0, 10.0, 20.0, 0.9, 90.0, 10.0, 20.0, 0.8];
        attach(buffer, &tensor("windows", &[2, 4], &two)).unwrap();
    });
    let seen = watch(&pipeline, "second", |buffer| {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
        regions.map(|region| region.id()).collect::<Vec<_>>()
    });
    assert_eq!(run(&pipeline).error, None);
    seen.lock().unwrap().remove(0)
}

#[test]
fn ids_continue_after_those_on_the_buffer() {
    assert_eq!(ids_behind_two(&[]), [0, 1, 2]);
    // The id is 0 if an element does not set it.
    assert_eq!(ids_behind_two(&[0, 0]), [0, 0, 1, 2, 3]);
    assert_eq!(ids_behind_two(&[41, 7]), [41, 7, 42, 43, 44]);
    assert_eq!(ids_behind_two(&[-1, -5]), [-1, -5, 0, 1, 2]);
}

#[test]
fn labels_are_those_of_the_file_else_of_the_decoder_else_the_class_number() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("labels.txt");
    std::fs::write(&file, "person\r\n\nbicycle \n").unwrap();
    let labels = |properties: String, tensors| {
        frame(VGA, &properties, tensors, |buffer| {
            regions(buffer).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
        })
    };
    let file = format!("label-file={}", file.display());
    assert_eq!(labels(file.clone(), boxes()), ["person", "class-1", "bicycle", "class-1"]);
    let window = || vec![tensor("windows", &[1, 4], &[10.0, 10.0, 20.0, 0.9])];
    assert_eq!(labels(String::new(), window()), ["object"]);
    assert_eq!(labels(file, window()), ["person"]);
    let face = vec![
        tensor("scores", &[1, 1, 2], &[0.2, 0.8]),
        tensor("boxes", &[1, 1, 4], &[0.25, 0.25, 0.5, 0.5]),
    ];
    assert_eq!(labels("decoder=ultraface".into(), face), ["face"]);
}

#[test]
fn classes_and_class_thresholds_select_the_regions() {
    let lefts = |properties: &str| -> Vec<u32> {
        rects(VGA, properties, boxes()).into_iter().map(|rect| rect.0).collect()
    };
    assert_eq!(lefts("classes=1"), [400, 10]);
    assert_eq!(lefts("classes=2,0"), [100, 200]);
    assert_eq!(lefts("class-thresholds=1:0.5"), [100, 400, 200]);
    assert_eq!(lefts("score-threshold=0.8 class-thresholds=2:0.1"), [100, 200]);
    assert!(lefts("classes=7").is_empty());
}

#[test]
fn classes_are_selected_by_the_labels_that_regions_have() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shown-labels.txt");
    std::fs::write(&file, "cup, glass\n\na:b\\c\n").unwrap();
    let lefts = |properties: &str, tensors| -> Vec<u32> {
        rects(VGA, properties, tensors).into_iter().map(|rect| rect.0).collect()
    };
    assert_eq!(lefts("classes=class-1", boxes()), [400, 10]);
    assert_eq!(lefts("class-thresholds=class-1:0.5", boxes()), [100, 400, 200]);
    let window = || vec![tensor("windows", &[1, 4], &[10.0, 10.0, 20.0, 0.9])];
    assert_eq!(lefts("classes=object", window()), [10]);
    assert_eq!(lefts("class-thresholds=object:0.95", window()), [0; 0]);

    let with_file = |properties: &[(&str, &str)]| -> Vec<u32> {
        let pipeline = parse(
            "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
               ! nmsfilter name=nms ! fakesink",
        );
        let nms = pipeline.by_name("nms").unwrap();
        nms.set_property("label-file", file.to_str());
        properties.iter().for_each(|(name, text)| nms.set_property(name, text));
        intercept(&pipeline, "in", |buffer| {
            boxes().iter().for_each(|tensor| attach(buffer, tensor).unwrap());
        });
        let seen = watch(&pipeline, "nms", regions);
        assert_eq!(run(&pipeline).error, None, "{properties:?}");
        let found = seen.lock().unwrap().remove(0);
        found.into_iter().map(|(_, [left, ..])| left).collect()
    };
    assert_eq!(with_file(&[("classes", r"cup\, glass")]), [100]);
    assert_eq!(with_file(&[("classes", r" class-1 , cup\, glass ")]), [100, 400, 10]);
    // A backslash before an ordinary character stands for itself. Two backslashes stand for one.
    assert_eq!(with_file(&[("classes", r"a:b\c")]), [200]);
    assert_eq!(with_file(&[("classes", r"a:b\\c")]), [200]);
    assert_eq!(with_file(&[("class-thresholds", r"cup\, glass:0.95,a:b\c:0.7")]), [400, 10]);
}

#[test]
fn min_size_and_max_size_are_in_pixels_of_the_frame() {
    let lefts = |properties: &str| -> Vec<u32> {
        let mut lefts: Vec<u32> =
            rects(VGA, properties, boxes()).into_iter().map(|rect| rect.0).collect();
        lefts.sort_unstable();
        lefts
    };
    // Boxes have the sizes 30 x 40, 20 x 20, 100 x 200 and 80 x 80.
    assert_eq!(lefts("min-size=30"), [10, 200, 400]);
    assert_eq!(lefts("max-size=80"), [10, 100, 400]);
    assert_eq!(lefts("min-size=21 max-size=79"), [10]);
    // The frame is half as large as the model's input, so sides are halved.
    let half = "model-width=1280 model-height=960";
    assert_eq!(lefts(&format!("{half} min-size=15")), [5, 100, 200]);
    assert_eq!(lefts(&format!("{half} max-size=40")), [5, 50, 200]);
}

#[test]
fn max_detections_and_max_candidates_keep_the_highest_scores() {
    assert_eq!(rects(VGA, "max-detections=2", boxes()).len(), 2);
    assert_eq!(rects(VGA, "max-detections=2", boxes())[0].0, 100);
    assert_eq!(rects(VGA, "max-candidates=1", boxes()).len(), 1);
}

#[test]
fn boxes_of_different_classes_suppress_each_other_only_if_class_agnostic() {
    let same = [[10.0, 10.0, 50.0, 50.0]; 2];
    let scores = [[0.9, 0.0], [0.0, 0.8]];
    let pair = || {
        vec![
            tensor("boxes", &[2, 4], same.as_flattened()),
            tensor("scores", &[2, 2], scores.as_flattened()),
        ]
    };
    assert_eq!(rects(VGA, "", pair()).len(), 2);
    assert_eq!(rects(VGA, "class-agnostic=true", pair()).len(), 1);
    assert_eq!(rects(VGA, "class-agnostic=true method=none", pair()).len(), 2);
}

#[test]
fn boxes_are_clipped_to_the_frame() {
    let rows = [[-20.0, -30.0, 50.0, 0.9], [620.0, 470.0, 40.0, 0.8], [639.8, 100.0, 9.0, 0.7]];
    let windows = vec![tensor("windows", &[3, 4], rows.as_flattened())];
    let found = frame(VGA, "", windows, read_regions);
    assert_eq!(found[0].rect, (0, 0, 30, 20));
    assert_eq!(found[0].edges, [0.0, 0.0, 30.0 / 640.0, 20.0 / 480.0]);
    assert_eq!(found[1].rect, (620, 470, 20, 10));
    assert_eq!(found[1].edges[2..], [1.0, 1.0]);
    // The box is less than a pixel wide, and its region has one pixel.
    assert_eq!(found[2].rect, (639, 100, 1, 9));
}

/// With a letterbox, the model's input of 640x640 contains the frame of 640x480 between borders of
/// 80 rows.
#[test]
fn a_box_outside_the_frame_does_not_count_toward_limits_and_suppresses_none() {
    let windows = |first: [f32; 4]| {
        let rows = [first, [10.0, 100.0, 40.0, 0.8], [300.0, 100.0, 40.0, 0.7]];
        vec![tensor("windows", &[3, 4], rows.as_flattened())]
    };
    let letterbox = "model-width=640 model-height=640 letterbox=center";
    for (properties, best) in [
        ("", [700.0, 10.0, 50.0, 0.9]),
        ("", [10.0, -60.0, 50.0, 0.9]),
        // The box touches the frame from outside.
        ("", [640.0, 10.0, 50.0, 0.9]),
        ("", [-50.0, 10.0, 50.0, 0.9]),
        // The box is in a border.
        (letterbox, [10.0, 20.0, 60.0, 0.9]),
        (letterbox, [10.0, 560.0, 60.0, 0.9]),
    ] {
        let top = if properties.is_empty() { 100 } else { 20 };
        let expected = [(10, top, 40, 40), (300, top, 40, 40)];
        for (limit, left) in [("", 2), ("max-detections=1", 1), ("max-candidates=1", 1)] {
            let found = rects(VGA, &format!("{properties} {limit}"), windows(best));
            assert_eq!(found, expected[..left], "{properties} {limit} {best:?}");
        }
    }
    // The first box conflicts with the second, but is outside of the frame.
    let pair = [[-30.0, 10.0, 30.0, 0.9], [-29.0, 10.0, 30.0, 0.8]];
    let pair = vec![tensor("windows", &[2, 4], pair.as_flattened())];
    assert_eq!(rects(VGA, "", pair), [(0, 10, 1, 30)]);
}

#[test]
fn multi_label_gives_a_region_for_every_class_above_its_threshold() {
    let found = |properties: &str| -> Vec<(i32, u32)> {
        let scores = [[0.6, 0.3, 0.6], [0.9, 0.0, 0.2]];
        let corners = [[10.0, 20.0, 40.0, 60.0], [100.0, 20.0, 120.0, 40.0]];
        let tensors = vec![
            tensor("boxes", &[2, 4], corners.as_flattened()),
            tensor("scores", &[2, 3], scores.as_flattened()),
        ];
        frame(VGA, properties, tensors, |buffer| {
            read_regions(buffer)
                .into_iter()
                .map(|region| (region.label_id, region.rect.0))
                .collect()
        })
    };
    assert_eq!(found(""), [(0, 100), (0, 10)]);
    assert_eq!(found("multi-label=true"), [(0, 100), (0, 10), (2, 10), (1, 10)]);
    assert_eq!(found("multi-label=true score-threshold=0.5"), [(0, 100), (0, 10), (2, 10)]);
    assert_eq!(
        found("multi-label=true class-thresholds=2:0.1"),
        [(0, 100), (0, 10), (2, 10), (1, 10), (2, 100)]
    );
    assert_eq!(found("multi-label=true max-detections=2"), [(0, 100), (0, 10)]);
    assert_eq!(found("multi-label=true class-agnostic=true"), [(0, 100), (0, 10)]);
}

#[test]
fn multi_label_can_be_set_while_playing() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let nms = pipeline.by_name("nms").unwrap();
    assert!(!nms.property::<bool>("multi-label"));
    let (tensors, switched) = (boxes(), nms.clone());
    let frames = std::sync::atomic::AtomicU32::new(0);
    intercept(&pipeline, "in", move |buffer| {
        let frame = frames.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        switched.set_property("multi-label", frame == 1);
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    nms.set_property("score-threshold", 0.1f32);
    let seen = watch(&pipeline, "nms", |buffer| read_regions(buffer).len());
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*seen.lock().unwrap(), [4, 7, 4]);
}

#[test]
fn coordinates_are_pixels_or_normalized_by_tensor_id_or_property() {
    let window = |id: &str, elements: [f32; 4]| vec![tensor(id, &[1, 4], &elements)];
    let half = [0.5, 0.5, 0.25, 0.9];
    let quarter = [(320, 240, 160, 120)];
    assert_eq!(rects(VGA, "decoder=windows", window("a-normalized", half)), quarter);
    assert_eq!(rects(VGA, "coordinates=normalized", window("windows", half)), quarter);
    let pixels = [100.0, 50.0, 20.0, 0.9];
    assert_eq!(rects(VGA, "", window("windows", pixels)), [(100, 50, 20, 20)]);
    let properties = "decoder=windows coordinates=pixels";
    assert_eq!(rects(VGA, properties, window("a-normalized", pixels)), [(100, 50, 20, 20)]);
}

#[test]
fn boxes_are_mapped_from_the_letterboxed_model_input_to_the_frame() {
    let window = || vec![tensor("windows", &[1, 4], &[160.0, 200.0, 64.0, 0.9])];
    let size = "width=1920,height=1080";
    let model = "model-width=640 model-height=640";
    // The scale is 3 and 1.6875 if the frame is stretched, or 3 and 3 below 140 rows of border if
    // it is letterboxed.
    let rect =
        |letterbox: &str| rects(size, &format!("{model} letterbox={letterbox}"), window())[0];
    assert_eq!(rect("none"), (480, 338, 192, 108));
    assert_eq!(rect("center"), (480, 180, 192, 192));
    assert_eq!(rect("top-left"), (480, 600, 192, 192));
}

#[test]
fn tensors_are_removed_if_keep_tensors_is_false() {
    let left = |properties: &str| {
        frame(VGA, properties, boxes(), |buffer| Tensors::of(buffer).unwrap().len())
    };
    assert_eq!(left(""), 2);
    assert_eq!(left("keep-tensors=false"), 0);
}

#[test]
fn regions_are_attached_only_if_attach_has_roi() {
    let kinds = |properties: &str| rects(VGA, properties, boxes()).len();
    assert_eq!(kinds("attach=roi"), 4);
    crate::support::needs::needs!(relations);
    assert_eq!(kinds("attach=analytics"), 0);
}

#[test]
fn earlier_regions_are_kept() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms ! fakesink",
    );
    let tensors = boxes();
    intercept(&pipeline, "in", move |buffer| {
        VideoRegionOfInterestMeta::add(buffer, "truth", (1, 2, 3, 4));
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", regions);
    assert_eq!(run(&pipeline).error, None);
    let seen = seen.lock().unwrap().remove(0);
    assert_eq!(seen[0], ("truth".to_owned(), [1, 2, 3, 4]));
    assert_eq!(seen.len(), 5);
}
