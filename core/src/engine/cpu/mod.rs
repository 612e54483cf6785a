// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine that runs on the CPU.
//!
//! In: tensors in host memory. Out: the outcome, in buffers that the next run reuses. Decode reads
//! the scores once, in the order of memory. Suppression compares a candidate with several boxes at
//! a time and, if there are many boxes, only with nearby boxes ([`spatial_grid`]). Loops are
//! written so that the compiler vectorizes them.
//!
//! The functions of a [`Work`](dispatch::Work) are compiled twice on x86-64: for the target's base
//! instruction set and for AVX2. The engine chooses between the two at run time.

mod block;
mod buckets;
mod by_class;
mod candidate;
mod conflict;
mod decode;
mod dispatch;
mod general;
mod host_tensors;
mod mask_logits;
mod masks;
mod merging;
mod multi_label;
mod oriented;
mod ranking;
mod score;
mod spatial_grid;
mod suppression;
mod suppressors;

use std::ops::Range;

use super::class_limits::ClassLimits;
use super::outcome::HostResults;
use super::params::cap;
use super::place::image_groups;
use super::validate::validate;
use super::{Detection, Engine, EngineError, GroupCounts, Job, Method, Outcome, Params};
use crate::decoder::{Layout, MAX_CLASSES};
use crate::geometry::oriented::Rectangle;
use by_class::ByClass;
use decode::{CandidateDecoder, Found, ImageRules};
use dispatch::dispatch;
use host_tensors::HostTensors;
use masks::MaskBuffers;
use merging::{Merged, Merging};
use ranking::Ranking;
use suppression::{EachClass, Suppression};
use suppressors::Lists;

/// The engine that runs on the CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    decoder: CandidateDecoder,
    ranking: Ranking,
    by_class: ByClass,
    suppressors: Lists,
    oriented_suppressors: Lists<Rectangle>,
    results: HostResults,
    masks: MaskBuffers,
    limits: ClassLimits,
    merging: Merging,
}

/// Upright boxes for [`Cpu::suppress_boxes`], already in the form that the engines' rules give to
/// candidates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boxes<'a> {
    pub corners: &'a [[f32; 4]],
    pub scores: &'a [f32],
    /// Each class is at least 0 and less than [`MAX_CLASSES`]. The slice is empty if all boxes have
    /// one class.
    pub classes: &'a [i32],
    /// The rows of the column that the method reads, one for each box. The slice is empty if the
    /// method reads none.
    pub rows: &'a [f32],
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn run(&mut self, job: Job<'_>) -> Result<Outcome<'_>, EngineError> {
        validate(job)?;
        let Job { tensors, layout, params, images } = job;
        self.results.begin(job);
        let mut host = HostTensors::new(tensors);
        host.map(layout)?;
        let plain = layout.plain(tensors);
        let column = params.method.column().and_then(|kind| layout.column_of(kind));
        for group in image_groups(images) {
            self.decoder.found.clear();
            for image in group.clone() {
                let place = images[image].decode_place(layout, params);
                // `validate` has checked that a group's anchors fit in 32 bits.
                let first_anchor = ((image - group.start) * layout.anchors()) as u32;
                let rules = ImageRules { params, place, first_anchor };
                let (tensors, first) = (host.image(image)?, self.decoder.found.candidates.len());
                match &plain {
                    Some(plain) => self.decoder.decode_plain(plain, &rules, &tensors),
                    None => self.decoder.decode_general(layout, &rules, &tensors),
                }
                if let Some(column) = column {
                    let Found { candidates, rows, .. } = &mut self.decoder.found;
                    for candidate in &candidates[first..] {
                        tensors.append_column(layout, column, candidate, rows);
                    }
                }
            }
            let first = self.suppress_group(params);
            if !layout.columns.is_empty() {
                self.add_columns(&host, layout, group, first)?;
            }
            self.apply_limits(params, first);
        }
        Ok(self.results.outcome(self.name(), layout))
    }
}

impl Cpu {
    pub(super) const NAME: &'static str = "cpu";

    /// The survivors of upright boxes that need no decoding, in descending rank, and the boxes that were
    /// merged into them. The rules apply from ordering on. [`Detection::anchor`] is the index of the box.
    pub(crate) fn suppress_boxes(
        &mut self,
        boxes: &Boxes<'_>,
        params: &Params,
    ) -> (&[Detection], &Merged) {
        let Boxes { corners, scores, classes, rows } = *boxes;
        let CandidateDecoder { found, classes: class_count, is_oriented, .. } = &mut self.decoder;
        found.clear();
        (*class_count, *is_oriented) = (if classes.is_empty() { 1 } else { MAX_CLASSES }, false);
        let candidate = |index: usize, (&[x1, y1, x2, y2], &score): (&[f32; 4], &f32)| {
            let class = classes.get(index).map_or(0, |&class| class as u32);
            Detection { x1, y1, x2, y2, score, class, anchor: index as u32 }
        };
        let all = corners.iter().zip(scores).enumerate();
        found.candidates.extend(all.map(|(index, numbers)| candidate(index, numbers)));
        found.rows.extend_from_slice(rows);
        self.results.survivors.clear();
        self.merging.merged.clear();
        self.suppress(params);
        (&self.results.survivors, &self.merging.merged)
    }

    /// Adds the columns and the masks of the survivors of a group of `images`. The first survivor is at `first`.
    fn add_columns(
        &mut self,
        host: &HostTensors<'_, '_>,
        layout: &Layout,
        images: Range<usize>,
        first: usize,
    ) -> Result<(), EngineError> {
        let HostResults { survivors, columns, .. } = &mut self.results;
        let image = |survivor: &Detection| survivor.anchor as usize / layout.anchors();
        // Usually consecutive survivors belong to one image, or all survivors do.
        for of_image in survivors[first..].chunk_by(|a, b| image(a) == image(b)) {
            let tensors = host.image(images.start + image(&of_image[0]))?;
            for survivor in of_image {
                tensors.append_columns(layout, survivor, columns);
            }
        }
        if let Some(prototypes) = &layout.prototypes {
            self.masks.add_group(layout, prototypes, host, images, &mut self.results, first)?;
        }
        Ok(())
    }

    /// Suppresses a group's candidates and returns the index of the group's first survivor.
    fn suppress_group(&mut self, params: &Params) -> usize {
        let first = self.results.survivors.len();
        self.suppress(params);
        let Found { candidates, rejected, .. } = &self.decoder.found;
        let HostResults { groups, survivors, .. } = &mut self.results;
        groups.push(GroupCounts {
            first,
            first_mask: first,
            survivors: survivors.len() - first,
            candidates: candidates.len(),
            rejected: *rejected,
        });
        first
    }

    /// Applies the class limits to the last group, whose survivors begin at `first`.
    fn apply_limits(&mut self, params: &Params, first: usize) {
        if !params.has_class_limits() {
            return;
        }
        let HostResults { groups, survivors, columns, masks, .. } = &mut self.results;
        let (places, width) =
            (&mut masks.places, columns.len().checked_div(survivors.len()).unwrap_or(0));
        let kept = self.limits.apply(
            params,
            &mut survivors[first..],
            &mut columns[first * width..],
            places.get_mut(first..).unwrap_or_default(),
        );
        survivors.truncate(first + kept);
        columns.truncate((first + kept) * width);
        places.truncate(first + kept);
        groups.last_mut().expect("the group has been added").survivors = kept;
    }

    /// Adds the survivors of a method that changes boxes or scores, or decides by a column.
    fn merge(&mut self, params: &Params) {
        let Self { decoder, ranking, results, merging, .. } = self;
        let compares_classes = compares_classes(decoder, params);
        let candidates = &decoder.found.candidates[..];
        let keys = ranking.top(candidates, candidates.len().min(cap(params.max_candidates)));
        let rows = &decoder.found.rows[..];
        let components = rows.len().checked_div(candidates.len()).unwrap_or(0);
        let ranked = merging::Ranked { candidates, keys, compares_classes, rows, components };
        let merged = merging.run(&ranked, params);
        merged.truncate(cap(params.survivors_to_find()));
        results.survivors.extend(merged.detections());
    }

    fn suppress(&mut self, params: &Params) {
        if !params.method.only_suppresses() || params.method.column().is_some() {
            self.merge(params);
            return;
        }
        let compares_classes = compares_classes(&self.decoder, params);
        let Self { decoder, ranking, by_class, results, .. } = self;
        let survivors = &mut results.survivors;
        let candidates = decoder.found.candidates.len();
        // With fewer survivors than candidates, suppression can stop early.
        let is_by_class = params.method != Method::None
            && candidates <= cap(params.survivors_to_find())
            && candidates >= by_class::LEAST_CANDIDATES;
        let Lists { of_all, of_classes } = &mut self.suppressors;
        let oriented = &mut self.oriented_suppressors;
        let suppression =
            Suppression { found: &decoder.found, ranking, by_class, survivors, params };
        match (decoder.is_oriented, compares_classes) {
            (false, true) if is_by_class => dispatch((suppression, EachClass(of_all))),
            (false, true) => dispatch((suppression, of_classes)),
            (false, false) => dispatch((suppression, of_all)),
            (true, true) => dispatch((suppression, &mut oriented.of_classes)),
            (true, false) => dispatch((suppression, &mut oriented.of_all)),
        }
    }
}

/// Returns true if classes must be compared. A single class needs no comparison.
fn compares_classes(decoder: &CandidateDecoder, params: &Params) -> bool {
    !params.class_agnostic && decoder.classes > 1
}

#[cfg(test)]
mod tests {
    use super::decode::PlainImage;
    use super::dispatch::Work;
    use super::*;
    use crate::decoder;
    use crate::engine::ImagePlace;
    use crate::tensor::TensorView;

    /// On a processor with AVX2, no other test runs the portable code.
    #[test]
    fn portable_code_and_avx2_code_give_the_same_bits() {
        let mut rng = fastrand::Rng::with_seed(2020);
        let columns: Vec<f32> = (0..84 * 1000)
            .map(|i| if i < 4000 { 20.0 + rng.f32() * 100.0 } else { rng.f32() })
            .collect();
        let tensors = [TensorView::from_slice("yolo-v8-out", &[1, 84, 1000], &columns)];
        let layout = decoder::choose(&tensors, None, decoder::Options::default()).unwrap().layout;
        let plain = layout.plain(&tensors).unwrap();
        let params = Params { class_agnostic: true, ..Params::default() };
        let mut dispatched = Cpu::default();
        let place = ImagePlace::in_model([1.0; 2]);
        dispatched.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        let mut portable = Cpu::default();
        let place = place.decode_place(&layout, &params);
        let rules = ImageRules { params: &params, place, first_anchor: 0 };
        let (layout, rules, boxes, scores) = (&plain, &rules, &columns[..], &columns[..]);
        (&mut portable.decoder, PlainImage { layout, rules, boxes, scores }).run();
        let Cpu { decoder, ranking, by_class, results, suppressors, .. } = &mut portable;
        let (found, survivors) = (&decoder.found, &mut results.survivors);
        let suppression = Suppression { found, ranking, by_class, survivors, params: &params };
        Work::run((suppression, &mut suppressors.of_all));
        assert_eq!(portable.decoder.found.candidates, dispatched.decoder.found.candidates);
        assert_eq!(portable.results.survivors, dispatched.results.survivors);
        assert!(
            (20..900).contains(&dispatched.results.survivors.len()),
            "{} survivors",
            dispatched.results.survivors.len()
        );
    }
}
