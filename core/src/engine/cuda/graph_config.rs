// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that a graph has, and the sizes of its memory.

use std::ffi::CStr;

use super::interface::{SortLimits, chunk_count, workspace_bytes};
use super::kernels::DecodeKernel;
use super::merging::MergeKernel;
use super::results::ResultSize;

/// The configuration that a graph is instantiated for. Launches with fewer groups or less capacity
/// can run on the graph, too. Images need no memory, so their number is not limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphConfig {
    /// The number of candidates per group that fit in memory.
    pub capacity: u32,
    /// The number of image groups that fit in memory.
    pub groups: u32,
    /// Determines which groups have their candidates sorted.
    pub sort: SortLimits,
    pub decode: DecodeKernel,
    pub multi_label: bool,
    /// The kernels that merge boxes or lower scores.
    pub merge: &'static [MergeKernel],
    /// The number of values that survivors carry along. If it is 0, the layout has no columns.
    pub column_components: u32,
    /// The kernel for masks, or `None` if the layout has no prototypes.
    pub masks: Option<&'static CStr>,
    /// The number of mask words per group that fit in memory.
    pub mask_words: u32,
}

impl GraphConfig {
    /// The size of a group's workspace in bytes.
    pub fn workspace_bytes(&self) -> usize {
        let is_oriented = self.decode == DecodeKernel::Oriented;
        workspace_bytes(self.capacity, is_oriented, self.sort.limit)
    }

    /// The size of the results of a launch.
    pub fn results(&self) -> ResultSize {
        let &Self { capacity, groups, column_components, mask_words, .. } = self;
        ResultSize { capacity, groups, column_components, mask_words }
    }

    /// The kernels, in the order of their nodes.
    pub fn kernels(&self) -> impl Iterator<Item = KernelNode> + use<> {
        use KernelNode::*;
        let is_sorted = self.capacity > self.sort.limit;
        let chunks = if is_sorted { chunk_count(self.capacity, self.sort.first_chunk) } else { 0 };
        let sort = [SortCount, SortScatter, SortRank].into_iter().filter(move |_| is_sorted);
        let of_chunks =
            (0..chunks).flat_map(|chunk| [ChunkFilter(chunk), ChunkMap(chunk), ChunkReduce(chunk)]);
        let masks = self.masks.map(|_| Masks);
        let merge = self.merge.iter().map(|&kernel| Merge(kernel));
        let deciding = [Decode, Map, Reduce].into_iter().chain(sort).chain(of_chunks);
        deciding.chain(merge).chain(masks).chain([Publish])
    }

    /// The name of the function of a kernel. It depends on the configuration only, also for a launch with fewer groups,
    /// because some drivers cannot change a node's function. Kernels for batches can run a single group, too, but take a
    /// little longer.
    pub fn function(&self, kernel: KernelNode) -> &'static CStr {
        let is_oriented = self.decode == DecodeKernel::Oriented;
        let (is_batch, has_columns) = (self.groups > 1, self.column_components > 0);
        match kernel {
            KernelNode::Decode => self.decode.function(self.multi_label),
            KernelNode::Map if is_oriented => c"map_oriented",
            KernelNode::Map if is_batch => c"map_batch",
            KernelNode::Map => c"map",
            KernelNode::Reduce if is_oriented => c"reduce_oriented",
            KernelNode::Reduce if is_batch => c"reduce_batch",
            KernelNode::Reduce => c"reduce",
            KernelNode::SortCount => c"sort_count",
            KernelNode::SortScatter => c"sort_scatter",
            KernelNode::SortRank => c"sort_rank",
            KernelNode::ChunkFilter(_) => c"chunk_filter",
            KernelNode::ChunkMap(_) => c"chunk_map",
            KernelNode::ChunkReduce(_) => c"chunk_reduce",
            KernelNode::Merge(kernel) => kernel.function(),
            KernelNode::Masks => self.masks.expect("the graph has the node"),
            KernelNode::Publish => match (has_columns, is_batch) {
                (false, false) => c"publish",
                (false, true) => c"publish_batch",
                (true, false) => c"publish_columns",
                (true, true) => c"publish_columns_batch",
            },
        }
    }

    /// Returns true if launches of `wanted` can run on a graph with this configuration.
    pub fn holds(&self, wanted: &Self) -> bool {
        self.capacity >= wanted.capacity
            && self.groups >= wanted.groups
            && self.sort == wanted.sort
            && (self.decode, self.multi_label) == (wanted.decode, wanted.multi_label)
            && self.merge == wanted.merge
            && self.column_components == wanted.column_components
            && self.masks == wanted.masks
            && self.mask_words >= wanted.mask_words
    }
}

/// The kernel of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelNode {
    Decode,
    Map,
    Reduce,
    SortCount,
    SortScatter,
    SortRank,
    /// With the number of the chunk, like the next two kernels.
    ChunkFilter(u32),
    ChunkMap(u32),
    ChunkReduce(u32),
    Merge(MergeKernel),
    /// Runs before publish, which stores its sequence number after all masks.
    Masks,
    Publish,
}
