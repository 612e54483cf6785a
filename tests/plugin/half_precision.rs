//! A detector whose output is in half precision, which the stock inference element cannot attach:
//! recorded with ONNX Runtime and replayed.

use crate::frame::{Frame, regions};
use crate::greedy::{self, Candidate, Kept, iou};
use crate::picture::{Recording, drawn, picture, pixels, scaled};
use crate::python;
use crate::stock::YOLOV5_HALF;
use crate::support::{data, pipeline};

/// That of the recorded list.
const SCORE: f32 = 0.05;
const IOU: f32 = 0.45;

/// What is kept in a list of candidates that others made of the same picture and model.
fn kept_by_others() -> Vec<Candidate> {
    let text = data::fixture_text("candidates/yolov5nfp16_street.csv");
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<f32> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let candidate = Candidate {
            row: fields[6] as usize,
            class: fields[5] as usize,
            score: fields[4],
            corners: fields[..4].try_into().unwrap(),
        };
        (candidate, fields[8] == 1.0)
    });
    rows.filter(|(_, kept)| *kept).map(|(row, _)| row).collect()
}

#[test]
fn regions_from_half_precision_equal_numpy_results() {
    pipeline::init();
    let recorded = || {
        let picture = picture("data/images/street.png")?;
        let recording = Recording::of(&YOLOV5_HALF, &pixels(&picture))?;
        Some((picture, recording))
    };
    let others = kept_by_others();
    assert_eq!(others.len(), 64);
    let Some((picture, recording)) = recorded() else {
        return;
    };
    let (head, size) = (YOLOV5_HALF.head, YOLOV5_HALF.size);
    let pipeline = pipeline::parse(&format!(
        "{picture} ! {} ! {} ! identity name=in
           ! nmsfilter name=nms decoder=yolov5 score-threshold={SCORE} iou-threshold={IOU} ! {}",
        scaled(&YOLOV5_HALF, true),
        recording.replay(),
        drawn("street_half"),
    ));
    let frames = pipeline::watch(&pipeline, "nms", Frame::of);
    let arriving = pipeline::watch(&pipeline, "in", |buffer| {
        let attached = gstnmsfilter::input::Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        tensors[0].to_string()
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(
        *arriving.lock().unwrap(),
        ["yolo-v5-out (f16 1x25200x85)"],
        "half precision arrives"
    );

    let frame = &frames.lock().unwrap()[0];
    let plain = greedy::by_numpys_rules(head, &frame.tensors, size, [SCORE, IOU]);
    let numpy = python::greedy(head, &recording.files(), size, [SCORE, IOU]);
    assert_eq!(numpy.as_ref(), Some(&plain), "NumPy and the plain function");
    let Kept { candidates, survivors } = plain;
    assert_eq!(frame.regions, regions(&survivors, size));
    let counted = ended.stats.last().expect("it posts its counts");
    assert_eq!(counted.get("candidates"), Ok(candidates as u64));
    println!("street_half: {candidates} candidates, {} kept", survivors.len());

    // The others scaled the picture by other means, so scores and edges differ a little.
    let found = |other: &&Candidate| {
        let same = |ours: &Candidate| ours.class == other.class && iou(ours, other) > 0.9;
        survivors.iter().any(same)
    };
    let (found, missed): (Vec<_>, Vec<_>) = others.iter().partition(found);
    println!("of {} kept by others {} are found; not {missed:?}", others.len(), found.len());
    assert!(found.len() >= 60, "{missed:?}");
    assert!(missed.iter().all(|other| other.score < 2.0 * SCORE), "{missed:?}");
}
