// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines of this machine. In: a workload. Out: times and counts of each engine. On a GPU,
//! tensors are in device memory.

use anyhow::Result;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::Uploader;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::DeviceError;
use nmsfilter_core::engine::{Cpu, Cuda, DeviceWork, Engine, GroupOutcome, Job};
use nmsfilter_core::tensor::TensorView;

use crate::measure::{Times, measure};
use crate::workload::Workload;

/// The engines that run on this machine.
pub struct Engines {
    cpu: Cpu,
    cuda: Option<(Cuda, Uploader)>,
    /// The reason why the GPU cannot be used, if there is one.
    pub cuda_error: Option<DeviceError>,
}

/// The result of an engine for a workload.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the engine.
    pub engine: &'static str,
    /// Number of candidates.
    pub candidates: usize,
    /// Number of survivors.
    pub survivors: usize,
    /// Wall times, from the call until the survivors are in host memory.
    pub times: Times,
    /// Times of the kernels, measured by the GPU.
    pub device: Times,
    /// The work that a run does on the GPU.
    pub work: DeviceWork,
}

impl Engines {
    /// Opens the CPU engine, and the CUDA engine on GPU 0 if it can be used.
    pub fn available() -> Self {
        let cuda = Cuda::new(Some(0)).and_then(|cuda| Ok((cuda, Uploader::new(0)?)));
        let (cuda, cuda_error) = match cuda {
            Ok(cuda) => (Some(cuda), None),
            Err(error) => (None, Some(error)),
        };
        Self { cpu: Cpu::default(), cuda, cuda_error }
    }

    /// Returns the CUDA engine.
    pub fn cuda(&self) -> Option<&Cuda> {
        self.cuda.as_ref().map(|(cuda, _)| cuda)
    }

    /// The CUDA engine, to run it.
    pub fn cuda_mut(&mut self) -> Option<&mut Cuda> {
        self.cuda.as_mut().map(|(cuda, _)| cuda)
    }

    /// The names of the engines.
    pub fn names(&self) -> Vec<&'static str> {
        let cuda = self.cuda.iter().map(|(cuda, _)| cuda.name());
        std::iter::once(self.cpu.name()).chain(cuda).collect()
    }

    /// Copies the workload's tensors to device memory. Without a GPU, the result is empty.
    ///
    /// # Errors
    /// Returns an error if the GPU fails.
    pub fn upload(&mut self, workload: &Workload) -> Result<Vec<NewTensor>> {
        let Some((_, uploader)) = &mut self.cuda else {
            return Ok(Vec::new());
        };
        workload.new_tensors().iter().map(|tensor| Ok(uploader.upload(tensor)?)).collect()
    }

    /// Measures each engine for about `budget`: the CPU engine with tensors in host memory, and the
    /// CUDA engine with tensors in device memory.
    ///
    /// # Errors
    /// Returns an error if an engine fails.
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
    engine.run(Job::new(tensors, &layout, &workload.params, &places))?;
    let outcome = engine.run(Job::new(tensors, &layout, &workload.params, &places))?;
    let GroupOutcome { candidates, survivors, .. } = outcome.group(0);
    let (survivors, work) = (survivors.len(), outcome.device);
    let mut failure = None;
    let mut device = Vec::new();
    let times = measure(budget, || {
        match engine.run(Job::new(tensors, &layout, &workload.params, &places)) {
            Ok(outcome) => device.push(outcome.device.time.as_secs_f64() * 1e6),
            Err(error) => failure = Some(error),
        }
    });
    match failure {
        Some(error) => Err(error.into()),
        None => {
            let device = Times::new(device);
            Ok(Run { engine: name, candidates, survivors, times, device, work })
        }
    }
}
