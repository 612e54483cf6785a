// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata of other elements, and objects that cannot be tracked.

use gst_video::VideoRegionOfInterestMeta;

use super::camera::{Camera, Object, SIZE, add_object, frame, square};

#[test]
fn a_track_does_not_change_its_class() {
    let dog: Object = ("dog", square(100.0, 100.0, 80.0), 0.9);
    let cat: Object = ("cat", square(100.0, 100.0, 80.0), 0.9);
    for algorithm in ["bytetrack", "ocsort min-hits=1", "sort min-hits=1"] {
        let mut camera = Camera::new(&format!("algorithm={algorithm}"));
        let first = camera.ids(0, &[dog]);
        assert_ne!(camera.ids(40, &[cat]), first, "{algorithm}");
        let mut camera = Camera::new(&format!("algorithm={algorithm} class-agnostic=true"));
        let first = camera.ids(0, &[dog]);
        assert_eq!(camera.ids(40, &[cat]), first, "{algorithm}");
    }
}

#[test]
fn only_the_wanted_classes_are_tracked() {
    let objects = [
        ("dog", square(10.0, 10.0, 50.0), 0.9),
        ("person", square(100.0, 10.0, 50.0), 0.9),
        ("cat", square(200.0, 10.0, 50.0), 0.9),
    ];
    let mut camera = Camera::new("classes=\"person, cat\"");
    let tracked = camera.push(0, Some(true), &objects);
    let labels: Vec<_> = tracked.iter().filter(|it| it.id.is_some()).map(|it| &*it.label).collect();
    assert_eq!(labels, ["person", "cat"]);
    assert_eq!(tracked.len(), 3, "others stay as they are");
}

/// Regions of interest without a structure, as `gst_buffer_add_video_region_of_interest_meta` adds them.
#[test]
fn regions_without_details_have_tracks() {
    let mut camera = Camera::new("");
    let mut push = |time: u64, left: u32| {
        let mut buffer = frame(time, None, &[]);
        let new = buffer.get_mut().unwrap();
        VideoRegionOfInterestMeta::add(new, "face", (left, 10, 40, 40));
        camera.push_buffer(buffer).unwrap()[0].id.expect("it has a track")
    };
    let first = push(0, 10);
    assert_eq!(push(40, 14), first);
}

/// A region whose edges do not fit to its pixels, for example after a crop.
#[test]
fn edges_that_contradict_the_pixels_are_not_used() {
    let mut camera = Camera::new("predict=true");
    let mut buffer = frame(0, Some(true), &[]);
    let detection = gst::Structure::builder("detection")
        .field("x_min", 0.5f32)
        .field("y_min", 0.5f32)
        .field("x_max", 0.9f32)
        .field("y_max", 0.9f32)
        .field("confidence", 0.9f32)
        .build();
    let new = buffer.get_mut().unwrap();
    VideoRegionOfInterestMeta::add(new, "face", (10, 20, 30, 40)).add_param(detection);
    camera.push_buffer(buffer).unwrap();
    let predicted = camera.push(40, Some(false), &[]);
    assert_eq!(predicted[0].rectangle, [10, 20, 30, 40]);
}

#[test]
fn objects_with_tracks_keep_their_ids() {
    let mut camera = Camera::new("");
    let mut buffer = frame(0, Some(true), &[]);
    let new = buffer.get_mut().unwrap();
    add_object(new, SIZE, "person", square(10.0, 10.0, 50.0), 0.9);
    for mut region in new.iter_meta_mut::<VideoRegionOfInterestMeta>() {
        region.add_param(gst::Structure::builder("object_id").field("id", 4711i32).build());
    }
    assert_eq!(camera.push_buffer(buffer).unwrap()[0].id, Some(4711));
    assert_eq!(camera.push(40, Some(false), &[]), []);
}

#[test]
fn what_is_no_box_has_no_track_and_disturbs_none() {
    let person: Object = ("person", square(100.0, 100.0, 80.0), 0.9);
    let mut camera = Camera::new("");
    let first = camera.ids(0, &[person]);
    let wrong = [
        ("person", [120.0, 100.0, 120.0, 150.0], 0.9),
        ("person", square(100.0, 100.0, 80.0), f64::NAN),
        person,
    ];
    let tracked = camera.push(40, Some(true), &wrong);
    let ids: Vec<_> = tracked.iter().map(|it| it.id).collect();
    assert_eq!(ids, [None, None, Some(first[0])]);
    assert_eq!(camera.ids(80, &[person]), first);
}

#[test]
fn low_scores_continue_tracks_and_begin_none() {
    let at = |score| -> Object { ("person", square(100.0, 100.0, 80.0), score) };
    let mut camera = Camera::new("");
    assert!(camera.ids(0, &[at(0.3)]).is_empty());
    let first = camera.ids(40, &[at(0.7)]);
    assert_eq!(first.len(), 1);
    assert_eq!(camera.ids(80, &[at(0.2)]), first);
    // Other thresholds.
    let mut camera = Camera::new("track-threshold=0.1 new-track-threshold=0.2");
    assert_eq!(camera.ids(0, &[at(0.3)]).len(), 1);
}

#[test]
fn too_many_objects_are_a_warning() {
    let objects: Vec<Object> = (0..2100)
        .map(|index| {
            let (x, y) = (f64::from(index % 60), f64::from(index / 60));
            ("person", square(x * 10.0, y * 10.0, 8.0), 0.9)
        })
        .collect();
    let mut camera = Camera::new("");
    assert_eq!(camera.ids(0, &objects).len(), 2048);
    let warning = camera.bus.pop_filtered(&[gst::MessageType::Warning]).expect("a warning");
    let gst::MessageView::Warning(warning) = warning.view() else { unreachable!() };
    assert!(warning.error().to_string().contains("at most 2048"), "{warning:?}");
    camera.ids(40, &objects);
    assert!(camera.bus.pop_filtered(&[gst::MessageType::Warning]).is_none(), "once");
}

/// A batch of DeepStream, as far as this is known without its libraries: the tag of its metadata.
#[test]
fn a_batch_of_deepstream_is_an_error_that_names_its_tracker() {
    let mut camera = Camera::new("");
    let batch = gst_newer::CustomMeta::new("TestBatch", &["nvdsmeta"]);
    let mut buffer = frame(0, None, &[]);
    batch.add(buffer.get_mut().unwrap(), |_| {}).unwrap();
    assert_eq!(camera.push_buffer(buffer), Err(gst::FlowError::Error));
    let error = camera.bus.pop_filtered(&[gst::MessageType::Error]).expect("an error");
    let gst::MessageView::Error(error) = error.view() else { unreachable!() };
    assert!(error.error().to_string().contains("nvtracker"), "{error:?}");
}
