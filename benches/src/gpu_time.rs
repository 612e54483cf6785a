// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures GPU times of CUDA graphs.
//!
//! In: graphs that repeat their work, the kernels of a run. Out: microseconds of GPU time. Each is the minimum of several
//! measurements of a graph between two events, divided by the number of repetitions in all of its launches. A kernel's
//! time is the difference between two graphs, of which one ends with the kernel and the other one before it.

use anyhow::{Context, Result, ensure};
use nmsfilter_core::device::{NodeSequence, OwnedEvent, Stream};
use nmsfilter_core::engine::{Cpu, Cuda, Detection, DeviceWork, Engine, Job, Outcome, RunKernels};
use nmsfilter_core::tensor::TensorView;

use crate::workload::Workload;

/// How often work is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    /// The repetitions in a graph, and the launches of the graph in a measurement.
    pub times: u32,
    /// The number of measurements, after one to warm up. 0: the graph is launched, and its time is unknown.
    pub measurements: u32,
}

impl Repeats {
    /// For figures to publish.
    pub const FULL: Self = Self { times: 20, measurements: 5 };
    /// To check that a measurement works.
    pub const QUICK: Self = Self { times: 5, measurements: 2 };
    /// For tools that check the kernels: each is run once, and times are unknown.
    pub const ONCE: Self = Self { times: 1, measurements: 0 };

    /// For work that takes long: not more than `times` in a graph.
    pub fn at_most(self, times: u32) -> Self {
        Self { times: self.times.min(times), ..self }
    }
}

/// The GPU time of a graph that repeats its work `repeats.times` times, per repetition; not a number if there are no
/// measurements.
///
/// # Errors
/// If the GPU fails, or its driver does not measure.
///
/// # Safety
/// See [`NodeSequence::launch`].
pub unsafe fn gpu_time(stream: &Stream, graph: &NodeSequence, repeats: Repeats) -> Result<f64> {
    let device = stream.device();
    let launch = || -> Result<()> {
        let driver = device.enter()?;
        for _ in 0..repeats.times {
            // SAFETY: the caller guarantees what the graph accesses.
            unsafe { graph.launch(&driver, stream) }?;
        }
        Ok(())
    };
    launch()?;
    stream.synchronize()?;
    let (from, to) = (OwnedEvent::with_time(device)?, OwnedEvent::with_time(device)?);
    let mut best = f64::NAN;
    for _ in 0..repeats.measurements {
        stream.record(&from)?;
        launch()?;
        stream.record(&to)?;
        to.synchronize()?;
        let time = to.since(&from)?.context("this driver does not measure times")?;
        // The minimum of NaN and a number is the number.
        best = best.min(time.as_secs_f64() * 1e6 / f64::from(repeats.times).powi(2));
    }
    Ok(best)
}

/// The time of all kernels of a run.
///
/// # Errors
/// The errors of [`gpu_time`].
pub fn time_of_all(kernels: &RunKernels<'_>, repeats: Repeats) -> Result<f64> {
    let graph = kernels.repeated(kernels.names().len(), repeats.times, false)?;
    // SAFETY: `kernels` has the memory of the run, and `gpu_time` waits for its launches.
    unsafe { gpu_time(kernels.stream(), &graph, repeats) }
}

/// The times of a run's kernels.
#[derive(Clone, Debug)]
pub struct KernelTimes(pub Vec<(String, f64)>);

impl KernelTimes {
    /// The sum of the times of all kernels whose names begin with one of `names`.
    pub fn sum(&self, names: &[&str]) -> f64 {
        let times = self.0.iter();
        let times = times.filter(|(name, _)| names.iter().any(|start| name.starts_with(start)));
        times.map(|(_, time)| time).sum()
    }
}

/// The time of each kernel of a run.
///
/// # Errors
/// The errors of [`gpu_time`].
pub fn times_of_each(kernels: &RunKernels<'_>, repeats: Repeats) -> Result<KernelTimes> {
    let until = |count| {
        let graph = kernels.repeated(count, repeats.times, true)?;
        // SAFETY: as in `time_of_all`.
        unsafe { gpu_time(kernels.stream(), &graph, repeats) }
    };
    let mut before = until(0)?;
    let mut times = Vec::new();
    for (i, name) in kernels.names().into_iter().enumerate() {
        let now = until(i + 1)?;
        times.push((name, now - before));
        before = now;
    }
    Ok(KernelTimes(times))
}

/// The number of candidates and the survivors of each image.
pub type Counts = Vec<(usize, Vec<Detection>)>;

/// Returns the CPU engine's result, which the kernels must also find.
///
/// # Errors
/// If the engine fails.
pub fn expected(workload: &Workload) -> Result<Counts> {
    let mut cpu = Cpu::default();
    Ok(counts(&cpu.run(Job::new(
        &workload.tensors(),
        &workload.layout(),
        &workload.params,
        &workload.places(),
    ))?))
}

/// Checks that an engine on a GPU finds `expected`, and returns its work.
///
/// # Errors
/// If it finds something else, or fails.
pub fn check(
    cuda: &mut Cuda,
    tensors: &[TensorView<'_>],
    workload: &Workload,
    expected: &Counts,
) -> Result<DeviceWork> {
    let outcome =
        cuda.run(Job::new(tensors, &workload.layout(), &workload.params, &workload.places()))?;
    let name = &workload.name;
    ensure!(counts(&outcome) == *expected, "{name}: the CPU and the GPU have different results");
    Ok(outcome.device)
}

fn counts(outcome: &Outcome<'_>) -> Counts {
    outcome.groups().map(|image| (image.candidates, image.survivors.to_vec())).collect()
}
