// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the element between start and stop, and the processing of a buffer.
//!
//! In: a buffer with tensors. Out: the same buffer with regions, and the counts of its frames. The steps are those of
//! the source folders: a source reads images from the buffer, each group of them is decoded in one run of the engine
//! (by the plan, `planner.rs`), and the sink attaches the regions of each frame. A video frame is a batch of one. In a
//! batch of GStreamer's analytics library each frame of each stream is a buffer (`streams.rs`).

use std::fmt;
use std::sync::Arc;

use gst::glib;

use super::NmsFilter;
use super::debug_category::CAT;
use super::error::FrameError;
use super::nvinfer_config::NvinferConfig;
use super::plan::PlanInput;
use super::plan::StreamPlan;
use super::planner::Planner;
use super::planners::Planners;
use super::settings::Settings;
use super::stats::FrameCounts;
use super::timeout::Timeout;
use super::warnings::Warnings;
use crate::input::InputError;
use crate::input::deepstream::{self, BatchCaps};
use crate::input::selection::{Selection, SetReader};
use crate::input::source::{Images, Sources};
use crate::output::deepstream::ClassColors;
use crate::output::sink::{Sink, Target};
use crate::output::{FrameRegions, Kinds, Labels, MaskBuffers, MaskPixels, Region};
use nmsfilter_core::contradictions::{DetailEvidence, Run};
use nmsfilter_core::engine::{Engine, EngineError, Outcome};
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::tensor::TensorError;

/// The engine, and everything that is computed once and used for many frames.
pub(super) struct Session {
    pub(super) engine: Box<dyn Engine>,
    pub(super) planners: Planners,
    /// The colors of DeepStream's objects.
    colors: ClassColors,
    pub(super) sources: Sources,
    /// Of the current frame or batch of DeepStream.
    caps: BatchCaps,
    /// Whether buffers are batches of GStreamer's analytics library.
    #[cfg(feature = "v1_28")]
    has_streams: bool,
    pub(super) regions: FrameRegions,
    pub(super) mask_buffers: MaskBuffers,
    /// The number of frames of the last buffer.
    pub(super) frames: usize,
    /// The label of each survivor of the last buffer.
    pub(super) survivor_labels: Vec<glib::Quark>,
    /// The GPU failure after which the engine continued on the CPU, until it is taken.
    failure: Option<String>,
    /// For each frame of a batch with streams the index of its stream's planner, if its tensors were decoded.
    #[cfg(feature = "v1_28")]
    pub(super) decoded_by: Vec<Option<usize>>,
    /// Started when the engine continued on the CPU after a failure of the GPU.
    gpu_failed: Option<Timeout>,
    pub(super) warnings: Warnings,
}

/// The result of processing the frames of a buffer.
pub(super) enum FrameResult {
    /// The buffer has no tensors.
    WithoutTensors,
    /// The tensors were decoded and the survivors attached.
    Decoded(FrameCounts),
    /// The tensors were in the memory of a GPU that has failed.
    Lost,
}

/// The result of decoding a frame, or a batch of DeepStream.
enum Decoding {
    WithoutTensors,
    /// The regions are found, and not attached yet.
    Found(FrameCounts, Target),
    /// The tensors were in the memory of a GPU that has failed.
    Lost,
}

impl Session {
    pub fn new(
        engine: Box<dyn Engine>,
        labels: Labels,
        batches: deepstream::Reader,
        settings: Settings,
        nvinfer: Option<Arc<NvinferConfig>>,
    ) -> Self {
        let colors = nvinfer.as_ref().map(|config| config.colors()).unwrap_or_default();
        let selection = Selection::new(settings.tensors_from.as_deref());
        Self {
            engine,
            planners: Planners::new(Planner::new(labels, settings, nvinfer)),
            colors,
            sources: Sources { batches, tensor_sets: SetReader::new(selection) },
            caps: BatchCaps::default(),
            #[cfg(feature = "v1_28")]
            has_streams: false,
            regions: FrameRegions::default(),
            mask_buffers: MaskBuffers::default(),
            frames: 0,
            survivor_labels: Vec::new(),
            failure: None,
            #[cfg(feature = "v1_28")]
            decoded_by: Vec::new(),
            gpu_failed: None,
            warnings: Warnings::default(),
        }
    }

    /// Stores the element's settings if they have changed. They come into force with the next frame
    /// that has tensors, if they are valid for it.
    pub fn update_settings(&mut self, settings: &Settings) {
        self.planners.update_settings(settings);
    }

    /// The GPU failure after which the engine continued on the CPU; returned once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Whether `error` is that tensors cannot be read because they were in the memory of a GPU that has failed
    /// less than a second ago. Upstream elements need that time to notice the failure, too.
    fn is_lost_with_gpu(&self, error: &FrameError, pts: Option<gst::ClockTime>) -> bool {
        matches!(error, FrameError::Engine(EngineError::Tensor(TensorError::Map { .. })))
            && self.gpu_failed.is_some_and(|failed| !failed.has_expired(pts))
    }

    /// The processor on which the engine runs, if the engine has selected it since the last call.
    pub fn take_description(&mut self) -> Option<String> {
        self.engine.take_description()
    }

    /// Sets the size of the following frames, and whether they are in NVMM memory.
    pub fn set_caps(&mut self, frame: [u32; 2], is_nvmm: bool) {
        self.caps = BatchCaps { size: Some(frame), is_nvmm };
        #[cfg(feature = "v1_28")]
        {
            self.has_streams = false;
        }
        self.planners.select_buffers();
    }

    /// The following buffers are batches of GStreamer's analytics library.
    #[cfg(feature = "v1_28")]
    pub fn set_has_streams(&mut self) {
        self.has_streams = true;
    }

    /// Adds to `copy` what DeepStream does not copy from `original`.
    ///
    /// # Errors
    /// If DeepStream's libraries cannot be used, or the metadata is damaged.
    pub fn complete_copy(
        &mut self,
        original: &gst::BufferRef,
        copy: &mut gst::BufferRef,
    ) -> Result<(), InputError> {
        self.sources.batches.complete_copy(original, copy)
    }

    /// Posts the warnings that are due at the end of the stream.
    pub fn end_stream(&mut self, element: &NmsFilter) {
        self.planners.all().for_each(|planner| planner.contradictions.judge(element));
    }

    /// The number of frames of the last buffer.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The label of each survivor of the last buffer.
    pub fn labels(&self) -> impl Iterator<Item = glib::Quark> {
        self.survivor_labels.iter().copied()
    }

    /// Reads the tensors of `buffer`, decodes and suppresses, and attaches the survivors to it.
    ///
    /// # Errors
    /// If tensors cannot be read, settings are not valid for the first frame that is decoded, the
    /// engine fails, or metadata cannot be attached.
    pub fn process(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<FrameResult, FrameError> {
        self.survivor_labels.clear();
        #[cfg(feature = "v1_28")]
        if self.has_streams {
            return self.process_streams(element, buffer);
        }
        match self.find_regions(element, buffer)? {
            Decoding::WithoutTensors => Ok(FrameResult::WithoutTensors),
            Decoding::Lost => Ok(FrameResult::Lost),
            Decoding::Found(counts, target) => {
                self.attach(element, buffer, &counts, target)?;
                Ok(FrameResult::Decoded(counts))
            }
        }
    }

    /// Finds the regions of the frames of `buffer`, unless its tensors are lost with a GPU.
    fn find_regions(
        &mut self,
        element: &NmsFilter,
        buffer: &gst::BufferRef,
    ) -> Result<Decoding, FrameError> {
        let result = self.decode(element, buffer);
        self.note_failure(buffer.pts());
        match result {
            Ok(None) => Ok(Decoding::WithoutTensors),
            Ok(Some((counts, target))) => Ok(Decoding::Found(counts, target)),
            Err(error) => self.check_loss(element, error, buffer.pts()).map(|()| Decoding::Lost),
        }
    }

    /// Notes that the engine continued on the CPU after a failure of the GPU at the frame with this timestamp.
    pub(super) fn note_failure(&mut self, pts: Option<gst::ClockTime>) {
        if let Some(failure) = self.engine.take_failure() {
            self.failure = Some(failure.to_string());
            self.gpu_failed = Some(Timeout::start(pts));
        }
    }

    /// Whether a frame has only lost its tensors.
    ///
    /// # Errors
    /// `error`, if it is another.
    pub(super) fn check_loss(
        &self,
        element: &NmsFilter,
        error: FrameError,
        pts: Option<gst::ClockTime>,
    ) -> Result<(), FrameError> {
        if !self.is_lost_with_gpu(&error, pts) {
            return Err(error);
        }
        gst::warning!(CAT, obj = element, "the frame's tensors are lost with the GPU: {error}");
        Ok(())
    }

    /// Reads the images of `buffer` and finds the regions of its frames; `None` if it has no tensors.
    fn decode(
        &mut self,
        element: &NmsFilter,
        buffer: &gst::BufferRef,
    ) -> Result<Option<(FrameCounts, Target)>, FrameError> {
        let Self { planners, sources, warnings, .. } = self;
        let planner = planners.current();
        self.frames = 1;
        let batch = sources.batches.read(buffer, self.caps, !planner.decoded)?;
        if let Some(batch) = &batch {
            self.frames = batch.found.all_frames;
            warnings.batch(element, batch, planner.settings());
        }
        let tensors;
        let images = match &batch {
            Some(batch) if !batch.frames().is_empty() => {
                planner.set_model(None)?;
                if planner.plan().is_none() {
                    let (version, found) = (batch.version(), batch.found);
                    gst::debug!(CAT, obj = element, "DeepStream {version}, {found:?}");
                }
                Images::Batch(batch)
            }
            _ => {
                let sets;
                (tensors, sets) = sources.tensor_sets.read(buffer)?;
                warnings.other_sets(element, sources.tensor_sets.selection(), &sets);
                warnings.unread_tensors(element, tensors.len(), tensors.unread());
                if tensors.is_empty() {
                    return Ok(None);
                }
                let model = planner.set_model(tensors.model())?;
                Images::Frame { tensors: &tensors, size: self.caps.size, model }
            }
        };

        let mut counts = FrameCounts::default();
        self.regions.clear();
        for group in images.groups() {
            let mut views = group.views();
            let input = PlanInput {
                tensors: &views,
                frame: group.size,
                model: group.model,
                family: planner.family(),
                batch: images.batch(),
            };
            let (plan, mapping, contradictions) =
                planner.update(element, &*self.engine, input, buffer.pts())?;
            let params = plan.params(&mapping);
            let anchors = plan.anchors(params);
            plan.quantization().apply(&mut views);
            let layout = &plan.choice().layout;
            let outcome = self.engine.run(&views, layout, params)?;
            let frames = group.frames();
            let wants_evidence = contradictions.are_open();
            let evidence =
                add_outcome(&mut self.regions, &outcome, frames, plan, &mapping, wants_evidence);
            counts.add(&outcome);
            let run = Run { tensors: &views, layout, params };
            contradictions.add(element, &outcome, run, evidence, anchors, buffer.pts());
        }
        self.regions.sort_frames();
        counts.survivors = self.regions.all().regions.len();
        counts.frames_without_tensors = images.batch().map_or(0, |frames| frames - counts.frames);
        Ok(Some((counts, Target::of(images))))
    }

    /// Attaches the regions, and removes the tensors unless `keep-tensors` is set.
    fn attach(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        counts: &FrameCounts,
        target: Target,
    ) -> Result<(), FrameError> {
        let planner = self.planners.current();
        let settings = planner.settings();
        let (kinds, keep_tensors) = (Kinds::from(settings.attach), settings.keep_tensors);
        let limit = settings.max_detections;
        let colors = &self.colors;
        let sink = Sink { target, kinds, keep_tensors, colors, sources: &self.sources };
        let labels = &mut planner.labels;
        if let Some((frame, best)) = self.regions.first() {
            self.warnings.repeated_region(element, best.region, || {
                sink.is_attached(buffer, frame, best, labels)
            });
        }
        sink.attach(buffer, &self.regions, labels, &mut self.mask_buffers)?;
        let regions = self.regions.all().regions.iter();
        self.survivor_labels.extend(regions.map(|region| labels.quark(region.class)));
        planner.decoded = true;
        self.warnings.max_detections(element, limit, counts.most_survivors);
        Ok(())
    }
}

/// Adds the regions of the images of a run, which are those of the frames with these indices. Returns the evidence of
/// their details, if `wants_evidence`.
pub(super) fn add_outcome(
    regions: &mut FrameRegions,
    outcome: &Outcome<'_>,
    frames: impl Iterator<Item = usize>,
    plan: &StreamPlan,
    mapping: &Mapping,
    wants_evidence: bool,
) -> DetailEvidence {
    let (layout, params) = (&plan.choice().layout, plan.params(mapping));
    let (details, pixels) = (plan.details(), MaskPixels::of(layout, params));
    let mut evidence = DetailEvidence::default();
    for (frame, image) in frames.zip(outcome.images()) {
        // Every survivor has a region, unless a configuration of nvinfer has limits that it exceeds: the engine
        // rejects boxes outside of the frame.
        let region_of = |survivor| {
            let region = Region::of(survivor, mapping)?;
            plan.region_rules().keep(&region, mapping.frame()).then_some(region)
        };
        let of_frame = image.survivors.iter().filter_map(region_of);
        regions.add(frame, mapping.frame(), of_frame);
        if details.is_empty() {
            continue;
        }
        let rows = image.columns.chunks(outcome.column_components());
        for (index, (survivor, row)) in image.survivors.iter().zip(rows).enumerate() {
            if region_of(survivor).is_none() {
                continue;
            }
            let detail = details.of(layout, params, survivor, row);
            if wants_evidence {
                evidence.add(survivor, &detail);
            }
            let mask = image.masks.get(index);
            let mask = mask.map(|mask| (mask, pixels.area(&mask, mapping)));
            regions.add_detail(&detail, mask, mapping);
        }
    }
    evidence
}

/// The debug information of error messages, besides properties.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine {}, ", self.engine.name())?;
        match self.caps.size {
            Some([width, height]) => write!(f, "frame {width}x{height}"),
            None => f.write_str("no frame"),
        }
    }
}
