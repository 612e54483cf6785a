// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines of this machine. In: a workload. Out: times and counts of each engine, the GPU's
//! with tensors in device memory.

use anyhow::Result;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::Uploader;
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::internals::device::DeviceError;
use gstnmsfilter::internals::engine::{Cpu, Cuda, DeviceWork, Engine, GroupOutcome};
use gstnmsfilter::tensor::TensorView;

use crate::measure::{Times, measure};
use crate::workload::Workload;

/// The engines that this machine supports.
pub struct Engines {
    cpu: Cpu,
    cuda: Option<(Cuda, Uploader)>,
    /// Why the GPU cannot be used.
    pub cuda_error: Option<DeviceError>,
}

/// The result of an engine for a workload.
#[derive(Clone, Debug)]
pub struct Run {
    /// The engine's name.
    pub engine: &'static str,
    /// Number of candidates.
    pub candidates: usize,
    /// Number of survivors.
    pub survivors: usize,
    /// Wall times from the call to survivors in host memory.
    pub times: Times,
    /// Times of the kernels, by the GPU's clock.
    pub device: Times,
    /// The work of a run on the GPU.
    pub work: DeviceWork,
}

impl Engines {
    /// The CPU engine, and the CUDA engine on GPU 0 if it can be used.
    pub fn available() -> Self {
        let cuda = Cuda::new(Some(0)).and_then(|cuda| Ok((cuda, Uploader::new(0)?)));
        let (cuda, cuda_error) = match cuda {
            Ok(cuda) => (Some(cuda), None),
            Err(error) => (None, Some(error)),
        };
        Self { cpu: Cpu::default(), cuda, cuda_error }
    }

    /// The CUDA engine.
    pub fn cuda(&self) -> Option<&Cuda> {
        self.cuda.as_ref().map(|(cuda, _)| cuda)
    }

    /// The names of the engines.
    pub fn names(&self) -> Vec<&'static str> {
        let cuda = self.cuda.iter().map(|(cuda, _)| cuda.name());
        std::iter::once(self.cpu.name()).chain(cuda).collect()
    }

    /// The workload's tensors in device memory; empty without a GPU.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn upload(&mut self, workload: &Workload) -> Result<Vec<NewTensor>> {
        let Some((_, uploader)) = &mut self.cuda else {
            return Ok(Vec::new());
        };
        workload.new_tensors().iter().map(|tensor| Ok(uploader.upload(tensor)?)).collect()
    }

    /// Measures each engine for about `budget`: the CPU engine with tensors in host memory, the
    /// CUDA engine with tensors in device memory.
    ///
    /// # Errors
    /// If an engine fails.
    pub fn run(&mut self, workload: &Workload, budget: std::time::Duration) -> Result<Vec<Run>> {
        let mut runs = vec![run(&mut self.cpu, &workload.tensors(), workload, budget)?];
        let uploaded = self.upload(workload)?;
        if let Some((cuda, _)) = &mut self.cuda {
            let tensors: Tensors<'_> = uploaded.iter().collect();
            runs.push(run(cuda, &tensors.views(), workload, budget)?);
        }
        Ok(runs)
    }
}

fn run(
    engine: &mut dyn Engine,
    tensors: &[TensorView<'_>],
    workload: &Workload,
    budget: std::time::Duration,
) -> Result<Run> {
    let (layout, places) = (workload.layout(), workload.places());
    let name = engine.name();
    // The first run can need two launches.
    engine.run(tensors, &layout, &workload.params, &places)?;
    let outcome = engine.run(tensors, &layout, &workload.params, &places)?;
    let GroupOutcome { candidates, survivors, .. } = outcome.group(0);
    let (survivors, work) = (survivors.len(), outcome.device());
    let mut failure = None;
    let mut device = Vec::new();
    let times = measure(budget, || match engine.run(tensors, &layout, &workload.params, &places) {
        Ok(outcome) => device.push(outcome.device().time.as_secs_f64() * 1e6),
        Err(error) => failure = Some(error),
    });
    match failure {
        Some(error) => Err(error.into()),
        None => {
            let device = Times::new(device);
            Ok(Run { engine: name, candidates, survivors, times, device, work })
        }
    }
}
