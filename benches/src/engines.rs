//! The engines at hand, each where its tensors lie.

use anyhow::Result;
use gstnmsfilter::device::DeviceError;
use gstnmsfilter::engine::{Cpu, Cuda, Engine, ImageOutcome};
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::Uploader;
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::tensor::TensorView;

use crate::measure::{Times, measure};
use crate::workload::Workload;

/// The engines that this machine has.
pub struct Engines {
    cpu: Cpu,
    cuda: Option<(Cuda, Uploader)>,
    /// Why there is no GPU.
    pub cuda_error: Option<DeviceError>,
}

/// What an engine made of a workload.
#[derive(Clone, Debug)]
pub struct Run {
    /// The engine's name.
    pub engine: &'static str,
    /// Rows that became candidates.
    pub candidates: usize,
    /// What survived.
    pub survivors: usize,
    /// From the call to the survivors on the host.
    pub times: Times,
    /// The kernels' part, by the GPU's clock.
    pub device: Times,
}

impl Engines {
    /// The CPU's, and GPU 0's where there is one.
    pub fn available() -> Self {
        let cuda = Cuda::new(Some(0)).and_then(|cuda| Ok((cuda, Uploader::new(0)?)));
        let (cuda, cuda_error) = match cuda {
            Ok(cuda) => (Some(cuda), None),
            Err(error) => (None, Some(error)),
        };
        Self { cpu: Cpu::default(), cuda, cuda_error }
    }

    /// The GPU's engine.
    pub fn cuda(&self) -> Option<&Cuda> {
        self.cuda.as_ref().map(|(cuda, _)| cuda)
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        let cuda = self.cuda.iter().map(|(cuda, _)| cuda.name());
        std::iter::once(self.cpu.name()).chain(cuda).collect()
    }

    /// The workload's tensors, for those engines that read them on the GPU.
    ///
    /// # Errors
    /// Where the GPU fails.
    pub fn upload(&mut self, workload: &Workload) -> Result<Vec<NewTensor>> {
        let Some((_, uploader)) = &mut self.cuda else {
            return Ok(Vec::new());
        };
        workload.new_tensors().iter().map(|tensor| Ok(uploader.upload(tensor)?)).collect()
    }

    /// Measures each engine for about `budget`: the CPU's with tensors on the host, the GPU's with
    /// tensors there.
    ///
    /// # Errors
    /// Where an engine fails.
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
    let layout = workload.layout();
    let name = engine.name();
    let ImageOutcome { candidates, survivors, .. } =
        engine.run(tensors, &layout, &workload.params)?.image(0);
    let survivors = survivors.len();
    let mut failure = None;
    let mut device = Vec::new();
    let times = measure(budget, || match engine.run(tensors, &layout, &workload.params) {
        Ok(outcome) => device.push(outcome.device().time.as_secs_f64() * 1e6),
        Err(error) => failure = Some(error),
    });
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(Run { engine: name, candidates, survivors, times, device: Times::new(device) }),
    }
}
