// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the survivors that are attached, by a configuration of nvinfer.
//!
//! In: the configuration, and regions in pixels of the frame. Out: whether a region is within the limits of its class.
//! nvinfer applies the limits after suppression, so boxes outside of them still suppress others. The properties
//! `min-size`, `max-size` and `class-sizes` exclude boxes before suppression.

use super::Settings;
use super::nvinfer_config::Attributes;
use crate::output::Region;
use nmsfilter_core::engine::ClassRule;

/// The limits by class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::elements::nmsfilter) struct RegionRules {
    all: RegionLimits,
    /// Classes beyond the end have the limits for all classes.
    classes: Vec<RegionLimits>,
}

/// Pixels of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RegionLimits {
    min: [f32; 2],
    /// 0 for no limit.
    max: [f32; 2],
    /// Pixels at the upper and at the lower edge of the frame in which no part of the region may be.
    margins: [f32; 2],
}

impl RegionLimits {
    fn of(attributes: &Attributes, settings: &Settings) -> Self {
        let pixels = |of: [u32; 2]| of.map(|pixels| pixels as f32);
        let unless = |name, of| if settings.was_set.contains(name) { [0.0; 2] } else { pixels(of) };
        Self {
            min: unless("min-size", attributes.min),
            max: unless("max-size", attributes.max),
            margins: pixels(attributes.roi),
        }
    }

    fn has(&self, region: &Region, [_, height]: [u32; 2]) -> bool {
        let sides = [region.x2 - region.x1, region.y2 - region.y1];
        let is_in_range = |axis: usize| {
            let (min, max) = (self.min[axis], self.max[axis]);
            sides[axis] >= min && (max == 0.0 || sides[axis] <= max)
        };
        is_in_range(0)
            && is_in_range(1)
            && region.y1 >= self.margins[0]
            && region.y2 <= height as f32 - self.margins[1]
    }
}

impl RegionRules {
    /// Makes the rules of the configuration. If `min-size` or `max-size` is set, or the class has sizes in `class_rules`,
    /// these replace the configuration's sizes.
    pub fn new(settings: &Settings, class_rules: &[ClassRule]) -> Self {
        let Some(config) = &settings.nvinfer else { return Self::default() };
        let all = RegionLimits::of(&config.all, settings);
        let last = config.classes.keys().next_back().map_or(0, |last| last + 1);
        let count = last.max(class_rules.len());
        let of_class = |class| {
            let limits = RegionLimits::of(config.of(class), settings);
            if class_rules.get(class).is_some_and(|rule| rule.sizes.is_some()) {
                RegionLimits { min: [0.0; 2], max: [0.0; 2], ..limits }
            } else {
                limits
            }
        };
        Self { all, classes: (0..count).map(of_class).collect() }
    }

    /// Returns true if a region of a frame of this size is attached.
    pub fn keep(&self, region: &Region, frame: [u32; 2]) -> bool {
        let limits = self.classes.get(region.class as usize).unwrap_or(&self.all);
        *limits == RegionLimits::default() || limits.has(region, frame)
    }
}
