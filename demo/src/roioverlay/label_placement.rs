// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places labels.
//!
//! In: regions with labels and confidences, the best first. Out: the labels to draw, with their
//! texts and positions. Labels do not overlap each other, and cover only little of other regions.
//! The algorithm is greedy, and uses a spatial grid instead of comparing all pairs.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::LabelMode;
use super::font::Font;
use super::surface::Rect;
use crate::grid::Grid;

/// A label that has a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedLabel {
    /// Index of the label's caption.
    pub caption: usize,
    pub rect: Rect,
    /// Range of the label's text within the frame's texts.
    pub text: Range<usize>,
}

/// A region, and the texts that its label can have. They are ranges within the frame's texts.
#[derive(Clone, Debug)]
pub(super) struct Caption {
    pub region: Rect,
    /// Label and confidence, and a line for each class that a classifier has found.
    pub full: Range<usize>,
    /// Confidence without the label. The range is empty if there is no confidence.
    pub short: Range<usize>,
}

impl Caption {
    /// Returns the texts that are not too wide for the region, the longest first.
    fn fitting(&self, texts: &str, font: Font) -> ArrayVec<Range<usize>, 3> {
        let widest = (self.region.x2 - self.region.x1) * 3 / 2;
        let short = Some(self.short.clone()).filter(|short| !short.is_empty());
        let lines = texts[self.full.clone()].find('\n');
        let first_line = lines.map(|end| self.full.start..self.full.start + end);
        let own = [Some(self.full.clone()), first_line, short].into_iter().flatten();
        own.filter(|text| size(font, &texts[text.clone()])[0] <= widest).collect()
    }
}

/// Horizontal padding on each side of a label's text, in pixels.
pub(super) const LABEL_PADDING: i32 = 2;

/// A label may cover at most this fraction of another region's area: a fifth.
const COVER_DIVISOR: i64 = 5;

/// Minimum side of the grid's cells in pixels, which is about the size of a label.
const MIN_CELL_SIDE: u32 = 32;

/// Places the labels of frames. Its memory is reused for the next frame.
#[derive(Debug, Default)]
pub(super) struct LabelPlacement {
    /// Regions that are so small that a label could cover more than a fifth of them.
    regions: Grid,
    labels: Vec<PlacedLabel>,
    /// Positions of `labels`.
    label_grid: Grid,
}

impl LabelPlacement {
    /// Places labels in the order of `captions`. Earlier captions have precedence.
    pub fn place(
        &mut self,
        texts: &str,
        captions: &[Caption],
        mode: LabelMode,
        font: Font,
        frame: Rect,
    ) -> &[PlacedLabel] {
        self.labels.clear();
        match mode {
            LabelMode::Never => {}
            LabelMode::Always => {
                let label = |(i, caption): (usize, &Caption)| {
                    let text = caption.full.clone();
                    let size = size(font, &texts[text.clone()]);
                    let rect = candidate_positions(&caption.region, size, frame).next()?;
                    Some(PlacedLabel { caption: i, rect, text })
                };
                self.labels.extend(captions.iter().enumerate().filter_map(label));
            }
            LabelMode::Auto => self.place_without_overlap(texts, captions, font, frame),
        }
        &self.labels
    }

    fn place_without_overlap(
        &mut self,
        texts: &str,
        captions: &[Caption],
        font: Font,
        frame: Rect,
    ) {
        self.clear(texts, captions, font, frame);
        for (i, caption) in captions.iter().enumerate() {
            let label = caption.fitting(texts, font).into_iter().find_map(|text| {
                let size = size(font, &texts[text.clone()]);
                let mut candidate_positions = candidate_positions(&caption.region, size, frame);
                let rect = candidate_positions.find(|rect| self.is_free(captions, i, rect))?;
                Some(PlacedLabel { caption: i, rect, text })
            });
            label.into_iter().for_each(|label| self.add(label));
        }
    }

    /// Removes all labels, and prepares for placing labels of these captions.
    fn clear(&mut self, texts: &str, captions: &[Caption], font: Font, frame: Rect) {
        let area = |text: Range<usize>| {
            let [width, height] = size(font, &texts[text]).map(i64::from);
            width * height
        };
        let all = captions.iter().flat_map(|caption| caption.fitting(texts, font));
        let largest = all.map(area).max().unwrap_or(0);
        let size = [frame.x2 as u32, frame.y2 as u32];
        self.regions.clear(size, MIN_CELL_SIDE, captions.len());
        self.label_grid.clear(size, MIN_CELL_SIDE, captions.len());
        for (i, Caption { region, .. }) in (0..).zip(captions) {
            if region.area() < largest * COVER_DIVISOR {
                self.regions.insert(region.corners(), i);
            }
        }
    }

    /// Returns true if a label of region `i` may be at `rect`: it covers no other label, and not
    /// too much of another region.
    fn is_free(&self, captions: &[Caption], i: usize, rect: &Rect) -> bool {
        let covers = |region: &Rect| region.intersection(rect).map_or(0, |both| both.area());
        let free = self
            .label_grid
            .near(rect.corners())
            .all(|label| covers(&self.labels[label as usize].rect) == 0);
        free && self.regions.near(rect.corners()).all(|other| {
            let region = &captions[other as usize].region;
            // The limit is relative to the other region's area.
            other as usize == i || covers(region) * COVER_DIVISOR <= region.area()
        })
    }

    fn add(&mut self, label: PlacedLabel) {
        self.label_grid.insert(label.rect.corners(), self.labels.len() as u32);
        self.labels.push(label);
    }
}

/// Returns width and height in pixels of a label with this text.
fn size(font: Font, text: &str) -> [i32; 2] {
    let (mut width, mut height) = (0, 0);
    for line in text.split('\n') {
        width = font.width(line).max(width);
        height += font.height();
    }
    [width.saturating_add(2 * LABEL_PADDING), height]
}

/// Returns the possible positions of a label, the best first: above the region, below it, and
/// inside at its upper edge.
fn candidate_positions(
    region: &Rect,
    [width, height]: [i32; 2],
    frame: Rect,
) -> impl Iterator<Item = Rect> + use<> {
    let x = region.x1.min(frame.x2 - width).max(0);
    [region.y1 - height, region.y2, region.y1]
        .map(|y| Rect { x1: x, y1: y, x2: x + width, y2: y + height })
        .into_iter()
        .filter(move |rect| rect.y1 >= 0 && rect.y2 <= frame.y2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Rect = Rect { x1: 0, y1: 0, x2: 640, y2: 480 };
    const FONT: Font = Font::SMALLEST;

    /// The texts of all captions in the tests.
    const TEXTS: &str =
        "face 87 a 5 person 12 a label that is rather long 99 car 90\nred 80\na delivery van 9";

    /// Returns a caption with these texts. The second text is part of the first, or empty.
    fn caption_with(region: Rect, full: &str, short: &str) -> Caption {
        let start = TEXTS.find(full).unwrap();
        let end = start + full.len();
        Caption { region, full: start..end, short: end - short.len()..end }
    }

    fn caption(x: i32, y: i32, side: i32) -> Caption {
        caption_with(Rect { x1: x, y1: y, x2: x + side, y2: y + side }, "face 87", "87")
    }

    fn place_labels(captions: &[Caption], mode: LabelMode) -> Vec<PlacedLabel> {
        let mut placement = LabelPlacement::default();
        // Labels of an earlier frame must not influence the result.
        placement.place(TEXTS, &[caption(1, 90, 300), caption(9, 90, 80)], mode, FONT, FRAME);
        placement.place(TEXTS, captions, mode, FONT, FRAME).to_vec()
    }

    fn texts(captions: &[Caption], mode: LabelMode) -> Vec<&'static str> {
        place_labels(captions, mode).into_iter().map(|label| &TEXTS[label.text]).collect()
    }

    #[test]
    fn a_wide_region_has_its_label_in_full_above_it() {
        let captions = [caption(100, 100, 80)];
        let labels = place_labels(&captions, LabelMode::Auto);
        assert_eq!(&TEXTS[labels[0].text.clone()], "face 87");
        assert_eq!((labels[0].rect.x1, labels[0].rect.y2), (100, 100));
    }

    #[test]
    fn a_narrow_region_shows_the_confidence_alone_and_a_tiny_one_nothing() {
        assert_eq!(texts(&[caption(100, 100, 24)], LabelMode::Auto), ["87"]);
        assert!(texts(&[caption(100, 100, 8)], LabelMode::Auto).is_empty());
    }

    #[test]
    fn classes_have_a_line_each_where_there_is_room() {
        let lines = "car 90\nred 80\na delivery van 9";
        let of_side = |side| Rect { x1: 100, y1: 100, x2: 100 + side, y2: 100 + side };
        let wide = [caption_with(of_side(120), lines, "")];
        let labels = place_labels(&wide, LabelMode::Auto);
        assert_eq!(&TEXTS[labels[0].text.clone()], lines);
        assert_eq!((labels[0].rect.y1, labels[0].rect.y2), (100 - 3 * FONT.height(), 100));
        assert_eq!(texts(&[caption_with(of_side(50), lines, "")], LabelMode::Auto), ["car 90"]);
    }

    #[test]
    fn a_region_at_the_top_has_its_label_below() {
        let captions = [caption(100, 3, 80)];
        let labels = place_labels(&captions, LabelMode::Auto);
        assert_eq!(labels[0].rect.y1, 83);
    }

    #[test]
    fn labels_do_not_overlap_each_other_or_cover_regions_or_leave_the_frame() {
        let crowd: Vec<_> =
            (0..400).map(|i| caption(i % 20 * 31, i / 20 * 23, 22 + i % 7 * 6)).collect();
        let labels = place_labels(&crowd, LabelMode::Auto);
        assert!(!labels.is_empty());
        for (i, label) in labels.iter().enumerate() {
            assert_eq!(
                label.rect.intersection(&FRAME),
                Some(label.rect),
                "{label:?} leaves the frame"
            );
            for other in &labels[..i] {
                assert_eq!(
                    label.rect.intersection(&other.rect),
                    None,
                    "{label:?} overlaps {other:?}"
                );
            }
            for (j, other) in crowd.iter().enumerate().filter(|(j, _)| *j != label.caption) {
                let both = other.region.intersection(&label.rect).map_or(0, |both| both.area());
                assert!(both * COVER_DIVISOR <= other.region.area(), "{label:?} covers region {j}");
            }
        }
    }

    /// Places labels in the mode auto by comparing all pairs.
    fn place_without_overlap_by_pairs(captions: &[Caption]) -> Vec<PlacedLabel> {
        let mut labels: Vec<PlacedLabel> = Vec::new();
        for (i, caption) in captions.iter().enumerate() {
            let covered =
                |rect: &Rect, by: &Rect| rect.intersection(by).map_or(0, |both| both.area());
            let free = |rect: &Rect| {
                labels.iter().all(|label| covered(&label.rect, rect) == 0)
                    && captions.iter().enumerate().all(|(j, other)| {
                        j == i
                            || covered(&other.region, rect) * COVER_DIVISOR <= other.region.area()
                    })
            };
            let label = caption.fitting(TEXTS, FONT).into_iter().find_map(|text| {
                let size = size(FONT, &TEXTS[text.clone()]);
                let rect = candidate_positions(&caption.region, size, FRAME).find(free)?;
                Some(PlacedLabel { caption: i, rect, text })
            });
            labels.extend(label);
        }
        labels
    }

    #[test]
    fn placement_equals_a_comparison_of_all_pairs() {
        let mut random = fastrand::Rng::with_seed(9);
        for side in [10, 40, 100, 600] {
            let crowd: Vec<_> = (0..300)
                .map(|i| {
                    let (x, y) = (random.i32(0..640), random.i32(0..480));
                    let (w, h) = (random.i32(1..side), random.i32(1..side));
                    let region = Rect { x1: x, y1: y, x2: x + w, y2: y + h };
                    let (full, short) = [
                        ("a 5", "5"),
                        ("person 12", "12"),
                        ("a label that is rather long 99", "99"),
                    ][i % 3];
                    caption_with(region, full, if i % 5 > 0 { short } else { "" })
                })
                .collect();
            let labels = place_labels(&crowd, LabelMode::Auto);
            assert_eq!(labels, place_without_overlap_by_pairs(&crowd), "sides up to {side}");
            assert!(side == 10 || labels.len() > 5, "{} labels, sides up to {side}", labels.len());
        }
    }

    #[test]
    fn the_modes_always_and_never_label_every_region_and_none() {
        let crowd: Vec<_> = (0..50).map(|i| caption(i * 5, 100, 20)).collect();
        assert_eq!(texts(&crowd, LabelMode::Always).len(), 50);
        assert!(texts(&crowd, LabelMode::Never).is_empty());
    }

    #[test]
    fn a_region_without_a_confidence_has_its_label_only() {
        let region = caption(100, 100, 160).region;
        assert_eq!(texts(&[caption_with(region, "face", "")], LabelMode::Auto), ["face"]);
    }
}
