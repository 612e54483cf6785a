// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames without inference.

use super::camera::{Camera, Object, SIZE, Tracked, add_object, square};

/// Objects that move 4 pixels per frame to the right, and one pixel down.
fn moving(frame: u32) -> Vec<Object> {
    let at = |left: f64, label| {
        let way = f64::from(frame);
        (label, square(left + 4.0 * way, 100.0 + way, 60.0), 0.9)
    };
    vec![at(20.0, "person"), at(220.0, "dog")]
}

/// Runs the model on each `interval + 1`-th of 60 frames.
fn run(properties: &str, interval: u32) -> Vec<Vec<Tracked>> {
    let mut camera = Camera::new(properties);
    let push = |frame: u32| {
        let inferred = frame.is_multiple_of(interval + 1);
        let objects = if inferred { moving(frame) } else { Vec::new() };
        camera.push((frame * 40).into(), Some(inferred), &objects)
    };
    (0..60).map(push).collect()
}

#[test]
fn each_frame_has_each_object_at_its_place() {
    for algorithm in ["bytetrack", "ocsort", "sort"] {
        for interval in [0, 1, 4] {
            let properties = format!("algorithm={algorithm}");
            let frames = run(&properties, interval);
            // SORT and OC-SORT give an id to the third detection.
            let first = if algorithm == "bytetrack" { 0 } else { 2 * (interval + 1) as usize };
            let ids: Vec<Option<i32>> = frames[first].iter().map(|it| it.id).collect();
            assert!(ids.len() == 2 && ids.iter().all(Option::is_some), "{properties} {ids:?}");
            for (index, objects) in (0..60).zip(&frames).skip(first) {
                let expected = moving(index);
                assert_eq!(objects.len(), 2, "{properties} {interval} {index}");
                let is_predicted = index % (interval + 1) != 0;
                for (object, id) in objects.iter().zip(&ids) {
                    assert_eq!((object.id, object.is_predicted), (*id, is_predicted));
                    let wanted = expected.iter().find(|it| it.0 == object.label).unwrap();
                    // The filter has learned the velocity after some detections.
                    if index > 50 {
                        let [x, y, ..] = wanted.1;
                        let [left, top, w, h] = object.rectangle.map(f64::from);
                        let far = (left - x).abs().max((top - y).abs());
                        assert!(far <= 2.5, "{properties} {interval} {index}: {far}");
                        assert!((w - 60.0).abs() <= 2.0 && (h - 60.0).abs() <= 2.0, "{w} {h}");
                    }
                }
            }
        }
    }
}

#[test]
fn without_prediction_other_frames_have_no_objects() {
    for (index, objects) in (0..60).zip(run("predict=false", 4)) {
        let count = if index % 5 == 0 { 2 } else { 0 };
        assert_eq!(objects.len(), count, "{index}");
        assert!(objects.iter().all(|object| !object.is_predicted));
    }
}

#[test]
fn an_object_that_is_not_found_is_not_predicted() {
    let mut camera = Camera::new("");
    assert_eq!(camera.ids(0, &moving(0)).len(), 2);
    assert_eq!(camera.push(40, Some(false), &[]).len(), 2);
    assert_eq!(camera.ids(80, &moving(2)[..1]).len(), 1);
    assert_eq!(camera.push(120, Some(false), &[]).len(), 1);
    assert_eq!(camera.ids(160, &[]).len(), 0);
    assert_eq!(camera.push(200, Some(false), &[]).len(), 0);
}

#[test]
fn prediction_ends_with_the_age() {
    let mut camera = Camera::new("max-age=0.4");
    for frame in 0..5 {
        camera.ids(frame * 40, &moving(frame as u32));
    }
    let mut last = 0;
    for frame in 5..50 {
        if !camera.push(frame * 40, Some(false), &[]).is_empty() {
            last = frame;
        }
    }
    // 10 frames, and one and a half.
    assert_eq!(last, 4 + 11);
}

/// A frame without a mark counts as a frame with inference, as frames of other elements do.
#[test]
fn frames_without_a_mark_have_inference() {
    let mut camera = Camera::new("");
    assert_eq!(camera.push(0, None, &moving(0)).len(), 2);
    assert_eq!(camera.push(40, None, &[]), []);
}

#[test]
fn predicted_boxes_end_at_the_frame() {
    let mut camera = Camera::new("");
    let [width, _] = SIZE;
    for frame in 0..10_u32 {
        let left = f64::from(width) - 150.0 + 10.0 * f64::from(frame);
        let edges = [left, 100.0, (left + 60.0).min(f64::from(width)), 160.0];
        camera.ids(u64::from(frame) * 40, &[("person", edges, 0.9)]);
    }
    let mut seen = 0;
    for frame in 10..20 {
        for object in camera.push(frame * 40, Some(false), &[]) {
            let [left, _, w, h] = object.rectangle;
            assert!(w > 0 && h > 0 && left + w <= width, "{object:?}");
            seen += 1;
        }
    }
    assert!((1..10).contains(&seen), "{seen}");
}

/// The predicted metadata have what other elements read.
#[test]
fn predicted_objects_have_the_class_and_the_last_score() {
    let mut camera = Camera::new("");
    let mut frame = super::camera::frame(0, Some(true), &[]);
    add_object(frame.get_mut().unwrap(), SIZE, "person", square(10.0, 20.0, 50.0), 0.75);
    camera.push_buffer(frame).unwrap();
    let frame = super::camera::frame(40, Some(false), &[]);
    camera.harness.push(frame).unwrap();
    let frame = camera.harness.pull().unwrap();
    let regions: Vec<_> = gstnmsfilter::regions::iter(&frame).collect();
    let [region] = &regions[..] else { panic!("{regions:?}") };
    assert_eq!(region.rectangle, [10, 20, 50, 50]);
    assert_eq!(region.label, c"person");
    assert_eq!(region.detection_label, Some(c"person"));
    assert_eq!(region.confidence, Some(0.75));
    assert!(region.is_predicted && region.track_id.is_some());
    let edges = region.edges.unwrap();
    let expected = [10.0 / 640.0, 20.0 / 480.0, 60.0 / 640.0, 70.0 / 480.0];
    assert!(edges.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{edges:?}");
}
