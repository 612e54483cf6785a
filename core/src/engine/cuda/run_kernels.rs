// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels of a run, for launching and measuring them again.
//!
//! In: the tensors, layout and parameters of a run. Out: graphs of some or all of the run's
//! kernels.

use super::{Cuda, Engine, EngineError, Job, OnDevice};
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
