// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of a group's candidates.
//!
//! In: candidates in the order of their anchors, parameters. Out: survivors in descending rank.

use super::super::params::cap;
use super::super::{Detection, Method, Params};
use super::by_class::ByClass;
use super::conflict::{Conflict, Entry, Shape, WithTest};
use super::decode::Found;
use super::dispatch::Work;
use super::ranking::{self, Ranking};
use super::suppressors::{SuppressorList, Suppressors};

/// The suppression of the candidates of a group.
pub(super) struct Suppression<'a> {
    pub found: &'a Found,
    pub ranking: &'a mut Ranking,
    pub by_class: &'a mut ByClass,
    pub survivors: &'a mut Vec<Detection>,
    pub params: &'a Params,
}

impl Suppression<'_> {
    #[inline(always)]
    fn run<C: Conflict>(self, suppressors: &mut impl Suppressors<Shape = C::Shape>) {
        let Self { found, ranking, survivors: all_survivors, params, .. } = self;
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
        ranking.begin(candidates, ranked, ranked <= most);
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
                let list = suppressors.of_class(candidate.class);
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

    /// Suppresses class by class, because candidates of different classes do not conflict.
    #[inline(always)]
    fn run_by_class<C: Conflict>(self, suppressors: &mut SuppressorList<C::Shape>) {
        let Self { found, ranking, by_class, survivors, params } = self;
        let (candidates, rectangles) = (&found.candidates[..], &found.rectangles[..]);
        let ranked = candidates.len().min(cap(params.max_candidates));
        let keys = ranking.top(candidates, ranked);
        by_class.sort(keys, candidates);
        let index = |position: u32| ranking::index(keys[position as usize]);
        let mut entries = [Entry::default(); 32];
        let (classes, survives) = by_class.classes();
        for of_class in classes {
            let class = candidates[index(of_class[0])].class;
            let test = C::new(params, params.iou_threshold_of(class));
            suppressors.clear();
            for positions in of_class.chunks(entries.len()) {
                for (entry, &position) in entries.iter_mut().zip(positions) {
                    *entry = C::entry(candidates, rectangles, index(position), params);
                }
                for (entry, &position) in entries.iter().zip(positions) {
                    let is_kept = !suppressors.any_conflicts(entry, test);
                    survives[position as usize] = is_kept;
                    if is_kept || params.method == Method::MapReduce {
                        suppressors.push(entry, of_class.len());
                    }
                }
            }
        }
        let kept = keys.iter().zip(&by_class.survives).filter(|&(_, &survives)| survives);
        survivors.extend(kept.map(|(&key, _)| candidates[ranking::index(key)]));
    }
}

/// The lists of boxes that candidates are compared with.
pub(super) trait Compare {
    type Shape: Shape;

    /// Runs a suppression with these lists.
    fn suppress<C: Conflict<Shape = Self::Shape>>(self, suppression: Suppression<'_>);
}

impl<S: Suppressors> Compare for &mut S {
    type Shape = S::Shape;

    #[inline(always)]
    fn suppress<C: Conflict<Shape = S::Shape>>(self, suppression: Suppression<'_>) {
        suppression.run::<C>(self);
    }
}

/// One list, for one class after the other.
pub(super) struct EachClass<'a>(pub &'a mut SuppressorList);

impl Compare for EachClass<'_> {
    type Shape = ();

    #[inline(always)]
    fn suppress<C: Conflict<Shape = ()>>(self, suppression: Suppression<'_>) {
        suppression.run_by_class::<C>(self.0);
    }
}

impl<L: Compare> WithTest<L::Shape> for (Suppression<'_>, L) {
    #[inline(always)]
    fn run<C: Conflict<Shape = L::Shape>>(self) {
        let (suppression, lists) = self;
        lists.suppress::<C>(suppression);
    }
}

impl<L: Compare> Work for (Suppression<'_>, L) {
    #[inline(always)]
    fn run(self) {
        L::Shape::with_test(self.0.params, self);
    }
}
