// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups `[class-attrs-all]` and `[class-attrs-N]`.
//!
//! In: the keys of a group. Out: the values for its classes. Keys of nvinfer's other clustering methods
//! are not read.

use super::keys::{Key, KeyTable};
use crate::deepstream::ObjectColors;
use crate::elements::nmsfilter::settings::SettingsError;

/// The values of a class: those of its group, else those of all classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::elements::nmsfilter) struct Attributes {
    /// `pre-cluster-threshold` (in old files `threshold`): candidates with a lower score are dropped.
    before: f32,
    /// `post-cluster-threshold`: survivors have a higher score.
    after: f32,
    /// True if the group itself has one of the two.
    pub has_threshold: bool,
    /// `None` if the group itself has none.
    pub iou_threshold: Option<f32>,
    /// `topk`: the greatest number of survivors; 0 excludes the class.
    pub topk: Option<u32>,
    /// `detected-min-w` and `-h`, in pixels of the frame.
    pub min: [u32; 2],
    /// `detected-max-w` and `-h`, in pixels of the frame; 0 is no limit.
    pub max: [u32; 2],
    /// `roi-top-offset` and `roi-bottom-offset`.
    pub roi: [u32; 2],
    pub colors: ObjectColors,
}

impl Default for Attributes {
    /// nvinfer's defaults.
    fn default() -> Self {
        Self {
            before: 0.2,
            after: 0.0,
            has_threshold: false,
            iou_threshold: Some(0.3),
            topk: None,
            min: [0; 2],
            max: [0; 2],
            roi: [0; 2],
            colors: ObjectColors::default(),
        }
    }
}

/// The keys of these groups that are read.
pub(super) const CLASS_KEYS: &KeyTable<Attributes> = &[
    ("bg-color", |it, key| key.color().map(|color| it.colors.background = Some(color))),
    ("border-color", |it, key| key.color().map(|color| it.colors.border = color)),
    ("detected-max-h", |it, key| key.pixels().map(|pixels| it.max[1] = pixels)),
    ("detected-max-w", |it, key| key.pixels().map(|pixels| it.max[0] = pixels)),
    ("detected-min-h", |it, key| key.pixels().map(|pixels| it.min[1] = pixels)),
    ("detected-min-w", |it, key| key.pixels().map(|pixels| it.min[0] = pixels)),
    ("nms-iou-threshold", |it, key| {
        let is_valid = |number| (0.0..=1.0).contains(&number);
        it.iou_threshold = Some(key.number("a number from 0 to 1", is_valid)?);
        Ok(())
    }),
    ("post-cluster-threshold", |it, key| it.set_threshold(key, |it| &mut it.after)),
    ("pre-cluster-threshold", |it, key| it.set_threshold(key, |it| &mut it.before)),
    ("roi-bottom-offset", |it, key| key.pixels().map(|pixels| it.roi[1] = pixels)),
    ("roi-top-offset", |it, key| key.pixels().map(|pixels| it.roi[0] = pixels)),
    ("threshold", |it, key| it.set_threshold(key, |it| &mut it.before)),
    ("topk", |it, key| key.pixels().map(|number| it.topk = Some(number))),
];

impl Attributes {
    /// The values of all classes, which a group replaces.
    pub fn for_group(self) -> Self {
        Self { has_threshold: false, iou_threshold: None, ..self }
    }

    fn set_threshold(
        &mut self,
        key: Key<'_>,
        threshold: fn(&mut Self) -> &mut f32,
    ) -> Result<(), SettingsError> {
        *threshold(self) = key.number("a number of at least 0", |number| number >= 0.0)?;
        self.has_threshold = true;
        Ok(())
    }

    /// Returns the pairs of limits that exclude every size.
    pub fn empty_ranges(&self) -> Vec<String> {
        let mut ranges = Vec::new();
        for ((name, min), max) in ["w", "h"].into_iter().zip(self.min).zip(self.max) {
            if max > 0 && min > max {
                ranges
                    .push(format!("detected-min-{name}={min} is above detected-max-{name}={max}"));
            }
        }
        ranges
    }

    /// The least score that passes both thresholds. The threshold before suppression is inclusive, the one after it is not.
    /// Only boxes of higher score suppress a box, so both thresholds can be applied before suppression.
    pub fn score_threshold(&self) -> f32 {
        self.before.max(self.after.next_up())
    }
}
