//! Random scenes: plausible outputs of detectors, and invalid ones.

use fastrand::Rng;
use gstnmsfilter::decoder::{self, BoxFormat, Coordinates, Field, Layout, Options};
use gstnmsfilter::engine::{Bounds, ClassThresholds, Method, Overlap, Params, SizeLimits};
use gstnmsfilter::tensor::TensorView;
use half::f16;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decoder {
    Windows,
    Boxes(BoxFormat),
    Yolov5,
    /// YOLOv5's numbers, each of all anchors side by side: objectness, and scores by class.
    Yolov5Columns,
    Yolov8 {
        transposed: bool,
    },
    UltraFace,
}

impl Decoder {
    fn name(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Boxes(_) => "boxes",
            Self::Yolov5 | Self::Yolov5Columns => "yolov5",
            Self::Yolov8 { .. } => "yolov8",
            Self::UltraFace => "ultraface",
        }
    }

    fn format(self) -> BoxFormat {
        match self {
            Self::Windows => BoxFormat::Square,
            Self::Boxes(format) => format,
            Self::Yolov5 | Self::Yolov5Columns | Self::Yolov8 { .. } => BoxFormat::Center,
            Self::UltraFace => BoxFormat::Corners,
        }
    }
}

/// A scene and the parameters to run it with.
#[derive(Clone)]
pub struct Scene {
    pub params: Params,
    decoder: Decoder,
    /// Box, objectness where the decoder has it, and class scores of each row.
    rows: Vec<Vec<f32>>,
    classes: usize,
    coordinates: Coordinates,
    half: bool,
    tensors: Vec<Written>,
}

/// A tensor as it is in memory.
#[derive(Clone)]
struct Written {
    id: &'static str,
    shape: Vec<usize>,
    single: Vec<f32>,
    half: Vec<f16>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { decoder, rows, classes, half, params, .. } = self;
        write!(f, "{decoder:?}, {} rows, {classes} classes, half {half}, {params:?}", rows.len())
    }
}

impl Scene {
    /// Any decoder, any parameters, mostly few rows, and some invalid numbers.
    pub fn any(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rows = match rng.u32(0..40) {
            0 => 0,
            1 => rng.usize(1_000..4_000),
            2..8 => rng.usize(200..1_000),
            _ => rng.usize(1..200),
        };
        Self::with(&mut rng, rows)
    }

    /// As [`any`](Self::any), with this many rows.
    pub fn large(seed: u64, rows: usize) -> Self {
        let mut scene = Self::with(&mut Rng::with_seed(seed), rows);
        scene.params.thresholds = ClassThresholds::uniform(0.02);
        scene.params.sizes = SizeLimits::ANY;
        scene.params.visible = Bounds::ANY;
        scene.params.multi_label = false;
        scene
    }

    fn with(rng: &mut Rng, rows: usize) -> Self {
        let decoder = match rng.u32(0..9) {
            0 => Decoder::Windows,
            1 => Decoder::Boxes(BoxFormat::Corners),
            2 => Decoder::Boxes(BoxFormat::Center),
            3 => Decoder::Boxes(BoxFormat::Square),
            4 => Decoder::Yolov5,
            5 => Decoder::Yolov8 { transposed: false },
            6 => Decoder::Yolov8 { transposed: true },
            7 => Decoder::Yolov5Columns,
            _ => Decoder::UltraFace,
        };
        // Fewer rows than numbers are no YOLOv5 output.
        let decoder =
            if decoder == Decoder::Yolov5 && rows < 26 { Decoder::Windows } else { decoder };
        let classes = match decoder {
            Decoder::Windows | Decoder::UltraFace => 1,
            _ => *rng.choice(&[1, 1, 2, 3, 20]).unwrap(),
        };
        let params = any_params(rng, rows, classes);
        let mut scene = Self::of(rng, decoder, classes, rows, params);
        scene.coordinates = *rng
            .choice(&[Coordinates::Auto, Coordinates::Pixels, Coordinates::Normalized])
            .unwrap();
        if scene.coordinates == Coordinates::Normalized || decoder == Decoder::UltraFace {
            scene.params.scale = [rng.f32() * 2.0, 1.0 / 3.0];
        }
        scene.half = rng.bool();
        scene.sprinkle(rng);
        scene.write();
        scene
    }

    /// Valid corners and scores, of one class or a few.
    pub fn plain(seed: u64, method: Method) -> Self {
        let mut rng = Rng::with_seed(seed);
        let classes = *rng.choice(&[1, 3]).unwrap();
        let rows = rng.usize(1..160);
        let params = Params {
            method,
            max_candidates: 0,
            max_detections: 0,
            thresholds: ClassThresholds::uniform(0.1),
            sizes: SizeLimits::ANY,
            ..any_params(&mut rng, rows, classes)
        };
        let mut scene =
            Self::of(&mut rng, Decoder::Boxes(BoxFormat::Corners), classes, rows, params);
        scene.write();
        scene
    }

    /// A plain scene in which no two rows have the same score.
    pub fn without_ties(seed: u64) -> Self {
        let mut scene = Self::plain(seed, Method::Greedy);
        let mut places: Vec<usize> = (0..scene.rows.len()).collect();
        Rng::with_seed(seed).shuffle(&mut places);
        for (row, place) in scene.rows.iter_mut().zip(places) {
            let class = (0..scene.classes).max_by(|&a, &b| row[4 + a].total_cmp(&row[4 + b]));
            for c in 0..scene.classes {
                row[4 + c] = if Some(c) == class { 0.2 + place as f32 / 256.0 } else { 0.0 };
            }
        }
        scene.write();
        scene
    }

    /// Corners on a grid, so that the overlap of many boxes equals the threshold, or they only
    /// touch; the grid is fine or coarse, and at the origin or far from it.
    pub fn on_a_grid(seed: u64) -> Self {
        let mut scene = Self::plain(seed, Method::Greedy);
        let mut rng = Rng::with_seed(seed ^ 0x9b1d);
        scene.params.method = *rng
            .choice(&[Method::Greedy, Method::Greedy, Method::MapReduce, Method::None])
            .unwrap();
        scene.params.iou_threshold = *rng.choice(&[0.0, 0.25, 1.0 / 3.0, 0.5, 0.75, 1.0]).unwrap();
        // The finest has no places to spare for areas.
        let exponents = [-149.0, -149.0, -8.0, 0.0, 26.0, 26.0];
        let steps = [0, 1].map(|_| f32::exp2(*rng.choice(&exponents).unwrap()));
        let out = *rng.choice(&[0.0, -5.0, 50.0, -70_000.0, 1.0e6]).unwrap();
        for row in &mut scene.rows {
            for (axis, step) in steps.into_iter().enumerate() {
                let (at, length) = (rng.u32(0..8), rng.u32(1..7));
                row[axis] = (out + at as f32) * step;
                row[axis + 2] = (out + (at + length) as f32) * step;
            }
        }
        // Many boxes touch these bounds and no more.
        scene.params.visible = Bounds::ANY;
        if rng.bool() {
            let [x, y] = steps;
            scene.params.visible = Bounds {
                left: (out + 3.0) * x,
                top: (out + 2.0) * y,
                right: (out + 9.0) * x,
                bottom: (out + 10.0) * y,
            };
        }
        scene.write();
        scene
    }

    /// The same rows in another order, and for each new row the old one.
    pub fn permuted(&self, seed: u64) -> (Self, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        Rng::with_seed(seed ^ 0x5eed).shuffle(&mut order);
        let mut permuted = self.clone();
        permuted.rows = order.iter().map(|&row| self.rows[row].clone()).collect();
        permuted.write();
        (permuted, order)
    }

    /// The same scene in half precision.
    pub fn rounded_to_half(mut self) -> Self {
        self.half = true;
        self.write();
        self
    }

    /// The half-precision numbers in single precision.
    pub fn widened(&self) -> Self {
        let mut wide = self.clone();
        wide.half = false;
        for row in &mut wide.rows {
            for number in row {
                *number = f16::from_f32(*number).to_f32();
            }
        }
        wide.write();
        wide
    }

    /// The tensors, and how the decoder lays them out.
    pub fn tensors(&self) -> (Vec<TensorView<'_>>, Layout) {
        let (tensors, layout) = self.written();
        match self.decoder {
            Decoder::Yolov5Columns => (tensors, self.columns()),
            _ => (tensors, layout.expect("the decoder takes what was written for it")),
        }
    }

    /// The layout of YOLOv5 numbers in columns, which no decoder reads.
    fn columns(&self) -> Layout {
        let anchors = self.rows.len();
        let column = |number| Field {
            tensor: 0,
            offset: number * anchors,
            image_stride: 0,
            anchor_stride: 1,
            component_stride: anchors,
        };
        Layout {
            decoder: self.decoder.name(),
            images: 1,
            anchors,
            classes: self.classes,
            boxes: column(0),
            box_format: self.decoder.format(),
            scores: column(5),
            objectness: Some(column(4)),
            normalized: false,
        }
    }

    fn written(&self) -> (Vec<TensorView<'_>>, Option<Layout>) {
        let tensors: Vec<TensorView<'_>> = self
            .tensors
            .iter()
            .map(|Written { id, shape, single, half }| match self.half {
                false => TensorView::from_slice(id, shape, single),
                true => TensorView::from_slice(id, shape, half),
            })
            .collect();
        let options = Options {
            box_format: self.decoder.format(),
            coordinates: self.coordinates,
            ..Options::default()
        };
        let choice = decoder::choose(&tensors, decoder::by_name(self.decoder.name()), options);
        (tensors, choice.ok().map(|choice| choice.layout))
    }

    /// Rows around objects: clusters, chains, identical boxes, and some at random places.
    fn of(rng: &mut Rng, decoder: Decoder, classes: usize, count: usize, params: Params) -> Self {
        let coarse = rng.bool();
        let objects = 1 + count / rng.usize(2..30);
        let mut rows = Vec::with_capacity(count);
        let mut last = [0.0, 0.0, 10.0, 10.0];
        let centers: Vec<[f32; 3]> = (0..objects)
            .map(|_| [rng.f32() * 640.0, rng.f32() * 480.0, 4.0 + rng.f32() * 80.0])
            .collect();
        for _ in 0..count {
            let [x, y, side] = *rng.choice(&centers).unwrap();
            let corners = match rng.u32(0..10) {
                // The same box again.
                0 => last,
                // A link of a chain: half over the last one.
                1 | 2 => {
                    let step = (last[2] - last[0]) * 0.5;
                    [last[0] + step, last[1], last[2] + step, last[3]]
                }
                3 => {
                    let (x, y) = (rng.f32() * 640.0, rng.f32() * 480.0);
                    [x, y, x + 1.0 + rng.f32() * 60.0, y + 1.0 + rng.f32() * 60.0]
                }
                _ => {
                    let jitter = |rng: &mut Rng| (rng.f32() - 0.5) * side * 0.5;
                    let (x, y) = (x + jitter(rng), y + jitter(rng));
                    [x, y, x + side + jitter(rng), y + side + jitter(rng)]
                }
            };
            last = if coarse { corners.map(f32::round) } else { corners };
            let score = if coarse { rng.u32(0..17) as f32 / 16.0 } else { rng.f32() };
            let class = rng.usize(0..classes);
            rows.push(row(rng, decoder, last, class, classes, score));
        }
        let coordinates = Coordinates::Auto;
        Self { params, decoder, rows, classes, coordinates, half: false, tensors: Vec::new() }
    }

    /// Replaces some numbers by invalid or extreme ones.
    fn sprinkle(&mut self, rng: &mut Rng) {
        const NONSENSE: [f32; 12] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            0.0,
            -5.0,
            1.0e-42,
            f32::MAX,
            f32::MIN,
            2.0e9,
            1.0e20,
            70_000.0,
        ];
        let share = *rng.choice(&[0.0, 0.0, 0.01, 0.2]).unwrap();
        for number in self.rows.iter_mut().flatten() {
            if rng.f32() < share {
                *number = *rng.choice(&NONSENSE).unwrap();
            }
        }
    }

    /// Writes the rows as the decoder's tensors.
    fn write(&mut self) {
        let n = self.rows.len();
        let rows = &self.rows;
        let part = |from: usize, to: usize| -> Vec<f32> {
            rows.iter().flat_map(|row| row[from..to].iter().copied()).collect()
        };
        let boxes = self.decoder.format().components();
        let numbers = boxes + self.classes;
        let single = match self.decoder {
            Decoder::Windows => vec![("windows", vec![n, 4], part(0, 4))],
            Decoder::Boxes(_) => vec![
                ("scores", vec![n, self.classes], part(boxes, numbers)),
                ("boxes", vec![n, boxes], part(0, boxes)),
            ],
            Decoder::Yolov5 => vec![("yolo-v5-out", vec![1, n, numbers + 1], part(0, numbers + 1))],
            Decoder::Yolov5Columns => {
                let columns =
                    (0..numbers + 1).flat_map(|i| rows.iter().map(move |row| row[i])).collect();
                vec![("columns", vec![1, numbers + 1, n], columns)]
            }
            // Fewer rows than numbers would be taken for the other orientation.
            Decoder::Yolov8 { transposed: true } if n > numbers => {
                vec![("yolo-v8-out", vec![1, n, numbers], part(0, numbers))]
            }
            Decoder::Yolov8 { .. } if n >= numbers || n == 0 => {
                let columns =
                    (0..numbers).flat_map(|i| rows.iter().map(move |row| row[i])).collect();
                vec![("yolo-v8-out", vec![1, numbers, n], columns)]
            }
            Decoder::Yolov8 { .. } => vec![("yolo-v8-out", vec![1, numbers, 0], vec![])],
            Decoder::UltraFace => {
                let background = rows.iter().flat_map(|row| [1.0 - row[4], row[4]]).collect();
                vec![
                    (
                        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
                        vec![1, n, 2],
                        background,
                    ),
                    ("ssd-mobilenet-v1-variant-1-out-boxes", vec![1, n, 4], part(0, 4)),
                ]
            }
        };
        self.tensors = single
            .into_iter()
            .map(|(id, shape, single)| {
                let half = single.iter().map(|&number| f16::from_f32(number)).collect();
                Written { id, shape, single, half }
            })
            .collect();
    }
}

/// A row's box, objectness and scores as the decoder writes them.
fn row(
    rng: &mut Rng,
    decoder: Decoder,
    [x1, y1, x2, y2]: [f32; 4],
    class: usize,
    classes: usize,
    score: f32,
) -> Vec<f32> {
    let mut row = match decoder.format() {
        BoxFormat::Corners => vec![x1, y1, x2, y2],
        BoxFormat::Center => vec![(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1],
        BoxFormat::Square => vec![x1, y1, x2 - x1],
    };
    if matches!(decoder, Decoder::Yolov5 | Decoder::Yolov5Columns) {
        row.push(if rng.u32(0..3) == 0 { rng.f32() } else { 0.9 });
    }
    for c in 0..classes {
        // Now and then another class has the same score.
        let is_equal = c == class || rng.u32(0..6) == 0;
        row.push(if is_equal { score } else { score * rng.f32() });
    }
    row
}

fn any_params(rng: &mut Rng, rows: usize, classes: usize) -> Params {
    let mut thresholds = ClassThresholds::uniform(*rng.choice(&[0.0, 0.1, 0.25, 0.5]).unwrap());
    if rng.u32(0..4) == 0 {
        thresholds.per_class = (0..rng.usize(0..classes + 2))
            .map(|_| *rng.choice(&[f32::INFINITY, 0.05, 0.3, 0.7]).unwrap())
            .collect();
    }
    let cap = |rng: &mut Rng| *rng.choice(&[0, 0, 0, 1, 7, 50]).unwrap();
    let sizes = match rng.u32(0..5) {
        0 => SizeLimits { min: [rng.f32() * 20.0, 5.0], max: [rng.f32() * 100.0, 70.0] },
        _ => SizeLimits::ANY,
    };
    let visible = match rng.u32(0..4) {
        0 => Bounds {
            left: rng.u32(0..200) as f32,
            top: rng.u32(0..100) as f32,
            right: rng.u32(300..640) as f32,
            bottom: rng.u32(200..480) as f32,
        },
        1 => Bounds { left: 300.0, ..Bounds::ANY },
        _ => Bounds::ANY,
    };
    Params {
        method: *rng
            .choice(&[Method::Greedy, Method::Greedy, Method::MapReduce, Method::None])
            .unwrap(),
        overlap: *rng.choice(&[Overlap::Iou, Overlap::Representative, Overlap::Smaller]).unwrap(),
        iou_threshold: *rng.choice(&[0.0, 0.25, 0.3, 0.45, 0.5, 0.7, 1.0]).unwrap(),
        threshold_inclusive: rng.bool(),
        pixel_offset: if rng.u32(0..3) == 0 { 1.0 } else { 0.0 },
        class_agnostic: rng.bool(),
        thresholds,
        sizes,
        visible,
        // Reference takes seconds for more pairs.
        multi_label: rng.bool() && rows * classes <= 4_000,
        scale: [1.0; 2],
        max_candidates: cap(rng) as usize,
        max_detections: cap(rng) as usize,
    }
}
