//! nmsfilter behind GStreamer's own inference element, on pictures and a video of real crowds.
//!
//! The reference is NumPy on the very tensors that the element saw: literally, where there is a
//! Python with NumPy, and by a plain function of the same meaning everywhere. `stock_decoders`
//! compares with the stock decoders. Where GStreamer has no inference element, tensors are recorded
//! with ONNX Runtime from the same pixels and replayed.

use crate::frame::{Frame, regions};
use crate::greedy::{self, Kept};
use crate::picture::{Recording, drawn, picture, pixels, scaled, video};
use crate::python;
use crate::stock::{self, Model, ULTRAFACE, YOLOV8};
use crate::support::scratch::Scratch;
use crate::support::{pipeline, skip};
use crate::tensors::Recorded;

const SCORE: f32 = 0.25;
const IOU: f32 = 0.45;

/// What NumPy keeps of the rows of `tensors`, or a plain function of the same meaning where there
/// is none.
fn reference(model: &Model, tensors: &[Recorded]) -> Kept {
    let plain = greedy::by_numpys_rules(model.head, tensors, model.size, [SCORE, IOU]);
    let folder = Scratch::new();
    let write = |tensor: &Recorded| {
        let file = folder.join(format!("{}.npy", tensor.id));
        tensor.write_npy(&file);
        file
    };
    let files: Vec<_> = tensors.iter().map(write).collect();
    if let Some(numpy) = python::greedy(model.head, &files, model.size, [SCORE, IOU]) {
        assert_eq!(numpy, plain, "NumPy and the plain function");
    }
    plain
}

/// The result of nmsfilter for each frame from `source` is the reference's: boxes, classes, scores,
/// order. Gives how many candidates and survivors each has.
fn equals_numpy(name: &str, model: &Model, source: &str) -> Vec<[usize; 2]> {
    let pipeline = pipeline::parse(&format!(
        "{source} ! nmsfilter name=nms score-threshold={SCORE} iou-threshold={IOU} ! {}",
        drawn(name)
    ));
    let frames = pipeline::watch(&pipeline, "nms", Frame::of);
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{name}");
    let counted = ended.stats.last().expect("it posts its counts");
    let counted = counted.get::<u64>("candidates").unwrap();

    let mut counts = Vec::new();
    for (i, frame) in frames.lock().unwrap().iter().enumerate() {
        // NumPy takes a while to start, so a video's frames between are left to the plain function.
        let kept = match i % 16 {
            0 => reference(model, &frame.tensors),
            _ => greedy::by_numpys_rules(model.head, &frame.tensors, model.size, [SCORE, IOU]),
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

/// [`equals_numpy`] on a picture behind the stock inference element, or, where there is none,
/// behind a recording of the same pixels. `None` where something is missing.
fn inferred(name: &str, model: &'static Model, file: &str, borders: bool) -> Option<[usize; 2]> {
    pipeline::init();
    let picture = format!("{} ! {}", picture(file)?, scaled(model, borders));
    // Lives until the pipeline has run.
    let recording;
    let inference = match stock::onnxinference(model) {
        Some(element) => element,
        None => {
            recording = Recording::of(model, &pixels(&picture))?;
            recording.replay()
        }
    };
    let counts = equals_numpy(name, model, &format!("{picture} ! {inference}"));
    let [counts] = counts[..] else {
        panic!("{name} is one picture, not {}", counts.len());
    };
    Some(counts)
}

/// NumPy keeps 268 of 945, as does the stock decoder. Decoded and scaled by Python libraries the
/// picture gives other tensors, of which NumPy keeps 265 or 266 in as many candidates. Processors
/// round sums differently, so a row at the threshold may come or go.
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

/// The model quantizes on the fly, so that its numbers differ a little between CPUs. Where this
/// was written there were 120 candidates, of which 20 stayed.
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
            // Without the element only pictures are inferred, by ONNX Runtime.
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
