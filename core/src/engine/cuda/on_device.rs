// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine's memory and its runs on one GPU.
//!
//! In: the inputs of a run, which have been checked. Out: the counts and the memory of its results.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::Arc;
use std::time::Duration;

use super::enqueued::Enqueued;
use super::graph::LaunchParams;
use super::graph_config::GraphConfig;
use super::graphs::{CAPACITY_STEP, Graphs};
use super::inputs::InputMemory;
use super::interface::{
    ClassRule, KernelParams, PUBLISH_THREADS, SortLimits, Source, detections_offset, is_multi_label,
};
use super::kernels::{DecodeKernel, Kernels};
use super::layout_params::{ColumnParams, LayoutParams};
use super::mask_params::{MaskParams, MaskPlaceParams, mask_capacity, mask_kernel};
use super::merging::{self, ByColumnParams, MergeParams};
use super::places::PlacedImage;
use super::results::{ResultSize, Results};
use super::upload::{Cached, PriorTable, UploadStream};
use crate::decoder::Field;
use crate::device::{DeviceBuffer, DeviceError, DriverError, ForeignStream, Stream};
use crate::engine::class_limits::ClassLimits;
use crate::engine::masks::{MaskPlaces, WORD_BYTES};
use crate::engine::validate::greatest_group;
use crate::engine::{
    Detection, DeviceWork, EngineError, GroupCounts, ImagePlace, Job, Params, ResultMemory, place,
};

/// The kernel that writes anchors.
pub(super) const ANCHORS_KERNEL: &CStr = c"indices";

/// Everything that belongs to one GPU.
#[derive(Debug)]
pub(super) struct OnDevice {
    // Fields are dropped in this order: first the ones that the stream may still use.
    pub(super) graphs: Graphs,
    /// The counts of the last run.
    pub(super) groups: Vec<GroupCounts>,
    /// The number of anchors of an image in the last run.
    pub(super) anchors: usize,
    /// The masks of the last run.
    pub(super) masks: MaskPlaces,
    pub(super) results: Results,
    /// The results of runs that are not waited for.
    device_results: Option<(ResultSize, DeviceBuffer)>,
    /// Completes with the last enqueued run, unless that run was already waited for.
    enqueued: Enqueued,
    uploads: Uploads,
    /// Applies class limits to the results.
    limits: ClassLimits,
    /// Determines which groups have their candidates sorted.
    pub(super) sort: SortLimits,
    pub(super) stream: Stream,
    pub(super) kernels: Arc<Kernels>,
}

/// What runs have uploaded.
#[derive(Debug, Default)]
struct Uploads {
    inputs: InputMemory,
    /// The thresholds by class.
    thresholds: Cached<f32>,
    class_rules: Cached<ClassRule>,
    /// The places of images, for boxes.
    places: Cached<PlacedImage>,
    /// The places of images, for masks.
    places_of_masks: Cached<MaskPlaceParams>,
    priors: PriorTable,
}

/// The stream of [`Cuda::run_in_stream`](super::Cuda::run_in_stream), and its function that returns the address for anchors.
pub(in crate::engine) type CallersStream<'a> = (ForeignStream, &'a mut dyn FnMut() -> Option<u64>);

impl OnDevice {
    pub fn new(ordinal: u32) -> Result<Self, DeviceError> {
        let kernels = Kernels::open(ordinal)?;
        let device = &kernels.device;
        Ok(Self {
            graphs: Graphs::default(),
            groups: Vec::new(),
            anchors: 0,
            masks: MaskPlaces::default(),
            results: Results::new(device)?,
            device_results: None,
            enqueued: Enqueued::default(),
            uploads: Uploads::default(),
            limits: ClassLimits::default(),
            sort: SortLimits::DEFAULT,
            stream: Stream::with_highest_priority(device)?,
            kernels,
        })
    }

    /// Drops everything that a failed launch may have left in an unknown state.
    pub fn reset(&mut self) {
        let _ = self.enqueued.synchronize();
        self.graphs = Graphs::default();
        self.uploads = Uploads::default();
    }

    /// Provides the tensors and the parameters, for kernels that are launched into `foreign`, or the engine's stream,
    /// after this call. The graph that the kernels need has no memory for candidates and masks yet.
    fn prepare(
        &mut self,
        job: Job<'_>,
        foreign: Option<&Stream>,
        uploaded: &Cell<u64>,
    ) -> Result<(GraphConfig, LaunchParams), EngineError> {
        let Job { layout, params, images, .. } = job;
        // The kernels for plain layouts write no columns.
        let plain = layout.plain(job.tensors).filter(|_| layout.columns.is_empty());
        let on = UploadStream {
            stream: foreign.unwrap_or(&self.stream),
            enqueued: self.enqueued.pending(),
            uploaded,
        };
        let uploads = &mut self.uploads;
        let priors = layout.priors.as_ref();
        let source = Source {
            tensors: uploads.inputs.provide(on, job.tensors, layout)?,
            thresholds: uploads
                .thresholds
                .provide(on, params.thresholds.per_class.iter().copied())?,
            class_rules: uploads.class_rules.provide(on, ClassRule::all(params))?,
            priors: priors.map_or(Ok(0), |priors| uploads.priors.provide(on, priors))?,
            places: uploads.places.provide_places(on, layout, params, images)?,
        };
        let sort = if layout.is_oriented() { SortLimits::NEVER } else { self.sort };
        let mut launch = LaunchParams {
            kernel: KernelParams::new(&source, job, plain.as_ref(), sort),
            groups: place::group_count(images),
            merge: MergeParams::new(params),
            by_column: ByColumnParams::new(layout, params),
            ..Default::default()
        };
        if plain.is_none() {
            launch.layout = LayoutParams::new(&source, layout, params);
            launch.columns = ColumnParams::new(&source, layout);
        }
        self.masks.begin(job);
        if let Some(prototypes) = &layout.prototypes {
            let places = uploads.places_of_masks.provide_masks(on, &self.masks.grids)?;
            launch.masks = MaskParams::new(&source, layout, prototypes, &places);
        }
        let element = |of: Field| source.tensor(of.tensor).element;
        let decode = match &plain {
            Some(plain) => DecodeKernel::Plain([plain.boxes, plain.scores].map(element)),
            None if layout.is_oriented() => DecodeKernel::Oriented,
            None => DecodeKernel::Layout,
        };
        let config = GraphConfig {
            capacity: 0,
            groups: launch.groups,
            sort,
            decode,
            multi_label: is_multi_label(layout, params),
            merge: merging::kernels(params.method).1,
            column_components: layout.column_components() as u32,
            // `validate` has checked that the masks of all images have one kind of pixels.
            masks: self.masks.grids.first().map(mask_kernel),
            mask_words: 0,
        };
        Ok((config, launch))
    }

    /// Runs a batch in the caller's stream, or the engine's stream, and waits for its result. The next run can be
    /// in another stream: the last kernel has no work left after it has shown that the results are complete.
    pub fn run_batch(
        &mut self,
        job: Job<'_>,
        mut caller: Option<&mut CallersStream<'_>>,
    ) -> Result<DeviceWork, EngineError> {
        let foreign =
            caller.as_ref().map(|(stream, _)| Stream::of_other_code(&self.kernels.device, *stream));
        let foreign = foreign.as_ref();
        // Runs share the workspace and the results.
        match foreign {
            Some(stream) => self.enqueued.hold_back(stream)?,
            None => self.enqueued.synchronize()?,
        }
        let uploaded = Cell::new(0);
        let (mut config, mut params) = self.prepare(job, foreign, &uploaded)?;
        let mut work = DeviceWork { bytes_uploaded: uploaded.get(), ..DeviceWork::default() };
        self.anchors = job.layout.anchors();
        // Few anchors become candidates.
        config.capacity = greatest_anchors(job).min(CAPACITY_STEP);
        let greatest = greatest_candidates(job);
        self.graphs.expect_as_before(&mut config, greatest);
        if config.masks.is_some() {
            config.mask_words = mask_capacity(0, config.groups);
        }
        // The first launch counts the candidates. The first launch with memory for all candidates
        // determines the size of the masks.
        let mut anchors = None;
        for _ in 0..3 {
            let graph = self.launch(config, greatest, &mut params, foreign)?;
            if let Some((_, address)) = caller.take() {
                anchors = address();
            }
            if let (Some(stream), Some(address)) = (foreign, anchors) {
                self.write_anchors(stream, graph.capacity, address)?;
            }
            let candidates = self.wait(config.groups, foreign, &mut work)?;
            let words = match config.masks {
                Some(_) => self.place_masks(job.images, graph.mask_words, &mut work),
                None => 0,
            };
            self.graphs.had_sorted = candidates > config.sort.limit;
            let has_memory = candidates <= graph.capacity;
            if has_memory && words <= graph.mask_words {
                if job.params.has_class_limits() {
                    self.apply_limits(job.params);
                }
                return Ok(work);
            }
            if has_memory {
                config.mask_words = mask_capacity(words, config.groups);
            } else {
                config.capacity = candidates;
            }
        }
        Err(EngineError::NoResult)
    }

    /// Runs a batch in the order of `stream`, and writes the result to `memory`, or else to `device_results`.
    /// Returns the number of detections per group that fit there, and the addresses.
    pub fn enqueue_batch(
        &mut self,
        job: Job<'_>,
        stream: ForeignStream,
        memory: Option<ResultMemory>,
    ) -> Result<(usize, ResultMemory), EngineError> {
        let device = &self.kernels.device;
        let stream = Stream::of_other_code(device, stream);
        let is_capturing = stream.is_capturing()?;
        if !is_capturing {
            self.enqueued.hold_back(&stream)?;
        }
        let (mut config, mut params) = self.prepare(job, Some(&stream), &Cell::new(0))?;
        // The host cannot check that the candidates fit, so reserve memory for the greatest
        // possible number.
        config.capacity = greatest_candidates(job);
        let Self { graphs, kernels, enqueued, .. } = self;
        let graph =
            graphs.prepare(config, config.capacity, &mut params, kernels, &stream, enqueued)?;
        let (capacity, addresses) = match memory {
            Some(memory) => (job.params.max_detections, memory),
            None => {
                let size = graph.config.results();
                if self.device_results.as_ref().is_none_or(|(held, _)| *held != size) {
                    self.device_results = None;
                    let buffer = DeviceBuffer::new(&self.kernels.device, size.bytes())?;
                    self.device_results = Some((size, buffer));
                }
                let (_, buffer) = self.device_results.as_ref().expect("just made");
                stream.zero(buffer)?;
                (size.capacity as usize, size.addresses(buffer.address()))
            }
        };
        params.results = addresses;
        if is_capturing {
            graph.launch_kernels(&stream, &params)?;
        } else {
            graph.launch(&stream, &params)?;
            self.enqueued.record(&stream)?;
        }
        Ok((capacity, addresses))
    }

    /// Applies class limits to the results of all groups.
    fn apply_limits(&mut self, params: &Params) {
        for (group, counts) in (0..).zip(&mut self.groups) {
            let (detections, columns) = self.results.survivors_mut(group);
            let of_group = counts.first_mask..counts.first_mask + counts.survivors;
            let places = self.masks.places.get_mut(of_group).unwrap_or_default();
            counts.survivors = self.limits.apply(params, detections, columns, places);
        }
    }

    /// Finds the places of all survivors' masks, and adds the bytes that were written to `work`.
    /// Returns the greatest number of mask words in a group; masks are valid if the memory had room
    /// for that many, i.e. if it is at most `held`.
    fn place_masks(&mut self, images: &[ImagePlace], held: u32, work: &mut DeviceWork) -> u32 {
        self.masks.places.clear();
        let (mut most, mut written) = (0, 0);
        let groups = self.groups.iter_mut().zip(place::image_groups(images));
        for (group, (counts, images)) in (0..).zip(groups) {
            counts.first_mask = self.masks.places.len();
            let survivors = &self.results.detections()[counts.first..][..counts.survivors];
            let first = self.results.first_mask_byte(group);
            let words = self.masks.add_group(images, self.anchors, survivors, first);
            most = most.max(words);
            written += words.min(held);
        }
        let bytes = u64::from(written) * WORD_BYTES;
        work.bytes_downloaded += bytes;
        work.mask_bytes_downloaded += bytes;
        most
    }

    /// Launches the kernels once. Returns the configuration of the graph, which has the memory that there is.
    fn launch(
        &mut self,
        wanted: GraphConfig,
        greatest: u32,
        params: &mut LaunchParams,
        foreign: Option<&Stream>,
    ) -> Result<GraphConfig, EngineError> {
        let Self { graphs, kernels, enqueued, results, .. } = self;
        let stream = foreign.unwrap_or(&self.stream);
        let graph = graphs.prepare(wanted, greatest, params, kernels, stream, enqueued)?;
        // The graph may have been made for results in device memory.
        results.make_room(graph.config.results())?;
        params.results = results.addresses();
        params.mask_words = results.mask_address();
        results.clear(wanted.groups);
        graph.launch(stream, params)?;
        Ok(graph.config)
    }

    /// Writes the anchors of the last launch's survivors to the device address `address` as 64-bit integers, in the order
    /// of its stream. Anchors after the last survivor have no meaning: their number is not known yet.
    fn write_anchors(
        &mut self,
        stream: &Stream,
        capacity: u32,
        mut address: u64,
    ) -> Result<(), DriverError> {
        let mut count = self.anchors.min(capacity as usize) as u32;
        let mut detections = self.results.addresses().detections;
        let mut parameters: [*mut c_void; 3] =
            [(&raw mut detections).cast(), (&raw mut count).cast(), (&raw mut address).cast()];
        let kernel = self.kernels.kernel(ANCHORS_KERNEL)?;
        // SAFETY: the parameters match the kernel's signature. There is memory for as many detections, which is not
        // freed or written before this work has completed, since it is added to the pending runs. The caller of
        // `run_in_stream` guarantees the address.
        unsafe { kernel.launch(stream, [1; 3], [PUBLISH_THREADS, 1, 1], &mut parameters) }?;
        self.enqueued.record(stream)
    }

    /// Waits for a launch, and adds to `work`. Returns the greatest number of candidates in a group; survivors
    /// are valid if the memory had room for that many.
    fn wait(
        &mut self,
        groups: u32,
        foreign: Option<&Stream>,
        work: &mut DeviceWork,
    ) -> Result<u32, EngineError> {
        self.results.wait(foreign.unwrap_or(&self.stream), groups)?;
        self.groups.clear();
        let mut survivors = 0;
        let (mut most, mut rounds, mut nanoseconds) = (0, 0, 0);
        for group in 0..groups {
            let header = self.results.header(group);
            self.groups.push(GroupCounts {
                first: self.results.first(group),
                first_mask: 0,
                survivors: header.survivors as usize,
                candidates: header.candidates as usize,
                rejected: header.rejected as usize,
            });
            survivors += header.survivors as usize;
            most = most.max(header.candidates);
            rounds = rounds.max(header.rounds);
            nanoseconds = nanoseconds.max(header.nanoseconds);
        }
        let columns = (survivors * self.results.column_components() * size_of::<f32>()) as u64;
        let detections = detections_offset(groups) + survivors * size_of::<Detection>();
        *work += DeviceWork {
            bytes_downloaded: detections as u64 + columns,
            column_bytes_downloaded: columns,
            // `place_masks` computes these from the survivors.
            launches: 1,
            rounds: rounds.into(),
            time: Duration::from_nanos(nanoseconds.into()),
            ..DeviceWork::default()
        };
        Ok(most)
    }
}

/// The greatest number of anchors in a group. `validate` has checked that it fits in 32 bits.
fn greatest_anchors(job: Job<'_>) -> u32 {
    (job.layout.anchors() * greatest_group(job.images)) as u32
}

/// The greatest number of candidates that a group can have. `validate` has also checked that
/// the number of pairs fits in 32 bits.
fn greatest_candidates(job: Job<'_>) -> u32 {
    let classes = job.layout.score.components as u32;
    greatest_anchors(job) * if is_multi_label(job.layout, job.params) { classes } else { 1 }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // The memory is freed after all work that uses it has completed.
        let _ = self.enqueued.synchronize();
        let _ = self.stream.synchronize();
    }
}
