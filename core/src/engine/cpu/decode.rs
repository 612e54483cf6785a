// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode: from anchors to candidates.
//!
//! In: boxes and scores in host memory, layout, parameters and place. Out: candidates in the order
//! of their anchors, and the number of rejected anchors. Scores are read in the order of memory,
//! several at a time. The engines' rules are then applied, one by one, to anchors whose greatest
//! score reaches the lowest threshold.

use super::super::{DecodePlace, Detection, Params};
use super::candidate::{Scored, make_candidate};
use super::dispatch::{Work, dispatch};
use super::general::Hit;
use super::host_tensors::ImageTensors;
use super::multi_label::Pairs;
use super::score::Score;
use crate::decoder::{BoxFormat, Field, PlainLayout};
use crate::geometry::oriented::Rectangle;
use crate::tensor::{Element, Elements};

/// The number of anchors that are decoded together if the scores are ordered by class. The greatest
/// scores so far stay in the L1 cache while the scores of all classes are read.
pub(super) const BLOCK: usize = 1024;
/// The number of scores that are compared together: as many as a mask has bits. Divides [`BLOCK`].
pub(super) const WIDTH: usize = 32;
/// The number of classes that are compared before the greatest scores are written back.
const CLASS_GROUP: usize = 16;

/// The parameters and the place that turn an image's anchors into candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageRules<'a> {
    pub params: &'a Params,
    pub place: DecodePlace,
    /// The number of anchors in the group's earlier images.
    pub first_anchor: u32,
}

/// An image of a plain layout, whose offsets include the image's offset.
#[derive(Clone, Copy)]
pub(super) struct PlainImage<'a, B, S> {
    pub layout: &'a PlainLayout,
    pub rules: &'a ImageRules<'a>,
    pub boxes: &'a [B],
    pub scores: &'a [S],
}

impl<B: Element, S: Score> Work for (&mut CandidateDecoder, PlainImage<'_, B, S>) {
    #[inline(always)]
    fn run(self) {
        self.0.decode(self.1);
    }
}

/// Decodes the images of a group, and reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct CandidateDecoder {
    pub found: Found,
    /// With `multi_label`, the pairs of a block of anchors.
    pub(super) pairs: Pairs,
    /// The anchors of a group whose greatest score may be high enough.
    pub(super) hits: Vec<Hit>,
    /// The pairs of anchor and score that the layout names.
    pub(super) named_pairs: Vec<(usize, usize)>,
    /// The number of classes of the layout.
    pub classes: usize,
    /// True if the candidates are oriented.
    pub is_oriented: bool,
}

/// The candidates of a group of images.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub candidates: Vec<Detection>,
    /// For oriented candidates, each candidate's rectangle.
    pub rectangles: Vec<Rectangle>,
    /// If the method reads a column, each candidate's row of it.
    pub rows: Vec<f32>,
    pub rejected: usize,
}

impl Found {
    pub fn clear(&mut self) {
        self.candidates.clear();
        self.rectangles.clear();
        self.rows.clear();
        self.rejected = 0;
    }
}

impl CandidateDecoder {
    /// Adds an image's candidates to the candidates of the group's earlier images, for plain layouts.
    pub fn decode_plain(
        &mut self,
        layout: &PlainLayout,
        rules: &ImageRules<'_>,
        tensors: &ImageTensors<'_, '_>,
    ) {
        let (boxes, scores) = (tensors.numbers(&layout.boxes), tensors.numbers(&layout.scores));
        let objectness = layout.objectness.map(|field| tensors.numbers(&field).field);
        let layout =
            &PlainLayout { boxes: boxes.field, scores: scores.field, objectness, ..*layout };
        match (boxes.elements, scores.elements) {
            (Elements::F32(b), Elements::F32(s)) => {
                dispatch((self, PlainImage { layout, rules, boxes: b, scores: s }))
            }
            (Elements::F16(b), Elements::F16(s)) => {
                dispatch((self, PlainImage { layout, rules, boxes: b, scores: s }))
            }
            (Elements::F32(b), Elements::F16(s)) => {
                dispatch((self, PlainImage { layout, rules, boxes: b, scores: s }))
            }
            (Elements::F16(b), Elements::F32(s)) => {
                dispatch((self, PlainImage { layout, rules, boxes: b, scores: s }))
            }
            _ => unreachable!("tensors of a plain layout have floating-point numbers"),
        }
    }

    #[inline(always)]
    fn decode<B: Element, S: Score>(&mut self, image: PlainImage<'_, B, S>) {
        let PlainImage { layout, rules, scores, .. } = image;
        self.classes = layout.classes;
        self.is_oriented = false;
        let params = rules.params;
        if params.multi_label {
            self.decode_pairs(image);
            return;
        }
        let lowest = S::threshold_key(params.thresholds.lowest(layout.classes));
        let scan = Scan {
            scores,
            field: layout.scores,
            anchors: layout.anchors,
            classes: layout.classes,
            lowest,
        };
        let found = &mut self.found;
        match layout.objectness {
            None => scan.without_objectness(|Best { anchor, key, class }| {
                let (anchor, class) = (anchor as u32, class as u32);
                let scored = Scored { anchor, objectness: None, best: S::from_key(key), class };
                found.add_if_candidate(scored, &image);
            }),
            Some(field) => {
                for anchor in 0..layout.anchors {
                    let objectness = scores[field.index(anchor, 0)];
                    if S::is_below(objectness.key(), lowest) {
                        continue;
                    }
                    let objectness = objectness.to_f32();
                    if !objectness.is_finite() {
                        found.rejected += 1;
                        continue;
                    }
                    let Best { key, class, .. } = scan.best_of_anchor(anchor);
                    let (anchor, class) = (anchor as u32, class as u32);
                    let objectness = Some(objectness);
                    let scored = Scored { anchor, objectness, best: S::from_key(key), class };
                    found.add_if_candidate(scored, &image);
                }
            }
        }
    }
}

/// The scores of anchors that share a field.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a, S: Score> {
    pub scores: &'a [S],
    pub field: Field,
    pub anchors: usize,
    /// The number of scores of an anchor.
    pub classes: usize,
    /// The key of the lowest threshold.
    pub lowest: S::Key,
}

/// The greatest score of an anchor.
pub(super) struct Best<K> {
    pub anchor: usize,
    pub key: K,
    /// The first class that has it; 0 if all scores are NaN.
    pub class: usize,
}

impl<S: Score> Scan<'_, S> {
    /// Calls `add` for each anchor whose greatest score is not below the lowest threshold.
    #[inline(always)]
    pub fn without_objectness(&self, add: impl FnMut(Best<S::Key>)) {
        if self.classes == 1 {
            self.single_class(add);
        } else if self.field.anchor_stride == 1 {
            self.by_class(add);
        } else {
            self.by_anchor(add);
        }
    }

    /// The greatest score of an anchor.
    #[inline(always)]
    pub fn best_of_anchor(&self, anchor: usize) -> Best<S::Key> {
        let field = &self.field;
        if field.component_stride == 1 {
            let first = field.index(anchor, 0);
            let scores = &self.scores[first..first + self.classes];
            let key = greatest_key(scores);
            let class = scores.iter().position(|score| score.key() == key).unwrap_or(0);
            return Best { anchor, key, class };
        }
        let mut scores = (0..self.classes).map(|class| self.scores[field.index(anchor, class)]);
        let key = scores.clone().fold(S::LOWEST, |best, score| greater_score(score.key(), best));
        let class = scores.position(|score| score.key() == key).unwrap_or(0);
        Best { anchor, key, class }
    }

    /// Decodes one anchor after the other.
    #[inline(always)]
    fn by_anchor(&self, mut add: impl FnMut(Best<S::Key>)) {
        let field = &self.field;
        for anchor in 0..self.anchors {
            if field.component_stride == 1 {
                let first = field.index(anchor, 0);
                let scores = &self.scores[first..first + self.classes];
                let key = greatest_key(scores);
                if S::is_below(key, self.lowest) {
                    continue;
                }
                let class = scores.iter().position(|score| score.key() == key).unwrap_or(0);
                add(Best { anchor, key, class });
            } else {
                let best = self.best_of_anchor(anchor);
                if !S::is_below(best.key, self.lowest) {
                    add(best);
                }
            }
        }
    }

    /// Decodes a single class, several anchors at a time.
    #[inline(always)]
    fn single_class(&self, mut add: impl FnMut(Best<S::Key>)) {
        let &Self { field, lowest, .. } = self;
        let mut keys = [S::LOWEST; WIDTH];
        for start in (0..self.anchors).step_by(WIDTH) {
            let count = WIDTH.min(self.anchors - start);
            let scores = &self.scores[field.index(start, 0)..];
            match field.anchor_stride {
                1 => {
                    for (key, score) in keys.iter_mut().zip(&scores[..count]) {
                        *key = greater_score(score.key(), S::LOWEST);
                    }
                }
                stride => {
                    let scores = &scores[..(count - 1) * stride + 1];
                    for (i, key) in keys[..count].iter_mut().enumerate() {
                        *key = greater_score(scores[i * stride].key(), S::LOWEST);
                    }
                }
            }
            if keys[..count].iter().fold(true, |all, &key| all & S::is_below(key, lowest)) {
                continue;
            }
            for (i, &key) in keys[..count].iter().enumerate() {
                if !S::is_below(key, lowest) {
                    add(Best { anchor: start + i, key, class: 0 });
                }
            }
        }
    }

    /// Decodes scores that are contiguous for each class, block by block of anchors.
    #[inline(always)]
    fn by_class(&self, mut add: impl FnMut(Best<S::Key>)) {
        let &Self { scores, field, anchors, classes: class_count, lowest } = self;
        for start in (0..anchors).step_by(BLOCK) {
            let len = BLOCK.min(anchors - start);
            let (mut best, mut group) = ([S::LOWEST; BLOCK], [0; BLOCK]);
            for first in (0..class_count).step_by(CLASS_GROUP) {
                let classes = first..class_count.min(first + CLASS_GROUP);
                let mut rows = [&scores[..0]; CLASS_GROUP];
                let count = classes.len();
                for (row, class) in rows.iter_mut().zip(classes) {
                    let from = field.index(start, class);
                    *row = &scores[from..from + len];
                }
                update_best(&rows[..count], first as u32, &mut best[..len], &mut group[..len]);
            }
            for from in (0..len).step_by(WIDTH) {
                let end = len.min(from + WIDTH);
                let is_below = |&best: &S::Key| S::is_below(best, lowest);
                if best[from..end].iter().fold(true, |all, best| all & is_below(best)) {
                    continue;
                }
                for i in (from..end).filter(|&i| !is_below(&best[i])) {
                    let (anchor, key, first) = (start + i, best[i], group[i] as usize);
                    let has_best = |&class: &usize| scores[field.index(anchor, class)].key() == key;
                    let class = (first..class_count.min(first + CLASS_GROUP)).find(has_best);
                    add(Best { anchor, key, class: class.unwrap_or(0) });
                }
            }
        }
    }
}

impl Found {
    /// Applies the rules from the best score on to an anchor, or with `multi_label` to a pair. Adds
    /// the candidate or counts the rejection.
    #[inline(always)]
    pub(super) fn add_if_candidate<B: Element, S>(
        &mut self,
        scored: Scored,
        &PlainImage { layout, rules, boxes, .. }: &PlainImage<'_, B, S>,
    ) {
        let anchor = scored.anchor as usize;
        let components = || components(&layout.boxes, layout.box_format, boxes, anchor);
        let verdict =
            make_candidate(scored, rules, layout.box_format, components, &mut self.candidates);
        self.rejected += usize::from(verdict.is_err());
    }
}

/// The greater of two keys; `best` if `score` is NaN.
#[inline(always)]
fn greater_score<R: PartialOrd>(score: R, best: R) -> R {
    if score > best { score } else { best }
}

/// The key of the greatest of `scores`; the key of minus infinity if all are NaN.
#[inline(always)]
fn greatest_key<S: Score>(scores: &[S]) -> S::Key {
    const LANES: usize = 16;
    if let [only] = scores {
        return greater_score(only.key(), S::LOWEST);
    }
    let (chunks, remainder) = scores.as_chunks::<LANES>();
    let mut lanes = [S::LOWEST; LANES];
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = greater_score(score.key(), *lane);
        }
    }
    let remainder =
        remainder.iter().fold(S::LOWEST, |best, score| greater_score(score.key(), best));
    if chunks.is_empty() {
        return remainder;
    }
    lanes.into_iter().fold(remainder, |best, lane| greater_score(lane, best))
}

/// Updates each anchor's greatest key with the scores of a group of classes. `rows` has one slice
/// per class. Records `group` for each anchor whose greatest key has increased.
#[inline(always)]
fn update_best<S: Score>(rows: &[&[S]], group: u32, best: &mut [S::Key], groups: &mut [u32]) {
    let (best_chunks, best_remainder) = best.as_chunks_mut::<WIDTH>();
    let (group_chunks, group_remainder) = groups.as_chunks_mut::<WIDTH>();
    for (chunk, (best, groups)) in best_chunks.iter_mut().zip(group_chunks).enumerate() {
        let before = *best;
        let mut greatest = before;
        for row in rows {
            let scores: &[S; WIDTH] =
                row[chunk * WIDTH..][..WIDTH].try_into().expect("the slice has WIDTH elements");
            for (greatest, score) in greatest.iter_mut().zip(scores) {
                *greatest = greater_score(score.key(), *greatest);
            }
        }
        for ((group_of_best, greatest), before) in groups.iter_mut().zip(greatest).zip(before) {
            *group_of_best = if greatest > before { group } else { *group_of_best };
        }
        *best = greatest;
    }
    let first = best_chunks.len() * WIDTH;
    for (i, (best, group_of_best)) in best_remainder.iter_mut().zip(group_remainder).enumerate() {
        for row in rows {
            let key = row[first + i].key();
            if key > *best {
                (*best, *group_of_best) = (key, group);
            }
        }
    }
}

/// The components of an anchor's box. Components that the format lacks are zero.
#[inline(always)]
fn components<B: Element>(
    field: &Field,
    format: BoxFormat,
    boxes: &[B],
    anchor: usize,
) -> [f32; 4] {
    let component_at = |component| boxes[field.index(anchor, component)].to_f32();
    let fourth = if format.components() == 4 { component_at(3) } else { 0.0 };
    [component_at(0), component_at(1), component_at(2), fourth]
}
