// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of [`Backend::Auto`](super::Backend::Auto): chooses between the CPU and a GPU for each run.
//!
//! In: see any engine. Out: the outcome of [`Cuda`] or [`Cpu`]. The two are equal except for the
//! engine's name and [`DeviceWork`](super::DeviceWork). Tensors in device memory go to the GPU. For
//! tensors in host memory, measurements decide which engine is faster ([`Trial`]).
//!
//! Sequential methods ([`Method::is_sequential`](super::Method::is_sequential)) take the CPU less time. They run on the
//! GPU only for tensors in device memory, while runs have few candidates ([`few_for_gpu`]) or if the tensors have no
//! copy on the host.

use std::time::{Duration, Instant};

use super::{Cpu, Cuda, Engine, EngineError, Job, Method, Outcome, cuda};
use crate::tensor::TensorView;

/// Runs tensors in device memory on the GPU, and tensors in host memory on the faster processor.
/// After the GPU has failed, every run is on the CPU.
///
/// The GPU is opened at the first run, so that a stream without tensors creates no CUDA context.
#[derive(Debug, Default)]
pub struct Auto {
    cpu: Cpu,
    /// The number of the GPU to use, if the caller gave one.
    ordinal: Option<u32>,
    /// `None` before the first run, and if there is no GPU.
    cuda: Option<Cuda>,
    trial: Trial,
    /// The candidates of the largest group of the last run.
    candidates: usize,
    /// True if the last run was on the GPU.
    on_cuda: bool,
    /// The reason why the GPU is not used.
    failure: Option<EngineError>,
    /// True if `failure` was already returned, or if it only says that the machine has no GPU,
    /// which is not a failure.
    is_failure_reported: bool,
    /// True if the description has changed since the last call of `take_description`.
    is_description_new: bool,
}

impl Auto {
    /// An engine that chooses between the CPU and GPU number `ordinal`. If `ordinal` is `None`, it
    /// uses the first GPU, or the GPU that holds the tensors.
    pub fn new(ordinal: Option<u32>) -> Self {
        Self { ordinal, ..Self::default() }
    }

    /// Returns true if the GPU can be used. The first call opens it.
    fn has_cuda(&mut self) -> bool {
        if self.cuda.is_none() && self.failure.is_none() {
            self.is_description_new = true;
            match Cuda::new(self.ordinal) {
                Ok(cuda) => self.cuda = Some(cuda),
                Err(error) => {
                    // A machine without a GPU is not a failure.
                    self.is_failure_reported = error.is_absence();
                    self.failure = Some(error.into());
                }
            }
        }
        self.failure.is_none()
    }
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        if self.on_cuda { Cuda::NAME } else { self.cpu.name() }
    }

    fn run(&mut self, job: Job<'_>) -> Result<Outcome<'_>, EngineError> {
        let Job { tensors, layout, .. } = job;
        let used = || layout.tensors().into_iter().filter_map(|index| tensors.get(index));
        let on_device = used().any(TensorView::is_on_device);
        let is_supported = cuda::supports_run(job).is_ok();
        let suits_cuda = !job.params.method.is_sequential()
            || on_device && self.candidates < few_for_gpu(job.params.method)
            || used().any(TensorView::is_only_on_device);
        let is_for_cuda = is_supported && suits_cuda;
        let is_tried = is_for_cuda && !on_device;
        self.on_cuda = is_for_cuda && self.has_cuda() && (on_device || self.trial.wants_cuda());
        let began = Instant::now();
        let cuda = self.cuda.as_mut().filter(|_| self.on_cuda);
        match cuda.map(|cuda| cuda.run_batch(job, None)) {
            Some(Ok(work)) => {
                if is_tried {
                    self.trial.record(true, began.elapsed());
                }
                let outcome = self.cuda.as_ref().expect("the GPU ran the frame").outcome(work);
                self.candidates = largest_group(&outcome);
                return Ok(outcome);
            }
            Some(Err(error)) if error.is_device_error() => {
                self.failure = Some(error);
                self.on_cuda = false;
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
        let outcome = self.cpu.run(job)?;
        if is_tried {
            self.trial.record(false, began.elapsed());
        }
        self.candidates = largest_group(&outcome);
        Ok(outcome)
    }

    fn cuda(&mut self) -> Result<&mut Cuda, EngineError> {
        self.on_cuda = self.has_cuda();
        match &mut self.cuda {
            Some(cuda) if self.on_cuda => Ok(cuda),
            _ => Err(self.failure.clone().expect("there is a reason")),
        }
    }

    fn take_failure(&mut self) -> Option<&EngineError> {
        let failure = self.failure.as_ref().filter(|_| !self.is_failure_reported);
        self.is_failure_reported |= failure.is_some();
        failure
    }

    fn description(&self) -> String {
        match (&self.cuda, &self.failure) {
            (Some(cuda), _) => format!("the CPU, or {}", cuda.description()),
            (None, Some(failure)) => format!("the CPU ({failure})"),
            (None, None) => {
                "the CPU, or a GPU, which is opened at the first frame with tensors".to_owned()
            }
        }
    }

    fn take_description(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_description_new).then(|| self.description())
    }
}

/// With fewer candidates, a sequential method takes less time on the GPU than it takes to copy the tensors to the host
/// and to run there: measured with 84x8400 on an H200.
fn few_for_gpu(method: Method) -> usize {
    if method == Method::WeightedFusion { 0 } else { 800 }
}

fn largest_group(outcome: &Outcome<'_>) -> usize {
    outcome.groups().map(|group| group.candidates).max().unwrap_or(0)
}

/// Measures which engine is faster for tensors in host memory.
///
/// Each engine first runs [`Trial::TRIAL_FRAMES`] frames. The first of these frames allocates
/// memory, so it is not counted. From then on, the engine with the lower mean time runs. The other
/// engine runs one frame in [`Trial::RETRIAL_INTERVAL`], so that its mean time stays current.
#[derive(Debug, Default)]
struct Trial {
    frames: u64,
    cpu: MeanTime,
    cuda: MeanTime,
}

/// An exponential moving average.
#[derive(Debug, Default)]
struct MeanTime {
    frames: u64,
    nanoseconds: f64,
}

impl Trial {
    const TRIAL_FRAMES: u64 = 8;
    const RETRIAL_INTERVAL: u64 = 256;

    /// Returns true if the next frame should run on the GPU.
    fn wants_cuda(&self) -> bool {
        if self.frames < 2 * Self::TRIAL_FRAMES {
            return self.frames >= Self::TRIAL_FRAMES;
        }
        let is_faster = self.cuda.nanoseconds < self.cpu.nanoseconds;
        is_faster != self.frames.is_multiple_of(Self::RETRIAL_INTERVAL)
    }

    fn record(&mut self, on_cuda: bool, time: Duration) {
        self.frames += 1;
        let mean = if on_cuda { &mut self.cuda } else { &mut self.cpu };
        mean.frames += 1;
        let time = time.as_nanos() as f64;
        // The second frame replaces the first; each later frame has a weight of one eighth.
        let weight = if mean.frames <= 2 { 1.0 } else { 0.125 };
        mean.nanoseconds += (time - mean.nanoseconds) * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each of the next `count` frames: true if it runs on the GPU, given that a frame takes
    /// `cpu` or `cuda` microseconds.
    fn frames(trial: &mut Trial, count: u64, cpu: u64, cuda: u64) -> Vec<bool> {
        let one = |_| {
            let on_cuda = trial.wants_cuda();
            trial.record(on_cuda, Duration::from_micros(if on_cuda { cuda } else { cpu }));
            on_cuda
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn each_engine_is_measured_then_the_faster_is_used() {
        for (cpu, cuda) in [(100, 20), (20, 100)] {
            let mut trial = Trial::default();
            let choices = frames(&mut trial, 200, cpu, cuda);
            assert_eq!(choices[..8], [false; 8]);
            assert_eq!(choices[8..16], [true; 8]);
            assert!(choices[16..].iter().all(|&on_cuda| on_cuda == (cuda < cpu)));
        }
    }

    #[test]
    fn the_first_frame_of_an_engine_is_not_counted() {
        let mut trial = Trial::default();
        trial.record(false, Duration::from_micros(10));
        trial.record(true, Duration::from_millis(900));
        trial.record(true, Duration::from_micros(5));
        assert_eq!(trial.cuda.nanoseconds, 5_000.0);
    }

    #[test]
    fn the_slower_engine_is_measured_again_and_used_once_it_is_faster() {
        let mut trial = Trial::default();
        frames(&mut trial, 200, 20, 100);
        let choices = frames(&mut trial, 20_000, 20, 10);
        assert!(choices[..50].iter().all(|&on_cuda| !on_cuda));
        let last = &choices[19_000..];
        assert!(last.iter().filter(|&&on_cuda| on_cuda).count() > 990, "the GPU is the faster now");
    }
}
