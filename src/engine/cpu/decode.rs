use super::super::{Detection, Params};
use super::candidate::{Scored, make_candidate};
use super::score::Score;
use crate::decoder::{BoxFormat, Field, Layout};
use crate::tensor::Element;

/// Anchors whose running best stays in the first-level cache while the class rows stream past.
pub(super) const BLOCK: usize = 1024;
/// Scores looked at together; it divides [`BLOCK`].
pub(super) const WIDTH: usize = 32;
/// Classes compared before their best is put back.
const GROUP: usize = 16;

/// Turns rows into candidates.
#[derive(Debug, Default)]
pub(super) struct CandidateDecoder {
    pub candidates: Vec<Detection>,
    pub rejected: usize,
    /// Pairs of a block of anchors, with `multi_label`: see [`multi_label`](super::multi_label).
    pub(super) pairs: Vec<u32>,
    /// How many classes a candidate can be of.
    pub classes: usize,
}

impl CandidateDecoder {
    pub fn decode<B: Element, S: Score>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            unsafe { self.decode_with_avx2(layout, params, boxes, scores) };
            return;
        }
        self.decode_as_compiled(layout, params, boxes, scores);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn decode_with_avx2<B: Element, S: Score>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        self.decode_as_compiled(layout, params, boxes, scores);
    }

    #[inline(always)]
    pub fn decode_as_compiled<B: Element, S: Score>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        self.candidates.clear();
        self.rejected = 0;
        self.classes = layout.classes;
        let field = &layout.scores;
        if params.multi_label {
            self.decode_pairs(layout, params, boxes, scores);
        } else if field.anchor_stride == 1 && layout.objectness.is_none() {
            self.columns(layout, params, boxes, scores);
        } else if field.component_stride == 1 {
            self.rows(layout, params, boxes, scores, |anchor| {
                let first = field.index(anchor, 0);
                let row = &scores[first..first + layout.classes];
                (greatest(row), row.iter().copied())
            });
        } else {
            self.rows(layout, params, boxes, scores, |anchor| {
                let row = (0..layout.classes).map(move |class| scores[field.index(anchor, class)]);
                let best = row.clone().fold(S::LEAST, |best, score| better(score.rank(), best));
                (best, row)
            });
        }
    }

    /// One anchor after the other; `row` gives the rank of an anchor's greatest score, and its
    /// scores.
    #[inline(always)]
    fn rows<B: Element, S: Score, R: Iterator<Item = S>>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
        row: impl Fn(usize) -> (S::Rank, R),
    ) {
        let lowest = S::rank_from(params.thresholds.lowest(layout.classes));
        for anchor in 0..layout.anchors {
            // Objectness lies with the scores.
            let objectness = layout.objectness.map(|field| scores[field.index(anchor, 0)]);
            if objectness.is_some_and(|objectness| S::is_below(objectness.rank(), lowest)) {
                continue;
            }
            let objectness = objectness.map(S::to_f32);
            if objectness.is_some_and(|objectness| !objectness.is_finite()) {
                self.rejected += 1;
                continue;
            }
            let (best, mut row) = row(anchor);
            if objectness.is_none() && S::is_below(best, lowest) {
                continue;
            }
            let class = row.position(|score| score.rank() == best).unwrap_or(0);
            let best = S::of(best);
            let row = Scored { anchor: anchor as u32, objectness, best, class: class as u32 };
            self.take(row, layout, params, boxes);
        }
    }

    /// Each class's scores of all anchors lie side by side.
    #[inline(always)]
    fn columns<B: Element, S: Score>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        let lowest = S::rank_from(params.thresholds.lowest(layout.classes));
        for start in (0..layout.anchors).step_by(BLOCK) {
            let len = BLOCK.min(layout.anchors - start);
            let (mut best, mut group) = ([S::LEAST; BLOCK], [0; BLOCK]);
            for first in (0..layout.classes).step_by(GROUP) {
                let classes = first..layout.classes.min(first + GROUP);
                let mut rows = [&scores[..0]; GROUP];
                let count = classes.len();
                for (row, class) in rows.iter_mut().zip(classes) {
                    let from = layout.scores.index(start, class);
                    *row = &scores[from..from + len];
                }
                raise(&rows[..count], first as u32, &mut best[..len], &mut group[..len]);
            }
            for from in (0..len).step_by(WIDTH) {
                let till = len.min(from + WIDTH);
                let is_below = |&best: &S::Rank| S::is_below(best, lowest);
                if best[from..till].iter().fold(true, |all, best| all & is_below(best)) {
                    continue;
                }
                for i in (from..till).filter(|&i| !is_below(&best[i])) {
                    let (anchor, best, first) = (start + i, best[i], group[i] as usize);
                    let has_it =
                        |&class: &usize| scores[layout.scores.index(anchor, class)].rank() == best;
                    let class = (first..layout.classes.min(first + GROUP)).find(has_it);
                    let class = class.unwrap_or(0) as u32;
                    let best = S::of(best);
                    let row = Scored { anchor: anchor as u32, objectness: None, best, class };
                    self.take(row, layout, params, boxes);
                }
            }
        }
    }

    /// Applies the rules to a row, or with `multi_label` to a pair.
    #[inline(always)]
    pub(super) fn take<B: Element>(
        &mut self,
        row: Scored,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
    ) {
        let anchor = row.anchor as usize;
        let numbers = || numbers(&layout.boxes, layout.box_format, boxes, anchor);
        let verdict = make_candidate(row, params, layout.box_format, numbers, &mut self.candidates);
        self.rejected += usize::from(verdict.is_err());
    }
}

/// The greater; `best` where `score` is not a number.
#[inline(always)]
fn better<R: PartialOrd>(score: R, best: R) -> R {
    if score > best { score } else { best }
}

/// The rank of a row's greatest score, of minus infinity where none is a number.
#[inline(always)]
fn greatest<S: Score>(row: &[S]) -> S::Rank {
    const LANES: usize = 16;
    if let [only] = row {
        return better(only.rank(), S::LEAST);
    }
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [S::LEAST; LANES];
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = better(score.rank(), *lane);
        }
    }
    let rest = rest.iter().fold(S::LEAST, |best, score| better(score.rank(), best));
    if chunks.is_empty() {
        return rest;
    }
    lanes.into_iter().fold(rest, |best, lane| better(lane, best))
}

/// Raises each anchor's best to the greatest of `rows`, and notes the `group` where that is greater.
#[inline(always)]
fn raise<S: Score>(rows: &[&[S]], group: u32, best: &mut [S::Rank], groups: &mut [u32]) {
    let (best_chunks, best_rest) = best.as_chunks_mut::<WIDTH>();
    let (group_chunks, group_rest) = groups.as_chunks_mut::<WIDTH>();
    for (chunk, (best, groups)) in best_chunks.iter_mut().zip(group_chunks).enumerate() {
        let before = *best;
        let mut lanes = before;
        for row in rows {
            let scores: &[S; WIDTH] =
                row[chunk * WIDTH..][..WIDTH].try_into().expect("it is as long");
            for (lane, score) in lanes.iter_mut().zip(scores) {
                *lane = better(score.rank(), *lane);
            }
        }
        for ((noted, lane), before) in groups.iter_mut().zip(lanes).zip(before) {
            *noted = if lane > before { group } else { *noted };
        }
        *best = lanes;
    }
    let first = best_chunks.len() * WIDTH;
    for (i, (best, noted)) in best_rest.iter_mut().zip(group_rest).enumerate() {
        for row in rows {
            let rank = row[first + i].rank();
            if rank > *best {
                (*best, *noted) = (rank, group);
            }
        }
    }
}

/// A box's numbers; those beyond its format's are zero.
#[inline(always)]
fn numbers<B: Element>(field: &Field, format: BoxFormat, boxes: &[B], anchor: usize) -> [f32; 4] {
    let number = |component| boxes[field.index(anchor, component)].to_f32();
    let fourth = if format.components() == 4 { number(3) } else { 0.0 };
    [number(0), number(1), number(2), fourth]
}
