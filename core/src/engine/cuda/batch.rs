// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run reads: tensors, layout and parameters, and the graph that it needs.

use super::graph::{GraphConfig, LaunchParams};
use super::interface::{KernelParams, Memory, Precision, SortLimits, Source, is_multi_label};
use super::kernels::DecodeKernel;
use super::mask_params::MaskParams;
use crate::decoder::{Field, Layout, PlainLayout};
use crate::engine::Params;

/// The tensors and parameters of a run.
pub(super) struct Batch<'b> {
    pub source: Source,
    pub layout: &'b Layout,
    /// The plain layout that is equal to `layout`.
    pub plain: Option<&'b PlainLayout>,
    pub params: &'b Params,
    /// Which images have their candidates sorted.
    pub sort: SortLimits,
    pub launch: LaunchParams,
    /// The number of bytes that are uploaded.
    pub uploaded: u64,
}

impl Batch<'_> {
    /// `validate` has bounded the numbers of images and of anchors by 32 bits.
    pub fn images(&self) -> u32 {
        self.layout.images as u32
    }

    pub fn anchors(&self) -> u32 {
        self.layout.anchors() as u32
    }

    /// The most candidates that an image can have. `validate` has bounded the number of pairs, too.
    pub fn greatest_candidates(&self) -> u32 {
        match is_multi_label(self.layout, self.params) {
            true => self.anchors() * self.layout.score.components as u32,
            false => self.anchors(),
        }
    }

    /// The graph for `capacity` candidates of an image, without masks.
    pub fn config(&self, capacity: u32) -> GraphConfig {
        GraphConfig {
            capacity,
            images: self.images(),
            sort: self.sort,
            decode: match self.plain {
                Some(plain) => {
                    let fields = [plain.boxes, plain.scores];
                    let precision =
                        |of: Field| Precision::of(self.source.tensor(of.tensor).element);
                    DecodeKernel::Plain(fields.map(precision))
                }
                None if self.layout.is_oriented() => DecodeKernel::Oriented,
                None => DecodeKernel::Layout,
            },
            multi_label: is_multi_label(self.layout, self.params),
            column_components: self.layout.column_components() as u32,
            masks: None,
            mask_words: 0,
        }
    }

    /// The parameters for the memory of a graph per image: for candidates, and for words of masks.
    pub fn with_memory(&mut self, memory: Memory, mask_words: u32) -> &LaunchParams {
        let Self { source, layout, params, .. } = self;
        self.launch.kernel = match self.plain {
            Some(plain) => KernelParams::new(source, plain, params, memory),
            None => KernelParams::of_layout(source, layout, params, memory),
        };
        if let Some(prototypes) = &layout.prototypes {
            self.launch.masks = MaskParams::new(source, layout, prototypes, params, mask_words);
        }
        &self.launch
    }
}
