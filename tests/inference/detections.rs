// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real detectors on pictures and a video of crowds. Only the properties `model` and `letterbox`
//! are set. `nmsfilter` must attach the detections that NumPy computes from the tensors, and the
//! tensors must equal the ones from ONNX Runtime's Python interface.

use std::path::{Path, PathBuf};
use std::process::Command;

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use nmsfilter_core::geometry::{FitRule, Letterbox};

use crate::element::{self, Tensor, file, has_onnx_runtime, tensors};
use crate::support::onnx::{Element, identity};
use crate::support::scratch::Scratch;
use crate::support::skip::skip;
use crate::support::{data, pipeline, project};

/// Defaults of `nmsfilter`.
const SCORE: &str = "0.25";
const IOU: &str = "0.45";

/// A detector with the settings of its tests.
pub struct DetectorCase {
    /// File of the model in the folder of inputs.
    pub file: &'static str,
    /// Decoder in `reference.py`.
    decoder: &'static str,
    /// Width and height of the model's input, in pixels.
    pub size: [u32; 2],
    /// Property `range` for a model that returns its input, equivalent to the range in the
    /// detector's `.modelinfo` file.
    range: &'static str,
    /// Names of the outputs, in the order of `reference.py`.
    outputs: &'static [&'static str],
    /// Label of class 0 that `nmsfilter` attaches.
    label: &'static str,
}

pub static ULTRAFACE: DetectorCase = DetectorCase {
    file: "data/models/version-RFB-640.onnx",
    decoder: "ultraface",
    size: [640, 480],
    range: "-1,1",
    outputs: &["scores", "boxes"],
    label: "face",
};

pub static YOLOV8: DetectorCase = DetectorCase {
    file: "data/models/yolov8n_int8_640.onnx",
    decoder: "yolov8",
    size: [640, 640],
    range: "0,1",
    outputs: &["output0"],
    label: "person",
};

/// A region as `nmsfilter` attaches it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    label: String,
    class: i32,
    score: f64,
    /// Left, top, right and bottom edge, from 0 to 1.
    edges: [f64; 4],
}

impl Region {
    /// Returns the region's type.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns how much score and edges differ from another region. Returns `None` if the classes
    /// differ.
    pub fn difference(&self, other: &Self) -> Option<[f64; 2]> {
        let edges = self.edges.iter().zip(other.edges).map(|(a, b)| (a - b).abs());
        let difference = [(self.score - other.score).abs(), edges.fold(0.0, f64::max)];
        (self.class == other.class).then_some(difference)
    }
}

/// Returns the regions on `buffer`, in order.
pub fn regions(buffer: &gst::BufferRef) -> Vec<Region> {
    let region = |meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
        let detection = meta.param("detection").expect("every region has one");
        let number = |name| detection.get::<f64>(name).unwrap();
        Region {
            label: meta.roi_type().to_owned(),
            class: detection.get("label_id").unwrap(),
            score: number("confidence"),
            edges: ["x_min", "y_min", "x_max", "y_max"].map(number),
        }
    };
    buffer.iter_meta().map(region).collect()
}

/// A survivor that `reference.py` found. The edges are in pixels of the model's input.
struct Survivor {
    class: i32,
    score: f32,
    edges: [f64; 4],
}

/// Size, tensors and regions of a frame.
struct Frame {
    size: [u32; 2],
    tensors: Vec<Tensor>,
    regions: Vec<Region>,
}

/// Returns the Python interpreter that `NMSFILTER_TEST_PYTHON` names. If it is unset, returns
/// `None` and reports a skip.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("NMSFILTER_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        skip("a Python with NumPy and ONNX Runtime: NMSFILTER_TEST_PYTHON is not set");
    }
    python
}

/// Runs a script of this folder, and returns what it prints.
pub fn script(python: &Path, name: &str, arguments: &[String]) -> String {
    let script = project::path("tests/inference").join(name);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns elements that read a picture.
pub fn picture(file: &str) -> Option<String> {
    let file = data::path(file)?;
    let is_png = file.extension().is_some_and(|extension| extension == "png");
    let decoder = if is_png { "pngdec" } else { "jpegdec" };
    Some(format!("filesrc location={} ! {decoder} ! videoconvert", file.display()))
}

/// Returns elements that read the first `frames` frames of an H.264 video.
fn video(file: &str, frames: u32) -> Option<String> {
    let file = data::path(file)?;
    // `qtdemux` outputs whole frames, which the first of these decoders reads without a parser.
    let decoders = [&["avdec_h264"][..], &["h264parse", "openh264dec"]];
    let has = |element: &&str| gst::ElementFactory::find(element).is_some();
    let Some(decoder) = decoders.into_iter().find(|elements| elements.iter().all(has)) else {
        skip(&format!("one of {decoders:?}"));
        return None;
    };
    Some(format!(
        "filesrc location={} ! qtdemux ! {} ! identity eos-after={}",
        file.display(),
        decoder.join(" ! "),
        frames,
    ))
}

/// Returns the survivors that NumPy finds in the tensors.
fn by_numpy(
    python: &Path,
    model: &DetectorCase,
    tensors: &[Tensor],
    visible: [f64; 4],
) -> Vec<Survivor> {
    let folder = Scratch::new();
    let write = |(name, tensor): (&&str, &Tensor)| {
        let path = folder.join(name);
        std::fs::write(&path, bytemuck::cast_slice(tensor.f32())).unwrap();
        let dims: Vec<_> = tensor.shape.iter().map(ToString::to_string).collect();
        format!("{}:f32:{}", path.display(), dims.join("x"))
    };
    assert_eq!(tensors.len(), model.outputs.len());
    let mut arguments = [model.decoder, SCORE, IOU].map(str::to_owned).to_vec();
    arguments.extend(model.size.map(|side| side.to_string()));
    arguments.extend(model.outputs.iter().zip(tensors).map(write));
    arguments.push("--visible".to_owned());
    arguments.extend(visible.map(|edge| format!("{edge:?}")));
    let printed = script(python, "reference.py", &arguments);
    let survivor = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Survivor {
            class: fields[1].parse().unwrap(),
            score: fields[2].parse().unwrap(),
            edges: [3, 4, 5, 6].map(|i| f64::from(fields[i].parse::<f32>().unwrap())),
        }
    };
    printed.lines().skip(2).map(survivor).collect()
}

/// Runs the detector on `source`.
///
/// Asserts that the regions of each frame are NumPy's survivors of its tensors, mapped to the
/// frame. Returns the number of regions per frame. If something is missing, returns `None` and
/// reports a skip.
fn equals_numpy(model: &DetectorCase, source: &str, letterbox: Letterbox) -> Option<Vec<usize>> {
    let (path, python) = (data::path(model.file)?, python()?);
    let inference = element::inference(&path, &format!("letterbox={}", letterbox.name()));
    let pipeline =
        pipeline::parse(&format!("{source} ! {inference} ! nmsfilter name=nms ! fakesink"));
    let pad = pipeline.by_name("nms").unwrap().static_pad("src").unwrap();
    let frames = pipeline::watch(&pipeline, "nms", move |buffer| {
        let caps = pad.current_caps().expect("caps precede buffers");
        let info = gst_video::VideoInfo::from_caps(&caps).unwrap();
        let size = [info.width(), info.height()];
        Frame { size, tensors: tensors(buffer), regions: regions(buffer) }
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None, "{source}");
    assert_eq!(ended.warnings, [""; 0], "{source}");

    let mut found = Vec::new();
    for (number, frame) in std::mem::take(&mut *frames.lock().unwrap()).into_iter().enumerate() {
        let what = format!("{source}, {}, frame {number}", letterbox.name());
        let fit = FitRule::from(letterbox).fit(frame.size, model.size);
        let ratio = [0, 1].map(|axis| f64::from(fit.size[axis]) / f64::from(fit.source[axis]));
        let offset = fit.offset.map(f64::from);
        let side = frame.size.map(f64::from);
        let ends = [0, 1].map(|axis| offset[axis] + ratio[axis] * side[axis]);
        let visible = [offset[0], offset[1], ends[0], ends[1]].map(|edge| f64::from(edge as f32));
        let survivors = by_numpy(&python, model, &frame.tensors, visible);
        assert_eq!(frame.regions.len(), survivors.len(), "{what}");
        for (region, survivor) in frame.regions.iter().zip(&survivors) {
            assert_eq!(region.class, survivor.class, "{what}");
            assert_eq!(region.score, f64::from(survivor.score), "{what}");
            assert!(region.class != 0 || region.label == model.label, "{region:?}");
            for (i, edge) in survivor.edges.into_iter().enumerate() {
                let axis = i % 2;
                let expected = ((edge - offset[axis]) / ratio[axis] / side[axis]).clamp(0.0, 1.0);
                // Regions have single precision.
                let difference = (region.edges[i] - expected).abs();
                assert!(difference < 2e-7, "{what}: {region:?}, expected {:?}", survivor.edges);
            }
        }
        found.push(survivors.len());
    }
    Some(found)
}

/// Asserts that, on the CPU, the tensors of the first frame of `source` equal the tensors that ONNX
/// Runtime's Python interface computes from this input, to the bit.
fn equals_python(model: &DetectorCase, source: &str, letterbox: Letterbox) {
    let tensors = |model: &Path, properties: &str| {
        let properties = format!("provider=cpu letterbox={} {properties}", letterbox.name());
        let inference = element::inference(model, &properties);
        let pipeline = pipeline::parse(&format!("{source} ! {inference} ! fakesink"));
        element::run_pipeline(&pipeline).remove(0)
    };
    let [width, height] = model.size.map(i64::from);
    let returns_input = file(&identity([1, 3, height, width], Element::F32));
    let input = tensors(&returns_input, &format!("range={}", model.range)).remove(0);

    let folder = Scratch::new();
    let path = folder.join("input");
    std::fs::write(&path, bytemuck::cast_slice(input.f32())).unwrap();
    let file = data::path(model.file).expect("the model was there before");
    let outputs = tensors(&file, "");
    let arguments = [&file, &path, &folder.to_path_buf()].map(|path| path.display().to_string());
    script(&python().expect("it was there before"), "run_model.py", &arguments);
    for (name, tensor) in model.outputs.iter().zip(&outputs) {
        let bytes = std::fs::read(folder.join(format!("{name}.bin"))).unwrap();
        let expected = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let bits = |value: f32| value.to_bits();
        assert!(
            tensor.f32().iter().copied().map(bits).eq(expected.map(bits)),
            "{source}: output {name} differs from that of Python"
        );
    }
}

/// Runs a picture through a detector with each letterbox. The expected numbers of survivors are
/// from the development machine. Other processors round sums differently.
fn check_picture(model: &DetectorCase, file: &str, expected: &[(Letterbox, usize)]) {
    if !has_onnx_runtime() {
        return;
    }
    let Some(source) = picture(file) else { return };
    for &(letterbox, survivors) in expected {
        let Some(found) = equals_numpy(model, &source, letterbox) else { return };
        let [count] = found[..] else { panic!("one frame, got {}", found.len()) };
        println!("{file}, {}: {count} survivors", letterbox.name());
        assert!(count.abs_diff(survivors) <= 2 + survivors / 50, "{count}, expected {survivors}");
        equals_python(model, &source, letterbox);
    }
}

#[test]
fn faces_of_a_crowd_equal_numpy_results() {
    let expected = [(Letterbox::None, 268), (Letterbox::Center, 202)];
    check_picture(&ULTRAFACE, "data/images/crowd_selfie.jpg", &expected);
}

#[test]
fn faces_of_the_papers_picture_equal_numpy_results() {
    let expected = [(Letterbox::None, 150), (Letterbox::Center, 168)];
    check_picture(&ULTRAFACE, "data/oscars/oscars.png", &expected);
}

#[test]
fn objects_of_a_street_equal_numpy_results() {
    let expected = [(Letterbox::Center, 18), (Letterbox::TopLeft, 18)];
    check_picture(&YOLOV8, "data/images/street.png", &expected);
}

#[test]
fn objects_of_video_frames_equal_numpy_results() {
    if !has_onnx_runtime() {
        return;
    }
    let Some(source) = video("data/videos/towncentre_96f_1080p.mp4", 6) else { return };
    let found = equals_numpy(&YOLOV8, &source, Letterbox::Center);
    let Some(found) = found else { return };
    assert_eq!(found.len(), 6);
    assert!(found.iter().all(|survivors| (10..40).contains(survivors)));
}
