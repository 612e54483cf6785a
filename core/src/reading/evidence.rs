// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for evidence in the results of engines that tensors are misread.
//!
//! In: the counts and the survivors of each frame. Out: a [`Finding`] if they contradict the decoder
//! and the settings. No element of a tensor is read, and the evidence depends neither on the engine nor on how
//! frames are grouped in runs.
//!
//! The rules were chosen with the help of recorded outputs of 20 model families, each read by every decoder that
//! accepts its shape. With the right decoder and the default threshold, no anchor is rejected, no score exceeds 1,
//! and no box extends beyond the model's input by more than a tenth of the input's size.

use super::interpretation::{Interpretation, ReadBoxes};
use super::notice::Finding;
use crate::decoder::{BoxFormat, Scores};
use crate::engine::detail::{Detail, Point};
use crate::engine::{Detection, GroupOutcome};
use crate::geometry::Bounds;

/// The greatest score that counts as a probability. The outputs of quantized models can exceed 1 by one step, which
/// is at most 1/128.
const MAX_PROBABILITY: f32 = 1.01;

/// Anchors are probably misread if at least this many are rejected per candidate. If a detector's output is read
/// correctly, no anchor is rejected. But some are rejected if the producer outputs boxes that are partly outside
/// the frame, or fills unused rows with NaN.
const REJECTED_PER_CANDIDATE: usize = 3;

/// Most anchors of a detector are background if its output has at least this many anchors. Synthetic outputs and
/// lists of boxes that have already been selected can have many candidates. So only shapes that are easily confused
/// are judged: rows of anchors without objectness, which YOLOv5 has with objectness; and two scores per box, which
/// face detectors output for background and face.
const MIN_ANCHORS: usize = 1000;

/// If objectness is misread as the score of a class, at least one of this many anchors is a candidate: in recorded
/// outputs, 34 % or more are. By contrast, 8 % of the anchors are candidates for a picture with hundreds of faces,
/// with the threshold below.
const ANCHORS_PER_CANDIDATE: usize = 4;

/// With lower score thresholds, which are used for precision-recall curves, background can become candidates.
const MIN_THRESHOLD: f32 = 0.1;

/// Normalized coordinates are from 0 to 1, and boxes of objects at the edges extend a little beyond this range. If
/// the coordinates were pixels, a box within these limits would be at most two pixels large, and in the corner of
/// the model's input.
const UNIT: Bounds = Bounds { left: -0.5, top: -0.5, right: 1.5, bottom: 1.5 };

/// Boxes are near the upper left corner if they end within this fraction of the model's input: 13 of 640 pixels.
/// The offsets from grid cells that YOLOX outputs before its decode step are within it.
const CORNER: f32 = 0.02;

/// A small object can really be in the corner. But it is unlikely that a frame has this many small objects in the
/// corner, no two of which are duplicates, and no object elsewhere.
const MIN_IN_CORNER: usize = 3;

/// Pixels of the model's input per anchor, if its size is unknown: detectors have one anchor or three for each cell of 8
/// by 8 pixels, and for larger cells. With three, there are 16.25.
const PIXELS_PER_ANCHOR: f32 = 16.0;

/// So many candidates and rejected anchors are enough to judge at once.
const MUCH: usize = 30;

/// So many are enough if all survivors are within [`UNIT`]: an object of two pixels in the corner is rare, and has few
/// candidates.
const MUCH_WITHIN_UNIT: usize = 8;

/// The column of the background is the best of nearly all anchors, since most show no object. Outputs with fewer anchors
/// than this can be lists of boxes that have already been selected.
const MIN_WITH_BACKGROUND: usize = 50;

/// The background is everywhere, so that suppression leaves at least as many boxes with it.
const MIN_OF_BACKGROUND: usize = 10;

/// The part of the anchors that are candidates then, and the part of the survivors that have its class.
const MOST: f32 = 0.8;

/// If the model's input is smaller than this, its corner is not distinguished from the rest.
const MIN_INPUT: f32 = 32.0;

/// A box is misread if it extends beyond the model's input by more than this multiple of the input's size. If only
/// the head of a person is in the frame, the box extends by less than three times the size of the visible part.
/// Pixels that are misread as normalized coordinates extend by hundreds of times.
const MAX_EXTENSION: f32 = 4.0;

/// With the right decoder, no box extends beyond the model's input by more than this multiple of the input's size. Many
/// do if corners are misread as center and size.
const USUAL_EXTENSION: f32 = 0.1;

/// So many boxes beyond that are no exception.
const MIN_BEYOND: usize = 3;

/// Angles in radians are smaller than this: models output half a turn or a whole turn, and this is two turns.
pub(super) const GREATEST_ANGLE: f32 = 12.6;

/// Sums over frames with one reading.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    frames: usize,
    anchors: usize,
    candidates: usize,
    rejected: usize,
    survivors: usize,
    /// The number of frames with candidates or rejected anchors.
    pub images: usize,
    /// The greatest number of survivors in any frame.
    most_survivors: usize,
    greatest_score: f32,
    /// The lowest class of a survivor.
    lowest_class: Option<u32>,
    /// The numbers of survivors of the first and of the last class.
    at_ends: [usize; 2],
    /// The number of survivors within [`UNIT`].
    within_unit: usize,
    /// The number of survivors within [`CORNER`].
    in_corner: usize,
    /// The number of survivors beyond [`MAX_EXTENSION`].
    huge: usize,
    /// The number of survivors beyond [`USUAL_EXTENSION`].
    beyond: usize,
    /// The number of points of survivors.
    points: usize,
    /// The number of points that are farther from the survivor's box than a quarter of the box's size.
    far: usize,
    /// The greatest magnitude of an oriented box's angle.
    greatest_angle: f32,
}

impl Evidence {
    /// Adds a frame of `anchors` anchors, or with multi-label, pairs of anchor and class.
    pub fn add(&mut self, frame: &GroupOutcome<'_>, anchors: usize, read_as: &Interpretation) {
        self.frames += 1;
        self.images += usize::from(frame.candidates + frame.rejected > 0);
        self.anchors += anchors;
        self.candidates += frame.candidates;
        self.rejected += frame.rejected;
        self.survivors += frame.survivors.len();
        self.most_survivors = self.most_survivors.max(frame.survivors.len());
        if let Some(best) = frame.survivors.first() {
            self.greatest_score = self.greatest_score.max(best.score);
        }
        let model = read_as.boxes.model;
        let [right, bottom] = match model {
            Some(sides) => sides.map(|side| CORNER * side),
            None if anchors >= MIN_ANCHORS => {
                [CORNER * (anchors as f32 * PIXELS_PER_ANCHOR).sqrt(); 2]
            }
            None => [0.0; 2],
        };
        let corner = Bounds { right, bottom, ..Bounds::ANY };
        // Normalized boxes on an input of unknown size stay normalized.
        let input = model.or_else(|| read_as.boxes.normalized.then_some([1.0; 2]));
        let [far, near] = [MAX_EXTENSION, USUAL_EXTENSION]
            .map(|extension| input.map_or(Bounds::ANY, |input| extended(input, extension)));
        let [first, last] = [read_as.first_class, (read_as.classes as u32).saturating_sub(1)];
        for &Detection { x1, y1, x2, y2, class, .. } in frame.survivors {
            let edges = [x1, y1, x2, y2];
            self.within_unit += usize::from(UNIT.contains(edges));
            self.in_corner += usize::from(corner.contains(edges));
            self.huge += usize::from(!far.contains(edges));
            self.beyond += usize::from(!near.contains(edges));
            self.at_ends[0] += usize::from(class == first);
            self.at_ends[1] += usize::from(class == last);
            self.lowest_class = Some(self.lowest_class.map_or(class, |lowest| lowest.min(class)));
        }
    }

    /// Adds the details of a survivor.
    pub fn add_detail(&mut self, survivor: &Detection, detail: &Detail<'_>) {
        if let Some(oriented) = detail.oriented_box {
            self.greatest_angle = self.greatest_angle.max(oriented.angle.abs());
        }
        let is_near = |number: f32, low: f32, high: f32| {
            let margin = 0.25 * (high - low);
            number >= low - margin && number <= high + margin
        };
        for Point { x, y, .. } in detail.points.iter() {
            self.points += 1;
            self.far += usize::from(
                !is_near(x, survivor.x1, survivor.x2) || !is_near(y, survivor.y1, survivor.y2),
            );
        }
    }

    /// Returns whether no anchor became a candidate or was rejected, as in frames without objects.
    pub fn is_empty(&self) -> bool {
        self.candidates == 0 && self.rejected == 0
    }

    /// Returns true if no other frame has to be seen to judge. A single frame can have hundreds of candidates.
    pub fn is_much(&self) -> bool {
        let is_within_unit = self.survivors > 0 && self.within_unit == self.survivors;
        let enough = if is_within_unit { MUCH_WITHIN_UNIT } else { MUCH };
        self.candidates + self.rejected >= enough
    }

    /// Returns the contradiction of the scores. A single score is enough evidence.
    pub fn check_scores(&self, reading: &Interpretation) -> Option<Finding> {
        let (score, decoder) = (self.greatest_score, reading.decoder.name());
        let threshold = reading.threshold;
        match reading.decoder.scores {
            _ if score <= MAX_PROBABILITY => None,
            Scores::Probabilities => Some(Finding::Score { score, decoder }),
            // A threshold outside 0 to 1 shows that the user expects other scores than probabilities.
            Scores::OfTheModel if (0.0..=1.0).contains(&threshold) => {
                Some(Finding::UnboundedScore { score, threshold })
            }
            Scores::OfTheModel | Scores::Unbounded => None,
        }
    }

    /// Returns the contradiction of the boxes of all frames.
    pub fn check(&self, reading: &Interpretation) -> Option<Finding> {
        let &Self { anchors, candidates, rejected, survivors, .. } = self;
        if self.is_empty() {
            return None;
        }
        if rejected >= REJECTED_PER_CANDIDATE * candidates {
            let is_all = candidates == 0 && rejected >= anchors;
            let reading = reading.boxes;
            return Some(if is_all {
                Finding::AllRejected { anchors, reading }
            } else {
                Finding::Rejected { rejected, candidates, reading }
            });
        }
        if survivors == 0 {
            return None;
        }
        self.check_place(reading.boxes)
            .or_else(|| self.check_centers(reading))
            .or_else(|| self.check_classes(reading))
            .or_else(|| self.check_points())
            .or_else(|| self.check_angles())
            .or_else(|| self.check_background(reading))
    }

    /// Checks where the boxes are in the model's input.
    fn check_place(&self, reading: ReadBoxes) -> Option<Finding> {
        let &Self { survivors: boxes, .. } = self;
        let ReadBoxes { model, normalized, .. } = reading;
        // Normalized boxes on an input of unknown size stay normalized.
        let is_large = model.map_or(!normalized, |it| it.iter().all(|&side| side >= MIN_INPUT));
        if is_large && self.within_unit == boxes {
            return Some(Finding::Normalized { boxes, model });
        }
        if is_large && self.in_corner == boxes && self.most_survivors >= MIN_IN_CORNER {
            return Some(Finding::InCorner { boxes, model });
        }
        if let Some(model) = model.filter(|_| 2 * self.huge >= boxes) {
            return Some(Finding::Huge { boxes: self.huge, all: boxes, model, reading });
        }
        // Numbers of any kind are within the input's size of it if they are multiplied by this size. An object at the edge
        // of the input can extend beyond it, but most objects of an image do not.
        (normalized && self.beyond >= MIN_BEYOND && 2 * self.beyond >= boxes)
            .then_some(Finding::Outside { boxes: self.beyond, all: boxes, reading })
    }

    /// Checks centers and sizes beside a class: other end-to-end models have corners.
    fn check_centers(&self, reading: &Interpretation) -> Option<Finding> {
        let &Self { beyond: boxes, survivors: all, .. } = self;
        let decoder = reading.decoder.name();
        let is_center = reading.boxes.of_six == Some(BoxFormat::Center);
        (is_center && 4 * boxes >= all).then_some(Finding::Beyond { boxes, all, decoder })
    }

    /// Looks for a class before the first class. With a low threshold nothing is concluded, because rows without a
    /// detection have low scores and any class.
    fn check_classes(&self, reading: &Interpretation) -> Option<Finding> {
        let (first, decoder) = (reading.first_class, reading.decoder.name());
        let class = self.lowest_class.filter(|&class| class < first)?;
        (reading.threshold >= MIN_THRESHOLD).then_some(Finding::ClassBeforeFirst {
            class,
            first,
            decoder,
        })
    }

    /// Checks the points. Keypoints are on their object, visible or not.
    fn check_points(&self) -> Option<Finding> {
        let &Self { points: all, far, .. } = self;
        (2 * far > all).then_some(Finding::Points { far, all })
    }

    /// Checks the angles. Great numbers are probably degrees.
    fn check_angles(&self) -> Option<Finding> {
        let angle = self.greatest_angle;
        (angle > GREATEST_ANGLE).then_some(Finding::Angles { angle })
    }

    /// Checks the number of candidates.
    fn check_background(&self, reading: &Interpretation) -> Option<Finding> {
        let &Self { frames, anchors, candidates, rejected, .. } = self;
        let &Interpretation { decoder, rows_without_objectness, classes, threshold, .. } = reading;
        let is_known = self.check_scores(reading).is_some();
        if is_known || threshold < MIN_THRESHOLD {
            return None;
        }
        let is_list = anchors < MIN_ANCHORS * frames;
        match decoder.scores {
            Scores::Probabilities
                if !is_list
                    && rows_without_objectness
                    && candidates >= anchors / ANCHORS_PER_CANDIDATE =>
            {
                let decoder = decoder.name();
                Some(Finding::NoBackground { candidates, anchors, decoder })
            }
            // The greater of two probabilities that add up to 1 always reaches the threshold.
            Scores::OfTheModel if !is_list && classes == 2 && candidates + rejected >= anchors => {
                Some(Finding::BackgroundClass { anchors })
            }
            _ => self.check_ends(reading),
        }
    }

    /// Looks for a class that nearly all anchors have.
    fn check_ends(&self, reading: &Interpretation) -> Option<Finding> {
        let &Self { frames, anchors, candidates, survivors, at_ends, .. } = self;
        let &Interpretation { classes, first_class, boxes, pairs, .. } = reading;
        let anchors = anchors / pairs;
        let is_most = |part: usize, of: usize| part as f32 >= MOST * of as f32;
        if boxes.class_field
            || classes < 2
            || anchors < MIN_WITH_BACKGROUND * frames
            || survivors < MIN_OF_BACKGROUND * frames
            || !is_most(candidates, anchors)
        {
            return None;
        }
        let end = at_ends.iter().position(|&count| is_most(count, survivors))?;
        let class = [first_class, classes as u32 - 1][end];
        let background = ["first", "last"][end];
        Some(Finding::BackgroundColumn { candidates, anchors, class, background })
    }
}

/// Looks for a survivor whose class has no label. A single one is enough evidence, and it can come late: nothing is
/// summed up.
pub(super) fn check_labels(survivors: &[Detection], reading: &Interpretation) -> Option<Finding> {
    let (labels, first) = (reading.labels?, reading.first_class);
    let class = survivors.iter().map(|survivor| survivor.class).max()?;
    let decoder = reading.decoder.name();
    (class as usize >= labels + first as usize && reading.threshold >= MIN_THRESHOLD)
        .then_some(Finding::ClassWithoutLabel { class, labels, first, decoder })
}

/// The model's input, extended by this multiple of its size on each side.
fn extended([width, height]: [f32; 2], by: f32) -> Bounds {
    let [right, bottom] = [(1.0 + by) * width, (1.0 + by) * height];
    Bounds { left: -by * width, top: -by * height, right, bottom }
}

#[cfg(test)]
mod tests;
