// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the plan for the tensors of one model, and keeps the settings in force.
//!
//! In: the properties, the tensors of each run, and their model description. Out: the plan for them, and the places of
//! images in their frames. Changed settings are pending until a plan can be made with them. Contradictions of the plan
//! are reported as warnings.

use std::sync::Arc;

use gst::prelude::*;

use super::NmsFilter;
use super::classifier::ClassifierPlan;
use super::contradictions::Contradictions;
use super::debug_category::CAT;
use super::error::FrameError;
use super::nvinfer_config::NvinferConfig;
use super::pending_settings::PendingSettings;
use super::plan::{FramePlan, ModelPlan, PlanInput};
use super::settings::Settings;
use super::tensor_model::TensorModel;
use crate::input::InputError;
use crate::input::model::ModelInput;
use crate::input::source::ImageFrame;
use crate::output::Labels;
use nmsfilter_core::decoder::model_family::ModelFamily;
use nmsfilter_core::engine::{Engine, ImagePlace};
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::tensor::TensorView;

/// The plan, with its inputs.
pub(super) struct Planner {
    pub labels: Labels,
    model: TensorModel,
    /// The properties' values that were stored last.
    properties: Settings,
    /// The configuration of nvinfer, which applies where a property was not set.
    nvinfer: Option<Arc<NvinferConfig>>,
    /// The settings in force. Once a frame is decoded, they are always valid for the stream.
    settings: Settings,
    /// Settings that were set later and are not in force.
    pending: Option<PendingSettings>,
    /// The plan for the settings in force; `None` before the first frame with tensors, after new caps
    /// and for another model.
    plan: Option<ModelPlan>,
    /// True if any frame has been decoded.
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

    /// A planner for another model of this element.
    #[cfg(feature = "v1_28")]
    pub fn for_other_model(&self) -> Self {
        let (properties, nvinfer) = (self.properties.clone(), self.nvinfer.clone());
        let contradictions = self.contradictions.of_other_model();
        Self { contradictions, ..Self::new(self.labels.of_file(), properties, nvinfer) }
    }

    /// Returns true if these caps describe the model.
    #[cfg(feature = "v1_28")]
    pub fn has_model(&self, caps: Option<&gst::Caps>) -> bool {
        self.model.is_described_by(caps)
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

    /// The family of the tensors' model, if it is known and not a plain detector.
    pub fn family(&self) -> Option<ModelFamily> {
        let info = self.model.info();
        ModelFamily::for_task(info.task.as_deref()?, info.end2end)
    }

    /// The plan in force.
    #[cfg(feature = "v1_28")]
    pub fn plan(&self) -> Option<&ModelPlan> {
        self.plan.as_ref()
    }

    /// Returns true if there is a plan in force.
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns the plan that [`update`](Self::update) made, and its contradictions.
    ///
    /// # Panics
    /// If there is no plan, or that of a classifier.
    pub fn decoding(&mut self) -> (&mut FramePlan, &mut Contradictions) {
        match &mut self.plan {
            Some(ModelPlan::Detector(plan)) => (plan, &mut self.contradictions),
            _ => panic!("`update` has made the plan of a detector"),
        }
    }

    /// The plan and the labels of a classifier, if [`update`](Self::update) has made such a plan.
    pub fn classifying(&mut self) -> Option<(&mut ClassifierPlan, &mut Labels)> {
        match &mut self.plan {
            Some(ModelPlan::Classifier(plan)) => Some((plan, &mut self.labels)),
            _ => None,
        }
    }

    /// The mapping and the place of an image for each of these frames. Each frame is a separate group; the regions of a
    /// frame are one group.
    ///
    /// # Errors
    /// If the size of a frame or of the model's input is not known, a frame has no pixels, a region is not inside its
    /// frame, or the plan's layout is not valid for the model's input of each frame.
    pub fn place_images(
        &self,
        frames: impl Iterator<Item = ImageFrame>,
        mappings: &mut Vec<Mapping>,
        places: &mut Vec<ImagePlace>,
    ) -> Result<(), FrameError> {
        mappings.clear();
        places.clear();
        let mut last = None;
        let mut next_group = 0;
        for frame in frames {
            let size = frame.size.ok_or(FrameError::NoCaps)?;
            let mapping = match &frame.region {
                None => self.settings.mapping(size, frame.model)?,
                Some(region) => {
                    self.settings.mapping_of_region(size, region.pixels, frame.model)?
                }
            };
            if let Some(ModelPlan::Detector(plan)) = &self.plan
                && !plan.has_input_size(&mapping)
            {
                return Err(FrameError::OtherInput);
            }
            if last.replace(frame.index) != Some(frame.index) {
                next_group += 1;
            }
            let group = next_group - 1;
            places.push(match frame.region {
                None => ImagePlace::in_frame(&mapping, group),
                Some(_) => ImagePlace::in_region(&mapping, group),
            });
            mappings.push(mapping);
        }
        Ok(())
    }

    /// Discards the plan, for frames with other caps.
    pub fn discard_plan(&mut self) {
        self.plan = None;
    }

    /// Makes the plan, with the pending settings if they are valid for these tensors; they are in
    /// force then. Before the first frame is decoded, invalid settings are an error.
    /// Afterwards, the previous settings stay in force, and a warning is posted if the pending
    /// settings stay invalid for a second.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or before the first frame is decoded, if settings are not valid for them.
    pub fn update(
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
        if matches {
            return Ok(());
        }
        self.renew_plan(element, engine, input).map_err(|error| {
            // If neither the pending settings nor those in force are valid, the error of the
            // pending ones is more useful: these are the current values of the properties.
            self.pending.take().and_then(PendingSettings::into_error).unwrap_or(error)
        })
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
    ) -> Result<ModelPlan, FrameError> {
        ModelPlan::new(input, settings, &self.labels, engine)
    }

    fn install_plan(&mut self, element: &NmsFilter, input: PlanInput<'_>, plan: ModelPlan) {
        match &plan {
            ModelPlan::Detector(plan) => self.begin_detector(element, input, plan),
            ModelPlan::Classifier(plan) => {
                self.labels.set_classifier(&element.name(), plan.output_classes(input.tensors));
                plan.log(element, input, &self.labels);
            }
        }
        self.plan = Some(plan);
    }

    fn begin_detector(&mut self, element: &NmsFilter, input: PlanInput<'_>, plan: &FramePlan) {
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
        gst::debug!(CAT, obj = element, "{:?}, {mapping:?}", plan.params());
        let Self { settings, labels, contradictions, .. } = self;
        contradictions.begin(element, plan, input, &mapping, settings, labels);
        let of_model = self.model.info().keypoint_layout;
        self.labels.set_choice(plan.choice(), self.settings.keypoint_layout.layout().or(of_model));
    }
}
