// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups `[class-attrs-all]` and `[class-attrs-N]`.
//!
//! In: the keys of a group. Out: the values for its classes. Keys of nvinfer's other clustering methods
//! are not read.

use super::keys::{KeyError, Keys};

/// The values of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::elements::nmsfilter) struct Attributes {
    /// `pre-cluster-threshold` (in old files `threshold`): candidates with a lower score are dropped.
    pub before: Option<f32>,
    /// `post-cluster-threshold`: survivors have a higher score.
    pub after: Option<f32>,
    pub iou_threshold: Option<f32>,
    /// `topk`: the greatest number of survivors; 0 excludes the class.
    pub topk: Option<u32>,
    /// `detected-min-w` and `-h`, in pixels of the frame.
    pub min: [Option<u32>; 2],
    /// `detected-max-w` and `-h`, in pixels of the frame; 0 is no limit.
    pub max: [Option<u32>; 2],
    /// `roi-top-offset` and `roi-bottom-offset`.
    pub roi: [Option<u32>; 2],
    pub border: Option<[f64; 4]>,
    pub background: Option<[f64; 4]>,
}

impl Attributes {
    /// nvinfer's defaults.
    pub const DEFAULT: Self = Self {
        before: Some(0.2),
        after: Some(0.0),
        iou_threshold: Some(0.3),
        topk: None,
        min: [Some(0); 2],
        max: [Some(0); 2],
        roi: [Some(0); 2],
        border: Some([1.0, 0.0, 0.0, 1.0]),
        background: None,
    };

    /// Reads the values of a group. The last of equal keys counts.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn read(keys: &Keys, group: &str) -> Result<Self, KeyError> {
        let mut made = Self::default();
        for key in &keys.of(group) {
            let least_zero = |key: &str| {
                keys.number(group, key, "a number of at least 0", |number| number >= 0.0)
            };
            let pixels = || keys.integer(group, key, 0..=i32::MAX).map(Some);
            match key.as_str() {
                "threshold" | "pre-cluster-threshold" => made.before = Some(least_zero(key)?),
                "post-cluster-threshold" => made.after = Some(least_zero(key)?),
                "nms-iou-threshold" => {
                    let range = |number: f32| (0.0..=1.0).contains(&number);
                    let number = keys.number(group, key, "a number from 0 to 1", range)?;
                    made.iou_threshold = Some(number);
                }
                "topk" => made.topk = pixels()?,
                "detected-min-w" => made.min[0] = pixels()?,
                "detected-min-h" => made.min[1] = pixels()?,
                "detected-max-w" => made.max[0] = pixels()?,
                "detected-max-h" => made.max[1] = pixels()?,
                "roi-top-offset" => made.roi[0] = pixels()?,
                "roi-bottom-offset" => made.roi[1] = pixels()?,
                "border-color" => made.border = Some(keys.color(group, key)?),
                "bg-color" => made.background = Some(keys.color(group, key)?),
                _ => {}
            }
        }
        Ok(made)
    }

    /// Fills missing values in from `all`.
    pub fn or(self, all: Self) -> Self {
        let or = |own: [Option<u32>; 2], of: [Option<u32>; 2]| [own[0].or(of[0]), own[1].or(of[1])];
        Self {
            before: self.before.or(all.before),
            after: self.after.or(all.after),
            iou_threshold: self.iou_threshold.or(all.iou_threshold),
            topk: self.topk.or(all.topk),
            min: or(self.min, all.min),
            max: or(self.max, all.max),
            roi: or(self.roi, all.roi),
            border: self.border.or(all.border),
            background: self.background.or(all.background),
        }
    }

    /// Returns the pairs of limits that exclude every size.
    pub fn empty_ranges(&self) -> Vec<String> {
        let mut ranges = Vec::new();
        for (axis, name) in ["w", "h"].into_iter().enumerate() {
            let (min, max) = (self.min[axis].unwrap_or(0), self.max[axis].unwrap_or(0));
            if max > 0 && min > max {
                ranges
                    .push(format!("detected-min-{name}={min} is above detected-max-{name}={max}"));
            }
        }
        ranges
    }

    /// The least score that passes both thresholds. The threshold before suppression is inclusive, the one after it is not.
    /// Only boxes of higher score suppress a box, so both thresholds can be applied before suppression.
    pub fn score_threshold(&self) -> Option<f32> {
        let after = self.after.map(f32::next_up);
        self.before.map(|before| before.max(after.unwrap_or(f32::MIN))).or(after)
    }
}
