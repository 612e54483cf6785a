// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graphs of an engine, and when they are replaced by larger ones.
//!
//! In: what a launch needs. Out: a graph that it runs on. There is one for up to as many candidates per group as the
//! limit above which candidates are sorted, and one for more, each with a workspace.

use std::sync::Arc;

use super::Enqueued;
use super::graph::{Graph, GraphConfig};
use super::kernels::Kernels;
use crate::device::{DriverError, Stream};

/// The step in which a graph's capacity grows, so that small differences need no new graph.
pub(super) const CAPACITY_STEP: u32 = 2048;

#[derive(Debug, Default)]
pub(super) struct Graphs {
    /// Up to the limit; above.
    all: [Option<Graph>; 2],
    /// That of the last launch.
    current: usize,
    /// Whether the last run had a group with more candidates than the limit.
    pub had_sorted: bool,
}

impl Graphs {
    /// The candidates per group that the graph of the last launch has memory for.
    pub fn capacity(&self) -> u32 {
        self.all[self.current].as_ref().map_or(0, Graph::capacity)
    }

    /// The graph of the last launch.
    pub fn last(&self) -> Option<&Graph> {
        self.all[self.current].as_ref()
    }

    /// The words of masks per group that it has memory for.
    pub fn mask_words(&self) -> u32 {
        self.all[self.current].as_ref().map_or(0, Graph::mask_words)
    }

    /// Makes `wanted` the configuration for more candidates than the limit, if the last run had such a group, and as
    /// many can come: at most `greatest` of a group.
    pub fn expect_as_before(&self, wanted: &mut GraphConfig, greatest: u32) {
        if self.had_sorted && greatest > wanted.sort.limit {
            wanted.capacity = wanted.capacity.max(wanted.sort.limit + 1);
        }
    }

    /// A graph for `wanted`, whose memory is zero in the order of `stream`. A group has at most `greatest` candidates.
    pub fn prepare(
        &mut self,
        wanted: GraphConfig,
        greatest: u32,
        kernels: &Arc<Kernels>,
        stream: &Stream,
        enqueued: &mut Enqueued,
    ) -> Result<&mut Graph, DriverError> {
        self.current = usize::from(wanted.capacity > wanted.sort.limit);
        let graph = &mut self.all[self.current];
        if graph.as_ref().is_none_or(|graph| !graph.holds(&wanted)) {
            // What the graph before was enqueued for uses its memory.
            enqueued.synchronize()?;
            let config = with_memory_of(wanted, greatest, graph.take());
            *graph = Some(Graph::new(kernels, stream, config)?);
        }
        Ok(graph.as_mut().expect("just made"))
    }
}

/// The configuration of a graph for `wanted` that replaces the graph `before`.
fn with_memory_of(wanted: GraphConfig, greatest: u32, before: Option<Graph>) -> GraphConfig {
    let limit = if wanted.capacity > wanted.sort.limit { u32::MAX } else { wanted.sort.limit };
    let in_steps = |capacity: u32| {
        let steps = capacity.max(1).div_ceil(CAPACITY_STEP);
        steps.saturating_mul(CAPACITY_STEP).min(limit)
    };
    let mut config = GraphConfig { capacity: in_steps(wanted.capacity), ..wanted };
    if let Some(before) = before {
        if wanted.masks.is_some() {
            config.mask_words = config.mask_words.max(before.mask_words());
        }
        if config.capacity > before.capacity() {
            // By half at least, so that slow growth needs few graphs.
            let grown = before.capacity().saturating_add(before.capacity() / 2);
            config.capacity = config.capacity.max(in_steps(grown.min(greatest)));
        }
        // Earlier sizes are kept, so that changing sizes do not need a new graph each time, unless
        // that multiplies the memory: few large groups followed by many small ones.
        let (capacity, groups) =
            (config.capacity.max(before.capacity()), config.groups.max(before.groups()));
        let memory = |capacity: u32, groups: u32| u64::from(capacity) * u64::from(groups);
        let needed =
            memory(config.capacity, config.groups).max(memory(before.capacity(), before.groups()));
        if capacity <= limit && memory(capacity, groups) <= 2 * needed {
            (config.capacity, config.groups) = (capacity, groups);
        }
    }
    config
}
