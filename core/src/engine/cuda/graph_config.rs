// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that a graph has, and the sizes of its memory.

use std::ffi::CStr;

use super::interface::{
    CHUNK_THREADS, DECODE_THREADS, LEAF_CANDIDATES, MAP_THREADS, PUBLISH_SHARED_RANKS,
    PUBLISH_STEP_RANKS, PUBLISH_THREADS, REDUCE_THREADS, SORT_THREADS, SortLimits, chunk_count,
    workspace_bytes,
};
use super::kernels::DecodeKernel;
use super::mask_params::MASK_THREADS;
use super::merging::{MERGE_THREADS, MergeKernel, PART_THREADS};
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

    /// The kernels, in the order of their nodes. The functions depend on the configuration only, also for a launch with
    /// fewer groups, because some drivers cannot change a node's function. Kernels for batches can run a single group, too,
    /// but take a little longer.
    pub fn kernels(&self) -> Vec<KernelNode> {
        use Reads::*;
        let capacity = self.capacity;
        let (is_batch, has_columns) = (self.groups > 1, self.column_components > 0);
        let [map, reduce] = match self.decode {
            DecodeKernel::Oriented => [c"map_oriented", c"reduce_oriented"],
            _ if is_batch => [c"map_batch", c"reduce_batch"],
            _ => [c"map", c"reduce"],
        };
        let (publish, results) = match (has_columns, is_batch) {
            (false, false) => (c"publish", Publish),
            (false, true) => (c"publish_batch", Publish),
            (true, false) => (c"publish_columns", PublishColumns),
            (true, true) => (c"publish_columns_batch", PublishColumns),
        };
        let tensors = match self.decode {
            DecodeKernel::Plain(_) => Decode,
            DecodeKernel::Layout | DecodeKernel::Oriented => DecodeLayout,
        };
        let node =
            |function, threads, blocks, reads| KernelNode { function, threads, blocks, reads };
        // A warp per candidate, but no more blocks than are resident at a time.
        let warps = [2, capacity.div_ceil(REDUCE_THREADS / 32)];
        let mut nodes = vec![
            node(self.decode.function(self.multi_label), DECODE_THREADS, [0; 2], tensors),
            // All groups together have a block per multiprocessor, so that each loads all candidates once.
            node(map, MAP_THREADS, [1, capacity], Workspace),
            node(reduce, REDUCE_THREADS, warps, Workspace),
        ];
        if capacity > self.sort.limit {
            // Few candidates per block, since each is a chain of loads, but no more blocks than are resident at a time.
            let few = [1, capacity.div_ceil(32)];
            // A thread per two candidates and per two positions.
            let half_as_many = [4, capacity / CHUNK_THREADS + 1];
            // A block per leaf, but no more than are resident at a time.
            let leaves = [4, capacity / LEAF_CANDIDATES as u32 + 1];
            nodes.extend([
                node(c"sort_count", SORT_THREADS, few, Workspace),
                node(c"sort_scatter", SORT_THREADS, few, Workspace),
                node(c"sort_rank", CHUNK_THREADS, half_as_many, Workspace),
            ]);
            for chunk in (0..chunk_count(capacity, self.sort.first_chunk)).map(Chunk) {
                nodes.extend([
                    node(c"chunk_filter", CHUNK_THREADS, leaves, chunk),
                    node(c"chunk_map", CHUNK_THREADS, leaves, chunk),
                    node(c"chunk_reduce", REDUCE_THREADS, warps, chunk),
                ]);
            }
        }
        nodes.extend(self.merge.iter().map(|&(function, threads, reads)| {
            let blocks = match threads {
                PART_THREADS => [1, capacity],
                // A warp has a candidate, or up to 32.
                _ => [4, capacity.div_ceil(MERGE_THREADS / 32)],
            };
            node(function, threads, blocks, reads)
        }));
        // Before publish, which stores its sequence number after all masks.
        nodes.extend(self.masks.map(|masks| node(masks, MASK_THREADS, [1, u32::MAX], Masks)));
        // A block per part of the candidates.
        let parts = match capacity {
            0..=PUBLISH_STEP_RANKS => 1,
            _ => capacity.div_ceil(PUBLISH_SHARED_RANKS),
        };
        nodes.push(node(publish, PUBLISH_THREADS, [1, parts], results));
        nodes
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
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelNode {
    /// The name of its function.
    pub function: &'static CStr,
    /// Threads per block.
    pub threads: u32,
    /// All groups together have the first number of blocks per multiprocessor, and a group at most the second number. A
    /// launch has the blocks of decode.
    pub blocks: [u32; 2],
    pub reads: Reads,
}

/// The parameters of a launch that a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The tensors, of a plain layout.
    Decode,
    /// The tensors, and where the layout's numbers are.
    DecodeLayout,
    /// The workspace alone, like all others.
    Workspace,
    /// The number of a chunk.
    Chunk(u32),
    Merge,
    ByColumn,
    Masks,
    Publish,
    PublishColumns,
}
