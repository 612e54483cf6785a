use super::super::{Detection, Params};
use super::admit::{Row, Scored, admit};
use crate::head::{Field, Layout};
use crate::tensor::Element;

/// Anchors whose running best stays in the first-level cache while the class rows stream past.
const BLOCK: usize = 1024;

/// Turns rows into candidates.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub candidates: Vec<Detection>,
    pub rejected: usize,
    best: Vec<f32>,
    class: Vec<u32>,
}

impl Decoder {
    pub fn run<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        self.candidates.clear();
        self.rejected = 0;
        if layout.scores.anchor_stride == 1 && layout.objectness.is_none() {
            self.columns(layout, params, boxes, scores);
        } else {
            self.rows(layout, params, boxes, scores);
        }
    }

    /// Each row's scores lie side by side.
    fn rows<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        let lowest = params.thresholds.lowest(layout.classes);
        for anchor in 0..layout.anchors {
            // Objectness lies with the scores.
            let objectness = layout.objectness.map(|field| scores[field.index(anchor, 0)].to_f32());
            if let Some(objectness) = objectness {
                if !objectness.is_finite() {
                    self.rejected += 1;
                    continue;
                }
                if objectness < lowest {
                    continue;
                }
            }
            let (mut best, mut class) = (f32::NEG_INFINITY, 0);
            for c in 0..layout.classes {
                let score = scores[layout.scores.index(anchor, c)].to_f32();
                if score > best {
                    (best, class) = (score, c as u32);
                }
            }
            let row = Scored { anchor: anchor as u32, objectness, best, class };
            self.take(row, layout, params, boxes);
        }
    }

    /// Each class's scores of all anchors lie side by side.
    fn columns<B: Element, S: Element>(
        &mut self,
        layout: &Layout,
        params: &Params,
        boxes: &[B],
        scores: &[S],
    ) {
        let mut best = std::mem::take(&mut self.best);
        let mut class = std::mem::take(&mut self.class);
        best.resize(BLOCK, 0.0);
        class.resize(BLOCK, 0);
        for start in (0..layout.anchors).step_by(BLOCK) {
            let len = BLOCK.min(layout.anchors - start);
            let (best, class) = (&mut best[..len], &mut class[..len]);
            best.fill(f32::NEG_INFINITY);
            class.fill(0);
            for c in 0..layout.classes {
                let from = layout.scores.index(start, c);
                let row = &scores[from..from + len];
                for ((best, class), score) in best.iter_mut().zip(&mut *class).zip(row) {
                    let score = score.to_f32();
                    let better = score > *best;
                    *best = if better { score } else { *best };
                    *class = if better { c as u32 } else { *class };
                }
            }
            for (i, (&best, &class)) in best.iter().zip(&*class).enumerate() {
                let row = Scored { anchor: (start + i) as u32, objectness: None, best, class };
                self.take(row, layout, params, boxes);
            }
        }
        self.best = best;
        self.class = class;
    }

    fn take<B: Element>(&mut self, row: Scored, layout: &Layout, params: &Params, boxes: &[B]) {
        let anchor = row.anchor as usize;
        let numbers = || numbers(&layout.boxes, layout.box_format.components(), boxes, anchor);
        match admit(row, params, layout.box_format, numbers) {
            Row::Candidate(candidate) => self.candidates.push(candidate),
            Row::Rejected => self.rejected += 1,
            Row::Dropped => {}
        }
    }
}

/// A box's numbers; those beyond its format's are zero.
fn numbers<B: Element>(field: &Field, components: usize, boxes: &[B], anchor: usize) -> [f32; 4] {
    let mut numbers = [0.0; 4];
    for (component, number) in numbers.iter_mut().enumerate().take(components) {
        *number = boxes[field.index(anchor, component)].to_f32();
    }
    numbers
}
