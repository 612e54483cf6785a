// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a region of a frame is scaled to the model's input.
//!
//! In: the region, and the rule by which it is fitted into the model's input. Out: a [`Scaling`], with the position of
//! each pixel among the samples of the frame. A whole frame is a region, too.

use super::frame_format::CHANNELS;
use super::positions::positions;
use super::resampler::Resampler;
use crate::inference::model::InputSpec;
use nmsfilter_core::geometry::{Fit, FitRule, FrameRegion};

/// The sampling positions of the scaled pixels among the samples of a component.
#[derive(Clone, Debug, Default)]
pub struct ComponentPositions {
    /// The positions of the columns.
    pub columns: Vec<u32>,
    /// The positions of the rows.
    pub rows: Vec<u32>,
}

/// Describes how a region of a frame is scaled.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// The region.
    pub region: FrameRegion,
    /// The size of the scaled region, and its position in the model's input.
    pub fit: Fit,
    /// The sampling positions for each component.
    pub positions: [ComponentPositions; CHANNELS],
}

impl Scaling {
    /// Computes the positions for a region of the frames of `resampler`, which is fitted into the model's input by `rule`.
    ///
    /// # Panics
    /// If the region is not inside the frame.
    pub fn new(
        resampler: &Resampler,
        region: FrameRegion,
        input: &InputSpec,
        rule: impl Into<FitRule>,
    ) -> Self {
        let frame = resampler.frame_size();
        assert!(region.is_inside(frame), "the region {region} is not inside the frame {frame:?}");
        let fit = rule.into().fit(region.size(), input.size);
        let mut all = <[ComponentPositions; CHANNELS]>::default();
        for (to, component) in all.iter_mut().zip(&resampler.format.components) {
            let axis = |axis: usize| {
                positions(
                    region.origin()[axis],
                    fit.source[axis],
                    component.shift[axis],
                    fit.size[axis],
                )
            };
            *to = ComponentPositions { columns: axis(0), rows: axis(1) };
        }
        Self { region, fit, positions: all }
    }
}
