// SPDX-License-Identifier: MIT OR Apache-2.0
//! From settings to the plan in force.
//!
//! In: the properties, the tensors of each run, and their model description. Out: the plan for them. Changed settings
//! are pending until a plan can be made with them. What contradicts the plan is reported as a warning.

use std::sync::Arc;

use super::NmsFilter;
use super::contradictions::Contradictions;
use super::debug_category::CAT;
use super::error::FrameError;
use super::nvinfer_config::NvinferConfig;
use super::pending_settings::PendingSettings;
use super::plan::{PlanInput, StreamPlan};
use super::settings::Settings;
use super::tensor_model::TensorModel;
use crate::decoder::model_family::ModelFamily;
use crate::engine::Engine;
use crate::geometry::Mapping;
use crate::input::InputError;
use crate::input::model::ModelInput;
use crate::output::Labels;
use crate::tensor::TensorView;

/// The plan, and what it is made of.
pub(super) struct Planner {
    pub labels: Labels,
    model: TensorModel,
    /// The properties' values that were stored last.
    properties: Settings,
    /// The configuration of nvinfer that counts where a property was not set.
    nvinfer: Option<Arc<NvinferConfig>>,
    /// The settings in force. Once a frame is decoded, they are always valid for the stream.
    settings: Settings,
    /// Settings that were set later and are not in force.
    pending: Option<PendingSettings>,
    /// The plan for the settings in force; `None` before the first frame with tensors, after new caps
    /// and for another model.
    plan: Option<StreamPlan>,
    /// Whether any frame has been decoded.
    pub decoded: bool,
    pub contradictions: Contradictions,
}

impl Planner {
    pub fn new(labels: Labels, properties: Settings, nvinfer: Option<Arc<NvinferConfig>>) -> Self {
        let settings = properties.with_nvinfer(nvinfer.as_ref());
        Self {
            properties,
            nvinfer,
            labels,
            model: TensorModel::default(),
            settings,
            pending: None,
            plan: None,
            decoded: false,
            contradictions: Contradictions::default(),
        }
    }

    /// A planner for another stream of the same element.
    pub fn for_other_stream(&self) -> Self {
        let (properties, nvinfer) = (self.properties.clone(), self.nvinfer.clone());
        let contradictions = self.contradictions.of_other_stream();
        Self { contradictions, ..Self::new(self.labels.of_file(), properties, nvinfer) }
    }

    /// Stores the element's settings if they have changed. They come into force with the next frame
    /// that has tensors, if they are valid for it.
    pub fn update_settings(&mut self, properties: &Settings) {
        if self.properties == *properties {
            return;
        }
        self.properties = properties.clone();
        let settings = properties.with_nvinfer(self.nvinfer.as_ref());
        let latest = self.pending.as_ref().map_or(&self.settings, |pending| &pending.settings);
        if *latest != settings {
            self.pending = Some(PendingSettings::new(settings, self.pending.take()));
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes the caps that describe the tensors' model, if there are any, and returns its input.
    ///
    /// # Errors
    /// If they describe no model.
    pub fn set_model(&mut self, caps: Option<&gst::Caps>) -> Result<ModelInput, InputError> {
        if self.model.update(caps)? {
            self.labels.set_model(&self.model.info().labels);
            self.plan = None;
        }
        Ok(self.model.info().input())
    }

    /// The family of the tensors' model, if it is known and not that of plain detectors.
    pub fn family(&self) -> Option<ModelFamily> {
        let info = self.model.info();
        ModelFamily::for_task(info.task.as_deref()?, info.end2end)
    }

    /// The plan in force.
    pub fn plan(&self) -> Option<&StreamPlan> {
        self.plan.as_ref()
    }

    /// The plan in force, to prepare it for several images.
    #[cfg(feature = "v1_28")]
    pub fn plan_mut(&mut self) -> Option<&mut StreamPlan> {
        self.plan.as_mut()
    }

    /// The plan in force, and what contradicts it.
    #[cfg(feature = "v1_28")]
    pub fn plan_and_contradictions(&mut self) -> Option<(&StreamPlan, &mut Contradictions)> {
        Some((self.plan.as_ref()?, &mut self.contradictions))
    }

    /// The mapping to the frames of these tensors, if the plan in force is that of the tensors, whose model has these caps,
    /// and nothing is about to change it.
    #[cfg(feature = "v1_28")]
    pub fn steady_mapping(
        &self,
        model: Option<&gst::Caps>,
        tensors: &[TensorView<'_>],
        frame: Option<[u32; 2]>,
    ) -> Option<Mapping> {
        let input = PlanInput {
            tensors,
            frame,
            model: self.model.info().input(),
            family: None,
            batch: None,
        };
        let plan = self.plan.as_ref()?;
        let is_steady = self.decoded
            && self.pending.is_none()
            && self.model.is_described_by(model)
            && plan.matches(input, &self.settings);
        input.mapping(&self.settings).ok().filter(|_| is_steady)
    }

    /// Discards the plan, for frames with other caps.
    pub fn discard_plan(&mut self) {
        self.plan = None;
    }

    /// The plan for a run with the mapping of its images, and what contradicts it.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or before the first frame is decoded, if settings are not valid for them.
    pub fn update(
        &mut self,
        element: &NmsFilter,
        engine: &dyn Engine,
        input: PlanInput<'_>,
        pts: Option<gst::ClockTime>,
    ) -> Result<(&StreamPlan, Mapping, &mut Contradictions), FrameError> {
        self.make_plan(element, engine, input, pts)?;
        let plan = self.plan.as_ref().expect("make_plan has made it");
        Ok((plan, input.mapping(&self.settings)?, &mut self.contradictions))
    }

    /// Makes the plan, with the pending settings if they are valid for these tensors; they are in
    /// force then. If they are not valid: before the first frame is decoded, that is an error.
    /// Afterwards the previous settings stay in force, and a warning is posted if the pending
    /// settings stay invalid for a second.
    fn make_plan(
        &mut self,
        element: &NmsFilter,
        engine: &dyn Engine,
        input: PlanInput<'_>,
        pts: Option<gst::ClockTime>,
    ) -> Result<(), FrameError> {
        let matches = self.plan.as_ref().is_some_and(|plan| plan.matches(input, &self.settings));
        if let Some(mut pending) = self.pending.take() {
            if !matches || !pending.is_rejected() {
                match self.plan_for(engine, input, &pending.settings) {
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
            false => self.renew_plan(element, engine, input).map_err(|error| {
                // If neither the pending settings nor those in force are valid, the error of the
                // pending ones is more useful: these are the current values of the properties.
                self.pending.take().and_then(PendingSettings::into_error).unwrap_or(error)
            }),
        }
    }

    /// Makes or adapts the plan for other tensors or caps with the settings in force.
    fn renew_plan(
        &mut self,
        element: &NmsFilter,
        engine: &dyn Engine,
        input: PlanInput<'_>,
    ) -> Result<(), FrameError> {
        if let Some(plan) = &mut self.plan
            && plan.adapt(input, &self.settings, &self.labels)?
        {
            return Ok(());
        }
        let plan = self.plan_for(engine, input, &self.settings)?;
        self.install_plan(element, input, plan);
        Ok(())
    }

    /// The plan for `input` with `settings`.
    fn plan_for(
        &self,
        engine: &dyn Engine,
        input: PlanInput<'_>,
        settings: &Settings,
    ) -> Result<StreamPlan, FrameError> {
        StreamPlan::new(input, settings, &self.labels, engine)
    }

    fn install_plan(&mut self, element: &NmsFilter, input: PlanInput<'_>, plan: StreamPlan) {
        let mapping = input.mapping(&self.settings).expect("the plan was made with it");
        let (choice, frame) = (plan.choice(), mapping.frame());
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
        let (model, model_source) = (mapping.model(), self.settings.model_size(input.model).1);
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
        gst::debug!(CAT, obj = element, "{:?}, {mapping:?}", plan.params(&mapping));
        let Self { settings, labels, contradictions, .. } = self;
        contradictions.begin(element, &plan, input, &mapping, settings, labels);
        self.labels.set_choice(plan.choice());
        self.plan = Some(plan);
    }
}
