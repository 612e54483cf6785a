//! The oracle of every test: no speed, no tricks, one rule of the module's documentation after
//! the other.

use std::cmp::Ordering;

use super::check::check;
use super::params::cap;
use super::{
    ClassThresholds, Detection, DeviceWork, Engine, EngineError, MAX_SIDE, Method, Outcome,
    Overlap, Params,
};
use crate::decoder::{BoxFormat, Field, Layout};
use crate::tensor::{Elements, TensorView};

/// The plain engine.
#[derive(Debug, Default)]
pub struct Reference {
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
        check(tensors, layout, params)?;
        let mut mapped: Vec<Option<Elements<'_>>> = tensors.iter().map(|_| None).collect();
        for i in layout.tensors() {
            mapped[i] = Some(tensors[i].elements()?);
        }
        let number = |field: &Field, anchor: usize, component: usize| -> f32 {
            match mapped[field.tensor].expect("every tensor of a layout is mapped") {
                Elements::F32(elements) => elements[field.index(anchor, component)],
                Elements::F16(elements) => elements[field.index(anchor, component)].to_f32(),
            }
        };

        let mut candidates = Vec::new();
        let mut rejected = 0;
        let mut decode_all = |layout: &Layout, params: &Params, first_class: u32| {
            for anchor in 0..layout.anchors {
                match decode(layout, params, anchor, &number) {
                    Row::Candidate(mut candidate) => {
                        candidate.class += first_class;
                        candidates.push(candidate);
                    }
                    Row::Rejected => rejected += 1,
                    Row::Dropped => {}
                }
            }
        };
        // Without anchors the layout's offsets and strides can be any.
        if params.multi_label && layout.anchors > 0 {
            for class in 0..layout.classes as u32 {
                let (layout, params) = alone(layout, params, class);
                decode_all(&layout, &params, class);
            }
        } else {
            decode_all(layout, params, 0);
        }
        let count = candidates.len();

        candidates.sort_by(rank);
        candidates.truncate(cap(params.max_candidates));
        self.survivors = suppress(&candidates, params);
        self.survivors.truncate(cap(params.max_detections));
        Ok(Outcome {
            engine: self.name(),
            survivors: &self.survivors,
            candidates: count,
            rejected,
            device: DeviceWork::default(),
        })
    }
}

/// What reads the scores of `class` as if anchors had no other.
fn alone(layout: &Layout, params: &Params, class: u32) -> (Layout, Params) {
    let scores = Field { offset: layout.scores.index(0, class as usize), ..layout.scores };
    let thresholds = ClassThresholds::uniform(params.thresholds.of(class));
    (
        Layout { classes: 1, scores, ..layout.clone() },
        Params { thresholds, multi_label: false, ..params.clone() },
    )
}

enum Row {
    Candidate(Detection),
    Dropped,
    Rejected,
}

fn decode(
    layout: &Layout,
    params: &Params,
    anchor: usize,
    number: &dyn Fn(&Field, usize, usize) -> f32,
) -> Row {
    let objectness = layout.objectness.map(|field| number(&field, anchor, 0));
    if let Some(objectness) = objectness {
        if !objectness.is_finite() {
            return Row::Rejected;
        }
        if objectness < params.thresholds.lowest(layout.classes) {
            return Row::Dropped;
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
        return Row::Rejected;
    }
    let score = objectness.map_or(best, |objectness| objectness * best) + 0.0;
    if !score.is_finite() {
        return Row::Rejected;
    }
    let threshold = params.thresholds.of(class);
    if score < threshold || objectness.is_some_and(|objectness| objectness < threshold) {
        return Row::Dropped;
    }

    let [sx, sy] = params.scale;
    let part = |component| number(&layout.boxes, anchor, component);
    let (x1, y1, x2, y2) = match layout.box_format {
        BoxFormat::Corners => (part(0) * sx, part(1) * sy, part(2) * sx, part(3) * sy),
        BoxFormat::Center => {
            let (cx, cy, w, h) = (part(0) * sx, part(1) * sy, part(2) * sx, part(3) * sy);
            (cx - w / 2.0, cy - h / 2.0, cx + w / 2.0, cy + h / 2.0)
        }
        BoxFormat::Square => {
            let (x, y, side) = (part(0), part(1), part(2));
            (x * sx, y * sy, x * sx + side * sx, y * sy + side * sy)
        }
    };
    if ![x1, y1, x2, y2].iter().all(|corner| corner.is_finite()) {
        return Row::Rejected;
    }
    let (width, height) = (x2 - x1, y2 - y1);
    if width < 0.0 || height < 0.0 || width > MAX_SIDE || height > MAX_SIDE {
        return Row::Rejected;
    }
    if width == 0.0 || height == 0.0 {
        return Row::Dropped;
    }
    let sizes = params.sizes;
    if width < sizes.min[0] || height < sizes.min[1] {
        return Row::Dropped;
    }
    if width > sizes.max[0] || height > sizes.max[1] {
        return Row::Dropped;
    }
    if !params.visible.intersects([x1, y1, x2, y2]) {
        return Row::Rejected;
    }
    Row::Candidate(Detection { x1, y1, x2, y2, score, class, anchor: anchor as u32 })
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
        if !outranking.iter().any(|other| meet(other, candidate, params)) {
            survivors.push(*candidate);
        }
    }
    survivors
}

/// Whether `higher`, which outranks `lower`, suppresses it.
fn meet(higher: &Detection, lower: &Detection, params: &Params) -> bool {
    if higher.class != lower.class && !params.class_agnostic {
        return false;
    }
    let offset = params.pixel_offset;
    let area = |d: &Detection| (d.x2 - d.x1 + offset) * (d.y2 - d.y1 + offset);
    let width = higher.x2.min(lower.x2) - higher.x1.max(lower.x1) + offset;
    let height = higher.y2.min(lower.y2) - higher.y1.max(lower.y1) + offset;
    if width <= 0.0 || height <= 0.0 {
        return false;
    }
    let intersection = width * height;
    let whole = match params.overlap {
        Overlap::Iou => area(higher) + area(lower) - intersection,
        Overlap::Representative => area(higher),
        Overlap::Smaller => area(higher).min(area(lower)),
    };
    let limit = params.iou_threshold * whole;
    if params.threshold_inclusive { intersection >= limit } else { intersection > limit }
}
