// SPDX-License-Identifier: MIT OR Apache-2.0
//! nmsfilter after GStreamer's own inference element, on pictures and a video of real crowds.
//!
//! The expected results are computed from the tensors on the buffers: by NumPy, if there is a
//! Python with NumPy, and by a Rust function with equal rules. `stock_decoders` compares with the
//! stock decoders. If GStreamer has no inference element, ONNX Runtime records tensors for these
//! pixels, which are then replayed.

use crate::frame::{Frame, regions};
use crate::greedy::{self, Kept};
use crate::picture::{Recording, drawn, picture, pixels, scaled, video};
use crate::python;
use crate::stock::{self, StockModel, ULTRAFACE, YOLOV8};
use crate::support::scratch::Scratch;
use crate::support::{pipeline, skip};
use crate::tensors::Recorded;

const SCORE: f32 = 0.25;
const IOU: f32 = 0.45;

/// Returns the survivors that a Rust function finds in `tensors`. If there is NumPy, asserts that
/// its result is equal.
fn reference(model: &StockModel, tensors: &[Recorded]) -> Kept {
    let plain = greedy::by_numpys_rules(model.decoder, tensors, model.size, [SCORE, IOU]);
    let folder = Scratch::new();
    let write = |tensor: &Recorded| {
        let file = folder.join(format!("{}.npy", tensor.id));
        tensor.write_npy(&file);
        file
    };
    let files: Vec<_> = tensors.iter().map(write).collect();
    if let Some(numpy) = python::greedy(model.decoder, &files, model.size, [SCORE, IOU]) {
        assert_eq!(numpy, plain, "NumPy and the Rust function");
    }
    plain
}

/// Asserts that the regions of each frame of `source` have the expected boxes, classes, scores and
/// order. Returns the numbers of candidates and survivors of each frame.
fn equals_numpy(name: &str, model: &StockModel, source: &str) -> Vec<[usize; 2]> {
    let pipeline = pipeline::parse(&format!(
        "{source} ! nmsfilter name=nms score-threshold={SCORE} iou-threshold={IOU} ! {}",
        drawn(name)
    ));
    let frames = pipeline::watch(&pipeline, "nms", Frame::read);
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{name}");
    let counted = ended.stats.last().expect("it posts its counts");
    let counted = counted.get::<u64>("candidates").unwrap();

    let mut counts = Vec::new();
    for (i, frame) in frames.lock().unwrap().iter().enumerate() {
        // NumPy takes long to start, so it checks only every 16th frame of a video.
        let kept = match i % 16 {
            0 => reference(model, &frame.tensors),
            _ => greedy::by_numpys_rules(model.decoder, &frame.tensors, model.size, [SCORE, IOU]),
        };
        let expected = regions(&kept.survivors, model.size);
        assert_eq!(frame.regions, expected, "{name}, frame {i}");
        counts.push([kept.candidates, kept.survivors.len()]);
    }
    let candidates: usize = counts.iter().map(|[candidates, _]| candidates).sum();
    assert_eq!(counted as usize, candidates, "{name}");
    println!("{name}: [candidates, kept] {counts:?}");
    counts
}

/// Runs [`equals_numpy`] on a picture after the stock inference element. If there is none, the
/// model's outputs for these pixels are recorded and replayed. Returns `None` if something is
/// missing.
fn inferred(
    name: &str,
    model: &'static StockModel,
    file: &str,
    borders: bool,
) -> Option<[usize; 2]> {
    pipeline::init();
    let picture = format!("{} ! {}", picture(file)?, scaled(model, borders));
    // The files must exist until the pipeline has run.
    let recording;
    let inference = match stock::onnxinference(model) {
        Some(element) => element,
        None => {
            recording = Recording::record(model, &pixels(&picture))?;
            recording.replay()
        }
    };
    let counts = equals_numpy(name, model, &format!("{picture} ! {inference}"));
    let [counts] = counts[..] else {
        panic!("{name} is one picture, not {}", counts.len());
    };
    Some(counts)
}

/// NumPy and the stock decoder keep 268 of 945 candidates. If Python libraries decode and scale the
/// picture, NumPy keeps 265 or 266. Processors round sums differently, so a score near the
/// threshold can be on either side of it.
#[test]
fn faces_of_a_crowd_equal_numpy_results() {
    let file = "data/images/crowd_selfie.jpg";
    if let Some(counts) = inferred("crowd_selfie", &ULTRAFACE, file, false) {
        assert!((942..=948).contains(&counts[0]), "{counts:?}");
        assert!((265..=271).contains(&counts[1]), "{counts:?}");
    }
}

#[test]
fn faces_of_the_papers_picture_equal_numpy_results() {
    if let Some(counts) = inferred("oscars", &ULTRAFACE, "data/oscars/oscars.png", false) {
        assert!((472..=478).contains(&counts[0]), "{counts:?}");
        assert!((147..=153).contains(&counts[1]), "{counts:?}");
    }
}

/// The model quantizes dynamically, so its outputs differ slightly between processors. On the
/// development machine, there are 120 candidates and 20 survivors.
#[test]
fn objects_of_a_street_equal_numpy_results() {
    if let Some([candidates, kept]) = inferred("street", &YOLOV8, "data/images/street.png", true) {
        assert!((100..=140).contains(&candidates), "{candidates}");
        assert!((17..=23).contains(&kept), "{kept}");
    }
}

#[test]
fn objects_of_every_video_frame_equal_numpy_results() {
    pipeline::init();
    let source = || {
        let video = video("data/videos/towncentre_96f_1080p.mp4")?;
        let Some(inference) = stock::onnxinference(&YOLOV8) else {
            // Without the element, ONNX Runtime replaces it for pictures only.
            skip::skip("onnxinference");
            return None;
        };
        Some(format!("{video} ! {} ! {inference}", scaled(&YOLOV8, true)))
    };
    if let Some(source) = source() {
        let counts = equals_numpy("towncentre", &YOLOV8, &source);
        assert_eq!(counts.len(), 96);
        assert!(counts.iter().all(|&[candidates, kept]| candidates > 4 * kept));
    }
}
