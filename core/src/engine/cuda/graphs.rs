// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graphs of an engine, and the rules for replacing them by larger ones.
//!
//! In: the requirements of a launch. Out: a graph that fits it. Candidates are sorted above a
//! limit. One graph serves groups with up to that many candidates, and another graph serves larger
//! groups. Each graph has a workspace.

use std::sync::Arc;

use super::enqueued::Enqueued;
use super::graph::{Graph, LaunchParams};
use super::graph_config::GraphConfig;
use super::kernels::Kernels;
use crate::device::{DriverError, Stream};

/// Capacities grow in steps of this size, so that a small increase needs no new graph.
pub(super) const CAPACITY_STEP: u32 = 2048;

#[derive(Debug, Default)]
pub(super) struct Graphs {
    /// The graph for groups up to the limit, then the graph for groups above it.
    all: [Option<Graph>; 2],
    /// The index of the last launch's graph.
    current: usize,
    /// True if the last run had a group with more candidates than the limit.
    pub had_sorted: bool,
}

impl Graphs {
    /// The graph of the last launch.
    pub fn last(&self) -> Option<&Graph> {
        self.all[self.current].as_ref()
    }

    /// If the last run had a group above the limit, prepares `wanted` for such groups again, unless
    /// `greatest`, the most candidates that a group can have, rules them out.
    pub fn expect_as_before(&self, wanted: &mut GraphConfig, greatest: u32) {
        if self.had_sorted && greatest > wanted.sort.limit {
            wanted.capacity = wanted.capacity.max(wanted.sort.limit + 1);
        }
    }

    /// A graph that holds `wanted`, whose memory is zero in the order of `stream`, for a launch with `params`. `greatest`
    /// is the most candidates that a group can have.
    pub fn prepare(
        &mut self,
        wanted: GraphConfig,
        greatest: u32,
        params: &mut LaunchParams,
        kernels: &Arc<Kernels>,
        stream: &Stream,
        enqueued: &mut Enqueued,
    ) -> Result<&mut Graph, DriverError> {
        self.current = usize::from(wanted.capacity > wanted.sort.limit);
        let graph = &mut self.all[self.current];
        if graph.as_ref().is_none_or(|graph| !graph.config.holds(&wanted)) {
            // Pending runs of the old graph still use its memory.
            enqueued.synchronize()?;
            let before = graph.take().map(|graph| graph.config);
            let config = with_memory_of(wanted, greatest, before);
            *graph = Some(Graph::new(kernels, stream, config)?);
        }
        let graph = graph.as_mut().expect("just made");
        params.kernel.capacity = graph.config.capacity;
        params.masks.capacity = graph.config.mask_words;
        Ok(graph)
    }
}

/// The configuration for `wanted` of a graph that replaces one of `before`.
fn with_memory_of(wanted: GraphConfig, greatest: u32, before: Option<GraphConfig>) -> GraphConfig {
    let limit = if wanted.capacity > wanted.sort.limit { u32::MAX } else { wanted.sort.limit };
    let in_steps = |capacity: u32| {
        let steps = capacity.max(1).div_ceil(CAPACITY_STEP);
        steps.saturating_mul(CAPACITY_STEP).min(limit)
    };
    let mut config = GraphConfig { capacity: in_steps(wanted.capacity), ..wanted };
    if let Some(before) = before {
        if wanted.masks.is_some() {
            config.mask_words = config.mask_words.max(before.mask_words);
        }
        if config.capacity > before.capacity {
            // Grow by at least half, so that slow growth needs few graphs.
            let grown = before.capacity.saturating_add(before.capacity / 2);
            config.capacity = config.capacity.max(in_steps(grown.min(greatest)));
        }
        // Keep earlier sizes, so that changing sizes do not need a new graph each time. The
        // exception is a case that would multiply the memory: few large groups followed by many
        // small ones.
        let (capacity, groups) =
            (config.capacity.max(before.capacity), config.groups.max(before.groups));
        let memory = |capacity: u32, groups: u32| u64::from(capacity) * u64::from(groups);
        let needed =
            memory(config.capacity, config.groups).max(memory(before.capacity, before.groups));
        if capacity <= limit && memory(capacity, groups) <= 2 * needed {
            (config.capacity, config.groups) = (capacity, groups);
        }
    }
    config
}
