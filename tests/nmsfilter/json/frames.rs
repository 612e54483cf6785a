// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines are compared with the metadata of their frames. GStreamer's functions read the metadata.

use gst_video::VideoRegionOfInterestMeta;

use super::reader::{Detection, Frame, Object, read};
use super::text;
use crate::support::pipeline::{parse, run, watch};

/// Returns the objects that the line of a frame must have.
fn expected(frame: &gst::BufferRef) -> Vec<Object> {
    let object = |region: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
        let (x, y, w, h) = region.rect();
        let detection = region.param("detection").expect("nmsfilter attaches it");
        let number = |name: &str| detection.get::<f64>(name).unwrap();
        Object {
            rect: [x, y, w, h].map(i64::from),
            region_id: region.id().into(),
            parent_id: None,
            track: None,
            roi_type: Some(region.roi_type().to_owned()),
            detection: Some(Detection {
                bounding_box: ["x_min", "x_max", "y_min", "y_max"].map(number),
                confidence: Some(number("confidence")),
                label_id: Some(detection.get::<i32>("label_id").unwrap().into()),
                label: Some(detection.get::<&str>("label").unwrap().to_owned()),
            }),
        }
    };
    frame.iter_meta::<VideoRegionOfInterestMeta>().map(object).collect()
}

#[test]
fn the_lines_of_1000_frames_agree_with_their_metadata() {
    const FRAMES: usize = 1000;
    let pipeline = parse(&format!(
        "crowdtestsrc num-buffers={FRAMES} people=40
           ! video/x-raw,width=320,height=240,framerate=25/1
           ! nmsfilter name=nms backend=cpu ! detectionjson name=json source=crowd ! fakesink"
    ));
    let frames = watch(&pipeline, "nms", |frame| (frame.pts(), frame.duration(), expected(frame)));
    let lines = watch(&pipeline, "json", |line| (line.pts(), line.duration(), text(line)));
    assert_eq!(run(&pipeline).error, None);
    let (frames, lines) = (frames.lock().unwrap(), lines.lock().unwrap());
    assert_eq!((frames.len(), lines.len()), (FRAMES, FRAMES));
    let mut all = 0;
    for ((frame_pts, frame_duration, objects), (pts, duration, line)) in
        frames.iter().zip(lines.iter())
    {
        assert_eq!((pts, duration), (frame_pts, frame_duration));
        let frame = Frame {
            resolution: [320, 240],
            source: Some("crowd".to_owned()),
            timestamp: pts.map(gst::ClockTime::nseconds),
            tags: None,
            objects: objects.clone(),
        };
        assert_eq!(read(line), frame);
        all += objects.len();
    }
    assert!(all > 10 * FRAMES, "{all} objects");
}
