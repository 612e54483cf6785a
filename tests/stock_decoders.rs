//! nmsfilter and GStreamer 1.28's own decoders on the same tensors: both behind one inference
//! element, on two branches of a tee.
//!
//! Each stock decoder's rules, written down in `stock/decoders.rs`, must give exactly its boxes;
//! then what tells its answer from ours is which rules differ, and nothing else.
#![cfg(feature = "v1_28")]

mod data;
mod frame;
mod greedy;
mod picture;
mod pipeline;
mod python;
mod stock;
mod tensors;

use frame::{Frame, regions};
use greedy::{Candidate, candidates, greedy, iou};
use picture::{drawn, picture, scaled, video};
use stock::decoders::{self, Object};
use stock::{Model, ULTRAFACE, YOLOV8};

const SCORE: f32 = 0.25;
const IOU: f32 = 0.45;

/// What nmsfilter and a stock decoder make of the frames that these elements give.
fn both(
    name: &str,
    model: &Model,
    source: &str,
    settings: &str,
    decoder: &str,
) -> Option<Vec<(Frame, Vec<Object>)>> {
    let inference = stock::onnxinference(model)?;
    let pipeline = pipeline::parse(&format!(
        "{source} ! {inference} ! tee name=tee
         tee. ! queue ! nmsfilter name=nms score-threshold={SCORE} iou-threshold={IOU} {settings}
           ! {}
         tee. ! queue ! {decoder} name=stock iou-threshold={IOU} ! fakesink",
        drawn(name)
    ));
    let frames = pipeline::watch(&pipeline, "nms", Frame::of);
    let objects = pipeline::watch(&pipeline, "stock", decoders::objects);
    assert_eq!(pipeline::run(&pipeline).error, None, "{name}");
    let (frames, objects) = (
        std::mem::take(&mut *frames.lock().unwrap()),
        std::mem::take(&mut *objects.lock().unwrap()),
    );
    assert_eq!(frames.len(), objects.len(), "{name}");
    Some(frames.into_iter().zip(objects).collect())
}

/// Says which rows only one of two lists has, and gives how many.
fn differences(name: &str, ours: &[Candidate], theirs: &[Candidate]) -> usize {
    let missing = |from: &[Candidate], list: &[Candidate]| {
        let rows = list.iter().filter(|c| !from.contains(c)).map(|c| c.row);
        rows.collect::<Vec<_>>()
    };
    let (only_ours, only_theirs) = (missing(theirs, ours), missing(ours, theirs));
    println!(
        "{name}: {} ours, {} theirs; rows only ours {only_ours:?}, only theirs {only_theirs:?}",
        ours.len(),
        theirs.len(),
    );
    only_ours.len() + only_theirs.len()
}

/// ultralightfacedetectortensordec suppresses from the threshold on, as threshold-inclusive does,
/// and compares boxes in fractions of the frame; no pair of these comes so close to the threshold
/// that this shows. So the answers are the same, but for its boxes being whole pixels.
fn same_faces(name: &str, file: &str) -> Option<usize> {
    pipeline::init();
    let source = format!("{} ! {}", picture(file)?, scaled(&ULTRAFACE, false));
    let decoder = format!("ultralightfacedetectortensordec score-threshold={SCORE}");
    let settings = "threshold-inclusive=true";
    let frames = both(name, &ULTRAFACE, &source, settings, &decoder)?;
    let [(frame, objects)] = &frames[..] else {
        panic!("{name} is one picture");
    };
    let tensor = |id: &str| frame.tensors.iter().position(|t| t.id == id).unwrap();
    let candidates = candidates("ultraface", &frame.tensors, ULTRAFACE.size, SCORE);
    let theirs = decoders::ultraface(
        &frame.tensors[tensor(ULTRAFACE.outputs[1][1])],
        &candidates,
        IOU,
    );
    let expected: Vec<Object> = theirs.iter().map(decoders::ultraface_object).collect();
    assert_eq!(objects, &expected, "{name}: their rules");
    let ours = greedy(&candidates, |a, b| iou(a, b) >= IOU);
    assert_eq!(
        frame.regions,
        regions(&ours, ULTRAFACE.size),
        "{name}: ours"
    );
    assert_eq!(differences(name, &ours, &theirs), 0);
    Some(objects.len())
}

#[test]
fn faces_of_a_crowd_equal_ultralightfacedetectortensordecs() {
    let name = "crowd_selfie_both";
    if let Some(faces) = same_faces(name, "data/images/crowd_selfie.jpg") {
        assert_eq!(faces, 268);
    }
}

#[test]
fn faces_of_the_papers_picture_equal_ultralightfacedetectortensordecs() {
    if let Some(faces) = same_faces("oscars_both", "data/oscars/oscars.png") {
        assert_eq!(faces, 150);
    }
}

/// What yolov8tensordec's rules give is what it gives; what nmsfilter gives is NumPy's; and with
/// the IoU of whole pixels replaced by the exact one, its rules give what ours do across classes.
/// Returns how many frames the two differ in, in what they keep.
fn accounted_for(name: &str, source: &str) -> Option<[usize; 2]> {
    let decoder = format!(
        "yolov8tensordec class-confidence-threshold={SCORE} max-detections={}",
        u32::MAX
    );
    let frames = both(name, &YOLOV8, source, "class-agnostic=true", &decoder)?;
    let mut differing = 0;
    for (i, (frame, objects)) in frames.iter().enumerate() {
        let name = format!("{name} {i}");
        let output = &frame.tensors[0];
        let candidates = candidates("yolov8", &frame.tensors, YOLOV8.size, SCORE);
        let theirs = decoders::yolov8(output, &candidates, YOLOV8.size, IOU);
        let expected: Vec<Object> = theirs
            .iter()
            .map(|candidate| decoders::yolov8_object(output, candidate))
            .collect();
        assert_eq!(objects, &expected, "{name}: their rules");
        let ours = greedy(&candidates, |a, b| iou(a, b) > IOU);
        assert_eq!(frame.regions, regions(&ours, YOLOV8.size), "{name}: ours");
        differing += usize::from(differences(&name, &ours, &theirs) > 0);
    }
    Some([frames.len(), differing])
}

#[test]
fn a_street_equals_yolov8tensordecs_but_for_whole_pixels() {
    pipeline::init();
    let Some(picture) = picture("data/images/street.png") else {
        return;
    };
    let source = format!("{picture} ! {}", scaled(&YOLOV8, true));
    accounted_for("street_both", &source);
}

#[test]
fn a_video_of_a_street_equals_yolov8tensordecs_but_for_whole_pixels() {
    pipeline::init();
    let Some(video) = video("data/videos/towncentre_96f_1080p.mp4") else {
        return;
    };
    let source = format!("{video} ! {}", scaled(&YOLOV8, true));
    if let Some([frames, differing]) = accounted_for("towncentre", &source) {
        println!("towncentre: {differing} of {frames} frames differ");
        assert_eq!(frames, 96);
    }
}
