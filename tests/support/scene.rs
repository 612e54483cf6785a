// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenes: plausible and invalid outputs of detectors.

use fastrand::Rng;
use half::f16;
use nmsfilter_core::decoder::{
    self, BoxFormat, Channels, Coordinates, Field, Layout, Options, PlainLayout,
};
use nmsfilter_core::engine::{
    ClassRule, ClassThresholds, ImagePlace, Method, Overlap, Params, RegionEdges, SizeLimits,
};
use nmsfilter_core::geometry::Bounds;
use nmsfilter_core::tensor::TensorView;

use super::engines;

/// The format in which a scene's tensors are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TensorFormat {
    Windows,
    Boxes(BoxFormat),
    Yolov5,
    /// Transposed YOLOv5: each row has one number per anchor.
    Yolov5Columns,
    Yolov8 {
        transposed: bool,
    },
    UltraFace,
}

impl TensorFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Boxes(_) => "boxes",
            Self::Yolov5 | Self::Yolov5Columns => "yolov5",
            Self::Yolov8 { .. } => "yolov8",
            Self::UltraFace => "ultraface",
        }
    }

    fn box_format(self) -> BoxFormat {
        match self {
            Self::Windows => BoxFormat::Square,
            Self::Boxes(box_format) => box_format,
            Self::Yolov5 | Self::Yolov5Columns | Self::Yolov8 { .. } => BoxFormat::Center,
            Self::UltraFace => BoxFormat::Corners,
        }
    }
}

/// A scene, and the parameters with which it is run.
#[derive(Clone)]
pub struct Scene {
    pub params: Params,
    /// The place of each image.
    pub place: ImagePlace,
    format: TensorFormat,
    /// Box, objectness (if the format has it) and class scores of each anchor.
    anchors: Vec<Vec<f32>>,
    classes: usize,
    /// Number of images in the tensors. The field `anchors` has only the first image.
    images: usize,
    coordinates: Coordinates,
    half: bool,
    tensors: Vec<StoredTensor>,
}

/// A tensor as it is stored in memory.
#[derive(Clone)]
struct StoredTensor {
    id: &'static str,
    shape: Vec<usize>,
    single: Vec<f32>,
    half: Vec<f16>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { format, anchors, classes, half, params, place, .. } = self;
        write!(
            f,
            "{format:?}, {} anchors, {classes} classes, half {half}, {params:?}, {place:?}",
            anchors.len()
        )
    }
}

impl Scene {
    /// Generates a scene with any format and any parameters, mostly with few anchors, and with some
    /// invalid numbers.
    pub fn any(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let anchors = match rng.u32(0..40) {
            0 => 0,
            1 => rng.usize(1_000..4_000),
            2..8 => rng.usize(200..1_000),
            _ => rng.usize(1..200),
        };
        Self::random(&mut rng, anchors)
    }

    /// Generates a scene like [`any`](Self::any), with this number of anchors.
    pub fn large(seed: u64, anchors: usize) -> Self {
        let mut scene = Self::random(&mut Rng::with_seed(seed), anchors);
        scene.params.thresholds = ClassThresholds::uniform(0.02);
        scene.params.sizes = SizeLimits::ANY;
        scene.place.visible = Bounds::ANY;
        scene.params.multi_label = false;
        scene
    }

    fn random(rng: &mut Rng, anchors: usize) -> Self {
        let format = match rng.u32(0..9) {
            0 => TensorFormat::Windows,
            1 => TensorFormat::Boxes(BoxFormat::Corners),
            2 => TensorFormat::Boxes(BoxFormat::Center),
            3 => TensorFormat::Boxes(BoxFormat::Square),
            4 => TensorFormat::Yolov5,
            5 => TensorFormat::Yolov8 { transposed: false },
            6 => TensorFormat::Yolov8 { transposed: true },
            7 => TensorFormat::Yolov5Columns,
            _ => TensorFormat::UltraFace,
        };
        // The decoder expects at least as many rows as columns in a YOLOv5 output.
        let format = if format == TensorFormat::Yolov5 && anchors < 26 {
            TensorFormat::Windows
        } else {
            format
        };
        let classes = match format {
            TensorFormat::Windows | TensorFormat::UltraFace => 1,
            _ => *rng.choice(&[1, 1, 2, 3, 20]).unwrap(),
        };
        let params = any_params(rng, anchors, classes);
        let mut scene = Self::around_objects(rng, format, classes, anchors, params);
        scene.coordinates = *rng
            .choice(&[Coordinates::Auto, Coordinates::Pixels, Coordinates::Normalized])
            .unwrap();
        if scene.coordinates == Coordinates::Normalized || format == TensorFormat::UltraFace {
            scene.place.model_size = [rng.f32() * 2.0, 1.0 / 3.0];
        }
        scene.half = rng.bool();
        scene.insert_extremes(rng);
        scene.write();
        scene
    }

    /// Generates a scene with valid corners and scores, and one or a few classes.
    pub fn plain(seed: u64, method: Method) -> Self {
        let mut rng = Rng::with_seed(seed);
        let classes = *rng.choice(&[1, 3]).unwrap();
        let anchors = rng.usize(1..160);
        let params = Params {
            method,
            max_candidates: 0,
            max_detections: 0,
            thresholds: ClassThresholds::uniform(0.1),
            sizes: SizeLimits::ANY,
            ..any_params(&mut rng, anchors, classes)
        };
        let params = Params {
            class_rules: params
                .class_rules
                .iter()
                .map(|rule| ClassRule { sizes: None, max_detections: 0, ..*rule })
                .collect(),
            ..params
        };
        let mut scene = Self::around_objects(
            &mut rng,
            TensorFormat::Boxes(BoxFormat::Corners),
            classes,
            anchors,
            params,
        );
        scene.write();
        scene
    }

    /// Generates a plain scene without equal scores.
    pub fn without_ties(seed: u64) -> Self {
        let mut scene = Self::plain(seed, Method::Greedy);
        let mut ranks: Vec<usize> = (0..scene.anchors.len()).collect();
        Rng::with_seed(seed).shuffle(&mut ranks);
        for (anchor, rank) in scene.anchors.iter_mut().zip(ranks) {
            let class = (0..scene.classes).max_by(|&a, &b| anchor[4 + a].total_cmp(&anchor[4 + b]));
            for c in 0..scene.classes {
                anchor[4 + c] = if Some(c) == class { 0.2 + rank as f32 / 256.0 } else { 0.0 };
            }
        }
        scene.write();
        scene
    }

    /// Generates corners on a grid, so that the overlap of many boxes equals the threshold, or
    /// boxes only touch. The grid is fine or coarse, and at the origin or far from it.
    pub fn on_a_grid(seed: u64) -> Self {
        let mut scene = Self::plain(seed, Method::Greedy);
        let mut rng = Rng::with_seed(seed ^ 0x9b1d);
        scene.params.method = *rng
            .choice(&[Method::Greedy, Method::Greedy, Method::MapReduce, Method::None])
            .unwrap();
        scene.params.iou_threshold = *rng.choice(&[0.0, 0.25, 1.0 / 3.0, 0.5, 0.75, 1.0]).unwrap();
        // With the finest steps, areas underflow.
        let exponents = [-149.0, -149.0, -8.0, 0.0, 26.0, 26.0];
        let steps = [0, 1].map(|_| f32::exp2(*rng.choice(&exponents).unwrap()));
        let origin = *rng.choice(&[0.0, -5.0, 50.0, -70_000.0, 1.0e6]).unwrap();
        for anchor in &mut scene.anchors {
            for (axis, step) in steps.into_iter().enumerate() {
                let (start, length) = (rng.u32(0..8), rng.u32(1..7));
                anchor[axis] = (origin + start as f32) * step;
                anchor[axis + 2] = (origin + (start + length) as f32) * step;
            }
        }
        // Many boxes touch these bounds without crossing them.
        scene.place.visible = Bounds::ANY;
        if rng.bool() {
            let [x, y] = steps;
            scene.place.visible = Bounds {
                left: (origin + 3.0) * x,
                top: (origin + 2.0) * y,
                right: (origin + 9.0) * x,
                bottom: (origin + 10.0) * y,
            };
        }
        scene.write();
        scene
    }

    /// Generates up to `most` images with one format, one set of parameters and one number of
    /// anchors.
    pub fn batch(seed: u64, most: usize) -> Vec<Self> {
        let first = Self::any(seed);
        let mut rng = Rng::with_seed(seed ^ 0xba7c);
        let images = rng.usize(1..=most);
        let mut batch = vec![first];
        while batch.len() < images {
            let first = &batch[0];
            let (format, classes, anchors) = (first.format, first.classes, first.anchors.len());
            let image =
                Self::around_objects(&mut rng, format, classes, anchors, first.params.clone());
            let (coordinates, half, place) = (first.coordinates, first.half, first.place);
            let mut image = Self { coordinates, half, place, ..image };
            image.insert_extremes(&mut rng);
            image.write();
            batch.push(image);
        }
        batch
    }

    /// Concatenates the tensors of all images, with a batch dimension.
    pub fn joined(batch: &[Self]) -> Self {
        let mut joined = batch[0].clone();
        joined.images = batch.len();
        for (index, tensor) in joined.tensors.iter_mut().enumerate() {
            for image in &batch[1..] {
                tensor.single.extend(&image.tensors[index].single);
                tensor.half.extend(&image.tensors[index].half);
            }
            if tensor.shape.len() == 2 {
                tensor.shape.insert(0, 1);
            }
            tensor.shape[0] = batch.len();
        }
        joined
    }

    /// The place of each image, each in a separate group.
    pub fn places(&self) -> Vec<ImagePlace> {
        self.place.repeated(self.images)
    }

    /// Returns the anchors in another order, and for each new index the old one.
    pub fn permuted(&self, seed: u64) -> (Self, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.anchors.len()).collect();
        Rng::with_seed(seed ^ 0x5eed).shuffle(&mut order);
        let mut permuted = self.clone();
        permuted.anchors = order.iter().map(|&anchor| self.anchors[anchor].clone()).collect();
        permuted.write();
        (permuted, order)
    }

    /// Converts the scene to half precision.
    pub fn rounded_to_half(mut self) -> Self {
        self.half = true;
        self.write();
        self
    }

    /// Converts the half-precision numbers to single precision.
    pub fn widened(&self) -> Self {
        let mut wide = self.clone();
        wide.half = false;
        for anchor in &mut wide.anchors {
            for number in anchor {
                *number = f16::from_f32(*number).to_f32();
            }
        }
        wide.write();
        wide
    }

    /// Returns the tensors and their layout.
    pub fn tensors(&self) -> (Vec<TensorView<'_>>, Layout) {
        let (tensors, layout) = self.written();
        match self.format {
            TensorFormat::Yolov5Columns => (tensors, self.columns()),
            _ => (tensors, layout.expect("the decoder reads its own format")),
        }
    }

    /// Equal numbers of anchors and of numbers of an anchor leave the order of YOLOv8's dimensions open.
    fn channels(&self) -> Channels {
        match self.format {
            TensorFormat::Yolov8 { .. } if self.anchors.len() == 4 + self.classes => {
                Channels::First
            }
            _ => Channels::Auto,
        }
    }

    /// Returns the layout of a transposed YOLOv5 output, which no decoder reads.
    fn columns(&self) -> Layout {
        let anchors = self.anchors.len();
        let column = |number| Field {
            tensor: 0,
            offset: number * anchors,
            image_stride: (5 + self.classes) * anchors,
            anchor_stride: 1,
            component_stride: anchors,
        };
        PlainLayout {
            decoder: self.format.name(),
            images: self.images,
            anchors,
            classes: self.classes,
            boxes: column(0),
            box_format: self.format.box_format(),
            scores: column(5),
            objectness: Some(column(4)),
            normalized: self.coordinates == Coordinates::Normalized,
        }
        .into()
    }

    fn written(&self) -> (Vec<TensorView<'_>>, Option<Layout>) {
        let tensors: Vec<TensorView<'_>> = self
            .tensors
            .iter()
            .map(|StoredTensor { id, shape, single, half }| {
                if self.half {
                    TensorView::from_slice(id, shape, half)
                } else {
                    TensorView::from_slice(id, shape, single)
                }
            })
            .collect();
        let options = Options {
            box_format: self.format.box_format(),
            coordinates: self.coordinates,
            batch: true,
            channels: self.channels(),
            ..Options::default()
        };
        let choice = decoder::choose(&tensors, decoder::by_name(self.format.name()), options);
        (tensors, choice.ok().map(|choice| choice.layout))
    }

    /// Generates boxes around objects: clusters, rows of boxes that each overlap the previous one,
    /// identical boxes, and boxes at random positions.
    fn around_objects(
        rng: &mut Rng,
        format: TensorFormat,
        classes: usize,
        count: usize,
        params: Params,
    ) -> Self {
        let coarse = rng.bool();
        let objects = 1 + count / rng.usize(2..30);
        let mut anchors = Vec::with_capacity(count);
        let mut previous = [0.0, 0.0, 10.0, 10.0];
        let centers: Vec<[f32; 3]> = (0..objects)
            .map(|_| [rng.f32() * 640.0, rng.f32() * 480.0, 4.0 + rng.f32() * 80.0])
            .collect();
        for _ in 0..count {
            let [x, y, side] = *rng.choice(&centers).unwrap();
            let corners = match rng.u32(0..10) {
                // The box is identical to the previous one.
                0 => previous,
                // The box overlaps half of the previous one, which makes long chains of
                // dependencies.
                1 | 2 => {
                    let step = (previous[2] - previous[0]) * 0.5;
                    [previous[0] + step, previous[1], previous[2] + step, previous[3]]
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
            previous = if coarse { corners.map(f32::round) } else { corners };
            let score = if coarse { rng.u32(0..17) as f32 / 16.0 } else { rng.f32() };
            let class = rng.usize(0..classes);
            anchors.push(anchor(rng, format, previous, class, classes, score));
        }
        let coordinates = Coordinates::Auto;
        Self {
            params,
            place: any_place(rng),
            format,
            anchors,
            classes,
            images: 1,
            coordinates,
            half: false,
            tensors: Vec::new(),
        }
    }

    /// Replaces some numbers by invalid or extreme ones.
    fn insert_extremes(&mut self, rng: &mut Rng) {
        const EXTREMES: [f32; 12] = [
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
        for number in self.anchors.iter_mut().flatten() {
            if rng.f32() < share {
                *number = *rng.choice(&EXTREMES).unwrap();
            }
        }
    }

    /// Writes the anchors as tensors in the scene's format.
    fn write(&mut self) {
        let n = self.anchors.len();
        let anchors = &self.anchors;
        let columns_between = |from: usize, to: usize| -> Vec<f32> {
            anchors.iter().flat_map(|anchor| anchor[from..to].iter().copied()).collect()
        };
        let boxes = self.format.box_format().components();
        let numbers = boxes + self.classes;
        let single = match self.format {
            TensorFormat::Windows => vec![("windows", vec![n, 4], columns_between(0, 4))],
            TensorFormat::Boxes(_) => vec![
                ("scores", vec![n, self.classes], columns_between(boxes, numbers)),
                ("boxes", vec![n, boxes], columns_between(0, boxes)),
            ],
            TensorFormat::Yolov5 => {
                vec![("yolo-v5-out", vec![1, n, numbers + 1], columns_between(0, numbers + 1))]
            }
            TensorFormat::Yolov5Columns => {
                let columns = (0..numbers + 1)
                    .flat_map(|i| anchors.iter().map(move |anchor| anchor[i]))
                    .collect();
                vec![("columns", vec![1, numbers + 1, n], columns)]
            }
            // The decoder assumes that the longer dimension is the anchors.
            TensorFormat::Yolov8 { transposed: true } if n > numbers => {
                vec![("yolo-v8-out", vec![1, n, numbers], columns_between(0, numbers))]
            }
            TensorFormat::Yolov8 { .. } if n >= numbers || n == 0 => {
                let columns = (0..numbers)
                    .flat_map(|i| anchors.iter().map(move |anchor| anchor[i]))
                    .collect();
                vec![("yolo-v8-out", vec![1, numbers, n], columns)]
            }
            TensorFormat::Yolov8 { .. } => vec![("yolo-v8-out", vec![1, numbers, 0], vec![])],
            TensorFormat::UltraFace => {
                let background =
                    anchors.iter().flat_map(|anchor| [1.0 - anchor[4], anchor[4]]).collect();
                vec![
                    (
                        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
                        vec![1, n, 2],
                        background,
                    ),
                    ("ssd-mobilenet-v1-variant-1-out-boxes", vec![1, n, 4], columns_between(0, 4)),
                ]
            }
        };
        self.tensors = single
            .into_iter()
            .map(|(id, shape, single)| {
                let half = single.iter().map(|&number| f16::from_f32(number)).collect();
                StoredTensor { id, shape, single, half }
            })
            .collect();
    }
}

/// Returns an anchor's box, objectness and scores, as far as the format has them.
fn anchor(
    rng: &mut Rng,
    format: TensorFormat,
    [x1, y1, x2, y2]: [f32; 4],
    class: usize,
    classes: usize,
    score: f32,
) -> Vec<f32> {
    let mut anchor = match format.box_format() {
        BoxFormat::Corners => vec![x1, y1, x2, y2],
        BoxFormat::Center => vec![(x1 + x2) / 2.0, (y1 + y2) / 2.0, x2 - x1, y2 - y1],
        BoxFormat::Square => vec![x1, y1, x2 - x1],
        other => unreachable!("no scene has boxes of the format {other:?}"),
    };
    if matches!(format, TensorFormat::Yolov5 | TensorFormat::Yolov5Columns) {
        anchor.push(if rng.u32(0..3) == 0 { rng.f32() } else { 0.9 });
    }
    for c in 0..classes {
        // Sometimes a second class has an equal score.
        let is_equal = c == class || rng.u32(0..6) == 0;
        anchor.push(if is_equal { score } else { score * rng.f32() });
    }
    anchor
}

fn any_class_rule(rng: &mut Rng) -> ClassRule {
    let sizes = SizeLimits { min: [rng.f32() * 20.0, 5.0], max: [rng.f32() * 100.0, 70.0] };
    ClassRule {
        iou_threshold: rng.bool().then(|| *rng.choice(&[0.0, 0.2, 0.45, 0.6, 1.0]).unwrap()),
        sizes: (rng.u32(0..6) == 0).then_some(sizes),
        max_detections: *rng.choice(&[0, 0, 0, 1, 6, 30]).unwrap(),
    }
}

pub fn any_params(rng: &mut Rng, anchors: usize, classes: usize) -> Params {
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
    let class_rules = match rng.u32(0..5) {
        0 => (0..rng.usize(0..classes + 2)).map(|_| any_class_rule(rng)).collect(),
        _ => Vec::new(),
    };
    // The CUDA engine does not support DIoU.
    let overlaps: &[Overlap] = if engines::on_gpu() {
        &[Overlap::Iou, Overlap::Representative, Overlap::Smaller]
    } else {
        &[Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::Diou]
    };
    Params {
        method: *rng
            .choice(&[Method::Greedy, Method::Greedy, Method::MapReduce, Method::None])
            .unwrap(),
        overlap: *rng.choice(overlaps).unwrap(),
        iou_threshold: *rng.choice(&[0.0, 0.25, 0.3, 0.45, 0.5, 0.7, 1.0]).unwrap(),
        threshold_inclusive: rng.bool(),
        pixel_offset: if rng.u32(0..3) == 0 { 1.0 } else { 0.0 },
        class_agnostic: rng.bool(),
        thresholds,
        sizes,
        class_rules,
        // The reference engine takes seconds for more pairs.
        multi_label: rng.bool() && anchors * classes <= 4_000,
        max_candidates: cap(rng) as usize,
        max_detections: cap(rng) as usize,
        ..Params::default()
    }
}

/// Chooses a rule for boxes at inner edges of regions.
pub fn any_edge_rule(rng: &mut Rng, params: &mut Params) {
    let rules = [RegionEdges::Keep, RegionEdges::Drop, RegionEdges::Lower];
    params.region_edges = *rng.choice(&rules).unwrap();
    params.edge_margin = *rng.choice(&[1.0, 5.0, 20.0]).unwrap();
    params.edge_score = *rng.choice(&[0.6, 0.3, 0.0]).unwrap();
}

/// Images in no frame, with any visible part.
pub fn any_place(rng: &mut Rng) -> ImagePlace {
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
    ImagePlace { visible, ..ImagePlace::in_model([1.0; 2]) }
}

/// Returns true if survivors are removed by the greatest numbers of classes: on the host, after they were copied.
pub fn has_class_limits(params: &Params) -> bool {
    params.class_rules.iter().any(|rule| rule.max_detections != 0)
}
