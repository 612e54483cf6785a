// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels of a run, to be launched again and measured.
//!
//! In: tensors, layout and parameters, as of a run. Out: graphs of some or all of the run's kernels.

use super::{Cuda, Engine, EngineError, ImagePlace, Layout, OnDevice, Params, TensorView};
use crate::device::{DriverError, NodeSequence, Stream};

/// The kernels of an engine's last run.
#[derive(Debug)]
pub struct RunKernels<'a> {
    on: &'a mut OnDevice,
}

impl Cuda {
    /// Runs a batch, and returns the kernels that a further run of it would launch.
    ///
    /// # Errors
    /// As of a run.
    pub fn kernels_of(
        &mut self,
        tensors: &[TensorView<'_>],
        layout: &Layout,
        params: &Params,
        images: &[ImagePlace],
    ) -> Result<RunKernels<'_>, EngineError> {
        // The first run counts the candidates, and the second has memory and kernels for as many.
        self.run(tensors, layout, params, images)?;
        self.run(tensors, layout, params, images)?;
        Ok(RunKernels { on: &mut self.on })
    }
}

impl RunKernels<'_> {
    /// The names of the kernels, in the order of their launches.
    pub fn names(&self) -> Vec<String> {
        self.on.graphs.last().map(|graph| graph.kernel_names()).unwrap_or_default()
    }

    /// A graph that runs the first `count` kernels `times` times. The last kernels reset counters in device memory; for a
    /// graph without them `resets` adds memsets that do so before each repetition.
    ///
    /// The graph must be launched while `self` and the tensors exist.
    ///
    /// # Errors
    /// If a call fails.
    ///
    /// # Panics
    /// If there are fewer than `count` kernels.
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
        // A graph without the last kernels has left counters that are not zero.
        self.on.reset();
    }
}
