// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of a group's candidates.
//!
//! In: candidates in the order of their anchors, parameters. Out: survivors in descending rank.

use super::super::params::cap;
use super::super::{Detection, Method, Params};
use super::conflict::{Conflict, Entry, Shape, WithTest};
use super::decode::Found;
use super::dispatch::Work;
use super::ranking::{self, Ranking};
use super::suppressors::Suppressors;

/// The suppression of the candidates of a group.
pub(super) struct Suppression<'a> {
    pub found: &'a Found,
    /// If not set, candidates of all classes can conflict.
    pub compares_classes: bool,
    pub ranking: &'a mut Ranking,
    pub survivors: &'a mut Vec<Detection>,
    pub params: &'a Params,
}

impl Suppression<'_> {
    #[inline(always)]
    fn run<C: Conflict>(self, suppressors: &mut Suppressors<C::Shape>) {
        let Self { found, compares_classes, ranking, survivors: all_survivors, params } = self;
        let mut threshold = params.iou_threshold;
        let mut test = C::new(params, threshold);
        let (candidates, rectangles) = (&found.candidates[..], &found.rectangles[..]);
        let ranked = candidates.len().min(cap(params.max_candidates));
        let mut survivors = std::mem::take(all_survivors);
        let most = cap(params.survivors_to_find());
        let max_survivors = survivors.len().saturating_add(most);
        let max_boxes = if params.method == Method::Greedy { ranked.min(most) } else { ranked };
        suppressors.clear();
        let mut entries = [Entry::default(); 32];
        ranking.begin(candidates, ranked);
        'all: loop {
            let keys = ranking.next(entries.len());
            if keys.is_empty() {
                break;
            }
            // Loading several entries in one loop makes their cache misses overlap.
            for (entry, &key) in entries.iter_mut().zip(keys) {
                *entry = C::entry(candidates, rectangles, ranking::index(key), params);
            }
            for (entry, &key) in entries.iter().zip(keys) {
                if survivors.len() == max_survivors {
                    break 'all;
                }
                let candidate = &candidates[ranking::index(key)];
                if !params.class_rules.is_empty() {
                    let of_class = params.iou_threshold_of(candidate.class);
                    if of_class != threshold {
                        threshold = of_class;
                        test = C::new(params, threshold);
                    }
                }
                let class = if compares_classes { candidate.class } else { 0 };
                let list = suppressors.of_class(class);
                let survives = params.method == Method::None || !list.any_conflicts(entry, test);
                if survives {
                    // `push` would copy through the stack, which takes longer than the comparison.
                    survivors.extend_from_slice(std::slice::from_ref(candidate));
                }
                if params.method == Method::MapReduce
                    || (survives && params.method == Method::Greedy)
                {
                    list.push(entry, max_boxes);
                }
            }
        }
        *all_survivors = survivors;
    }
}

impl<S: Shape> Work for (Suppression<'_>, &mut Suppressors<S>) {
    #[inline(always)]
    fn run(self) {
        S::with_test(self.0.params, self);
    }
}

impl<S: Shape> WithTest<S> for (Suppression<'_>, &mut Suppressors<S>) {
    #[inline(always)]
    fn run<C: Conflict<Shape = S>>(self) {
        let (suppression, suppressors) = self;
        suppression.run::<C>(suppressors);
    }
}
