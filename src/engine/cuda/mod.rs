//! The engine for NVIDIA GPUs: decode, map, reduce and publication as one graph launch.
//!
//! Tensors in the GPU's memory are read where they lie; others are uploaded from pinned memory.
//! The last kernel writes the survivors, and nothing but them and 32 bytes of counts, to memory of
//! the host that the GPU reaches. Nothing is allocated for a frame that is no larger than those
//! before it.
//!
//! There is memory for as many candidates as there are anchors. With [`Params::multi_label`] a frame
//! can have more: the kernels then report how many, and the frame is run again with memory for them.

mod graph;
mod inputs;
mod interface;
mod kernels;
mod results;
mod upload;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::check::check;
use super::{DeviceWork, Engine, EngineError, Outcome, Params};
use crate::device::{Device, DeviceError, Driver, Stream};
use crate::head::Layout;
use crate::tensor::Tensor;
use graph::{Graph, Shape};
use inputs::Inputs;
use interface::{KernelParams, Precision, Source, TensorSource};
use kernels::Kernels;
use results::Results;
use upload::Upload;

/// The engine that runs on an NVIDIA GPU.
#[derive(Debug)]
pub struct Cuda {
    /// Whether it was asked for this GPU, and no other.
    is_fixed: bool,
    on: OnDevice,
}

/// All that belongs to one GPU.
#[derive(Debug)]
struct OnDevice {
    // Dropped in this order: first what may still be in use by the stream.
    graph: Option<Graph>,
    results: Results,
    /// The tensors of the boxes and of the scores, and the thresholds by class.
    uploads: [Upload; 3],
    /// The thresholds on the GPU.
    thresholds: Vec<f32>,
    stream: Stream,
    kernels: Arc<Kernels>,
}

/// The counts of a frame that is done; its survivors are with the results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    outcome: interface::ResultHeader,
    work: DeviceWork,
}

/// Candidates by which a graph's capacity grows, so that small differences ask for no other.
const CAPACITY_STEP: u32 = 2048;

impl Cuda {
    pub(super) const NAME: &'static str = "cuda";

    /// An engine on GPU number `ordinal`; on the first, or wherever tensors turn out to lie, where
    /// that is `None`.
    ///
    /// # Errors
    /// Where there is no driver or no such GPU, or the kernels cannot be loaded there.
    pub fn new(ordinal: Option<u32>) -> Result<Self, DeviceError> {
        let on = OnDevice::new(ordinal.unwrap_or(0))?;
        Ok(Self { is_fixed: ordinal.is_some(), on })
    }

    /// The GPU that it runs on.
    pub fn device(&self) -> &Arc<Device> {
        self.on.kernels.device()
    }

    /// Runs a frame; [`outcome`](Self::outcome) has what comes of it.
    pub(super) fn frame(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Done, EngineError> {
        check(tensors, layout, params)?;
        let mut inputs = Inputs::new(tensors, layout, self.device())?;
        if let Some(is) = inputs.other_device().filter(|_| !self.is_fixed) {
            self.on = OnDevice::new(is)?;
            inputs.locate(self.device())?;
        }
        let done = self.on.frame(tensors, &inputs, layout, params);
        if done.is_err() {
            // Whatever is left of the frame is not trusted with the next.
            self.on.reset();
        }
        done
    }

    pub(super) fn outcome(&self, done: Done) -> Outcome<'_> {
        let Done { outcome, work } = done;
        Outcome {
            engine: self.name(),
            survivors: self.on.results.survivors(0),
            candidates: outcome.candidates as usize,
            rejected: outcome.rejected as usize,
            device: work,
        }
    }
}

impl Engine for Cuda {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn run(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError> {
        let done = self.frame(tensors, layout, params)?;
        Ok(self.outcome(done))
    }
}

/// Written as `GPU 0 (NVIDIA H200, compute capability 9.0), driver for CUDA 13.0, PTX sm_90`.
impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = &self.on.kernels;
        let version = Driver::get().ok().and_then(|driver| driver.version().ok()).unwrap_or(0);
        let (major, minor) = (version / 1000, version % 1000 / 10);
        write!(f, "{}, driver for CUDA {major}.{minor}, {}", kernels.device(), kernels.image)
    }
}

impl OnDevice {
    fn new(ordinal: u32) -> Result<Self, DeviceError> {
        let kernels = Kernels::open(ordinal)?;
        let device = kernels.device();
        Ok(Self {
            graph: None,
            results: Results::new(device)?,
            uploads: Default::default(),
            thresholds: Vec::new(),
            stream: Stream::with_highest_priority(device)?,
            kernels,
        })
    }

    /// Forgets all that a failed frame may have spoilt.
    fn reset(&mut self) {
        self.graph = None;
        self.thresholds.clear();
        self.uploads = Default::default();
    }

    fn frame(
        &mut self,
        tensors: &[Tensor<'_>],
        inputs: &Inputs<'_, '_>,
        layout: &Layout,
        params: &Params,
    ) -> Result<Done, EngineError> {
        let roles = [layout.boxes.tensor, layout.scores.tensor];
        let (addresses, mut uploaded) = inputs.provide(&self.stream, &mut self.uploads)?;
        let thresholds = &params.thresholds.per_class;
        if self.thresholds != *thresholds {
            let bytes = bytemuck::cast_slice(thresholds);
            uploaded += bytes.len() as u64;
            self.uploads[2].upload(&self.stream, bytes)?;
            self.thresholds.clone_from(thresholds);
        }

        let [boxes, scores] = [0, 1].map(|role| TensorSource {
            address: addresses[role],
            precision: Precision::of(tensors[roles[role]].element),
            image_stride: 0,
        });
        let thresholds = self.uploads[2].address();
        let source = Source { boxes, scores, thresholds, images: 1 };
        let mut work = DeviceWork { bytes_uploaded: uploaded, ..DeviceWork::default() };
        // It fits: `check` has seen to it.
        let anchors = layout.anchors as u32;
        let mut outcome = self.launch(anchors, &source, layout, params, &mut work)?;
        if outcome.candidates > self.capacity() {
            outcome = self.launch(outcome.candidates, &source, layout, params, &mut work)?;
        }
        if outcome.candidates > self.capacity() {
            return Err(EngineError::NoResult);
        }
        Ok(Done { outcome, work })
    }

    /// Candidates that there is memory for.
    fn capacity(&self) -> u32 {
        self.graph.as_ref().map_or(0, Graph::capacity)
    }

    /// Runs the kernels once, with memory for `capacity` candidates or more, and adds to `work`.
    fn launch(
        &mut self,
        capacity: u32,
        source: &Source,
        layout: &Layout,
        params: &Params,
        work: &mut DeviceWork,
    ) -> Result<interface::ResultHeader, EngineError> {
        let (precisions, multi_label) = (source.precisions(), params.multi_label);
        self.prepare(Shape { capacity, images: 1, precisions, multi_label })?;
        let graph = self.graph.as_mut().expect("just prepared");
        let frame = KernelParams::new(source, layout, params, graph.capacity());
        self.results.clear(1);
        graph.launch(&self.stream, &frame)?;
        let downloaded = self.results.wait(&self.stream, 1)?;
        let outcome = self.results.header(0);
        *work += DeviceWork {
            bytes_uploaded: 0,
            bytes_downloaded: downloaded,
            launches: 1,
            rounds: outcome.rounds.into(),
            time: Duration::from_nanos(outcome.nanoseconds.into()),
        };
        Ok(outcome)
    }

    /// Sees to a graph that holds `wanted`, and to room for as many survivors.
    fn prepare(&mut self, wanted: Shape) -> Result<(), DeviceError> {
        if !self.graph.as_ref().is_some_and(|graph| graph.holds(&wanted)) {
            let before = self.graph.take();
            let images = before.as_ref().map_or(1, Graph::images).max(wanted.images);
            let before = before.map_or(0, |graph| graph.capacity());
            let capacity = wanted.capacity.max(1).div_ceil(CAPACITY_STEP);
            let capacity = capacity.saturating_mul(CAPACITY_STEP).max(before);
            self.results.make_room(capacity, images)?;
            let shape = Shape { capacity, images, ..wanted };
            let results = self.results.addresses();
            self.graph = Some(Graph::new(&self.kernels, &self.stream, shape, results)?);
        }
        Ok(())
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // What the stream may still be busy with is not pulled from under it.
        let _ = self.stream.synchronize();
    }
}
