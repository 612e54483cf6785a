// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging and rescoring of boxes alone, without decoding.
//!
//! In: boxes, scores and, optionally, classes, in host or device memory. Out: the boxes and scores
//! that remain, best first, and the indices of the boxes that were merged. The work is done on the
//! CPU. The [rules of the engines](crate::engine) define the methods.

use super::box_input::BoxInput;
use super::boxes::{BoxNms, lay_out};
use super::host_boxes::{HostBoxes, integer, on_host};
use super::{Detection, NmsError};
use crate::engine::Boxes;
use crate::tensor::TensorView;

/// The boxes that remain, best first. All arrays have one element per box.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergedBoxes {
    /// Left, upper, right and lower edge.
    pub boxes: Vec<[f32; 4]>,
    /// The final scores.
    pub scores: Vec<f32>,
    /// The classes as passed; empty if there were none.
    pub classes: Vec<i64>,
    /// The index of the box from which the class is.
    pub keepers: Vec<u32>,
    /// The indices of the boxes that were merged into the keepers, one list after the other.
    pub merged: Vec<u32>,
    /// For each box, the end of its list in [`merged`](Self::merged).
    pub merged_ends: Vec<usize>,
}

impl MergedBoxes {
    /// The indices of the boxes that were merged into the keeper of this box. The list is empty if
    /// the method does not merge.
    ///
    /// # Panics
    /// Panics if there is no such box.
    pub fn merged_into(&self, index: usize) -> &[u32] {
        let first = index.checked_sub(1).map_or(0, |before| self.merged_ends[before]);
        &self.merged[first..self.merged_ends[index]]
    }

    fn truncate(&mut self, count: usize) {
        let Self { boxes, scores, classes, keepers, merged, merged_ends } = self;
        boxes.truncate(count);
        scores.truncate(count);
        classes.truncate(count);
        keepers.truncate(count);
        merged_ends.truncate(count);
        merged.truncate(merged_ends.last().copied().unwrap_or(0));
    }
}

impl BoxNms {
    /// Suppresses, merges or rescores upright boxes, by [`method`](Self::method).
    ///
    /// The tensors are as for [`run`](Self::run), with boxes `[N,4]` and with the classes as
    /// groups. `column` has the numbers that [`method`](Self::method) reads: densities `[N]` for
    /// [`Method::Adaptive`](super::Method::Adaptive), embeddings `[N,E]` with `E` from 1 to 1024 for
    /// [`Method::Feature`](super::Method::Feature), f32 or f16; `None` for other methods. Boxes below
    /// [`score_threshold`](Self::score_threshold) are left out. Boxes without
    /// area, or with a coordinate that is not finite, remain unchanged. Scores are limited to
    /// finite numbers.
    ///
    /// ```
    /// use nmsfilter_core::nms::{Backend, BoxNms, Method, Overlap};
    /// use nmsfilter_core::tensor::TensorView;
    ///
    /// // Two halves of an object, of two tiles, and another object.
    /// let boxes = [0.0, 0.0, 60.0, 50.0, 40.0, 0.0, 90.0, 50.0, 200.0, 0.0, 250.0, 50.0f32];
    /// let boxes = TensorView::from_slice("boxes", &[3, 4], &boxes);
    /// let scores = TensorView::from_slice("scores", &[3], &[0.8, 0.9, 0.7f32]);
    ///
    /// let mut nms = BoxNms::new(Backend::Cpu, None)?;
    /// (nms.method, nms.overlap, nms.iou_threshold) = (Method::Merge, Overlap::Smaller, 0.3);
    /// let merged = nms.merge(&boxes, &scores, None, None)?;
    /// assert_eq!(merged.boxes, [[0.0, 0.0, 90.0, 50.0], [200.0, 0.0, 250.0, 50.0]]);
    /// assert_eq!(merged.keepers, [1, 2]);
    /// assert_eq!(merged.merged_into(0), [0]);
    /// # Ok::<(), nmsfilter_core::nms::NmsError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run). Boxes of five numbers are an error, and so is a method
    /// that changes boxes or scores with [`Backend::Cuda`](super::Backend::Cuda).
    pub fn merge(
        &mut self,
        boxes: &TensorView<'_>,
        scores: &TensorView<'_>,
        classes: Option<&TensorView<'_>>,
        column: Option<&TensorView<'_>>,
    ) -> Result<&MergedBoxes, NmsError> {
        let input = BoxInput { column, ..BoxInput::new(boxes, scores, classes)? };
        if input.is_oriented {
            return Err(NmsError::input("boxes [N,4] of type f32 or f16", boxes));
        }
        self.set_params(&input)?;
        let mut params = self.params.clone();
        params.thresholds.default = self.score_threshold;
        params.check()?;
        lay_out(&mut self.layout, &input, input.count);
        self.engine.supports(&self.layout, &params)?;
        self.host.fill(&input, &mut self.downloads)?;

        let (cpu, result, host) = (&mut self.cpu, &mut self.merged, &self.host);
        let HostBoxes { numbers, scores, classes, rows, .. } = host;
        let [of_boxes, _, of_classes, _] = &mut self.downloads;
        let input_boxes = on_host(input.boxes, of_boxes)?;
        let input_classes = input.groups.map(|classes| on_host(classes, of_classes)).transpose()?;
        result.truncate(0);
        let unchanged =
            |index: usize| [0, 1, 2, 3].map(|number| input_boxes.to_f32(index * 4 + number));
        // Candidates below the threshold are the last ones in descending rank. A limit of 0
        // candidates would mean no limit.
        let least = self.score_threshold;
        params.max_candidates = scores.iter().filter(|&&score| score >= least).count();
        let (mut corners, _) = numbers.as_chunks();
        if params.max_candidates == 0 {
            corners = &[];
        }
        let boxes = Boxes { corners, scores, classes, rows };
        let (survivors, merged) = cpu.suppress_boxes(&boxes, &params);
        host.in_order(survivors, least, |kept, survivor| {
            let index = kept.index as usize;
            let (corners, merged) = match survivor {
                Some(of) => {
                    let Detection { x1, y1, x2, y2, .. } = survivors[of];
                    ([x1, y1, x2, y2], merged.members(of))
                }
                None => (unchanged(index), &[][..]),
            };
            result.boxes.push(corners);
            result.scores.push(kept.score);
            result.keepers.push(kept.index);
            result.classes.extend(input_classes.as_ref().map(|it| integer(it, index)));
            result.merged.extend(merged.iter().map(|&anchor| host.index(anchor)));
            result.merged_ends.push(result.merged.len());
        });
        if self.max_detections != 0 {
            self.merged.truncate(self.max_detections);
        }
        Ok(&self.merged)
    }
}
