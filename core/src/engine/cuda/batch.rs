// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inputs of a run: tensors, layout, parameters and places of images, and the graph that the
//! run needs.

use super::graph::LaunchParams;
use super::graph_config::GraphConfig;
use super::interface::{KernelParams, Memory, Precision, SortLimits, Source, is_multi_label};
use super::kernels::DecodeKernel;
use super::mask_params::{MaskParams, MaskPlaceParams};
use super::merging::MergeKernel;
use super::places::Placed;
use crate::decoder::{Field, PlainLayout};
use crate::engine::Job;
use crate::engine::place::group_count;
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
    /// Determines which groups have their candidates sorted.
    pub sort: SortLimits,
    pub launch: LaunchParams,
    /// The number of bytes that are uploaded.
    pub uploaded: u64,
}

impl Batch<'_> {
    /// The number of groups of images.
    pub fn groups(&self) -> u32 {
        group_count(self.job.images)
    }

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

    /// The configuration of a graph for `capacity` candidates per group, without masks.
    pub fn config(&self, capacity: u32) -> GraphConfig {
        GraphConfig {
            capacity,
            groups: self.groups(),
            sort: self.sort,
            decode: match &self.plain {
                Some(plain) => {
                    let fields = [plain.boxes, plain.scores];
                    let precision =
                        |of: Field| Precision::of(self.source.tensor(of.tensor).element);
                    DecodeKernel::Plain(fields.map(precision))
                }
                None if self.job.layout.is_oriented() => DecodeKernel::Oriented,
                None => DecodeKernel::Layout,
            },
            multi_label: is_multi_label(self.job.layout, self.job.params),
            merge: MergeKernel::of(self.job.params.method),
            column_components: self.job.layout.column_components() as u32,
            masks: None,
            mask_words: 0,
        }
    }

    /// The parameters for a graph's memory per group: memory for candidates, and for words of
    /// masks.
    pub fn with_memory(&mut self, memory: Memory, mask_words: u32) -> &LaunchParams {
        let Self { source, job: Job { layout, params, .. }, mask_places, .. } = self;
        self.launch.kernel = match &self.plain {
            Some(plain) => KernelParams::new(source, plain, params, memory),
            None => KernelParams::of_layout(source, layout, params, memory),
        };
        if let Some(prototypes) = &layout.prototypes {
            self.launch.masks =
                MaskParams::new(source, layout, prototypes, mask_places, mask_words);
        }
        self.launch.groups = self.groups();
        &self.launch
    }
}
