//! nmsfilter and GStreamer 1.28's own decoders on the same tensors: both behind one inference
//! element, on two branches of a tee.
//!
//! The rules of each stock decoder, stated in `stock/decoders.rs`, must give exactly its boxes;
//! then the results differ from ours only where the rules differ.

use crate::frame::{Frame, regions};
use crate::greedy::{Candidate, candidates, greedy, iou};
use crate::picture::{drawn, picture, scaled, video};
use crate::stock::decoders::{self, Object};
use crate::stock::{self, Model, ULTRAFACE, YOLOV8};
use crate::support::{pipeline, skip};

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
    let Some(inference) = stock::onnxinference(model) else {
        skip::skip("onnxinference, or its model");
        return None;
    };
    let factory = decoder.split(' ').next()?;
    if gst::ElementFactory::find(factory).is_none() {
        skip::skip(factory);
        return None;
    }
    let pipeline = pipeline::parse(&format!(
        "{source} ! {inference} ! tee name=tee
         tee. ! queue ! nmsfilter name=nms score-threshold={SCORE} iou-threshold={IOU}
           max-detections=0 {settings}
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

/// ultralightfacedetectortensordec suppresses from the threshold on, nmsfilter only beyond it
/// (unless threshold-inclusive), and it compares boxes in fractions of the frame. No pair of these
/// comes so close to the threshold that this shows: the results are the same, but for its boxes
/// being whole pixels.
fn same_faces(name: &str, file: &str) -> Option<usize> {
    pipeline::init();
    let source = format!("{} ! {}", picture(file)?, scaled(&ULTRAFACE, false));
    let decoder = format!("ultralightfacedetectortensordec score-threshold={SCORE}");
    let frames = both(name, &ULTRAFACE, &source, "", &decoder)?;
    let [(frame, objects)] = &frames[..] else {
        panic!("{name} is one picture");
    };
    let tensor = |id: &str| frame.tensors.iter().position(|t| t.id == id).unwrap();
    let candidates = candidates("ultraface", &frame.tensors, ULTRAFACE.size, SCORE);
    let theirs =
        decoders::ultraface(&frame.tensors[tensor(ULTRAFACE.outputs[1][1])], &candidates, IOU);
    let expected: Vec<Object> = theirs.iter().map(decoders::ultraface_object).collect();
    assert_eq!(objects, &expected, "{name}: their rules");
    let ours = greedy(&candidates, |a, b| iou(a, b) > IOU);
    assert_eq!(frame.regions, regions(&ours, ULTRAFACE.size), "{name}: ours");
    assert_eq!(ours, theirs, "{name}: the same faces");
    println!("{name}: {} faces", ours.len());
    Some(objects.len())
}

#[test]
fn faces_of_a_crowd_equal_ultralightfacedetectortensordec_results() {
    let name = "crowd_selfie_both";
    if let Some(faces) = same_faces(name, "data/images/crowd_selfie.jpg") {
        assert!((265..=271).contains(&faces), "{faces}");
    }
}

#[test]
fn faces_of_the_papers_picture_equal_ultralightfacedetectortensordec_results() {
    if let Some(faces) = same_faces("oscars_both", "data/oscars/oscars.png") {
        assert!((147..=153).contains(&faces), "{faces}");
    }
}

/// Prints, for each candidate that only one of two lists has, which candidate of the other list
/// suppresses it; gives how many there are.
fn differences(
    name: &str,
    [ours, theirs]: [&[Candidate]; 2],
    whole_iou: impl Fn(&Candidate, &Candidate) -> f32,
) -> usize {
    let mut count = 0;
    for (whose, list, other) in [("ours", ours, theirs), ("theirs", theirs, ours)] {
        for candidate in list.iter().filter(|candidate| !other.contains(candidate)) {
            let suppressed = |by: &&Candidate| {
                let iou = match whose {
                    "ours" => whole_iou(by, candidate),
                    _ => iou(by, candidate),
                };
                by.score >= candidate.score && iou > IOU
            };
            let by = other.iter().find(suppressed).expect("something suppresses it");
            println!(
                "{name}: only {whose} keeps row {} {:?}; with row {} {:?} its IoU is {}, of whole \
                 pixels {}",
                candidate.row,
                candidate.corners,
                by.row,
                by.corners,
                iou(by, candidate),
                whole_iou(by, candidate),
            );
            count += 1;
        }
    }
    count
}

/// yolov8tensordec's rules give its boxes, and with the exact IoU in place of that of whole pixels
/// they would give ours: its other rules, about boxes beyond the frame, find nothing to drop here.
/// Gives how many frames there are and in how many something else is kept.
fn accounted_for(name: &str, source: &str) -> Option<[usize; 2]> {
    let decoder =
        format!("yolov8tensordec class-confidence-threshold={SCORE} max-detections={}", u32::MAX);
    let frames = both(name, &YOLOV8, source, "class-agnostic=true", &decoder)?;
    let (mut differing, mut across, mut within) = (0, 0, 0);
    for (i, (frame, objects)) in frames.iter().enumerate() {
        let name = format!("{name}, frame {i}");
        let output = &frame.tensors[0];
        let whole_iou = |a: &Candidate, b: &Candidate| decoders::yolov8_iou(output, a, b);

        let candidates = candidates("yolov8", &frame.tensors, YOLOV8.size, SCORE);
        let taken = decoders::yolov8_candidates(output, &candidates, YOLOV8.size);
        assert_eq!(taken, candidates, "{name}: candidates");
        let theirs = greedy(&candidates, |a, b| whole_iou(a, b) > IOU);
        let expected: Vec<Object> =
            theirs.iter().map(|candidate| decoders::yolov8_object(output, candidate)).collect();
        assert_eq!(objects, &expected, "{name}: their rules");
        let ours = greedy(&candidates, |a, b| iou(a, b) > IOU);
        assert_eq!(frame.regions, regions(&ours, YOLOV8.size), "{name}: ours");

        let classes = |a: &Candidate, b: &Candidate| a.class == b.class && iou(a, b) > IOU;
        assert!(ours.len() > 5, "{name}: {} survivors", ours.len());
        across += ours.len();
        within += greedy(&candidates, classes).len();
        differing += usize::from(differences(&name, [&ours, &theirs], whole_iou) > 0);
    }
    println!(
        "{name}: {differing} of {} frames differ; {across} boxes kept in all, {within} where \
         classes are kept apart, as nmsfilter does unless told otherwise",
        frames.len()
    );
    Some([frames.len(), differing])
}

#[test]
fn objects_of_a_street_equal_yolov8tensordec_results_except_for_rounding_to_pixels() {
    pipeline::init();
    let Some(picture) = picture("data/images/street.png") else {
        return;
    };
    let source = format!("{picture} ! {}", scaled(&YOLOV8, true));
    if let Some([frames, _]) = accounted_for("street_both", &source) {
        assert_eq!(frames, 1);
    }
}

#[test]
fn objects_of_every_video_frame_equal_yolov8tensordec_results_except_for_rounding_to_pixels() {
    pipeline::init();
    let Some(video) = video("data/videos/towncentre_96f_1080p.mp4") else {
        return;
    };
    let source = format!("{video} ! {}", scaled(&YOLOV8, true));
    if let Some([frames, differing]) = accounted_for("towncentre_both", &source) {
        assert_eq!(frames, 96);
        // Three where this was written; the model's numbers differ a little between CPUs.
        assert!(differing < 20, "{differing}");
    }
}
