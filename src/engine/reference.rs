// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference engine, with which tests compare the other engines.
//!
//! In: tensors, layout, parameters. Out: survivors and counts. It applies the rules of the module
//! [`engine`](super) one after the other, without optimization: O(n^2) comparisons of n candidates.

use std::cmp::Ordering;

use super::params::cap;
use super::validate::validate;
use super::{
    ClassThresholds, Detection, DeviceWork, Engine, EngineError, ImageCounts, MAX_BOX_SIDE, Method,
    Outcome, Params,
};
use crate::decoder::{BoxFormat, Field, Layout};
use crate::geometry::overlap::{Measure, Measured, Pair, Visitor};
use crate::tensor::{Elements, HostImages, TensorView};

/// The engine that implements the rules without optimization.
#[derive(Debug, Default)]
pub struct Reference {
    images: Vec<ImageCounts>,
    survivors: Vec<Detection>,
}

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn run(
        &mut self,
        tensors: &[TensorView<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError> {
        validate(tensors, layout, params)?;
        self.images.clear();
        self.survivors.clear();
        for image in 0..layout.images {
            let mut mapped: Vec<Option<Elements<'_>>> = tensors.iter().map(|_| None).collect();
            for i in layout.tensors() {
                mapped[i] = Some(HostImages::new(&tensors[i])?.holding(image)?);
            }
            let number = |field: &Field, anchor: usize, component: usize| -> f32 {
                match mapped[field.tensor].expect("every tensor of a layout is mapped") {
                    Elements::F32(elements) => elements[field.index(anchor, component)],
                    Elements::F16(elements) => elements[field.index(anchor, component)].to_f32(),
                }
            };
            let (survivors, counts) = run_image(&layout.of_image(image, tensors), params, &number);
            self.images.push(ImageCounts { first: self.survivors.len(), ..counts });
            self.survivors.extend(survivors);
        }
        Ok(Outcome {
            engine: self.name(),
            images: &self.images,
            detections: &self.survivors,
            device: DeviceWork::default(),
        })
    }
}

/// The survivors and the counts of a batch of one image.
fn run_image(
    layout: &Layout,
    params: &Params,
    number: &dyn Fn(&Field, usize, usize) -> f32,
) -> (Vec<Detection>, ImageCounts) {
    let mut candidates = Vec::new();
    let mut rejected = 0;
    let mut decode_anchors = |layout: &Layout, params: &Params, first_class: u32| {
        for anchor in 0..layout.anchors {
            match decode(layout, params, anchor, number) {
                Verdict::Candidate(mut candidate) => {
                    candidate.class += first_class;
                    candidates.push(candidate);
                }
                Verdict::Rejected => rejected += 1,
                Verdict::Dropped => {}
            }
        }
    };
    // `validate` does not check offsets and strides if there are no anchors.
    if params.multi_label && layout.anchors > 0 {
        for class in 0..layout.classes as u32 {
            let (layout, params) = single_class(layout, params, class);
            decode_anchors(&layout, &params, class);
        }
    } else {
        decode_anchors(layout, params, 0);
    }
    let count = candidates.len();

    candidates.sort_by(rank);
    candidates.truncate(cap(params.max_candidates));
    let mut survivors = suppress(&candidates, params);
    survivors.truncate(cap(params.max_detections));
    let counts = ImageCounts { first: 0, survivors: survivors.len(), candidates: count, rejected };
    (survivors, counts)
}

/// The layout and the parameters for the pairs of `class`: anchors with that class alone.
fn single_class(layout: &Layout, params: &Params, class: u32) -> (Layout, Params) {
    let scores = Field { offset: layout.scores.index(0, class as usize), ..layout.scores };
    let thresholds = ClassThresholds::uniform(params.thresholds.of(class));
    (
        Layout { classes: 1, scores, ..layout.clone() },
        Params { thresholds, multi_label: false, ..params.clone() },
    )
}

enum Verdict {
    Candidate(Detection),
    Dropped,
    Rejected,
}

fn decode(
    layout: &Layout,
    params: &Params,
    anchor: usize,
    number: &dyn Fn(&Field, usize, usize) -> f32,
) -> Verdict {
    let objectness = layout.objectness.map(|field| number(&field, anchor, 0));
    if let Some(objectness) = objectness {
        if !objectness.is_finite() {
            return Verdict::Rejected;
        }
        if objectness < params.thresholds.lowest(layout.classes) {
            return Verdict::Dropped;
        }
    }

    let mut best = f32::NEG_INFINITY;
    let mut class = 0;
    for c in 0..layout.classes {
        let score = number(&layout.scores, anchor, c);
        if score > best {
            best = score;
            class = c as u32;
        }
    }
    if !best.is_finite() {
        return Verdict::Rejected;
    }
    let score = objectness.map_or(best, |objectness| objectness * best) + 0.0;
    if !score.is_finite() {
        return Verdict::Rejected;
    }
    let threshold = params.thresholds.of(class);
    if score < threshold || objectness.is_some_and(|objectness| objectness < threshold) {
        return Verdict::Dropped;
    }

    let [sx, sy] = params.scale;
    let component = |index| number(&layout.boxes, anchor, index);
    let (x1, y1, x2, y2) = match layout.box_format {
        BoxFormat::Corners => {
            (component(0) * sx, component(1) * sy, component(2) * sx, component(3) * sy)
        }
        BoxFormat::Center => {
            let (cx, cy, w, h) =
                (component(0) * sx, component(1) * sy, component(2) * sx, component(3) * sy);
            (cx - w / 2.0, cy - h / 2.0, cx + w / 2.0, cy + h / 2.0)
        }
        BoxFormat::Square => {
            let (x, y, side) = (component(0), component(1), component(2));
            (x * sx, y * sy, x * sx + side * sx, y * sy + side * sy)
        }
    };
    if ![x1, y1, x2, y2].iter().all(|corner| corner.is_finite()) {
        return Verdict::Rejected;
    }
    let (width, height) = (x2 - x1, y2 - y1);
    if width < 0.0 || height < 0.0 || width > MAX_BOX_SIDE || height > MAX_BOX_SIDE {
        return Verdict::Rejected;
    }
    if width == 0.0 || height == 0.0 {
        return Verdict::Dropped;
    }
    let sizes = params.sizes;
    if width < sizes.min[0] || height < sizes.min[1] {
        return Verdict::Dropped;
    }
    if width > sizes.max[0] || height > sizes.max[1] {
        return Verdict::Dropped;
    }
    if !params.visible.intersects([x1, y1, x2, y2]) {
        return Verdict::Rejected;
    }
    Verdict::Candidate(Detection { x1, y1, x2, y2, score, class, anchor: anchor as u32 })
}

/// Higher scores first, then earlier anchors, then lower classes.
fn rank(a: &Detection, b: &Detection) -> Ordering {
    let by_score = b.score.partial_cmp(&a.score).expect("scores are finite");
    by_score.then((a.anchor, a.class).cmp(&(b.anchor, b.class)))
}

fn suppress(ranked: &[Detection], params: &Params) -> Vec<Detection> {
    let mut survivors: Vec<Detection> = Vec::new();
    for (i, candidate) in ranked.iter().enumerate() {
        let outranking: &[Detection] = match params.method {
            Method::Greedy => &survivors,
            Method::MapReduce => &ranked[..i],
            Method::None => &[],
        };
        if !outranking.iter().any(|other| conflict(other, candidate, params)) {
            survivors.push(*candidate);
        }
    }
    survivors
}

/// Whether `higher`, which outranks `lower`, conflicts with it: the exact test.
fn conflict(higher: &Detection, lower: &Detection, params: &Params) -> bool {
    if higher.class != lower.class && !params.class_agnostic {
        return false;
    }
    let offset = params.pixel_offset;
    let width = higher.x2.min(lower.x2) - higher.x1.max(lower.x1) + offset;
    let height = higher.y2.min(lower.y2) - higher.y1.max(lower.y1) + offset;
    if width <= 0.0 || height <= 0.0 {
        return false;
    }
    let intersection = width * height;
    let measured = |d: &Detection| Measured::new(d.corners(), offset);
    let (higher, lower) = (measured(higher), measured(lower));
    let pair = Pair { higher, lower, intersection, offset };
    let limit = params.overlap.visit(Limit { threshold: params.iou_threshold, pair });
    if params.threshold_inclusive { intersection >= limit } else { intersection > limit }
}

/// The intersection above which a pair conflicts, by the measure that visits it.
struct Limit {
    threshold: f32,
    pair: Pair,
}

impl Visitor for Limit {
    type Output = f32;

    fn visit<M: Measure>(self) -> f32 {
        M::limit(self.threshold, &self.pair)
    }
}
