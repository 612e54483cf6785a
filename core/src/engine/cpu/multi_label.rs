// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decode with `multi_label`: every pair of anchor and class that reaches its threshold is a candidate.
//!
//! In: boxes and scores in host memory, layout, parameters. Out: candidates in the order of anchor,
//! then class. Scores are compared, several at a time, with the lowest threshold of any class. Most
//! scores are below it. The rules are then applied one by one to the remaining pairs.

use super::buckets::Buckets;
use super::candidate::Scored;
use super::decode::{BLOCK, CandidateDecoder, PlainImage, WIDTH};
use super::score::Score;
use crate::tensor::Element;

/// The pairs of a block of anchors whose scores reach the lowest threshold; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// In the order of class, then anchor.
    by_class: Vec<Pair>,
    /// In the order of anchor, then class.
    by_anchor: Buckets<Pair>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// The index of the anchor in the block.
    anchor: u16,
    class: u16,
    score: f32,
}

const _: () = assert!(crate::decoder::MAX_CLASSES <= 1 << 16 && BLOCK <= 1 << 16);

/// The lowest threshold of any class, as a number and as a key.
struct LowestThreshold<S: Score> {
    threshold: f32,
    key: S::Key,
}

impl<S: Score> LowestThreshold<S> {
    fn new(threshold: f32) -> Self {
        Self { threshold, key: S::threshold_key(threshold) }
    }

    /// Returns true if a pair with this class score is dropped for every class and every box.
    /// `objectness` is finite.
    #[inline(always)]
    fn drops(&self, score: S, objectness: Option<f32>) -> bool {
        match objectness {
            None => S::is_below(score.key(), self.key),
            Some(objectness) => {
                // The comparison is false if the score or the product is NaN or infinite; the pair
                // is then rejected.
                let product = objectness * score.to_f32();
                (product < self.threshold) & (product > f32::NEG_INFINITY)
            }
        }
    }

    /// Returns true if all pairs with these class scores are dropped.
    #[inline(always)]
    fn drops_all(&self, scores: &[S], objectness: Option<f32>) -> bool {
        scores.iter().fold(true, |all, &score| all & self.drops(score, objectness))
    }
}

impl CandidateDecoder {
    #[inline(always)]
    pub(super) fn decode_pairs<B: Element, S: Score>(&mut self, image: PlainImage<'_, B, S>) {
        let layout = image.layout;
        if layout.scores.anchor_stride == 1 && layout.objectness.is_none() {
            self.pairs_by_class(image);
        } else {
            self.pairs_by_anchor(image);
        }
    }

    /// Decodes one anchor after the other.
    #[inline(always)]
    fn pairs_by_anchor<B: Element, S: Score>(&mut self, image: PlainImage<'_, B, S>) {
        let PlainImage { layout, rules, scores, .. } = image;
        let lowest = LowestThreshold::<S>::new(rules.params.thresholds.lowest(layout.classes));
        let is_row = layout.scores.component_stride == 1;
        for anchor in 0..layout.anchors {
            let objectness = layout.objectness.map(|field| scores[field.index(anchor, 0)]);
            if objectness.is_some_and(|objectness| S::is_below(objectness.key(), lowest.key)) {
                continue;
            }
            let objectness = objectness.map(S::to_f32);
            if objectness.is_some_and(|objectness| !objectness.is_finite()) {
                self.found.rejected += layout.classes;
                continue;
            }
            for first in (0..layout.classes).step_by(WIDTH) {
                let classes = first..layout.classes.min(first + WIDTH);
                if is_row {
                    let from = layout.scores.index(anchor, first);
                    if lowest.drops_all(&scores[from..][..classes.len()], objectness) {
                        continue;
                    }
                }
                for class in classes {
                    let score = scores[layout.scores.index(anchor, class)];
                    if !lowest.drops(score, objectness) {
                        self.add_pair_if_candidate(
                            [anchor, class],
                            objectness,
                            score.to_f32(),
                            &image,
                        );
                    }
                }
            }
        }
    }

    /// Decodes scores that are contiguous for each class, block by block of anchors.
    #[inline(always)]
    fn pairs_by_class<B: Element, S: Score>(&mut self, image: PlainImage<'_, B, S>) {
        let PlainImage { layout, rules, scores, .. } = image;
        let lowest = LowestThreshold::<S>::new(rules.params.thresholds.lowest(layout.classes));
        let mut pairs = std::mem::take(&mut self.pairs);
        for start in (0..layout.anchors).step_by(BLOCK) {
            let len = BLOCK.min(layout.anchors - start);
            pairs.by_class.clear();
            for class in 0..layout.classes {
                let from = layout.scores.index(start, class);
                let column = &scores[from..from + len];
                for (chunk, scores) in column.chunks(WIDTH).enumerate() {
                    if lowest.drops_all(scores, None) {
                        continue;
                    }
                    // A branch for each bit that is set takes less time than one for each score.
                    let mut kept = scores.iter().enumerate().fold(0, |kept, (i, &score)| {
                        kept | u32::from(!lowest.drops(score, None)) << i
                    });
                    while kept != 0 {
                        let i = kept.trailing_zeros() as usize;
                        kept &= kept - 1;
                        pairs.by_class.push(Pair {
                            anchor: (chunk * WIDTH + i) as u16,
                            class: class as u16,
                            score: scores[i].to_f32(),
                        });
                    }
                }
            }
            let Pairs { by_class, by_anchor } = &mut pairs;
            by_anchor.fill(len, by_class.iter().map(|&pair| (pair.anchor.into(), pair)));
            for &Pair { anchor, class, score } in &by_anchor.values {
                let pair = [start + usize::from(anchor), class.into()];
                self.add_pair_if_candidate(pair, None, score, &image);
            }
        }
        self.pairs = pairs;
    }

    #[inline(always)]
    fn add_pair_if_candidate<B: Element, S>(
        &mut self,
        [anchor, class]: [usize; 2],
        objectness: Option<f32>,
        score: f32,
        image: &PlainImage<'_, B, S>,
    ) {
        let (anchor, class) = (anchor as u32, class as u32);
        // Rule 4 for objectness: a pair with a low objectness is dropped, however high its score
        // is.
        if objectness.is_some_and(|objectness| objectness < image.rules.params.thresholds.of(class))
        {
            return;
        }
        let pair = Scored { anchor, objectness, best: score, class };
        self.found.add_if_candidate(pair, image);
    }
}
