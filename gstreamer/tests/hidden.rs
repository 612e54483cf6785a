// SPDX-License-Identifier: MIT OR Apache-2.0
//! Without the functions of a version, nothing that it has introduced is found, added or read, and errors say what is
//! missing. Functions are looked up once in a process, so that each version has a process of its own.

use std::process::Command;

use gst_newer::{
    AnalyticsBatchMeta, AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsSegmentationMtd,
    Capabilities, CustomMeta, Mask, Missing, OrientedLocation, Tensor, TensorDataType,
    TensorDimOrder, TensorMeta, hide_from, unique_list,
};

/// The variable with the minor version from which functions are hidden.
const HIDDEN: &str = "NMSFILTER_TEST_HIDDEN";

#[test]
fn nothing_of_a_hidden_version_is_used() {
    for hidden in [20, 24, 26, 28, 30] {
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "inside", "--ignored", "--nocapture"])
            .env(HIDDEN, hidden.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&program.stdout);
        assert!(program.status.success() && text.contains("1 passed"), "1.{hidden}: {text}");
        let errors = String::from_utf8_lossy(&program.stderr);
        assert!(!errors.contains("CRITICAL"), "1.{hidden}: {errors}");
    }
}

/// Asserts that the result is an error that names what is missing, if `is_hidden`.
fn assert_missing<T, E: ToString>(result: Result<T, E>, is_hidden: bool, what: &str, since: u32) {
    match result {
        Err(error) if is_hidden => {
            let error = error.to_string();
            let end = format!(" has no {what}, which is new in 1.{since}");
            assert!(error.starts_with("GStreamer 1.") && error.ends_with(&end), "{error}");
        }
        result => assert!(!is_hidden || result.is_err()),
    }
}

/// Run by the test above, which sets the variable.
#[test]
#[ignore = "the test above runs it"]
fn inside() {
    let hidden: u32 = std::env::var(HIDDEN).unwrap().parse().unwrap();
    hide_from(hidden);
    gst::init().unwrap();
    let (_, running, ..) = gst::version();
    let lacks = |since: u32| since >= hidden || since > running.next_multiple_of(2);

    let newer = Capabilities::get();
    let parts: [(Result<(), Missing>, u32); 8] = [
        (newer.custom_meta, 20),
        (newer.relations, 24),
        (newer.oriented, 26),
        (newer.segmentation, 26),
        (newer.tensors, 26),
        (newer.tensor_caps, 28),
        (newer.batches, 28),
        (newer.keypoints, 30),
    ];
    for (part, since) in parts {
        assert_eq!(part.is_err(), lacks(since), "1.{since}: {part:?}");
    }
    assert_eq!(
        newer.to_string().matches("has no").count(),
        parts.iter().filter(|it| it.0.is_err()).count()
    );

    let mut buffer = gst::Buffer::new();
    let buffer = buffer.get_mut().unwrap();
    static CUSTOM: CustomMeta = CustomMeta::new("NmsFilterTestHidden", &["video"]);
    let added = CUSTOM.add(buffer, |structure| structure.set("number", 7));
    assert_missing(added, lacks(20), "GstCustomMeta", 20);
    let numbers =
        CUSTOM.structures(buffer).map(|structure| structure.get::<i32>("number").unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), vec![7; usize::from(!lacks(20))]);
    CUSTOM.remove_if(buffer, |_| true);
    assert_eq!(CUSTOM.structures(buffer).count(), 0);

    assert!(buffer.meta::<AnalyticsRelationMeta>().is_none());
    let class = gst::glib::Quark::from_str("person");
    match AnalyticsRelationMeta::add(buffer) {
        Err(missing) => {
            assert_missing::<(), _>(Err(missing), lacks(24), "GstAnalyticsRelationMeta", 24)
        }
        Ok(mut meta) => {
            let location = OrientedLocation { x: 1, y: 2, w: 30, h: 40, r: 0.5 };
            assert_eq!(meta.add_od_mtd(class, 1, 2, 30, 40, 0.9).unwrap(), 0);
            let oriented = meta.add_oriented_od_mtd(class, location, 0.9);
            assert_missing(oriented, lacks(26), "oriented GstAnalyticsODMtd", 26);
            let first = meta.mtd::<AnalyticsODMtd>(0).unwrap();
            let upright = OrientedLocation { r: 0.0, ..location };
            assert_eq!(first.oriented_location(), Some(upright));
            // GStreamer asserts that the buffer is a picture.
            if lacks(26) {
                let mask = Mask { buffer: gst::Buffer::new(), origin: [0; 2], size: [1, 1] };
                let mask = meta.add_segmentation_mtd(mask, &[0, 1]);
                assert_missing(mask, true, "GstAnalyticsSegmentationMtd", 26);
            }
            assert!(meta.iter::<AnalyticsSegmentationMtd>().next().is_none());
            let points = meta.add_keypoints_group(c"points-kp", &[[1, 2]], &[0.5], &[]);
            assert_missing(points, lacks(30), "GstAnalyticsKeypointMtd", 30);
        }
    }
    assert_eq!(buffer.iter_meta::<AnalyticsRelationMeta>().count(), usize::from(!lacks(24)));

    let (kind, order) = (TensorDataType::Float32, TensorDimOrder::RowMajor);
    let tensor = Tensor::new(0, kind, None, order, &[1, 2]);
    assert_missing(tensor, lacks(26), "GstTensorMeta", 26);
    assert_missing(TensorMeta::add(buffer), lacks(26), "GstTensorMeta", 26);
    assert_eq!(buffer.iter_meta::<TensorMeta>().count(), usize::from(!lacks(26)));
    assert_missing(AnalyticsBatchMeta::add(buffer), lacks(28), "GstAnalyticsBatchMeta", 28);
    assert_eq!(buffer.meta::<AnalyticsBatchMeta>().is_some(), !lacks(28));
    if running >= 28 {
        let caps: gst::Caps = "video/x-raw, list=(/uniquelist){ 1, 2 }".parse().unwrap();
        let list = caps.structure(0).unwrap().value("list").unwrap();
        assert_eq!(unique_list(list).map_or(0, Iterator::count), if lacks(28) { 0 } else { 2 });
    }
}
