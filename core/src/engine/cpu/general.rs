// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode of layouts that are not plain: groups of anchors, activations, references, quantized numbers.
//!
//! In: tensors in host memory, layout, parameters. Out: candidates in the order of their anchors,
//! and the number of rejected anchors. The scores of a group are compared in their stored form,
//! several at a time. The lowest threshold is first converted to that form ([`Scan`]). Activation,
//! class and box are only computed for anchors whose greatest score may be high enough.

use super::super::formula::{self, Prior};
use super::candidate::{add_box, add_oriented_box};
use super::decode::{Best, CandidateDecoder, Found, ImageRules, Scan};
use super::dispatch::{Work, dispatch};
use super::host_tensors::{ImageTensors, Numbers};
use super::score::Score;
use crate::decoder::layout::{
    Activation, BoxTransform, Combination, Field, Group, Layout, ScoreRule,
};
use crate::functions::{exp, logit_threshold, sigmoid};
use crate::tensor::Elements;

/// The numbers of an image's group of anchors, and values that are constant for the whole group.
struct GroupDecoder<'a> {
    layout: &'a Layout,
    rules: &'a ImageRules<'a>,
    group: &'a Group,
    /// The index of the group's first anchor in the image.
    first_anchor: usize,
    boxes: Numbers<'a>,
    sizes: Option<Numbers<'a>>,
    scores: Numbers<'a>,
    objectness: Option<Numbers<'a>>,
    class: Option<Numbers<'a>>,
    angle: Option<Numbers<'a>>,
    priors: Option<Numbers<'a>>,
    /// The lowest threshold of any class.
    lowest: f32,
    /// The lowest threshold before the activation, unless this is softmax of scores.
    least_stored: f32,
}

impl CandidateDecoder {
    /// Adds an image's candidates to the candidates of the group's earlier images, for any layout.
    pub fn decode_general(
        &mut self,
        layout: &Layout,
        rules: &ImageRules<'_>,
        tensors: &ImageTensors<'_, '_>,
    ) {
        self.classes = layout.classes;
        self.is_oriented = layout.is_oriented();
        let params = rules.params;
        // Without anchors no element is read, because `validate` then does not check offsets and
        // strides.
        let count = layout.count.as_ref().filter(|_| layout.anchors() > 0);
        // The conversion saturates; NaN becomes 0.
        let mut valid = count.map_or(usize::MAX, |count| tensors.numbers(count).at(0, 0) as usize);
        let lowest = params.thresholds.lowest(layout.classes);
        let least_stored = match layout.score.activation {
            Activation::Sigmoid => logit_threshold(lowest),
            Activation::None | Activation::Softmax => lowest,
        };
        let mut first_anchor = 0;
        for group in &layout.groups {
            let anchors = group.anchors.min(valid);
            valid -= anchors;
            if anchors > 0 {
                let of = |field: &Option<Field>| field.as_ref().map(|field| tensors.numbers(field));
                let group = GroupDecoder {
                    layout,
                    rules,
                    group,
                    first_anchor,
                    boxes: tensors.numbers(&group.boxes),
                    sizes: of(&group.sizes),
                    scores: tensors.numbers(&group.scores),
                    objectness: of(&group.objectness),
                    class: of(&group.class),
                    angle: of(&group.angle),
                    priors: group.reference.priors().map(|priors| tensors.numbers(priors)),
                    lowest,
                    least_stored,
                };
                let (group, found, hits) = (&group, &mut self.found, &mut self.hits);
                hits.clear();
                match (&layout.pairs, group.scores.elements) {
                    (Some(pairs), _) => {
                        let numbers = tensors.numbers(&pairs.field);
                        let number = |row, component| numbers.at(row, component);
                        let named = &mut self.named_pairs;
                        found.rejected +=
                            formula::pairs(layout, pairs, tensors.image, number, named);
                        dispatch((group, &named[..], anchors, &mut *found));
                    }
                    _ if group.is_multi() || layout.score.peaks => {
                        dispatch((group, anchors, &mut *found));
                    }
                    (None, Elements::F32(scores)) => {
                        dispatch((group, scores, anchors, &mut *hits, &mut *found))
                    }
                    (None, Elements::F16(scores)) => {
                        dispatch((group, scores, anchors, &mut *hits, &mut *found))
                    }
                    (None, Elements::I8(scores)) => {
                        dispatch((group, scores, anchors, &mut *hits, &mut *found))
                    }
                    (None, Elements::U8(scores)) => {
                        dispatch((group, scores, anchors, &mut *hits, &mut *found))
                    }
                    (None, Elements::I32(_) | Elements::I64(_)) => {
                        dispatch((group, anchors, &mut *found));
                    }
                }
                dispatch((group, &hits[..], found));
            }
            first_anchor += group.anchors;
        }
    }
}

/// The greatest score of an anchor, which may be high enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    anchor: u32,
    component: u32,
    score: f32,
    objectness: Option<f32>,
}

impl<S: Score> Work for (&GroupDecoder<'_>, &[S], usize, &mut Vec<Hit>, &mut Found) {
    #[inline(always)]
    fn run(self) {
        let (group, scores, anchors, hits, found) = self;
        group.find(scores, anchors, hits, found);
    }
}

/// The rules from the best score on have much code, which is not compiled again for each type of scores.
impl Work for (&GroupDecoder<'_>, &[Hit], &mut Found) {
    #[inline(always)]
    fn run(self) {
        let (group, hits, found) = self;
        for &Hit { anchor, component, score, objectness } in hits {
            group.add(anchor as usize, component as usize, score, objectness, found);
        }
    }
}

impl Work for (&GroupDecoder<'_>, usize, &mut Found) {
    #[inline(always)]
    fn run(self) {
        let (group, anchors, found) = self;
        let scores = if group.is_multi() { group.layout.score.components } else { 0 };
        let pairs = (0..anchors).flat_map(|anchor| {
            let all = (scores == 0).then_some((anchor, None));
            (0..scores).map(move |score| (anchor, Some(score))).chain(all)
        });
        group.decode_one_by_one(pairs, found);
    }
}

/// Pairs of an anchor and a score.
impl Work for (&GroupDecoder<'_>, &[(usize, usize)], usize, &mut Found) {
    #[inline(always)]
    fn run(self) {
        let (group, named, anchors, found) = self;
        let valid = named.iter().filter(|(anchor, _)| *anchor < anchors);
        group.decode_one_by_one(valid.map(|&(anchor, score)| (anchor, Some(score))), found);
    }
}

impl GroupDecoder<'_> {
    /// True if every class of an anchor can make a candidate.
    #[inline(always)]
    fn is_multi(&self) -> bool {
        self.rules.params.multi_label && self.class.is_none()
    }

    /// Finds the best class of each anchor.
    #[inline(always)]
    fn find<S: Score>(&self, scores: &[S], anchors: usize, hits: &mut Vec<Hit>, found: &mut Found) {
        let rule = &self.layout.score;
        let mut field = self.scores.field;
        field.offset += rule.first_column() * field.component_stride;
        let lowest = self.lowest_key::<S>();
        let scan = Scan { scores, field, anchors, classes: rule.components, lowest };
        let hit = |Best { anchor, key, class }: Best<S::Key>, objectness| {
            let score = self.scores.number(S::from_key(key));
            Hit { anchor: anchor as u32, component: class as u32, score, objectness }
        };
        let is_softmax = rule.activation == Activation::Softmax && self.objectness.is_none();
        if self.objectness.is_none() && !is_softmax {
            scan.without_objectness(|best| hits.push(hit(best, None)));
            return;
        }
        for anchor in 0..anchors {
            let mut objectness = None;
            if let Some(numbers) = &self.objectness {
                objectness = self.objectness(numbers, anchor, self.lowest, found);
                if objectness.is_none() {
                    continue;
                }
            }
            let hit = hit(scan.best_of_anchor(anchor), objectness);
            if !is_softmax || !self.softmax_is_below(&scan, anchor, hit.score) {
                hits.push(hit);
            }
        }
    }

    /// Decodes one anchor, or pair of anchor and score, after the other.
    #[inline(always)]
    fn decode_one_by_one(
        &self,
        pairs: impl Iterator<Item = (usize, Option<usize>)>,
        found: &mut Found,
    ) {
        let rule = &self.layout.score;
        let first = rule.first_column();
        let grid = formula::grid_of(self.group);
        // Lower scores make no candidate, whether they are peaks or not.
        let is_certain = self.objectness.is_none() && rule.activation != Activation::Softmax;
        let least = if is_certain { self.least_stored } else { f32::NEG_INFINITY };
        for (anchor, pair) in pairs {
            let (lowest, classes) = match pair {
                Some(class) => {
                    let threshold =
                        self.rules.params.thresholds.of(rule.first_class + class as u32);
                    (threshold, class..class + 1)
                }
                None => (self.lowest, 0..rule.components),
            };
            let mut objectness = None;
            if let Some(numbers) = &self.objectness {
                objectness = self.objectness(numbers, anchor, lowest, found);
                if objectness.is_none() {
                    continue;
                }
            }
            let (mut best, mut component) = (f32::NEG_INFINITY, 0);
            for class in classes {
                let score = self.scores.at(anchor, first + class);
                let of_class = |anchor| self.scores.at(anchor, first + class);
                let counts = !rule.peaks
                    || (score >= least && formula::is_peak(grid, anchor, score, of_class));
                if score > best && counts {
                    (best, component) = (score, class);
                }
            }
            if rule.peaks && best == f32::NEG_INFINITY {
                continue;
            }
            self.add(anchor, component, best, objectness, found);
        }
    }

    /// Rule 1: an anchor's objectness, or `None` if the anchor is rejected or dropped.
    #[inline(always)]
    fn objectness(
        &self,
        numbers: &Numbers<'_>,
        anchor: usize,
        lowest: f32,
        found: &mut Found,
    ) -> Option<f32> {
        let rule = &self.layout.score;
        let stored = numbers.at(anchor, 0);
        if !stored.is_finite() {
            found.rejected += 1;
            return None;
        }
        let is_product = rule.combination == Combination::Product;
        // Most anchors end here, before the activation.
        if is_product && stored < self.least_stored {
            return None;
        }
        let objectness = formula::activated(rule.activation, stored);
        (!(is_product && objectness < lowest)).then_some(objectness)
    }

    /// Applies the rules from the best score on to an anchor or a pair.
    #[inline(always)]
    fn add(
        &self,
        anchor: usize,
        component: usize,
        best: f32,
        objectness: Option<f32>,
        found: &mut Found,
    ) {
        let Self { layout, rules, group, .. } = *self;
        let (params, scale) = (rules.params, rules.place.scale);
        let rule = &layout.score;
        if !best.is_finite() {
            found.rejected += 1;
            return;
        }
        let scores = (0..rule.columns()).map(|column| self.scores.at(anchor, column));
        let score = formula::score(rule, objectness, best, scores);
        if !score.is_finite() {
            found.rejected += 1;
            return;
        }
        let class = match &self.class {
            None => rule.first_class + component as u32,
            Some(_) if score < self.lowest => return,
            Some(class) => {
                let class = class.at(anchor, 0);
                // The conversion saturates; NaN becomes 0.
                let index = class as u32;
                if index as f32 != class || index as usize >= layout.classes {
                    found.rejected += 1;
                    return;
                }
                index
            }
        };
        let threshold = params.thresholds.of(class);
        let is_product = rule.combination == Combination::Product;
        if score < threshold || (is_product && objectness.is_some_and(|value| value < threshold)) {
            return;
        }
        let prior = Prior::of(layout, group, anchor, |_| {
            let priors = self.priors.as_ref().expect("a group with priors has their numbers");
            priors.components(anchor, 4)
        });
        let components = self.components(anchor);
        let index = (self.first_anchor + anchor) as u32;
        let added = match &self.angle {
            None => {
                let corners = formula::corners(&layout.boxes, prior, scale, components);
                add_box(corners, score, class, index, rules, &mut found.candidates)
            }
            Some(angle) => {
                let (rule, angle) = (&layout.boxes, angle.at(anchor, 0));
                let oriented = formula::oriented_box(rule, prior, scale, components, angle);
                add_oriented_box(&oriented, score, class, index, rules, found)
            }
        };
        found.rejected += usize::from(added.is_err());
    }

    /// The components of an anchor's box.
    #[inline(always)]
    fn components(&self, anchor: usize) -> [f32; 4] {
        let rule = &self.layout.boxes;
        if rule.transform == BoxTransform::Expectation {
            return formula::components(rule, |index| self.boxes.at(anchor, index));
        }
        match &self.sizes {
            None => self.boxes.components(anchor, rule.format.components()),
            Some(sizes) => {
                let ([x, y, ..], [width, height, ..]) =
                    (self.boxes.components(anchor, 2), sizes.components(anchor, 2));
                [x, y, width, height]
            }
        }
    }

    /// Returns true if the softmax of `best`, the greatest score of the anchor's classes, is
    /// certain to be less than the lowest threshold, without computing the sum. The sum is at least
    /// 1, so softmax is at most `exp(best - m)`.
    #[inline(always)]
    fn softmax_is_below<S: Score>(&self, scan: &Scan<'_, S>, anchor: usize, best: f32) -> bool {
        let background = self.layout.score.background_column();
        let background = background.map_or(best, |column| self.scores.at(anchor, column));
        let greatest = if background > best { background } else { best };
        let bound = exp(best - greatest);
        if bound.is_nan() || bound >= self.lowest {
            return false;
        }
        // NaN and infinity reject the anchor.
        let first = scan.field.index(anchor, 0);
        let is_finite = |all: bool, score: &S| all & score.to_f32().is_finite();
        let all_finite = match scan.field.component_stride {
            1 => scan.scores[first..first + scan.classes].iter().fold(true, is_finite),
            stride => (0..scan.classes)
                .fold(true, |all, class| is_finite(all, &scan.scores[first + class * stride])),
        };
        all_finite && background.is_finite()
    }

    /// The key of the lowest threshold, for scores that are compared before the activation.
    #[inline(always)]
    fn lowest_key<S: Score>(&self) -> S::Key {
        let rule: &ScoreRule = &self.layout.score;
        if let Some(quantization) = self.scores.quantization {
            let is_below = |element: &i32| {
                let number = quantization.number(*element as f32);
                let score = match rule.activation {
                    Activation::Sigmoid => sigmoid(number),
                    Activation::None | Activation::Softmax => number,
                };
                score < self.lowest
            };
            // All elements of 8 bits, and one more.
            let least =
                (i32::from(i8::MIN)..=i32::from(u8::MAX)).find(|element| !is_below(element));
            return S::threshold_key(least.unwrap_or(i32::from(u8::MAX) + 1) as f32);
        }
        S::threshold_key(self.least_stored)
    }
}
