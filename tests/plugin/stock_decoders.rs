// SPDX-License-Identifier: MIT OR Apache-2.0
//! nmsfilter and the tensor decoders of GStreamer 1.28, compared on equal tensors. Both follow one
//! inference element, on two branches of a tee.
//!
//! `stock/decoders.rs` implements the rules of each stock decoder. Its results must equal the stock
//! decoder's boxes. This proves that the stock decoder differs from nmsfilter only in these rules.

use crate::frame::{Frame, regions};
use crate::greedy::{Candidate, candidates, greedy, iou};
use crate::picture::{drawn, picture, scaled, video};
use crate::stock::decoders::{self, Object};
use crate::stock::{self, StockModel, ULTRAFACE, YOLOV8};
use crate::support::{pipeline, skip};

const SCORE: f32 = 0.25;
const IOU: f32 = 0.45;

/// Returns the results of nmsfilter and of a stock decoder for each frame of these elements.
fn both(
    name: &str,
    model: &StockModel,
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
    let frames = pipeline::watch(&pipeline, "nms", Frame::read);
    let objects = pipeline::watch(&pipeline, "stock", decoders::objects);
    assert_eq!(pipeline::run(&pipeline).error, None, "{name}");
    let (frames, objects) = (
        std::mem::take(&mut *frames.lock().unwrap()),
        std::mem::take(&mut *objects.lock().unwrap()),
    );
    assert_eq!(frames.len(), objects.len(), "{name}");
    Some(frames.into_iter().zip(objects).collect())
}

/// The threshold of ultralightfacedetectortensordec is inclusive, while nmsfilter's is exclusive
/// (unless threshold-inclusive is set), and the stock decoder compares boxes in fractions of the
/// frame. No pair of boxes here is close enough to the threshold for this to matter. Therefore the
/// results are equal, except that the stock decoder rounds its boxes to pixels.
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
    let stock =
        decoders::ultraface(&frame.tensors[tensor(ULTRAFACE.outputs[1][1])], &candidates, IOU);
    let expected: Vec<Object> = stock.iter().map(decoders::ultraface_object).collect();
    assert_eq!(objects, &expected, "{name}: rules of the stock decoder");
    let exact = greedy(&candidates, |a, b| iou(a, b) > IOU);
    assert_eq!(frame.regions, regions(&exact, ULTRAFACE.size), "{name}: nmsfilter");
    assert_eq!(exact, stock, "{name}: the same faces");
    println!("{name}: {} faces", exact.len());
    Some(objects.len())
}

#[test]
fn faces_of_a_crowd_equal_ultralightfacedetectortensordec_results() {
    crate::support::needs::needs!(tensor_caps);
    let name = "crowd_selfie_both";
    if let Some(faces) = same_faces(name, "data/images/crowd_selfie.jpg") {
        assert!((265..=271).contains(&faces), "{faces}");
    }
}

#[test]
fn faces_of_the_papers_picture_equal_ultralightfacedetectortensordec_results() {
    crate::support::needs::needs!(tensor_caps);
    if let Some(faces) = same_faces("oscars_both", "data/oscars/oscars.png") {
        assert!((147..=153).contains(&faces), "{faces}");
    }
}

/// Prints each candidate that is in only one of two lists of survivors, and the candidate of the
/// other list that suppresses it. Returns the number of such candidates.
fn differences(
    name: &str,
    [exact, rounded]: [&[Candidate]; 2],
    pixel_iou: impl Fn(&Candidate, &Candidate) -> f32,
) -> usize {
    let mut count = 0;
    for (iou_of, list, other) in
        [("exact boxes", exact, rounded), ("boxes in pixels", rounded, exact)]
    {
        for candidate in list.iter().filter(|candidate| !other.contains(candidate)) {
            let suppressed = |by: &&Candidate| {
                let iou = match iou_of {
                    "exact boxes" => pixel_iou(by, candidate),
                    _ => iou(by, candidate),
                };
                by.score >= candidate.score && iou > IOU
            };
            let by = other.iter().find(suppressed).expect("something suppresses it");
            println!(
                "{name}: only the IoU of {iou_of} keeps anchor {} {:?}; with anchor {} {:?} the IoU is \
                 {}, in pixels {}",
                candidate.anchor,
                candidate.corners,
                by.anchor,
                by.corners,
                iou(by, candidate),
                pixel_iou(by, candidate),
            );
            count += 1;
        }
    }
    count
}

/// Asserts that the rules of yolov8tensordec give its boxes, and that with the exact IoU instead of
/// the IoU in pixels they give nmsfilter's boxes. The other rules of yolov8tensordec, about boxes
/// beyond the frame, drop nothing here. Returns the number of frames, and the number of frames with
/// different survivors.
fn compare_yolov8(name: &str, source: &str) -> Option<[usize; 2]> {
    let decoder =
        format!("yolov8tensordec class-confidence-threshold={SCORE} max-detections={}", u32::MAX);
    let frames = both(name, &YOLOV8, source, "class-agnostic=true", &decoder)?;
    let (mut differing, mut across, mut within) = (0, 0, 0);
    for (i, (frame, objects)) in frames.iter().enumerate() {
        let name = format!("{name}, frame {i}");
        let output = &frame.tensors[0];
        let pixel_iou = |a: &Candidate, b: &Candidate| decoders::yolov8_iou(output, a, b);

        let candidates = candidates("yolov8", &frame.tensors, YOLOV8.size, SCORE);
        let stock_candidates = decoders::yolov8_candidates(output, &candidates, YOLOV8.size);
        assert_eq!(stock_candidates, candidates, "{name}: candidates");
        let rounded = greedy(&candidates, |a, b| pixel_iou(a, b) > IOU);
        let expected: Vec<Object> =
            rounded.iter().map(|candidate| decoders::yolov8_object(output, candidate)).collect();
        assert_eq!(objects, &expected, "{name}: rules of the stock decoder");
        let exact = greedy(&candidates, |a, b| iou(a, b) > IOU);
        assert_eq!(frame.regions, regions(&exact, YOLOV8.size), "{name}: nmsfilter");

        let classes = |a: &Candidate, b: &Candidate| a.class == b.class && iou(a, b) > IOU;
        assert!(exact.len() > 5, "{name}: {} survivors", exact.len());
        across += exact.len();
        within += greedy(&candidates, classes).len();
        differing += usize::from(differences(&name, [&exact, &rounded], pixel_iou) > 0);
    }
    println!(
        "{name}: {differing} of {} frames differ; {across} survivors with class-agnostic, \
         {within} without, which is the default of nmsfilter",
        frames.len()
    );
    Some([frames.len(), differing])
}

#[test]
fn objects_of_a_street_equal_yolov8tensordec_results_except_for_rounding_to_pixels() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let Some(picture) = picture("data/images/street.png") else {
        return;
    };
    let source = format!("{picture} ! {}", scaled(&YOLOV8, true));
    if let Some([frames, _]) = compare_yolov8("street_both", &source) {
        assert_eq!(frames, 1);
    }
}

#[test]
fn objects_of_every_video_frame_equal_yolov8tensordec_results_except_for_rounding_to_pixels() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let Some(video) = video("data/videos/towncentre_96f_1080p.mp4") else {
        return;
    };
    let source = format!("{video} ! {}", scaled(&YOLOV8, true));
    if let Some([frames, differing]) = compare_yolov8("towncentre_both", &source) {
        assert_eq!(frames, 96);
        // The development machine has three such frames. The model's outputs differ slightly
        // between processors.
        assert!(differing < 20, "{differing}");
    }
}
