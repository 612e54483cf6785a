// SPDX-License-Identifier: MIT OR Apache-2.0
//! A detector with outputs in half precision. The stock inference element does not support it, so
//! ONNX Runtime records the output, which is then replayed.

use crate::frame::{Frame, regions};
use crate::greedy::{self, Candidate, Kept, iou};
use crate::picture::{Recording, drawn, picture, pixels, scaled};
use crate::python;
use crate::stock::YOLOV5_HALF;
use crate::support::{data, pipeline};

/// Score threshold of the recorded list.
const SCORE: f32 = 0.05;
const IOU: f32 = 0.45;

/// Returns the survivors in the candidate list that was recorded for this picture and model.
fn listed_survivors() -> Vec<Candidate> {
    let text = data::fixture_text("candidates/yolov5nfp16_street.csv");
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<f32> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let candidate = Candidate {
            anchor: fields[6] as usize,
            class: fields[5] as usize,
            score: fields[4],
            corners: fields[..4].try_into().unwrap(),
        };
        (candidate, fields[8] == 1.0)
    });
    rows.filter(|(_, kept)| *kept).map(|(candidate, _)| candidate).collect()
}

#[test]
fn regions_from_half_precision_equal_numpy_results() {
    pipeline::init();
    let recorded = || {
        let picture = picture("data/images/street.png")?;
        let recording = Recording::record(&YOLOV5_HALF, &pixels(&picture))?;
        Some((picture, recording))
    };
    let listed = listed_survivors();
    assert_eq!(listed.len(), 64);
    let Some((picture, recording)) = recorded() else {
        return;
    };
    let (decoder, size) = (YOLOV5_HALF.decoder, YOLOV5_HALF.size);
    let pipeline = pipeline::parse(&format!(
        "{picture} ! {} ! {} ! identity name=in
           ! nmsfilter name=nms decoder=yolov5 score-threshold={SCORE} iou-threshold={IOU} ! {}",
        scaled(&YOLOV5_HALF, true),
        recording.replay(),
        drawn("street_half"),
    ));
    let frames = pipeline::watch(&pipeline, "nms", Frame::read);
    let attached = pipeline::watch(&pipeline, "in", |buffer| {
        let attached = gstnmsfilter::input::Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        tensors[0].to_string()
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(
        *attached.lock().unwrap(),
        ["yolo-v5-out (f16 1x25200x85)"],
        "the tensor is in half precision"
    );

    let frame = &frames.lock().unwrap()[0];
    let plain = greedy::by_numpys_rules(decoder, &frame.tensors, size, [SCORE, IOU]);
    let numpy = python::greedy(decoder, &recording.files(), size, [SCORE, IOU]);
    assert_eq!(numpy.as_ref(), Some(&plain), "NumPy and the Rust function");
    let Kept { candidates, survivors } = plain;
    assert_eq!(frame.regions, regions(&survivors, size));
    let counted = ended.stats.last().expect("it posts its counts");
    assert_eq!(counted.get("candidates"), Ok(candidates as u64));
    println!("street_half: {candidates} candidates, {} kept", survivors.len());

    // Another program scaled the picture for the list, so scores and edges differ slightly.
    let found = |listed: &&Candidate| {
        let same = |found: &Candidate| found.class == listed.class && iou(found, listed) > 0.9;
        survivors.iter().any(same)
    };
    let (found, missed): (Vec<_>, Vec<_>) = listed.iter().partition(found);
    println!("of {} listed survivors {} are found; not {missed:?}", listed.len(), found.len());
    assert!(found.len() >= 60, "{missed:?}");
    assert!(missed.iter().all(|candidate| candidate.score < 2.0 * SCORE), "{missed:?}");
}
