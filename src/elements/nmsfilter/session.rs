// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the element between start and stop, and the processing of a frame.
//!
//! In: a buffer with tensors. Out: the same buffer with regions, and the counts of the frame. The
//! steps are those of the source folders: input, decoder (through the plan), engine, output. Batches of
//! DeepStream are processed in [`batch`](super::batch).

use std::fmt;
use std::ops::Range;

use gst::glib;

use super::NmsFilter;
use super::contradictions::{self, Contradictions};
use super::debug_category::CAT;
use super::error::FrameError;
use super::pending_settings::PendingSettings;
use super::plan::{Plan, PlanInput};
use super::settings::Settings;
use super::stats::FrameCounts;
use super::tensor_model::TensorModel;
use super::timeout::Timeout;
use super::unread_family::UnreadFamily;
use super::warnings::Warnings;
use crate::engine::{Engine, EngineError};
use crate::input::deepstream::{self, BatchCaps};
use crate::input::selection::{Selection, SetReader};
use crate::output::{self, Kinds, Labels, Region};
use crate::tensor::{TensorError, TensorView};

/// The engine, and everything that is computed once and used for many frames.
pub(super) struct Session {
    pub(super) engine: Box<dyn Engine>,
    pub(super) labels: Labels,
    pub(super) model: TensorModel,
    pub(super) deepstream: deepstream::Reader,
    tensor_sets: SetReader,
    /// The settings in force. Once a frame is decoded, they are always valid for the stream.
    pub(super) settings: Settings,
    /// Settings that were set later and are not in force.
    pending: Option<PendingSettings>,
    /// Width and height; `None` before caps.
    pub(super) frame_size: Option<[u32; 2]>,
    /// Whether the frames are in NVMM memory.
    is_nvmm: bool,
    /// The plan for the settings in force; `None` before the first frame with tensors, after new caps
    /// and for another model.
    pub(super) plan: Option<Plan>,
    /// The regions of all frames of the buffer.
    pub(super) regions: Vec<Region>,
    /// For each frame of a batch with tensors: its index, and which of `regions` are its regions.
    pub(super) batch_regions: Vec<(usize, Range<usize>)>,
    /// The number of frames of the last buffer.
    pub(super) frames: usize,
    /// Whether any frame has been decoded.
    pub(super) decoded: bool,
    /// Started when the engine continued on the CPU after a failure of the GPU.
    gpu_failed: Option<Timeout>,
    pub(super) warnings: Warnings,
    pub(super) contradictions: Contradictions,
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

impl Session {
    pub fn new(
        engine: Box<dyn Engine>,
        labels: Labels,
        deepstream: deepstream::Reader,
        settings: Settings,
    ) -> Self {
        let selection = Selection::new(settings.tensors_from.as_deref());
        Self {
            engine,
            labels,
            model: TensorModel::default(),
            deepstream,
            tensor_sets: SetReader::new(selection),
            settings,
            pending: None,
            frame_size: None,
            is_nvmm: false,
            plan: None,
            regions: Vec::new(),
            batch_regions: Vec::new(),
            frames: 0,
            decoded: false,
            gpu_failed: None,
            warnings: Warnings::default(),
            contradictions: Contradictions::default(),
        }
    }

    /// Stores the element's settings if they have changed. They come into force with the next frame
    /// that has tensors, if they are valid for it.
    pub fn update_settings(&mut self, settings: &Settings) {
        let latest = self.pending.as_ref().map_or(&self.settings, |pending| &pending.settings);
        if latest != settings {
            self.pending = Some(PendingSettings::new(settings.clone(), self.pending.take()));
        }
    }

    /// The GPU failure after which the engine continued on the CPU; returned once. `pts` is the timestamp of
    /// the frame that was processed.
    pub fn take_failure(&mut self, pts: Option<gst::ClockTime>) -> Option<String> {
        let failure = self.engine.take_failure().map(ToString::to_string)?;
        self.gpu_failed = Some(Timeout::start(pts));
        Some(failure)
    }

    /// Whether `error` is that tensors cannot be read because they were in the memory of a GPU that has failed
    /// less than a second ago. Upstream elements need that time to notice the failure, too.
    pub fn is_lost_with_gpu(&self, error: &FrameError, pts: Option<gst::ClockTime>) -> bool {
        matches!(error, FrameError::Engine(EngineError::Tensor(TensorError::Map { .. })))
            && self.gpu_failed.is_some_and(|failed| !failed.has_expired(pts))
    }

    /// The processor on which the engine runs, if the engine has selected it since the last call.
    pub fn take_description(&mut self) -> Option<String> {
        self.engine.take_description()
    }

    /// Sets the size of the following frames, and whether they are in NVMM memory.
    pub fn set_caps(&mut self, frame: [u32; 2], is_nvmm: bool) {
        self.frame_size = Some(frame);
        self.is_nvmm = is_nvmm;
        self.plan = None;
    }

    /// What the caps have for batches of DeepStream.
    pub(super) fn batch_caps(&self) -> BatchCaps {
        BatchCaps { size: self.frame_size, is_nvmm: self.is_nvmm }
    }

    /// Posts the warnings that are due at the end of the stream.
    pub fn end_stream(&mut self, element: &NmsFilter) {
        self.contradictions.judge(element);
    }

    /// The number of frames of the last buffer.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The label of each survivor of the last buffer that was decoded.
    pub fn labels(&mut self) -> impl Iterator<Item = glib::Quark> {
        self.regions.iter().map(|region| self.labels.quark(region.class))
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
        self.frames = 1;
        let mut deepstream = std::mem::take(&mut self.deepstream);
        let result = self.process_batch(element, buffer, &mut deepstream);
        self.deepstream = deepstream;
        match result? {
            Some(result) => Ok(result),
            None => self.process_frame(element, buffer),
        }
    }

    /// Processes the tensors of a buffer that DeepStream has not attached.
    fn process_frame(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<FrameResult, FrameError> {
        let pts = buffer.pts();
        let (tensors, sets) = self.tensor_sets.read(buffer)?;
        self.warnings.other_sets(element, self.tensor_sets.selection(), &sets);
        self.warnings.unread_tensors(element, tensors.len(), tensors.unread());
        if tensors.is_empty() {
            return Ok(FrameResult::WithoutTensors);
        }
        if self.model.update(tensors.model())? {
            self.labels.set_model(&self.model.info().labels);
            self.plan = None;
        }
        let mut views = tensors.views();
        let model = self.model.info().input();
        let family = UnreadFamily::of(self.model.info());
        let input =
            PlanInput { tensors: &views, frame: self.frame_size, model, family, batch: None };
        self.update_plan(element, input, pts)?;
        let size = self.frame_size.ok_or(FrameError::NoCaps)?;
        let plan = self.plan.as_ref().expect("update_plan has made it");
        let frame = plan.frame(size, model);
        plan.quantization.apply(&mut views);
        let outcome = self.engine.run(&views, &plan.choice.layout, &frame.params)?;

        self.regions.clear();
        // Every survivor has a region: the engine rejects boxes outside of the frame.
        self.regions
            .extend(outcome.image(0).survivors.iter().filter_map(|d| frame.mapping.region(d)));
        let mut counts = FrameCounts::default();
        counts.add(&outcome);
        self.contradictions.add(element, &outcome, frame.anchors(&plan.choice.layout), pts);
        drop(views);
        drop((tensors, sets));
        self.attach(element, buffer, size)?;
        self.decoded = true;
        self.warnings.max_detections(element, self.settings.max_detections, counts.survivors);
        Ok(FrameResult::Decoded(counts))
    }

    /// Attaches the regions, and removes the tensors unless `keep-tensors` is set.
    fn attach(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
        frame: [u32; 2],
    ) -> Result<(), FrameError> {
        let kinds = Kinds::from(self.settings.attach);
        let labels = &mut self.labels;
        if let Some(best) = self.regions.first() {
            self.warnings.repeated_region(element, best, || {
                output::is_attached(buffer, frame, best, labels, kinds)
            });
        }
        output::attach(buffer, frame, &self.regions, &mut self.labels, kinds)?;
        #[cfg(feature = "v1_20")]
        if !self.settings.keep_tensors {
            self.tensor_sets.remove(buffer);
        }
        Ok(())
    }

    /// Makes the plan, with the pending settings if they are valid for these tensors; they are in
    /// force then. If they are not valid: before the first frame is decoded, that is an error.
    /// Afterwards the previous settings stay in force, and a warning is posted if the pending
    /// settings stay invalid for a second.
    pub(super) fn update_plan(
        &mut self,
        element: &NmsFilter,
        input: PlanInput<'_>,
        pts: Option<gst::ClockTime>,
    ) -> Result<(), FrameError> {
        let matches = self.plan.as_ref().is_some_and(|plan| plan.matches(input));
        if let Some(mut pending) = self.pending.take() {
            if !matches || !pending.is_rejected() {
                match self.plan_for(input, &pending.settings) {
                    Ok(plan) => {
                        self.settings = pending.settings;
                        self.install_plan(element, input, plan);
                        return Ok(());
                    }
                    Err(error) if self.decoded => pending.reject(element, error, pts),
                    Err(error) => {
                        self.pending = Some(pending);
                        return Err(error);
                    }
                }
            }
            pending.warn_if_unusable(element, pts);
            self.pending = Some(pending);
        }
        match matches {
            true => Ok(()),
            false => self.renew_plan(element, input).map_err(|error| {
                // If neither the pending settings nor those in force are valid, the error of the
                // pending ones is more useful: these are the current values of the properties.
                self.pending.take().and_then(PendingSettings::into_error).unwrap_or(error)
            }),
        }
    }

    /// Makes or adapts the plan for other tensors or caps with the settings in force.
    fn renew_plan(&mut self, element: &NmsFilter, input: PlanInput<'_>) -> Result<(), FrameError> {
        if let Some(plan) = &mut self.plan
            && plan.adapt(input, &self.settings, &self.labels)?
        {
            return Ok(());
        }
        let plan = self.plan_for(input, &self.settings)?;
        self.install_plan(element, input, plan);
        Ok(())
    }

    /// The plan for `input` with `settings`.
    fn plan_for(&self, input: PlanInput<'_>, settings: &Settings) -> Result<Plan, FrameError> {
        Plan::new(input, settings, &self.labels, &*self.engine)
    }

    fn install_plan(&mut self, element: &NmsFilter, input: PlanInput<'_>, plan: Plan) {
        let frame = input.frame.expect("the plan was made with the size of the frame");
        let (choice, part) = (&plan.choice, plan.frame_of(input));
        gst::info!(
            CAT,
            obj = element,
            "decoder {} chosen {}: {} anchors, {} classes, {} coordinates; frame {}x{}, tensors in \
             {} memory",
            choice.decoder.name(),
            choice.reason,
            choice.layout.anchors(),
            choice.layout.classes,
            if choice.layout.normalized { "normalized" } else { "pixel" },
            frame[0],
            frame[1],
            if input.tensors.iter().any(TensorView::is_on_device) { "device" } else { "host" },
        );
        let labels = self.labels.count();
        let (model, model_source) = (part.mapping.model(), self.settings.model_size(input.model).1);
        let (letterbox, letterbox_source) = self.settings.letterbox(input.model);
        gst::debug!(
            CAT,
            obj = element,
            "model's input {}x{} {model_source}, letterbox {} {letterbox_source}, {labels} labels{}",
            model[0],
            model[1],
            letterbox.name(),
            self.labels.source().map(|source| format!(" of {source}")).unwrap_or_default(),
        );
        gst::debug!(CAT, obj = element, "{:?}, {:?}", part.params, part.mapping);
        let found = contradictions::of_plan(&plan, input, &self.settings, &self.labels);
        self.contradictions.begin(element, plan.reading(input), &found);
        self.labels.set_decoder(choice.decoder);
        self.plan = Some(plan);
    }
}

/// The debug information of error messages, besides properties.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine {}, ", self.engine.name())?;
        match self.frame_size {
            Some([width, height]) => write!(f, "frame {width}x{height}"),
            None => f.write_str("no frame"),
        }
    }
}
