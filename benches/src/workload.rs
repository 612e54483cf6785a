// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of measurements.
//!
//! Out: tensors and parameters, from recorded windows and candidates (`tests/fixtures`) and from
//! generated scenes with fixed seeds. Also, paths of pictures and models in the folder
//! `NMSFILTER_TEST_DATA` (default: `../shared`).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::decoder::{self, BoxFormat, Layout, Options};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{ClassThresholds, ImagePlace, Params};
use nmsfilter_core::geometry::FrameMap;
use nmsfilter_core::tensor::TensorView;

/// Tensors, with the parameters for decode and suppression.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name in tables.
    pub name: String,
    /// Parameters that select candidates and control suppression.
    pub params: Params,
    /// The frame of the images, for masks in its pixels.
    pub frame: Option<FrameMap>,
    tensors: Vec<TensorData>,
    box_format: BoxFormat,
    /// Decoder, unless the tensors' ids select it.
    decoder: Option<&'static str>,
    /// True if the first dimension is the number of images.
    batch: bool,
}

/// A tensor of f32.
#[derive(Clone, Debug)]
pub struct TensorData {
    /// Id of the tensor.
    pub id: &'static str,
    /// Dimensions of the tensor.
    pub shape: Vec<usize>,
    /// Elements of the tensor.
    pub values: Vec<f32>,
}

/// Width and height of the model's input in all workloads.
const MODEL_SIZE: [f32; 2] = [640.0; 2];

/// Left, top, side, score.
pub type Window = [f32; 4];

/// The distribution of boxes in a generated scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// There are ten boxes near each object.
    Clustered,
    /// Positions and sizes are uniformly distributed.
    Uniform,
}

impl Spread {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clustered => "clustered",
            Self::Uniform => "uniform",
        }
    }
}

/// Where the boxes of a scene are that is like a scene of `merging/compare_with_sahi.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Centers {
    /// Around 30 objects.
    Crowded,
    /// In a square that grows with the number of boxes, so that few of them overlap.
    Scattered,
}

impl Centers {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::Scattered => "scattered",
        }
    }
}

impl Workload {
    /// Returns views of the tensors.
    pub fn tensors(&self) -> Vec<TensorView<'_>> {
        self.tensors.iter().map(|n| TensorView::from_slice(n.id, &n.shape, &n.values)).collect()
    }

    /// Returns the tensors in the form in which they are attached to buffers.
    pub fn new_tensors(&self) -> Vec<NewTensor> {
        let tensor = |n: &TensorData| NewTensor::from_vec(n.id, &n.shape, n.values.clone());
        self.tensors
            .iter()
            .map(|n| tensor(n).expect("tensors have at most three dimensions"))
            .collect()
    }

    /// The place of each image.
    pub fn places(&self) -> Vec<ImagePlace> {
        let place = ImagePlace { frame: self.frame, ..ImagePlace::in_model(MODEL_SIZE) };
        place.repeated(if self.batch { self.tensors[0].shape[0] } else { 1 })
    }

    /// The layout from the decoder for the tensors' ids.
    pub fn layout(&self) -> Layout {
        let model_size = Some(MODEL_SIZE);
        let Self { box_format, batch, .. } = *self;
        let options = Options { box_format, batch, model_size, ..Options::default() };
        let decoder = self.decoder.and_then(decoder::by_name);
        let choice = decoder::choose(&self.tensors(), decoder, options);
        let mut layout = choice.expect("a decoder reads these tensors").layout;
        Details::prepare(&mut layout, self.params.masks);
        layout
    }

    /// Returns the elements of the tensor with this id. The result is empty if there is no such
    /// tensor.
    pub fn numbers(&self, id: &str) -> &[f32] {
        self.tensors.iter().find(|tensor| tensor.id == id).map_or(&[], |tensor| &tensor.values)
    }

    /// Returns a workload with these tensors, another name, and other parameters.
    pub fn with_params(&self, name: impl Into<String>, params: Params) -> Self {
        Self { name: name.into(), params, ..self.clone() }
    }

    /// A batch of as many images as `images`, which are all this one.
    pub fn in_batch(&self, images: usize) -> Self {
        let mut batch = Self { batch: true, ..self.clone() };
        for tensor in &mut batch.tensors {
            tensor.shape[0] = images;
            tensor.values = tensor.values.repeat(images);
        }
        batch
    }

    /// The output of a family, read by `decoder`.
    pub fn family(decoder: &'static str, tensors: Vec<TensorData>) -> Self {
        let (params, box_format) = (greedy_params(0.45, 0.25), BoxFormat::Corners);
        Self {
            name: decoder.to_owned(),
            params,
            frame: None,
            tensors,
            box_format,
            decoder: Some(decoder),
            batch: false,
        }
    }

    /// Makes an end-to-end model's output with oriented boxes.
    pub fn oriented(name: impl Into<String>, rows: &[OrientedRow], params: Params) -> Self {
        let values = rows.iter().flat_map(|row| {
            let [x, y, w, h, angle] = row.numbers();
            [x, y, w, h, row.score, 0.0, angle]
        });
        let tensor =
            TensorData { id: "output0", shape: vec![1, rows.len(), 7], values: values.collect() };
        Self::family("end2end-obb", vec![tensor]).with_params(name, params)
    }

    /// Makes a tensor `windows`.
    pub fn windows(name: impl Into<String>, windows: &[Window], params: Params) -> Self {
        let values = windows.concat();
        let numbers = TensorData { id: "windows", shape: vec![windows.len(), 4], values };
        Self {
            name: name.into(),
            params,
            frame: None,
            tensors: vec![numbers],
            box_format: BoxFormat::Square,
            decoder: None,
            batch: false,
        }
    }

    /// Makes the tensors `boxes` and `scores` from corners and scores.
    pub fn boxes(name: impl Into<String>, rows: &[[f32; 5]], params: Params) -> Self {
        let boxes = rows.iter().flat_map(|row| row[..4].to_vec()).collect();
        let scores = rows.iter().map(|row| row[4]).collect();
        let tensors = vec![
            TensorData { id: "boxes", shape: vec![rows.len(), 4], values: boxes },
            TensorData { id: "scores", shape: vec![rows.len()], values: scores },
        ];
        Self {
            name: name.into(),
            params,
            frame: None,
            tensors,
            box_format: BoxFormat::Corners,
            decoder: None,
            batch: false,
        }
    }

    /// Makes a single tensor whose id selects its decoder. Its boxes are centers and sizes.
    fn centers(name: impl Into<String>, numbers: TensorData, params: Params) -> Self {
        Self {
            name: name.into(),
            params,
            frame: None,
            tensors: vec![numbers],
            box_format: BoxFormat::Center,
            decoder: None,
            batch: false,
        }
    }

    /// Makes a YOLOv8 output of 1x84x8400. Some of its anchors contain the windows, and all other
    /// scores are below 0.02.
    pub fn yolov8(name: impl Into<String>, windows: &[Window], params: Params) -> Self {
        const ANCHORS: usize = 8400;
        let values = yolo(windows, ANCHORS, 84, |anchor, number| number * ANCHORS + anchor);
        let numbers = TensorData { id: "yolo-v8-out", shape: vec![1, 84, ANCHORS], values };
        Self::centers(name, numbers, params)
    }

    /// Makes a YOLOv5 output of 1x25200x85. Some of its anchors contain the windows, and all other
    /// scores are below 0.02.
    pub fn yolov5(name: impl Into<String>, windows: &[Window], params: Params) -> Self {
        const ANCHORS: usize = 25_200;
        let mut values = yolo(windows, ANCHORS, 85, |anchor, number| anchor * 85 + number);
        // The objectness is the window's score, and the class score is 1.
        for row in values.chunks_exact_mut(85) {
            row[5] = if row[4] > 0.02 { 1.0 } else { row[5] };
        }
        let numbers = TensorData { id: "yolo-v5-out", shape: vec![1, ANCHORS, 85], values };
        Self::centers(name, numbers, params)
    }

    /// Makes `n` boxes with sides of 20 to 60 pixels and scores of 0.1 to 1.
    pub fn around(centers: Centers, n: usize, params: Params) -> Self {
        let mut rng = Rng::with_seed(n as u64);
        let objects: Vec<[f32; 2]> =
            (0..30).map(|_| [rng.f32() * 1000.0, rng.f32() * 1000.0]).collect();
        let side = 40.0 * (n as f32).sqrt();
        let rows: Vec<[f32; 5]> = (0..n)
            .map(|_| {
                let [x, y] = match centers {
                    Centers::Crowded => {
                        let object = objects[rng.usize(0..objects.len())];
                        object.map(|center| center + 30.0 * normal(&mut rng))
                    }
                    Centers::Scattered => [rng.f32() * side, rng.f32() * side],
                };
                let [w, h] = [0, 1].map(|_| 10.0 + rng.f32() * 20.0);
                [x - w, y - h, x + w, y + h, 0.1 + rng.f32() * 0.9]
            })
            .collect();
        Self::boxes(format!("{} {n}", centers.name()), &rows, params)
    }

    /// Makes `n` boxes in a frame of 1920x1080 pixels. Sides are between 16 and 116 pixels.
    pub fn scene(spread: Spread, n: usize) -> Self {
        let mut rng = Rng::with_seed(n as u64);
        let mut around = |range: f32| (rng.f32() - 0.5) * range;
        let random_box = |around: &mut dyn FnMut(f32) -> f32| {
            [960.0 + around(1920.0), 540.0 + around(1080.0), 66.0 + around(100.0)]
        };
        let objects: Vec<[f32; 3]> = (0..n.div_ceil(10)).map(|_| random_box(&mut around)).collect();
        let rows: Vec<[f32; 5]> = (0..n)
            .map(|i| {
                let [x, y, side] = match spread {
                    Spread::Uniform => random_box(&mut around),
                    Spread::Clustered => {
                        let [x, y, side] = objects[i % objects.len()];
                        let range = side * 0.3;
                        [x + around(range), y + around(range), side + around(range)]
                    }
                };
                let half = side / 2.0;
                [x - half, y - half, x + half, y + half, 0.5 + around(0.9)]
            })
            .collect();
        Self::boxes(format!("{} {n}", spread.name()), &rows, greedy_params(0.45, 0.0))
    }
}

/// A number with a normal distribution (the method of Box and Muller).
fn normal(rng: &mut Rng) -> f32 {
    let radius = (-2.0 * (1.0 - rng.f32()).ln()).sqrt();
    radius * (std::f32::consts::TAU * rng.f32()).cos()
}

/// An oriented box.
#[derive(Clone, Copy, Debug)]
pub struct OrientedRow {
    /// Center x and y.
    pub center: [f32; 2],
    /// Width and height.
    pub size: [f32; 2],
    /// Angle in radians, clockwise.
    pub angle: f32,
    /// Score of the box.
    pub score: f32,
}

impl OrientedRow {
    /// Returns center x and y, width, height and angle.
    pub fn numbers(&self) -> [f32; 5] {
        let Self { center: [x, y], size: [w, h], angle, .. } = *self;
        [x, y, w, h, angle]
    }
}

/// Makes `n` oriented boxes, ten near each object. The area of the picture is proportional to `n`.
pub fn oriented_rows(n: usize) -> Vec<OrientedRow> {
    let mut rng = Rng::with_seed(n as u64);
    let side = (n as f32).sqrt() * 30.0;
    let mut object = [0.0; 5];
    let row = |index: usize| {
        let mut number = |low: f32, high: f32| low + rng.f32() * (high - low);
        if index.is_multiple_of(10) {
            let (center, size) =
                ([number(0.0, side), number(0.0, side)], [number(20.0, 100.0), number(20.0, 60.0)]);
            object = [center[0], center[1], size[0], size[1], number(-1.57, 1.57)];
        }
        let [x, y, w, h, angle] = object;
        OrientedRow {
            center: [x + number(-4.0, 4.0), y + number(-4.0, 4.0)],
            size: [w * number(0.9, 1.1), h * number(0.9, 1.1)],
            angle: angle + number(-0.1, 0.1),
            score: number(0.3, 1.0),
        }
    };
    (0..n).map(row).collect()
}

/// Makes the elements of a YOLO output with `anchors` anchors. The anchors that contain `windows`
/// are evenly distributed.
fn yolo(
    windows: &[Window],
    anchors: usize,
    numbers: usize,
    index: impl Fn(usize, usize) -> usize,
) -> Vec<f32> {
    let mut rng = Rng::with_seed(1);
    let mut values = vec![0.0; anchors * numbers];
    for anchor in 0..anchors {
        for number in 0..numbers {
            let range = if number < 4 { 64.0 } else { 0.02 };
            values[index(anchor, number)] = rng.f32() * range;
        }
    }
    for (i, &[x, y, side, score]) in windows.iter().enumerate() {
        let half = side / 2.0;
        let row = [x + half, y + half, side, side, score];
        for (number, value) in row.into_iter().enumerate() {
            values[index(i * anchors / windows.len(), number)] = value;
        }
    }
    values
}

/// Returns parameters for exact greedy suppression by IoU.
pub fn greedy_params(iou_threshold: f32, score_threshold: f32) -> Params {
    let thresholds = ClassThresholds::uniform(score_threshold);
    Params { iou_threshold, thresholds, ..Params::default() }
}

/// Returns the path of a file in `tests/fixtures`.
pub fn fixture(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(relative)
}

/// Returns the path of a file in the test data folder, or `None` if it does not exist.
pub fn data(relative: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    Some(folder.join(relative)).filter(|path| path.exists())
}

/// Reads the rows of a CSV file, without its heading.
///
/// # Errors
/// Returns an error if the file cannot be read, or a field is not a number.
pub fn read_csv(path: &Path) -> Result<Vec<Vec<f32>>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().filter(|line| !line.starts_with(|c: char| c.is_alphabetic()));
    let number = |number: &str| number.trim().parse().with_context(|| path.display().to_string());
    rows.map(|row| row.split(',').map(number).collect()).collect()
}

/// Returns the file with the paper's windows.
pub fn windows_file() -> PathBuf {
    fixture("oscars/detections.txt")
}

/// Returns the 2997 windows of the paper, in the order of the file.
///
/// # Errors
/// Returns an error if the file cannot be read or has other contents.
pub fn windows() -> Result<Vec<Window>> {
    let window = |row: Vec<f32>| row.try_into().ok().context("expected x,y,side,score");
    let windows: Vec<Window> =
        read_csv(&windows_file())?.into_iter().map(window).collect::<Result<_>>()?;
    ensure!(windows.len() == 2997, "expected the paper's 2997 windows, got {}", windows.len());
    Ok(windows)
}

/// Returns 8400 windows that do not intersect each other.
pub fn disjoint_windows() -> Vec<Window> {
    let window = |i: usize| {
        let (column, row) = (i % 120, i / 120);
        [column as f32 * 16.0, row as f32 * 15.0, 14.0, 0.3 + (i * 7919 % 8400) as f32 / 16_800.0]
    };
    (0..8400).map(window).collect()
}
