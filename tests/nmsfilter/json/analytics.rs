// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines for GStreamer's analytics metadata, alone and together with regions of equal objects.

use gst_newer::{AnalyticsODMtd, AnalyticsRelationMeta, RelTypes};
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::attach;

use super::super::analytics::windows;
use super::reader::{Detection, Object, read};
use super::{line_of, text};
use crate::support::pipeline::{intercept, parse, run, watch};

fn person() -> gst::glib::Quark {
    gst::glib::Quark::from_str("person")
}

fn object(region_id: i64, rect: [i64; 4], confidence: f32) -> Object {
    let [x, y, w, h] = rect.map(|side| side as f64);
    Object {
        rect,
        region_id,
        parent_id: None,
        track: None,
        roi_type: Some("person".to_owned()),
        detection: Some(Detection {
            bounding_box: [x / 640.0, (x + w) / 640.0, y / 480.0, (y + h) / 480.0],
            // The shortest decimal number that gives this single-precision number.
            confidence: Some(confidence.to_string().parse().unwrap()),
            label_id: None,
            label: Some("person".to_owned()),
        }),
    }
}

#[test]
fn objects_without_regions_have_their_box_label_score_and_parent() {
    crate::support::needs::needs!(relations);
    let line = line_of(|buffer| {
        let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
        meta.add_od_mtd(person(), 64, 48, 320, 240, 0.7).unwrap();
        meta.add_od_mtd(person(), 100, 60, 30, 40, 0.6).unwrap();
        meta.set_relation(RelTypes::IS_PART_OF, 1, 0).unwrap();
    });
    let part = Object { parent_id: Some(0), ..object(1, [100, 60, 30, 40], 0.6) };
    assert_eq!(read(&line).objects, [object(0, [64, 48, 320, 240], 0.7), part]);
}

#[test]
fn a_tracked_object_has_the_id_of_its_track() {
    crate::support::needs::needs!(relations);
    for (kind, first_seen) in [
        (RelTypes::RELATE_TO, gst::ClockTime::ZERO),
        (RelTypes::CONTAIN, gst::ClockTime::from_seconds(9)),
    ] {
        let line = line_of(|buffer| {
            let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
            for _ in 0..2 {
                meta.add_od_mtd(person(), 64, 48, 320, 240, 0.7).unwrap();
            }
            let track = meta.add_tracking_mtd(u64::MAX - 1, first_seen).unwrap();
            meta.set_relation(kind, 1, track).unwrap();
        });
        let tracks: Vec<_> = read(&line).objects.iter().map(|object| object.track).collect();
        assert_eq!(tracks, [None, Some(u64::MAX - 1)]);
    }
}

/// A GStreamer program in C can attach a track without times.
#[test]
fn a_track_without_times_has_an_id() {
    crate::support::needs::needs!(relations);
    let line = line_of(|buffer| {
        let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
        meta.add_od_mtd(person(), 64, 48, 320, 240, 0.7).unwrap();
        let id = meta.add_tracking_mtd(5, None).unwrap();
        meta.set_relation(RelTypes::RELATE_TO, 0, id).unwrap();
    });
    assert_eq!(read(&line).objects[0].track, Some(5));
}

/// Runs a frame with windows, to which `prepare` adds metadata before the windows are decoded.
/// Returns the objects of its line, and the ids of the regions and of the analytics objects.
fn decoded(
    properties: &str,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> (Vec<Object>, [Vec<i64>; 2]) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! detectionjson name=json ! fakesink"
    ));
    let tensor = windows(7);
    intercept(&pipeline, "in", move |buffer| {
        prepare(buffer);
        attach(buffer, &tensor).unwrap();
    });
    let ids = watch(&pipeline, "nms", |buffer| {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
        let objects = buffer.meta::<AnalyticsRelationMeta>().map(|meta| {
            meta.iter::<AnalyticsODMtd>().map(|object| i64::from(object.id())).collect()
        });
        [regions.map(|region| region.id().into()).collect(), objects.unwrap_or_default()]
    });
    let lines = watch(&pipeline, "json", text);
    assert_eq!(run(&pipeline).error, None, "{properties}");
    let objects = read(&lines.lock().unwrap()[0]).objects;
    (objects, ids.lock().unwrap().remove(0))
}

#[test]
fn an_object_that_is_also_a_region_comes_once() {
    crate::support::needs::needs!(relations);
    let all = |objects: &[Object]| {
        objects.iter().map(|object| (object.rect, object.roi_type.clone())).collect::<Vec<_>>()
    };
    let (both, ids) = decoded("", |_| {});
    assert_eq!((both.len(), ids[0].len(), ids[1].len()), (7, 7, 7));
    let (regions, _) = decoded("attach=roi", |_| {});
    assert_eq!(both, regions);
    let (objects, _) = decoded("attach=analytics", |_| {});
    assert_eq!(all(&objects), all(&regions));

    // The region of another element has the id of the first object, so the ids of regions and
    // objects differ.
    let (both, ids) = decoded("", |buffer| {
        VideoRegionOfInterestMeta::add(buffer, "zone", (0, 0, 9, 9));
    });
    assert!(ids[0][1..] != ids[1][..], "{ids:?}");
    assert_eq!(both.len(), 8);
    assert_eq!(all(&both[1..]), all(&regions));
}

#[test]
fn a_region_has_the_track_of_its_object() {
    crate::support::needs::needs!(relations);
    let pipeline = parse(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter ! identity name=tracker ! detectionjson name=json ! fakesink",
    );
    let tensor = windows(7);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    intercept(&pipeline, "tracker", |buffer| {
        let mut meta = buffer.meta_mut::<AnalyticsRelationMeta>().unwrap();
        for object in 0..7 {
            let track = meta.add_tracking_mtd(100 + object, gst::ClockTime::ZERO).unwrap();
            meta.set_relation(RelTypes::RELATE_TO, object as u32, track).unwrap();
        }
    });
    let lines = watch(&pipeline, "json", text);
    assert_eq!(run(&pipeline).error, None);
    let objects = read(&lines.lock().unwrap()[0]).objects;
    let tracks: Vec<_> = objects.iter().filter_map(|object| object.track).collect();
    assert_eq!(tracks, (100..107).collect::<Vec<u64>>());
    assert!(objects.iter().all(|object| object.track == Some(100 + object.region_id as u64)));
}

mod oriented_and_masks {
    use std::f64::consts::FRAC_PI_2;

    use gst_newer::{Mask, OrientedLocation};
    use gst_video::{VideoFormat, VideoFrameFlags, VideoMeta};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_oriented_object_has_its_angle_and_its_bounds() {
        crate::support::needs::needs!(segmentation);
        let line = line_of(|buffer| {
            let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
            let angle = FRAC_PI_2 as f32;
            let location = OrientedLocation { x: 100, y: 200, w: 80, h: 40, r: angle };
            meta.add_oriented_od_mtd(person(), location, 0.7).unwrap();
        });
        let frame: Value = serde_json::from_str(&line).unwrap();
        let object = &frame["objects"][0];
        assert_eq!(read(&line).objects[0].rect, [100, 200, 80, 40]);
        assert!((object["rotation"].as_f64().unwrap() - FRAC_PI_2).abs() < 1e-6);
        // The box is rotated about its center, (140, 220).
        let expected = [120.0 / 640.0, 160.0 / 640.0, 180.0 / 480.0, 260.0 / 480.0];
        let edges = ["x_min", "x_max", "y_min", "y_max"]
            .map(|edge| object["detection"]["bounding_box"][edge].as_f64().unwrap());
        assert!(edges.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{edges:?}");
    }

    /// Adds a mask of 3x2 pixels with these regions to object 0.
    fn add_mask(
        meta: &mut gst::MetaRefMut<'_, AnalyticsRelationMeta, gst::meta::Standalone>,
        pixels: [u8; 8],
        stride: i32,
        regions: &[u32],
    ) {
        let mut buffer = gst::Buffer::from_mut_slice(pixels);
        let flags = VideoFrameFlags::empty();
        let format = VideoFormat::Gray8;
        let new = buffer.get_mut().unwrap();
        VideoMeta::add_full(new, flags, format, 3, 2, &[0], &[stride]).unwrap();
        let mask = Mask { buffer, origin: [-5, 7], size: [30, 20] };
        let id = meta.add_segmentation_mtd(mask, regions).unwrap();
        meta.set_relation(RelTypes::RELATE_TO, 0, id).unwrap();
    }

    #[test]
    fn a_mask_of_one_object_is_read_and_one_of_several_is_not() {
        crate::support::needs::needs!(segmentation);
        // Rows of three pixels are padded to four.
        let pixels = [0, 7, 7, 9, 7, 0, 0, 9];
        let expected = json!({
            "x": -5.0, "y": 7.0, "w": 30.0, "h": 20.0, "width": 3, "height": 2, "runs": [1, 3, 2]
        });
        let (one, two): (&[u32], &[u32]) = (&[0, 7], &[0, 7, 9]);
        for (regions, stride, expected) in
            [(one, 4, Some(&expected)), (two, 4, None), (&[7], 400, None)]
        {
            let line = line_of(|buffer| {
                let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
                meta.add_od_mtd(person(), 0, 7, 30, 20, 0.7).unwrap();
                add_mask(&mut meta, pixels, stride, regions);
            });
            let frame: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(frame["objects"][0].get("mask"), expected, "{line}");
        }
    }
}

/// The objects of a line with two objects, if there are any, and classes of these levels, which are related to both or to
/// none.
fn with_classes(objects: usize, levels: &[&[f32]], are_related: bool) -> serde_json::Value {
    let line = line_of(|buffer| {
        let mut meta = AnalyticsRelationMeta::add(buffer).unwrap();
        for left in (0..objects).map(|it| 100 * it as i32) {
            meta.add_od_mtd(person(), left, 48, 50, 240, 0.75).unwrap();
        }
        for levels in levels {
            let labels: Vec<_> =
                (0..levels.len()).map(|it| gst::glib::Quark::from_str(format!("l{it}"))).collect();
            let id = meta.add_cls_mtd(levels, &labels).unwrap();
            for object in (0..objects as u32).filter(|_| are_related) {
                meta.set_relation(RelTypes::RELATE_TO, object, id).unwrap();
            }
        }
    });
    let mut line: serde_json::Value = serde_json::from_str(&line).unwrap();
    line["objects"].take()
}

/// DL Streamer's gvadetect relates the labels of its model to every object.
#[test]
fn a_list_of_labels_is_no_classification() {
    crate::support::needs::needs!(relations);
    for are_related in [true, false] {
        let objects = with_classes(2, &[&[0.0; 80]], are_related);
        assert_eq!(objects.as_array().unwrap().len(), 2, "{objects}");
        assert!(objects.as_array().unwrap().iter().all(|it| it.get("classification").is_none()));
    }
    assert_eq!(with_classes(0, &[&[0.0; 80]], false), serde_json::json!([]));
    let objects = with_classes(1, &[&[0.0; 3], &[0.0, 0.5]], true);
    let expected = serde_json::json!([
        {"label": "l0", "confidence": 0.0}, {"label": "l1", "confidence": 0.5}
    ]);
    assert_eq!(objects[0]["classification"], expected);
}

/// gvaclassify and onvifmeta2relationmeta attach them in this way.
#[test]
fn classes_without_an_object_are_those_of_the_frame_only_without_objects() {
    crate::support::needs::needs!(relations);
    let objects = with_classes(2, &[&[0.5], &[0.75]], false);
    let lefts: Vec<_> = objects.as_array().unwrap().iter().map(|it| it["x"].clone()).collect();
    assert_eq!(lefts, [0, 100], "{objects}");
    assert!(objects.as_array().unwrap().iter().all(|it| it.get("classification").is_none()));
    // Two classifiers, or two outputs, on the whole frame.
    let objects = with_classes(0, &[&[0.5], &[0.0], &[0.25, 0.75]], false);
    let [frame] = &objects.as_array().unwrap()[..] else { panic!("{objects}") };
    assert_eq!((&frame["w"], &frame["h"]), (&640.into(), &480.into()));
    let found = frame["classification"].as_array().unwrap();
    let scores: Vec<_> = found.iter().map(|it| it["confidence"].as_f64().unwrap()).collect();
    assert_eq!(scores, [0.5, 0.25, 0.75]);
}
