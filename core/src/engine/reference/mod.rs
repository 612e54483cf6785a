// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference engine, with which tests compare the other engines.
//!
//! In: tensors, layout, parameters, places of images. Out: survivors and counts. The engine applies
//! the rules of the module [`engine`](super) one after the other, without optimization: O(n^2)
//! comparisons of n candidates.

mod merging;

use std::cmp::Ordering;
use std::ops::Range;

use super::formula::{self, Prior};
use super::masks::{MaskArea, MaskGrid, WORD_BYTES};
use super::outcome::HostResults;
use super::pair_rules::{adaptive_threshold, are_near};
use super::params::cap;
use super::place::{DecodePlace, image_groups};
use super::validate::validate;
use super::{
    Detection, Engine, EngineError, GroupCounts, Job, MAX_ANGLE, MAX_BOX_SIDE, Method, Outcome,
    Params,
};
use crate::decoder::layout::{Combination, Field, Group, Prototypes};
use crate::geometry::oriented::{self, Rectangle};
use crate::geometry::overlap::{Measured, Pair};
use crate::geometry::{Corners, OrientedBox};
use crate::tensor::{Elements, HostImages};

/// The engine that implements the rules without optimization.
#[derive(Debug, Default)]
pub struct Reference {
    results: HostResults,
}

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn run(&mut self, job: Job<'_>) -> Result<Outcome<'_>, EngineError> {
        validate(job)?;
        let Job { layout, images, .. } = job;
        self.results.begin(job);
        for group in image_groups(images) {
            self.run_group(job, group)?;
        }
        Ok(self.results.outcome(self.name(), layout))
    }
}

impl Reference {
    /// Runs the images with these indices, which are suppressed together.
    fn run_group(&mut self, job: Job<'_>, group: Range<usize>) -> Result<(), EngineError> {
        let Job { layout, params, .. } = job;
        let images = group
            .clone()
            .map(|index| Image::new(job, group.start, index))
            .collect::<Result<Vec<Image<'_>>, EngineError>>()?;
        let mut candidates = Vec::new();
        let mut rejected = 0;
        for image in &images {
            rejected += image.decode(&mut candidates);
        }
        let count = candidates.len();
        candidates.sort_by(rank);
        candidates.truncate(cap(params.max_candidates));
        let rows = match params.method.column().and_then(|kind| layout.column_of(kind)) {
            Some(column) => {
                let row = |candidate: &Candidate| {
                    let image = candidate.detection.anchor as usize / layout.anchors();
                    images[image].row(column, &candidate.detection).collect()
                };
                candidates.iter().map(row).collect()
            }
            None => Vec::new(),
        };
        let found = suppress(&candidates, &rows, params);
        let kept = kept(&found, params);
        let HostResults { groups, survivors, columns, masks, mask_bytes } = &mut self.results;
        let first = survivors.len();
        groups.push(GroupCounts {
            first,
            first_mask: first,
            survivors: kept.len(),
            candidates: count,
            rejected,
        });
        // The anchors of an image follow the anchors of the preceding image.
        let image_of = |survivor: &Detection| &images[survivor.anchor as usize / layout.anchors()];
        for survivor in kept.iter().map(|&index| &found[index]) {
            let image = image_of(survivor);
            for column in 0..layout.columns.len() {
                columns.extend(image.row(column, survivor));
            }
        }
        if let Some(prototypes) = &layout.prototypes {
            let first_byte = mask_bytes.len();
            let words = masks.add_group(group, layout.anchors(), &found, first_byte);
            mask_bytes.resize(first_byte + words as usize * WORD_BYTES as usize, 0);
            let places = masks.places.split_off(first);
            for (survivor, place) in found.iter().zip(&places) {
                let image = image_of(survivor);
                let grid = &masks.grids[image.index];
                let bytes = &mut mask_bytes[place.first..];
                image.set_mask(prototypes, grid, place.area, survivor, bytes);
            }
            masks.places.extend(kept.iter().map(|&index| places[index]));
        }
        survivors.extend(kept.iter().map(|&index| found[index]));
        Ok(())
    }
}

/// An image with access to its numbers.
struct Image<'a> {
    job: Job<'a>,
    /// The elements of each tensor of the layout.
    elements: Vec<Option<Elements<'a>>>,
    /// The index of the image in the tensors.
    index: usize,
    /// The number of anchors in the group's earlier images.
    first_anchor: usize,
    decode_place: DecodePlace,
}

impl<'a> Image<'a> {
    /// The image with this index in the tensors. `first` is the index of the group's first image.
    fn new(job: Job<'a>, first: usize, index: usize) -> Result<Self, EngineError> {
        let Job { tensors, layout, params, images } = job;
        let mut elements: Vec<Option<Elements<'_>>> = vec![None; tensors.len()];
        for tensor in layout.tensors() {
            elements[tensor] = Some(HostImages::new(&tensors[tensor])?.holding(index)?);
        }
        let first_anchor = (index - first) * layout.anchors();
        let decode_place = images[index].decode_place(layout, params);
        Ok(Self { job, elements, index, first_anchor, decode_place })
    }

    /// The number of a component of an anchor.
    fn number(&self, field: &Field, anchor: usize, component: usize) -> f32 {
        let tensor = &self.job.tensors[field.tensor];
        let before = if tensor.has_separate_images() { 0 } else { self.index * field.image_stride };
        let elements = self.elements[field.tensor].expect("every tensor of a layout is mapped");
        let element = elements.to_f32(before + field.index(anchor, component));
        tensor.quantization.map_or(element, |quantization| quantization.number(element))
    }

    /// The numbers of a column of a candidate.
    fn row(&self, column: usize, candidate: &Detection) -> impl Iterator<Item = f32> {
        let (group, anchor) = self.locate(candidate.anchor as usize - self.first_anchor);
        let components = 0..self.job.layout.columns[column].components;
        components.map(move |c| self.number(&group.columns[column], anchor, c))
    }

    /// Sets the bits of a survivor's mask, which begin with `bytes`.
    fn set_mask(
        &self,
        prototypes: &Prototypes,
        grid: &MaskGrid,
        area: MaskArea,
        survivor: &Detection,
        bytes: &mut [u8],
    ) {
        let logit = |[column, row]: [u32; 2]| {
            let pixel = row as usize * prototypes.width + column as usize;
            let coefficients = self.row(prototypes.column, survivor).enumerate();
            let products = coefficients.map(|(channel, coefficient)| {
                coefficient * self.number(&prototypes.field, pixel, channel)
            });
            products.fold(0.0, |sum, product| sum + product)
        };
        for y in 0..area.height {
            for x in 0..area.width {
                let pixel = [area.left + x, area.top + y];
                if logit_of(grid, pixel, logit) > 0.0 {
                    let byte = y as usize * area.stride() + x as usize / 8;
                    bytes[byte] |= 0x80 >> (x % 8);
                }
            }
        }
    }

    /// The group of an anchor of the image, and the anchor's number in it.
    fn locate(&self, anchor: usize) -> (&Group, usize) {
        self.job.layout.locate(anchor).expect("an anchor is in a group")
    }

    /// Adds the image's candidates. Returns the number of rejected anchors or pairs.
    fn decode(&self, candidates: &mut Vec<Candidate>) -> usize {
        let Job { layout, params, .. } = self.job;
        let mut rejected = 0;
        // Without anchors no element is read, because `validate` then does not check offsets and
        // strides.
        let count = layout.count.filter(|_| layout.anchors() > 0);
        // The conversion saturates; NaN becomes 0.
        let valid = count.map_or(usize::MAX, |count| self.number(&count, 0, 0) as usize);
        let all = if params.multi_label && !layout.has_class_field() {
            (0..layout.score.components).map(Some).collect()
        } else {
            vec![None]
        };
        let valid = layout.anchors().min(valid);
        let pairs: Vec<(usize, Option<usize>)> = match &layout.pairs {
            Some(pairs) => {
                let number = |row, component| self.number(&pairs.field, row, component);
                let mut named = Vec::new();
                rejected += formula::pairs(layout, pairs, self.index, number, &mut named);
                named.into_iter().map(|(anchor, score)| (anchor, Some(score))).collect()
            }
            None => (0..valid).flat_map(|anchor| all.iter().map(move |&it| (anchor, it))).collect(),
        };
        for (anchor, pair) in pairs.into_iter().filter(|&(anchor, _)| anchor < valid) {
            match self.decode_anchor(anchor, pair) {
                Ok(candidate) => candidates.push(candidate),
                Err(Unfit::Rejected) => rejected += 1,
                Err(Unfit::Dropped) => {}
            }
        }
        rejected
    }

    /// Applies the rules to an anchor, or to the pair of the anchor and the class of score `pair`.
    fn decode_anchor(&self, anchor: usize, pair: Option<usize>) -> Result<Candidate, Unfit> {
        let Job { layout, params, .. } = self.job;
        let index = self.first_anchor + anchor;
        let ((group, anchor), rule) = (self.locate(anchor), &layout.score);
        let number = |field: &Field, anchor, component| self.number(field, anchor, component);
        let DecodePlace { scale, visible, edges, .. } = self.decode_place;
        let class_of = |component: usize| rule.first_class + component as u32;
        let lowest = match pair {
            Some(component) => params.thresholds.of(class_of(component)),
            None => params.thresholds.lowest(layout.classes),
        };
        let is_product = rule.combination == Combination::Product;
        let mut objectness = None;
        if let Some(field) = group.objectness {
            let stored = number(&field, anchor, 0);
            reject_if(!stored.is_finite())?;
            let value = formula::activated(rule.activation, stored);
            drop_if(is_product && value < lowest)?;
            objectness = Some(value);
        }

        let first = rule.first_column();
        let mut best = f32::NEG_INFINITY;
        let mut component = 0;
        for c in pair.map_or(0..rule.components, |pair| pair..pair + 1) {
            let score = number(&group.scores, anchor, first + c);
            let of_class = |anchor| number(&group.scores, anchor, first + c);
            let counts =
                !rule.peaks || formula::is_peak(formula::grid_of(group), anchor, score, of_class);
            if score > best && counts {
                best = score;
                component = c;
            }
        }
        drop_if(rule.peaks && best == f32::NEG_INFINITY)?;
        reject_if(!best.is_finite())?;
        let scores = (0..rule.columns()).map(|c| number(&group.scores, anchor, c));
        let score = formula::score(rule, objectness, best, scores);
        reject_if(!score.is_finite())?;
        drop_if(score < lowest)?;
        let class = match group.class {
            None => class_of(component),
            Some(field) => {
                let class = number(&field, anchor, 0);
                let is_in_range = (0.0..layout.classes as f32).contains(&class);
                reject_if(class.trunc() != class || !is_in_range)?;
                class as u32
            }
        };
        let threshold = params.thresholds.of(class);
        drop_if(score < threshold)?;
        drop_if(is_product && objectness.is_some_and(|value| value < threshold))?;

        let prior = Prior::of(layout, group, anchor, |field| {
            [0, 1, 2, 3].map(|c| number(field, anchor, c))
        });
        let read = |component: usize| match (&group.sizes, component.checked_sub(2)) {
            (Some(sizes), Some(component)) => number(sizes, anchor, component),
            _ => number(&group.boxes, anchor, component),
        };
        let components = formula::components(&layout.boxes, read);
        let oriented = group.angle.map(|field| {
            let angle = number(&field, anchor, 0);
            let oriented = formula::oriented_box(&layout.boxes, prior, scale, components, angle);
            OrientedBox { center: self.decode_place.moved(oriented.center), ..oriented }
        });
        let ([x1, y1, x2, y2], [width, height]) = match &oriented {
            None => {
                let [x1, y1, x2, y2] = formula::corners(&layout.boxes, prior, scale, components);
                let [x1, y1] = self.decode_place.moved([x1, y1]);
                let [x2, y2] = self.decode_place.moved([x2, y2]);
                ([x1, y1, x2, y2], [x2 - x1, y2 - y1])
            }
            Some(oriented) => {
                let OrientedBox { center, size, angle } = oriented;
                let is_finite = center.iter().chain(size).all(|number| number.is_finite());
                reject_if(!is_finite || angle.is_nan() || angle.abs() > MAX_ANGLE)?;
                let Corners { x1, y1, x2, y2 } = oriented.bounds();
                ([x1, y1, x2, y2], oriented.size)
            }
        };
        reject_if(![x1, y1, x2, y2].iter().all(|corner| corner.is_finite()))?;
        reject_if(width < 0.0 || height < 0.0 || width > MAX_BOX_SIDE || height > MAX_BOX_SIDE)?;
        drop_if(width == 0.0 || height == 0.0 || x1 == x2 || y1 == y2)?;
        let sizes = self.decode_place.sizes(params, class);
        let is_outside = |side: f32, axis: usize| side < sizes.min[axis] || side > sizes.max[axis];
        drop_if(is_outside(width, 0) || is_outside(height, 1))?;
        reject_if(!visible.intersects([x1, y1, x2, y2]))?;
        let score = match edges {
            None => score,
            Some(edges) => edges.judge([x1, y1, x2, y2], score, threshold).ok_or(Unfit::Dropped)?,
        };
        let detection = Detection { x1, y1, x2, y2, score, class, anchor: index as u32 };
        let rectangle = oriented.map(|oriented| Rectangle::new(&oriented));
        Ok(Candidate { detection, rectangle })
    }
}

/// The logit of a mask's pixel, from the logits of prototype pixels.
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

#[derive(Clone, Copy)]
struct Candidate {
    detection: Detection,
    /// For oriented boxes.
    rectangle: Option<Rectangle>,
}

/// The reason why an anchor does not become a candidate.
enum Unfit {
    Dropped,
    Rejected,
}

fn drop_if(is: bool) -> Result<(), Unfit> {
    if is { Err(Unfit::Dropped) } else { Ok(()) }
}

fn reject_if(is: bool) -> Result<(), Unfit> {
    if is { Err(Unfit::Rejected) } else { Ok(()) }
}

/// Higher scores first, then earlier anchors, then lower classes.
fn rank(a: &Candidate, b: &Candidate) -> Ordering {
    let (a, b) = (&a.detection, &b.detection);
    let by_score = b.score.partial_cmp(&a.score).expect("scores are finite");
    by_score.then((a.anchor, a.class).cmp(&(b.anchor, b.class)))
}

/// The survivors in the order of their final ranks. `rows` has the numbers of each candidate in the
/// method's column, if the method reads one.
fn suppress(ranked: &[Candidate], rows: &[Vec<f32>], params: &Params) -> Vec<Detection> {
    // The positions of the survivors among the ranked candidates.
    let mut survivors: Vec<usize> = Vec::new();
    for (position, lower) in ranked.iter().enumerate() {
        let suppresses = |higher: usize| match params.method {
            Method::Adaptive => {
                let of_class = params.iou_threshold_of(lower.detection.class);
                let threshold = adaptive_threshold(of_class, rows[higher][0]);
                exceeds(&ranked[higher], lower, params, threshold)
            }
            Method::Feature => {
                let is_duplicate =
                    || exceeds(&ranked[higher], lower, params, params.embedding_iou_threshold);
                let are_near =
                    || are_near(&rows[higher], &rows[position], params.embedding_distance);
                conflict(&ranked[higher], lower, params) && (is_duplicate() || are_near())
            }
            _ => conflict(&ranked[higher], lower, params),
        };
        let is_suppressed = match params.method {
            Method::Greedy | Method::Adaptive | Method::Feature => {
                survivors.iter().any(|&survivor| suppresses(survivor))
            }
            Method::MapReduce => (0..position).any(suppresses),
            Method::None => false,
            _ => return merging::survivors(ranked, params),
        };
        if !is_suppressed {
            survivors.push(position);
        }
    }
    survivors.iter().map(|&survivor| ranked[survivor].detection).collect()
}

/// The exact test: returns true if `higher`, which outranks `lower`, conflicts with it.
fn conflict(higher: &Candidate, lower: &Candidate, params: &Params) -> bool {
    exceeds(higher, lower, params, params.iou_threshold_of(lower.detection.class))
}

/// The exact test with any threshold.
fn exceeds(higher: &Candidate, lower: &Candidate, params: &Params, threshold: f32) -> bool {
    let rectangles = higher.rectangle.zip(lower.rectangle);
    let (higher, lower) = (&higher.detection, &lower.detection);
    let offset = if rectangles.is_some() { 0.0 } else { params.pixel_offset };
    let Some(pair) = intersecting(higher, lower, params, offset) else { return false };
    if let Some((higher, lower)) = &rectangles {
        let is_inclusive = params.threshold_inclusive;
        return oriented::conflict(higher, lower, params.overlap, threshold, is_inclusive);
    }
    let limit = params.overlap.limit(threshold, &pair);
    if params.threshold_inclusive { pair.intersection >= limit } else { pair.intersection > limit }
}

/// The boxes, if they intersect and their classes are compared.
fn intersecting(
    higher: &Detection,
    lower: &Detection,
    params: &Params,
    offset: f32,
) -> Option<Pair> {
    if higher.class != lower.class && !params.class_agnostic {
        return None;
    }
    let width = higher.x2.min(lower.x2) - higher.x1.max(lower.x1) + offset;
    let height = higher.y2.min(lower.y2) - higher.y1.max(lower.y1) + offset;
    if width <= 0.0 || height <= 0.0 {
        return None;
    }
    let measured = |d: &Detection| Measured::new(d.corners(), offset);
    let (higher, lower) = (measured(higher), measured(lower));
    Some(Pair { higher, lower, intersection: width * height, offset })
}
