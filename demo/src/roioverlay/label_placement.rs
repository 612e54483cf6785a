// SPDX-License-Identifier: MIT OR Apache-2.0
//! Label placement.
//!
//! In: regions with labels and confidences, best first. Out: the labels that are drawn, with text
//! and position, such that they do not overlap each other and cover little of other regions.
//! Greedy, with a spatial grid instead of a comparison of all pairs.

use std::borrow::Cow;

use arrayvec::ArrayVec;

use super::LabelMode;
use super::font::Font;
use super::surface::Rect;
use crate::grid::Grid;

/// A label with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedLabel {
    /// The index of its caption.
    pub caption: usize,
    pub rect: Rect,
    pub text: String,
}

/// A region with its label and confidence.
#[derive(Clone, Debug)]
pub(super) struct Caption<'a> {
    pub region: Rect,
    pub label: Cow<'a, str>,
    /// Usually 0 to 1; always finite.
    pub confidence: Option<f64>,
}

impl Caption<'_> {
    /// The full text: label and confidence.
    fn full(&self) -> String {
        match self.short() {
            Some(short) => format!("{} {short}", self.label),
            None => self.label.clone().into_owned(),
        }
    }

    /// The confidence only: in percent from 0 to 1, otherwise as a number.
    fn short(&self) -> Option<String> {
        self.confidence.map(|confidence| match confidence {
            0.0..=1.0 => format!("{:.0}", confidence * 100.0),
            other if other.abs() < 1e6 => format!("{other:.1}"),
            other => format!("{other:.1e}"),
        })
    }

    /// The texts that are not too wide for the region, the longest first.
    fn fitting(&self, font: Font) -> ArrayVec<String, 2> {
        let widest = (self.region.x2 - self.region.x1) * 3 / 2;
        let texts = [Some(self.full()), self.short()].into_iter().flatten();
        texts.filter(|text| size(font, text)[0] <= widest).collect()
    }
}

/// Horizontal padding on each side of a label's text, in pixels.
pub(super) const LABEL_PADDING: i32 = 2;

/// A label may cover at most a fifth of another region's area.
const COVER_DIVISOR: i64 = 5;

/// Minimum side of the grid's cells in pixels; about the size of a label.
const MIN_CELL_SIDE: u32 = 32;

/// Places labels in the order of `captions`; earlier ones take precedence.
pub(super) fn place_labels(
    captions: &[Caption<'_>],
    mode: LabelMode,
    font: Font,
    frame: Rect,
) -> Vec<PlacedLabel> {
    match mode {
        LabelMode::Never => Vec::new(),
        LabelMode::Always => {
            let label = |(i, caption): (usize, &Caption<'_>)| {
                let text = caption.full();
                let rect = candidate_positions(&caption.region, size(font, &text), frame).next()?;
                Some(PlacedLabel { caption: i, rect, text })
            };
            captions.iter().enumerate().filter_map(label).collect()
        }
        LabelMode::Auto => place_without_overlap(captions, font, frame),
    }
}

fn place_without_overlap(captions: &[Caption<'_>], font: Font, frame: Rect) -> Vec<PlacedLabel> {
    let texts: Vec<_> = captions.iter().map(|caption| caption.fitting(font)).collect();
    let mut occupied = OccupiedAreas::new(captions, &texts, font, frame);
    for (i, texts) in texts.into_iter().enumerate() {
        let label = texts.into_iter().find_map(|text| {
            let mut candidate_positions =
                candidate_positions(&captions[i].region, size(font, &text), frame);
            let rect = candidate_positions.find(|rect| occupied.is_free(i, rect))?;
            Some(PlacedLabel { caption: i, rect, text })
        });
        label.into_iter().for_each(|label| occupied.add(label));
    }
    occupied.labels
}

/// The areas that a new label must not cover: other labels, and too much of another region.
struct OccupiedAreas<'a> {
    captions: &'a [Caption<'a>],
    /// The regions of which a label can cover more than a fifth.
    regions: Grid,
    labels: Vec<PlacedLabel>,
    /// The positions of `labels`.
    label_grid: Grid,
}

impl<'a> OccupiedAreas<'a> {
    fn new(
        captions: &'a [Caption<'a>],
        texts: &[ArrayVec<String, 2>],
        font: Font,
        frame: Rect,
    ) -> Self {
        let area = |text: &String| {
            let [width, height] = size(font, text).map(i64::from);
            width * height
        };
        let largest = texts.iter().flatten().map(area).max().unwrap_or(0);
        let size = [frame.x2 as u32, frame.y2 as u32];
        let (mut regions, mut label_grid) = (Grid::default(), Grid::default());
        regions.clear(size, MIN_CELL_SIDE, captions.len());
        label_grid.clear(size, MIN_CELL_SIDE, captions.len());
        for (i, Caption { region, .. }) in (0..).zip(captions) {
            if region.area() < largest * COVER_DIVISOR {
                regions.insert(region.corners(), i);
            }
        }
        Self { captions, regions, labels: Vec::new(), label_grid }
    }

    /// Whether a label of region `i` can be at `rect`.
    fn is_free(&self, i: usize, rect: &Rect) -> bool {
        let covers = |region: &Rect| region.intersection(rect).map_or(0, |both| both.area());
        let free = self
            .label_grid
            .near(rect.corners())
            .all(|label| covers(&self.labels[label as usize].rect) == 0);
        free && self.regions.near(rect.corners()).all(|other| {
            let region = &self.captions[other as usize].region;
            // The limit is relative to the region's area.
            other as usize == i || covers(region) * COVER_DIVISOR <= region.area()
        })
    }

    fn add(&mut self, label: PlacedLabel) {
        self.label_grid.insert(label.rect.corners(), self.labels.len() as u32);
        self.labels.push(label);
    }
}

/// Width and height of a label with this text, in pixels.
fn size(font: Font, text: &str) -> [i32; 2] {
    [font.width(text).saturating_add(2 * LABEL_PADDING), font.height()]
}

/// The possible positions of a label, best first: above the region, below it, inside at its upper
/// edge.
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

    fn caption(x: i32, y: i32, side: i32) -> Caption<'static> {
        let region = Rect { x1: x, y1: y, x2: x + side, y2: y + side };
        Caption { region, label: "face".into(), confidence: Some(0.873) }
    }

    fn texts(captions: &[Caption<'_>], mode: LabelMode) -> Vec<String> {
        let font = Font::for_frame(480);
        place_labels(captions, mode, font, FRAME).into_iter().map(|label| label.text).collect()
    }

    #[test]
    fn a_wide_region_has_its_label_in_full_above_it() {
        let captions = [caption(100, 100, 80)];
        let labels = place_labels(&captions, LabelMode::Auto, Font::for_frame(480), FRAME);
        assert_eq!(labels[0].text, "face 87");
        assert_eq!((labels[0].rect.x1, labels[0].rect.y2), (100, 100));
    }

    #[test]
    fn a_narrow_region_shows_the_confidence_alone_and_a_tiny_one_nothing() {
        assert_eq!(texts(&[caption(100, 100, 24)], LabelMode::Auto), ["87"]);
        assert!(texts(&[caption(100, 100, 8)], LabelMode::Auto).is_empty());
    }

    #[test]
    fn a_region_at_the_top_has_its_label_below() {
        let captions = [caption(100, 3, 80)];
        let labels = place_labels(&captions, LabelMode::Auto, Font::for_frame(480), FRAME);
        assert_eq!(labels[0].rect.y1, 83);
    }

    #[test]
    fn labels_do_not_overlap_each_other_or_cover_regions_or_leave_the_frame() {
        let crowd: Vec<_> =
            (0..400).map(|i| caption(i % 20 * 31, i / 20 * 23, 22 + i % 7 * 6)).collect();
        let labels = place_labels(&crowd, LabelMode::Auto, Font::for_frame(480), FRAME);
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

    /// The placement of [`place_labels`] in the mode auto, from all pairs.
    fn place_without_overlap_by_pairs(captions: &[Caption<'_>], font: Font) -> Vec<PlacedLabel> {
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
            let label = caption.fitting(font).into_iter().find_map(|text| {
                let rect =
                    candidate_positions(&caption.region, size(font, &text), FRAME).find(free)?;
                Some(PlacedLabel { caption: i, rect, text })
            });
            labels.extend(label);
        }
        labels
    }

    #[test]
    fn placement_equals_that_of_a_comparison_of_all_pairs() {
        let mut random = fastrand::Rng::with_seed(9);
        let font = Font::for_frame(480);
        for side in [10, 40, 100, 600] {
            let crowd: Vec<_> = (0..300)
                .map(|i| {
                    let (x, y) = (random.i32(0..640), random.i32(0..480));
                    let (w, h) = (random.i32(1..side), random.i32(1..side));
                    let region = Rect { x1: x, y1: y, x2: x + w, y2: y + h };
                    let label = ["a", "person", "a label that is rather long"][i % 3].into();
                    Caption { region, label, confidence: (i % 5 > 0).then(|| random.f64()) }
                })
                .collect();
            let labels = place_labels(&crowd, LabelMode::Auto, font, FRAME);
            assert_eq!(labels, place_without_overlap_by_pairs(&crowd, font), "sides up to {side}");
            assert!(side == 10 || labels.len() > 5, "{} labels, sides up to {side}", labels.len());
        }
    }

    #[test]
    fn large_confidences_are_shown_with_an_exponent() {
        let huge = Caption { confidence: Some(-1e300), ..caption(100, 100, 160) };
        assert_eq!(texts(&[huge], LabelMode::Auto), ["face -1.0e300"]);
    }

    #[test]
    fn always_labels_every_region_and_never_none() {
        let crowd: Vec<_> = (0..50).map(|i| caption(i * 5, 100, 20)).collect();
        assert_eq!(texts(&crowd, LabelMode::Always).len(), 50);
        assert!(texts(&crowd, LabelMode::Never).is_empty());
    }

    #[test]
    fn confidences_above_one_are_not_shown_as_percentages() {
        let raw = Caption { confidence: Some(41.84), ..caption(100, 100, 160) };
        assert_eq!(texts(&[raw], LabelMode::Auto), ["face 41.8"]);
        let unknown = Caption { confidence: None, ..caption(100, 100, 160) };
        assert_eq!(texts(&[unknown], LabelMode::Auto), ["face"]);
    }
}
