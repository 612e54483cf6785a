// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inputs of a run: tensors, layout, parameters and places of images, and the graph that the
//! run needs.

use super::graph::LaunchParams;
use super::graph_config::GraphConfig;
use super::interface::{KernelParams, Source, is_multi_label};
use super::mask_params::{MaskParams, MaskPlaceParams};
use super::places::Placed;
use crate::decoder::PlainLayout;
use crate::engine::Job;
use crate::engine::validate::greatest_group;

/// The tensors, parameters and places of a run.
pub(super) struct Batch<'b> {
    pub source: Source,
    /// The layout, the parameters and the place of each image. A run has at least one image.
    pub job: Job<'b>,
    /// The plain layout that is equivalent to the job's, if one exists.
    pub plain: Option<PlainLayout>,
    /// For each image, the pixels of its masks.
    pub mask_places: Placed<MaskPlaceParams>,
    /// The configuration of a graph for the batch.
    pub config: GraphConfig,
    pub launch: LaunchParams,
}

impl Batch<'_> {
    /// The greatest number of anchors in a group. `validate` has checked that it fits in 32 bits.
    pub fn greatest_anchors(&self) -> u32 {
        (self.job.layout.anchors() * greatest_group(self.job.images)) as u32
    }

    /// The greatest number of candidates that a group can have. `validate` has also checked that
    /// the number of pairs fits in 32 bits.
    pub fn greatest_candidates(&self) -> u32 {
        let anchors = self.greatest_anchors();
        if is_multi_label(self.job.layout, self.job.params) {
            anchors * self.job.layout.score.components as u32
        } else {
            anchors
        }
    }

    /// The parameters for the memory of a graph.
    pub fn with_memory(&mut self, graph: &GraphConfig) -> &LaunchParams {
        let Self { source, job: Job { layout, params, .. }, mask_places, .. } = self;
        self.launch.kernel = match &self.plain {
            Some(plain) => KernelParams::new(source, plain, params, graph),
            None => KernelParams::of_layout(source, layout, params, graph),
        };
        if let Some(prototypes) = &layout.prototypes {
            self.launch.masks =
                MaskParams::new(source, layout, prototypes, mask_places, graph.mask_words);
        }
        self.launch.groups = self.config.groups;
        &self.launch
    }
}
