use super::super::{Detection, Params};
use super::admit::{Scored, admit};
use crate::head::{BoxFormat, Field, Layout};
use crate::tensor::Element;

/// Anchors whose running best stays in the first-level cache while the class rows stream past.
const BLOCK: usize = 1024;
/// Anchors looked at together; it divides [`BLOCK`].
const WIDTH: usize = 32;
/// Classes compared before their best is put back.
const GROUP: usize = 16;

/// Turns rows into candidates.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub candidates: Vec<Detection>,
    pub rejected: usize,
    /// How many classes a candidate can be of.
    pub classes: usize,
    best: Vec<f32>,
    group: Vec<u32>,
    widened: Vec<f32>,
}

impl Decoder {
    pub fn decode<B: Element, S: Element>(
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
    fn decode_with_avx2<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        self.decode_as_compiled(layout, params, boxes, scores);
    }

    #[inline(always)]
    pub fn decode_as_compiled<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        self.candidates.clear();
        self.rejected = 0;
        self.classes = layout.classes;
        if layout.scores.anchor_stride == 1 && layout.objectness.is_none() {
            self.columns(layout, params, boxes, scores);
        } else {
            self.rows(layout, params, boxes, scores);
        }
    }

    /// Each row's scores lie side by side.
    #[inline(always)]
    fn rows<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        let lowest = params.thresholds.lowest(layout.classes);
        let mut widened = std::mem::take(&mut self.widened);
        widened.resize(layout.classes.max(widened.len()), 0.0);
        for anchor in 0..layout.anchors {
            // Objectness lies with the scores.
            let objectness = layout.objectness.map(|field| scores[field.index(anchor, 0)].to_f32());
            if objectness.is_some_and(|objectness| is_hopeless(objectness, lowest)) {
                continue;
            }
            if objectness.is_some_and(|objectness| !objectness.is_finite()) {
                self.rejected += 1;
                continue;
            }
            let first = layout.scores.index(anchor, 0);
            let (best, class) = if layout.classes == 1 {
                let best = better(scores[first].to_f32(), f32::NEG_INFINITY);
                if objectness.is_none() && is_hopeless(best, lowest) {
                    continue;
                }
                (best, 0)
            } else {
                let row = S::widen(&scores[first..first + layout.classes], &mut widened);
                let best = greatest(row);
                if objectness.is_none() && is_hopeless(best, lowest) {
                    continue;
                }
                (best, row.iter().position(|&score| score == best).unwrap_or(0) as u32)
            };
            let row = Scored { anchor: anchor as u32, objectness, best, class };
            self.take(row, layout, params, boxes);
        }
        self.widened = widened;
    }

    /// Each class's scores of all anchors lie side by side.
    #[inline(always)]
    fn columns<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        let lowest = params.thresholds.lowest(layout.classes);
        let mut best = std::mem::take(&mut self.best);
        let mut group = std::mem::take(&mut self.group);
        let mut widened = std::mem::take(&mut self.widened);
        best.resize(BLOCK, 0.0);
        group.resize(BLOCK, 0);
        widened.resize(widened.len().max(GROUP * BLOCK), 0.0);
        for start in (0..layout.anchors).step_by(BLOCK) {
            let len = BLOCK.min(layout.anchors - start);
            best.fill(f32::NEG_INFINITY);
            for first in (0..layout.classes).step_by(GROUP) {
                let classes = first..layout.classes.min(first + GROUP);
                let mut rows = [&[][..]; GROUP];
                let count = classes.len();
                for ((row, class), room) in
                    rows.iter_mut().zip(classes).zip(widened.chunks_exact_mut(BLOCK))
                {
                    let from = layout.scores.index(start, class);
                    *row = S::widen(&scores[from..from + len], room);
                }
                raise(&rows[..count], first as u32, &mut best[..len], &mut group[..len]);
            }
            for from in (0..len).step_by(WIDTH) {
                let till = len.min(from + WIDTH);
                let is_hopeless = |&best: &f32| is_hopeless(best, lowest);
                if best[from..till].iter().fold(true, |all, best| all & is_hopeless(best)) {
                    continue;
                }
                for i in (from..till).filter(|&i| !is_hopeless(&best[i])) {
                    let (anchor, best, first) = (start + i, best[i], group[i] as usize);
                    let has_it = |&class: &usize| {
                        scores[layout.scores.index(anchor, class)].to_f32() == best
                    };
                    let class = (first..layout.classes.min(first + GROUP)).find(has_it);
                    let class = class.unwrap_or(0) as u32;
                    let row = Scored { anchor: anchor as u32, objectness: None, best, class };
                    self.take(row, layout, params, boxes);
                }
            }
        }
        self.best = best;
        self.group = group;
        self.widened = widened;
    }

    #[inline(always)]
    fn take<B: Element>(&mut self, row: Scored, layout: &Layout, params: &Params, boxes: &[B]) {
        let anchor = row.anchor as usize;
        let numbers = || numbers(&layout.boxes, layout.box_format, boxes, anchor);
        let verdict = admit(row, params, layout.box_format, numbers, &mut self.candidates);
        self.rejected += usize::from(verdict.is_err());
    }
}

/// Whether a row of this score, or objectness, is dropped whatever else it holds.
#[inline(always)]
fn is_hopeless(score: f32, lowest: f32) -> bool {
    // Minus infinity is rejected instead, as is what is not a number.
    (score < lowest) & (score > f32::NEG_INFINITY)
}

/// The greater; `best` where `score` is not a number.
#[inline(always)]
fn better(score: f32, best: f32) -> f32 {
    if score > best { score } else { best }
}

/// The greatest score of a row, minus infinity where none is a number.
#[inline(always)]
fn greatest(row: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, &score) in lanes.iter_mut().zip(chunk) {
            *lane = better(score, *lane);
        }
    }
    let wide = if chunks.is_empty() { &[][..] } else { &lanes[..] };
    wide.iter().chain(rest).fold(f32::NEG_INFINITY, |best, &score| better(score, best))
}

/// Raises each anchor's best to the greatest of `rows`, and notes the `group` where that is greater.
#[inline(always)]
fn raise(rows: &[&[f32]], group: u32, best: &mut [f32], groups: &mut [u32]) {
    let (best_chunks, best_rest) = best.as_chunks_mut::<WIDTH>();
    let (group_chunks, group_rest) = groups.as_chunks_mut::<WIDTH>();
    for (chunk, (best, groups)) in best_chunks.iter_mut().zip(group_chunks).enumerate() {
        let before = *best;
        let mut lanes = before;
        for row in rows {
            let scores: &[f32; WIDTH] =
                row[chunk * WIDTH..][..WIDTH].try_into().expect("it is as long");
            for (lane, &score) in lanes.iter_mut().zip(scores) {
                *lane = better(score, *lane);
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
            let score = row[first + i];
            if score > *best {
                (*best, *noted) = (score, group);
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
