// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine for NVIDIA GPUs: decode, map, reduce, masks and publication as one graph launch.
//!
//! In: tensors in host or device memory, a layout of one or more images, parameters, and the places
//! of the images. Out: the survivors of each group of images with their columns and masks, and
//! counts. Tensors in device memory are read in place; others are uploaded from pinned memory. The
//! last kernels write to pinned host memory: the survivors, their columns, the bits of their masks,
//! and 32 bytes of counts per group. Nothing else is written there. Memory is allocated only if a
//! batch is larger than all batches before it.
//!
//! At first, memory is reserved for `CAPACITY_STEP` candidates per group, or for all anchors if
//! there are fewer anchors. If a group has more candidates, the kernels report how many, and the
//! batch runs again with enough memory, which is kept. Memory for masks works likewise; their size
//! follows from the survivors. Runs that are not waited for ([`Cuda::enqueue`]) cannot be
//! repeated, so memory for all anchors is reserved.
//!
//! Methods that merge boxes, lower scores, or read a column have further kernels in their graph, which
//! replace candidates and decisions before masks and survivors are written.
//!
//! Groups with more candidates than `SortLimits::limit` need additional kernels. A separate graph
//! contains them. It is launched while the preceding batch had such a group, so that other groups
//! do not take longer.

mod enqueued;
mod graph;
mod graph_config;
mod graphs;
mod inputs;
mod interface;
mod kernels;
mod layout_params;
mod mask_params;
mod merging;
mod on_device;
mod places;
mod results;
mod run_kernels;
mod upload;

use std::marker::PhantomData;
use std::sync::Arc;

use super::validate::{check_methods, validate};
use super::{
    DeviceOutcome, DeviceWork, Engine, EngineError, Job, Outcome, Overlap, Params, ResultMemory,
    place,
};
use crate::decoder::Layout;
use crate::device::{DeviceError, Driver, ForeignStream};
use interface::SortLimits;
use on_device::{CallersStream, OnDevice};
pub use run_kernels::RunKernels;

/// The engine that runs on an NVIDIA GPU.
#[derive(Debug)]
pub struct Cuda {
    /// True if the GPU was chosen by number. Tensors on another GPU are then an error.
    is_fixed: bool,
    on: OnDevice,
}

impl Cuda {
    pub(super) const NAME: &'static str = "cuda";

    /// An engine on GPU number `ordinal`. If `ordinal` is `None`, the engine uses the first GPU
    /// until tensors are in another GPU's memory.
    ///
    /// # Errors
    /// If there is no driver or no such GPU, or the kernels cannot be loaded.
    pub fn new(ordinal: Option<u32>) -> Result<Self, DeviceError> {
        let on = OnDevice::new(ordinal.unwrap_or(0))?;
        Ok(Self { is_fixed: ordinal.is_some(), on })
    }

    /// The GPU that the engine runs on.
    pub fn device(&self) -> &Arc<crate::device::Device> {
        &self.on.kernels.device
    }

    /// Sorts the candidates of groups with more than `limit` candidates, in chunks, the first with
    /// about `first_chunk` candidates.
    pub fn sort_above(&mut self, limit: u32, first_chunk: u32) {
        self.on.sort = SortLimits { limit, first_chunk: first_chunk.max(1) };
    }

    /// Runs a batch in the caller's stream, or without one in the engine's stream; [`outcome`](Self::outcome) returns
    /// the result.
    pub(super) fn run_batch(
        &mut self,
        job: Job<'_>,
        mut caller: Option<CallersStream<'_>>,
    ) -> Result<DeviceWork, EngineError> {
        supports_run(job)?;
        validate(job)?;
        self.follow_tensors(|on| on.run_batch(job, caller.as_mut()))
    }

    /// Runs a single group in the order of `stream`. `anchors` is called once, while the GPU works. If it returns a
    /// device address, the anchors of all survivors are written there as `i64`, by work in `stream` for which the call
    /// does not wait.
    ///
    /// # Errors
    /// The errors of [`run`](Engine::run).
    ///
    /// # Safety
    /// The address must be valid for writes of as many numbers as the layout has anchors, in the order of `stream`.
    pub unsafe fn run_in_stream(
        &mut self,
        job: Job<'_>,
        stream: ForeignStream,
        anchors: &mut dyn FnMut() -> Option<u64>,
    ) -> Result<Outcome<'_>, EngineError> {
        let work = self.run_batch(job, Some((stream, anchors)))?;
        Ok(self.outcome(work))
    }

    /// Runs in the order of `stream` and without waiting. The result is in device memory.
    ///
    /// # Errors
    /// The errors of [`run`](Engine::run), and [`EngineError::NeedsHost`] if the run needs the host.
    pub fn enqueue(
        &mut self,
        job: Job<'_>,
        stream: ForeignStream,
    ) -> Result<DeviceOutcome<'_>, EngineError> {
        // SAFETY: no memory is provided.
        unsafe { self.enqueue_to(job, stream, None) }
    }

    /// Like [`enqueue`](Self::enqueue), for a single group with the result in `memory`, if it is provided.
    ///
    /// # Errors
    /// The errors of [`enqueue`](Self::enqueue).
    ///
    /// # Safety
    /// [`ResultMemory`] has the requirements.
    pub unsafe fn enqueue_to(
        &mut self,
        job: Job<'_>,
        stream: ForeignStream,
        memory: Option<ResultMemory>,
    ) -> Result<DeviceOutcome<'_>, EngineError> {
        let Job { layout, params, images, .. } = job;
        supports_run(job)?;
        validate(job)?;
        if layout.prototypes.is_some() {
            return Err(EngineError::NeedsHost {
                what: "the memory for masks follows from the survivors",
                instead: "set masks to false",
            });
        }
        if params.has_class_limits() {
            return Err(EngineError::NeedsHost {
                what: "the host applies the greatest number of survivors of a class",
                instead: "set a limit for all classes together",
            });
        }
        let groups = place::group_count(images) as usize;
        assert!(memory.is_none() || groups == 1, "memory is provided for one group");
        let (mut capacity, mut addresses) = (0, ResultMemory::default());
        self.follow_tensors(|on| {
            (capacity, addresses) = on.enqueue_batch(job, stream, memory)?;
            Ok(())
        })?;
        Ok(DeviceOutcome {
            device: self.on.kernels.device.clone(),
            groups,
            capacity,
            column_components: layout.column_components(),
            counts: addresses.counts,
            detections: addresses.detections,
            columns: if layout.columns.is_empty() { 0 } else { addresses.columns },
            engine: PhantomData,
        })
    }

    /// Calls `run`, and if the tensors are on another GPU, opens that GPU and calls `run` again.
    fn follow_tensors<T>(
        &mut self,
        mut run: impl FnMut(&mut OnDevice) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut result = run(&mut self.on);
        if let Err(EngineError::OtherDevice { is, .. }) = result
            && !self.is_fixed
        {
            self.on = OnDevice::new(is)?;
            result = run(&mut self.on);
        }
        if result.is_err() {
            // Work of the failed launch may still use the memory, so the next run gets new memory.
            self.on.reset();
        }
        result
    }

    /// The result of the last run. `work` is the work that the run did.
    pub(super) fn outcome(&self, work: DeviceWork) -> Outcome<'_> {
        Outcome {
            engine: self.name(),
            groups: &self.on.groups,
            detections: self.on.results.detections(),
            columns: self.on.results.columns(),
            column_components: self.on.results.column_components(),
            mask_places: &self.on.masks.places,
            mask_bytes: self.on.results.masks(),
            anchors: self.on.anchors,
            device: work,
        }
    }
}

/// Checks that the kernels support these parameters. The check does not need a GPU.
///
/// # Errors
/// [`EngineError::Unsupported`] if they do not.
pub fn supports(params: &Params) -> Result<(), EngineError> {
    let value = params.overlap.name();
    match params.overlap {
        Overlap::Diou => Err(EngineError::Unsupported { what: "overlap measure", value }),
        Overlap::Iou | Overlap::Representative | Overlap::Smaller | Overlap::ProbIou => Ok(()),
    }
}

/// Checks that the kernels support this run. They do not compare the numbers of images that rows have.
///
/// # Errors
/// [`EngineError::Unsupported`] or [`EngineError::ImagesOnDevice`] if they do not.
pub(super) fn supports_run(
    Job { tensors, layout, params, .. }: Job<'_>,
) -> Result<(), EngineError> {
    supports_layout(layout, params)?;
    let with_images = layout.image.and_then(|field| tensors.get(field.tensor));
    match with_images.filter(|tensor| tensor.is_on_device()) {
        Some(tensor) => Err(EngineError::ImagesOnDevice { tensor: tensor.to_string() }),
        None => Ok(()),
    }
}

fn supports_layout(layout: &Layout, params: &Params) -> Result<(), EngineError> {
    supports(params)?;
    let has_sizes = layout.groups.iter().any(|group| group.sizes.is_some());
    if layout.score.peaks || layout.pairs.is_some() || has_sizes {
        return Err(EngineError::Unsupported { what: "decoder", value: layout.decoder });
    }
    Ok(())
}

impl Engine for Cuda {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn supports(&self, layout: &Layout, params: &Params) -> Result<(), EngineError> {
        supports_layout(layout, params)?;
        check_methods(layout, params)
    }

    fn run(&mut self, job: Job<'_>) -> Result<Outcome<'_>, EngineError> {
        let work = self.run_batch(job, None)?;
        Ok(self.outcome(work))
    }

    fn cuda(&mut self) -> Result<&mut Cuda, EngineError> {
        Ok(self)
    }

    /// Written as `GPU 0 (NVIDIA H200, compute capability 9.0), driver for CUDA 13.0, PTX sm_90`.
    fn description(&self) -> String {
        let kernels = &self.on.kernels;
        let version = Driver::get().ok().and_then(|driver| driver.version().ok()).unwrap_or(0);
        let (major, minor) = (version / 1000, version % 1000 / 10);
        format!("{}, driver for CUDA {major}.{minor}, {}", kernels.device, kernels.binary.name)
    }
}
