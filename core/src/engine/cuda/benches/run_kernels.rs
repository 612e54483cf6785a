// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels of a run, for launching and measuring them again.
//!
//! In: the tensors, layout and parameters of a run. Out: graphs of some or all of the run's
//! kernels.

use super::super::interface::{HEADER_BYTES, SORT_STATE_BYTES, sort_state_offset};
use super::super::{Cuda, Engine, EngineError, Job, OnDevice};
use super::{Graph, GraphConfig, KernelNode};
use crate::device::{DriverError, NodeSequence, Stream};

/// The kernels of an engine's last run.
#[derive(Debug)]
pub struct RunKernels<'a> {
    on: &'a mut OnDevice,
}

impl Cuda {
    /// Runs a batch, and returns the kernels that another run of it would launch.
    ///
    /// # Errors
    /// Returns the errors of a run.
    pub fn kernels_of(&mut self, job: Job<'_>) -> Result<RunKernels<'_>, EngineError> {
        // The first run counts the candidates. The second run then has enough memory, and launches
        // the kernels for that number.
        self.run(job)?;
        self.run(job)?;
        Ok(RunKernels { on: &mut self.on })
    }
}

impl RunKernels<'_> {
    /// The names of the kernels, in the order of their launches.
    pub fn names(&self) -> Vec<String> {
        self.on.graphs.last().map(|graph| graph.kernel_names()).unwrap_or_default()
    }

    /// A graph that runs the first `count` kernels `times` times. The run's last kernels reset
    /// counters in device memory. If the graph does not contain them, set `resets` to add memsets
    /// that reset the counters before each repetition.
    ///
    /// The graph must only be launched while `self` and the tensors exist.
    ///
    /// # Errors
    /// Returns an error if a call fails.
    ///
    /// # Panics
    /// Panics if there are fewer than `count` kernels.
    pub fn repeated(
        &self,
        count: usize,
        times: u32,
        resets: bool,
    ) -> Result<NodeSequence, DriverError> {
        let graph = self.on.graphs.last().expect("the engine has run");
        graph.repeated(count, times, resets)
    }

    /// The engine's stream.
    pub fn stream(&self) -> &Stream {
        &self.on.stream
    }
}

impl Drop for RunKernels<'_> {
    fn drop(&mut self) {
        let _ = self.on.stream.synchronize();
        // A graph without the last kernels leaves counters that are not zero.
        self.on.reset();
    }
}

impl Graph {
    /// The names of the kernels, in the order of their launches.
    fn kernel_names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.kernel.name()).collect()
    }

    /// A graph that runs the first `count` kernels of the last launch `times` times. The last
    /// kernels normally reset the counters in the workspace; with `resets`, a memset before each
    /// repetition resets them.
    fn repeated(
        &self,
        count: usize,
        times: u32,
        resets: bool,
    ) -> Result<NodeSequence, DriverError> {
        let mut sequence = NodeSequence::new(self.kernels.device())?;
        let GraphConfig { capacity, sort, .. } = self.config;
        let (first, groups) = (self.workspace.address(), self.groups as usize);
        let stride = self.config.workspace_bytes();
        for _ in 0..times {
            if resets {
                sequence.add_memset(first, 0, [HEADER_BYTES, groups, stride])?;
            }
            if resets && capacity > sort.limit {
                let sort_state = first + sort_state_offset(capacity) as u64;
                sequence.add_memset(sort_state, 0, [SORT_STATE_BYTES, groups, stride])?;
            }
            for (i, node) in self.nodes[..count].iter().enumerate() {
                self.add_kernel(&sequence, node.kernel, node.function, i > 0)?;
            }
        }
        sequence.instantiate()?;
        Ok(sequence)
    }
}

impl KernelNode {
    /// The kernel's name, with the chunk's number if it has one.
    fn name(self) -> String {
        match self {
            Self::Decode => "decode".to_owned(),
            Self::Map => "map".to_owned(),
            Self::Reduce => "reduce".to_owned(),
            Self::SortCount => "sort_count".to_owned(),
            Self::SortScatter => "sort_scatter".to_owned(),
            Self::SortRank => "sort_rank".to_owned(),
            Self::ChunkFilter(chunk) => format!("chunk_filter {chunk}"),
            Self::ChunkMap(chunk) => format!("chunk_map {chunk}"),
            Self::ChunkReduce(chunk) => format!("chunk_reduce {chunk}"),
            Self::Merge(kernel) => kernel.function().to_string_lossy().into_owned(),
            Self::Masks => "masks".to_owned(),
            Self::Publish => "publish".to_owned(),
        }
    }
}
