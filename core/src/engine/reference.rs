// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference engine, with which tests compare the other engines.
//!
//! In: tensors, layout, parameters. Out: survivors and counts. It applies the rules of the module
//! [`engine`](super) one after the other, without optimization: O(n^2) comparisons of n candidates.

use std::cmp::Ordering;

use super::formula::{self, Prior};
use super::masks::{MaskGrid, WORD_BYTES};
use super::params::cap;
use super::validate::validate;
use super::{
    Detection, DeviceWork, Engine, EngineError, ImageCounts, MAX_ANGLE, MAX_BOX_SIDE, MaskPlace,
    Method, Outcome, Params,
};
use crate::decoder::layout::{Combination, Field, Group, Layout, Prototypes};
use crate::geometry::oriented::{self, Rectangle};
use crate::geometry::overlap::{Measure, Measured, Pair, Visitor};
use crate::geometry::{Corners, OrientedBox};
use crate::tensor::{Elements, HostImages, TensorView};

/// The engine that implements the rules without optimization.
#[derive(Debug, Default)]
pub struct Reference {
    images: Vec<ImageCounts>,
    survivors: Vec<Detection>,
    columns: Vec<f32>,
    mask_places: Vec<MaskPlace>,
    mask_bytes: Vec<u8>,
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
        self.columns.clear();
        self.mask_places.clear();
        self.mask_bytes.clear();
        for image in 0..layout.images {
            let mut mapped: Vec<Option<Elements<'_>>> = tensors.iter().map(|_| None).collect();
            for i in layout.tensors() {
                mapped[i] = Some(HostImages::new(&tensors[i])?.holding(image)?);
            }
            let number = |field: &Field, anchor: usize, component: usize| -> f32 {
                let tensor = &tensors[field.tensor];
                let before =
                    if tensor.has_separate_images() { 0 } else { image * field.image_stride };
                let elements = mapped[field.tensor].expect("every tensor of a layout is mapped");
                let element = elements.to_f32(before + field.index(anchor, component));
                tensor.quantization.map_or(element, |quantization| quantization.number(element))
            };
            let (found, counts) = run_image(layout, params, &number);
            let kept = kept(&found, params);
            let first = self.survivors.len();
            let (first_mask, survivors) = (first, kept.len());
            self.images.push(ImageCounts { first, first_mask, survivors, ..counts });
            for survivor in kept.iter().map(|&index| &found[index]) {
                let (group, anchor) = locate(layout, survivor.anchor as usize);
                for (field, column) in group.columns.iter().zip(&layout.columns) {
                    self.columns.extend((0..column.components).map(|c| number(field, anchor, c)));
                }
            }
            if let Some(prototypes) = &layout.prototypes {
                self.add_masks(layout, prototypes, params, &found, &number);
                let of_found = self.mask_places.split_off(first);
                self.mask_places.extend(kept.iter().map(|&index| of_found[index]));
            }
            self.survivors.extend(kept.iter().map(|&index| found[index]));
        }
        Ok(Outcome {
            engine: self.name(),
            images: &self.images,
            detections: &self.survivors,
            columns: &self.columns,
            column_components: layout.column_components(),
            mask_places: &self.mask_places,
            mask_bytes: &self.mask_bytes,
            device: DeviceWork::default(),
        })
    }
}

impl Reference {
    /// Adds the masks of the survivors of an image.
    fn add_masks(
        &mut self,
        layout: &Layout,
        prototypes: &Prototypes,
        params: &Params,
        survivors: &[Detection],
        number: Number<'_>,
    ) {
        let grid = MaskGrid::new(prototypes, params);
        let (first, end) = (self.mask_places.len(), self.mask_bytes.len());
        let words = grid.place(survivors, end, &mut self.mask_places);
        self.mask_bytes.resize(end + words as usize * WORD_BYTES as usize, 0);
        for (survivor, place) in survivors.iter().zip(&self.mask_places[first..]) {
            if place.area.bytes() == 0 {
                continue;
            }
            let (group, anchor) = locate(layout, survivor.anchor as usize);
            let logit = |[column, row]: [u32; 2]| {
                let pixel = row as usize * prototypes.width + column as usize;
                let products = (0..layout.columns[prototypes.column].components).map(|channel| {
                    let coefficient = number(&group.columns[prototypes.column], anchor, channel);
                    coefficient * number(&prototypes.field, pixel, channel)
                });
                products.fold(0.0, |sum, product| sum + product)
            };
            let bytes = &mut self.mask_bytes[place.first..];
            for y in 0..place.area.height {
                for x in 0..place.area.width {
                    let pixel = [place.area.left + x, place.area.top + y];
                    if logit_of(&grid, pixel, logit) > 0.0 {
                        let byte = y as usize * place.area.stride() + x as usize / 8;
                        bytes[byte] |= 0x80 >> (x % 8);
                    }
                }
            }
        }
    }
}

/// The logit of a pixel of a mask, from those of pixels of the prototypes.
fn logit_of(grid: &MaskGrid, [x, y]: [u32; 2], logit: impl Fn([u32; 2]) -> f32) -> f32 {
    let MaskGrid::Frame { samples, .. } = grid else { return logit([x, y]) };
    let (x, y) = (samples[0].at(x), samples[1].at(y));
    let of_row = |row| {
        let (a, b) = (logit([x.first, row]), logit([x.second, row]));
        a + (b - a) * x.weight
    };
    let (p, q) = (of_row(y.first), of_row(y.second));
    p + (q - p) * y.weight
}

/// The group of an anchor, and the anchor's number in it.
fn locate(layout: &Layout, anchor: usize) -> (&Group, usize) {
    layout.locate(anchor).expect("an anchor is in a group")
}

/// The number of a component of an anchor, by its field.
type Number<'a> = &'a dyn Fn(&Field, usize, usize) -> f32;

/// The indices of the survivors that the limits of classes and of the image keep.
fn kept(found: &[Detection], params: &Params) -> Vec<usize> {
    let is_kept = |&index: &usize| {
        let class = found[index].class;
        let before = found[..index].iter().filter(|other| other.class == class).count();
        let rule = params.class_rules.get(class as usize);
        before < cap(rule.map_or(0, |rule| rule.max_detections))
    };
    (0..found.len()).filter(is_kept).take(cap(params.max_detections)).collect()
}

/// The survivors before limits, and the counts but that of survivors, of an image.
fn run_image(
    layout: &Layout,
    params: &Params,
    number: Number<'_>,
) -> (Vec<Detection>, ImageCounts) {
    // Without anchors no element is read: `validate` does not check offsets and strides then.
    let count = layout.count.filter(|_| layout.anchors() > 0);
    // The conversion saturates; NaN becomes 0.
    let valid = count.map_or(usize::MAX, |count| number(&count, 0, 0) as usize);
    let pairs = match params.multi_label && !layout.has_class_field() {
        true => (0..layout.score.components).map(Some).collect(),
        false => vec![None],
    };
    let mut candidates = Vec::new();
    let mut rejected = 0;
    for anchor in 0..layout.anchors().min(valid) {
        for pair in &pairs {
            match decode(layout, params, anchor, *pair, number) {
                Verdict::Candidate(candidate) => candidates.push(candidate),
                Verdict::Rejected => rejected += 1,
                Verdict::Dropped => {}
            }
        }
    }
    let count = candidates.len();

    candidates.sort_by(rank);
    candidates.truncate(cap(params.max_candidates));
    let survivors: Vec<Detection> =
        suppress(&candidates, params).iter().map(|survivor| survivor.detection).collect();
    (survivors, ImageCounts { candidates: count, rejected, ..ImageCounts::default() })
}

#[derive(Clone, Copy)]
struct Candidate {
    detection: Detection,
    /// Of oriented boxes.
    rectangle: Option<Rectangle>,
}

enum Verdict {
    Candidate(Candidate),
    Dropped,
    Rejected,
}

/// Applies the rules to an anchor, or to the pair of the anchor and the class of score `pair`.
fn decode(
    layout: &Layout,
    params: &Params,
    anchor: usize,
    pair: Option<usize>,
    number: Number<'_>,
) -> Verdict {
    let (index, (group, anchor), rule) = (anchor, locate(layout, anchor), &layout.score);
    let class_of = |component: usize| rule.first_class + component as u32;
    let lowest = match pair {
        Some(component) => params.thresholds.of(class_of(component)),
        None => params.thresholds.lowest(layout.classes),
    };
    let is_product = rule.combination == Combination::Product;
    let mut objectness = None;
    if let Some(field) = group.objectness {
        let stored = number(&field, anchor, 0);
        if !stored.is_finite() {
            return Verdict::Rejected;
        }
        let value = formula::objectness(rule, stored);
        if is_product && value < lowest {
            return Verdict::Dropped;
        }
        objectness = Some(value);
    }

    let first = usize::from(rule.background);
    let mut best = f32::NEG_INFINITY;
    let mut component = 0;
    for c in pair.map_or(0..rule.components, |pair| pair..pair + 1) {
        let score = number(&group.scores, anchor, first + c);
        if score > best {
            best = score;
            component = c;
        }
    }
    if !best.is_finite() {
        return Verdict::Rejected;
    }
    let scores = (0..rule.columns()).map(|c| number(&group.scores, anchor, c));
    let score = formula::score(rule, objectness, best, scores);
    if !score.is_finite() {
        return Verdict::Rejected;
    }
    if score < lowest {
        return Verdict::Dropped;
    }
    let class = match group.class {
        None => class_of(component),
        Some(field) => {
            let class = number(&field, anchor, 0);
            if class.trunc() != class || !(0.0..layout.classes as f32).contains(&class) {
                return Verdict::Rejected;
            }
            class as u32
        }
    };
    let threshold = params.thresholds.of(class);
    if score < threshold || (is_product && objectness.is_some_and(|value| value < threshold)) {
        return Verdict::Dropped;
    }

    let prior =
        Prior::of(layout, group, anchor, |field| [0, 1, 2, 3].map(|c| number(field, anchor, c)));
    let read = |component| number(&group.boxes, anchor, component);
    let oriented = group.angle.map(|field| {
        let angle = number(&field, anchor, 0);
        formula::oriented_box(&layout.boxes, prior, params.scale, read, angle)
    });
    let ([x1, y1, x2, y2], [width, height]) = match &oriented {
        None => {
            let corners = formula::corners(&layout.boxes, prior, params.scale, read);
            let [x1, y1, x2, y2] = corners;
            (corners, [x2 - x1, y2 - y1])
        }
        Some(oriented) => {
            let OrientedBox { center, size, angle } = oriented;
            let is_finite = center.iter().chain(size).all(|number| number.is_finite());
            if !is_finite || angle.is_nan() || angle.abs() > MAX_ANGLE {
                return Verdict::Rejected;
            }
            let Corners { x1, y1, x2, y2 } = oriented.bounds();
            ([x1, y1, x2, y2], oriented.size)
        }
    };
    if ![x1, y1, x2, y2].iter().all(|corner| corner.is_finite()) {
        return Verdict::Rejected;
    }
    if width < 0.0 || height < 0.0 || width > MAX_BOX_SIDE || height > MAX_BOX_SIDE {
        return Verdict::Rejected;
    }
    if width == 0.0 || height == 0.0 || x1 == x2 || y1 == y2 {
        return Verdict::Dropped;
    }
    let sizes = params.sizes_of(class);
    if width < sizes.min[0] || height < sizes.min[1] {
        return Verdict::Dropped;
    }
    if width > sizes.max[0] || height > sizes.max[1] {
        return Verdict::Dropped;
    }
    if !params.visible.intersects([x1, y1, x2, y2]) {
        return Verdict::Rejected;
    }
    let detection = Detection { x1, y1, x2, y2, score, class, anchor: index as u32 };
    let rectangle = oriented.map(|oriented| Rectangle::new(&oriented));
    Verdict::Candidate(Candidate { detection, rectangle })
}

/// Higher scores first, then earlier anchors, then lower classes.
fn rank(a: &Candidate, b: &Candidate) -> Ordering {
    let (a, b) = (&a.detection, &b.detection);
    let by_score = b.score.partial_cmp(&a.score).expect("scores are finite");
    by_score.then((a.anchor, a.class).cmp(&(b.anchor, b.class)))
}

fn suppress(ranked: &[Candidate], params: &Params) -> Vec<Candidate> {
    let mut survivors: Vec<Candidate> = Vec::new();
    for (i, candidate) in ranked.iter().enumerate() {
        let outranking: &[Candidate] = match params.method {
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
fn conflict(higher: &Candidate, lower: &Candidate, params: &Params) -> bool {
    let rectangles = higher.rectangle.zip(lower.rectangle);
    let (higher, lower) = (&higher.detection, &lower.detection);
    if higher.class != lower.class && !params.class_agnostic {
        return false;
    }
    let offset = if rectangles.is_some() { 0.0 } else { params.pixel_offset };
    let width = higher.x2.min(lower.x2) - higher.x1.max(lower.x1) + offset;
    let height = higher.y2.min(lower.y2) - higher.y1.max(lower.y1) + offset;
    if width <= 0.0 || height <= 0.0 {
        return false;
    }
    let threshold = params.iou_threshold_of(lower.class);
    if let Some((higher, lower)) = &rectangles {
        let is_inclusive = params.threshold_inclusive;
        return oriented::conflict(higher, lower, params.overlap, threshold, is_inclusive);
    }
    let intersection = width * height;
    let measured = |d: &Detection| Measured::new(d.corners(), offset);
    let (higher, lower) = (measured(higher), measured(lower));
    let pair = Pair { higher, lower, intersection, offset };
    let limit = params.overlap.visit(Limit { threshold, pair });
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
