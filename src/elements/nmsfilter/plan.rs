// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan for the tensors of a model.
//!
//! In: the tensors of a run, settings, the tensors' model description, labels and the size of the frames. Out: the
//! core's [`Plan`], or an error with the properties to set.

use super::class_rules::ClassRules;
use super::classifier::ClassifierPlan;
use super::error::FrameError;
use super::quantization::QuantizationRules;
use super::region_rules::RegionRules;
use super::settings::Settings;
use crate::input::model::ModelInput;
use crate::output::Labels;
use nmsfilter_core::decoder::layout::Reference;
use nmsfilter_core::decoder::model_family::ModelFamily;
use nmsfilter_core::decoder::{self, Choice, Decoder, Layout, Reason};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{Engine, Params};
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::reading::Reading;
use nmsfilter_core::reading::plan::Plan;
use nmsfilter_core::tensor::TensorView;

/// The plan for the tensors of a detector or a classifier.
#[expect(clippy::large_enum_variant, reason = "there is one for each model")]
pub(super) enum ModelPlan {
    Detector(FramePlan),
    Classifier(ClassifierPlan),
}

/// The plan of a detector, until the tensors, their model, the settings or the caps change.
pub(super) struct FramePlan {
    plan: Plan,
    /// The result of [`PlanInput::has_more_frames`].
    batch: Option<bool>,
    /// The values of the property `quantization`.
    quantization: QuantizationRules,
    /// The decoder that is set.
    wanted: Option<&'static dyn Decoder>,
    /// The size of the model's input for which the layout was made.
    input_size: [f32; 2],
    /// The rules by which regions are attached.
    region_rules: RegionRules,
    /// The layout of several images in separate allocations; `None` until it is needed.
    separate_images: Option<Layout>,
}

/// The tensors to plan for.
#[derive(Clone, Copy)]
pub(super) struct PlanInput<'t> {
    pub tensors: &'t [TensorView<'t>],
    /// Width and height of the tensors' frames; `None` before caps.
    pub frame: Option<[u32; 2]>,
    /// The model's input, from the tensors' model description.
    pub model: ModelInput,
    /// The family of the model, if it is known and not a plain detector.
    pub family: Option<ModelFamily>,
    /// The number of frames in DeepStream's batch, including frames without tensors.
    pub batch: Option<usize>,
}

impl PlanInput<'_> {
    /// Returns true if the batch has more than one frame; `None` without a batch.
    fn has_more_frames(&self) -> Option<bool> {
        self.batch.map(|frames| frames > 1)
    }

    /// The mapping from the model's input to the frames.
    ///
    /// # Errors
    /// If the size of the frames or of the model's input is unknown, or a frame has no pixels.
    pub fn mapping(&self, settings: &Settings) -> Result<Mapping, FrameError> {
        let frame = self.frame.ok_or(FrameError::NoCaps)?;
        Ok(settings.mapping(frame, self.model)?)
    }

    /// The decoder's options for these tensors.
    pub fn decoder_options(&self, settings: &Settings, labels: &Labels) -> decoder::Options {
        settings.decoder_options(labels.count(), self.batch.is_some(), self.model, self.frame)
    }

    /// Chooses the decoder. If no decoder reads the model's family, a shape alone is not enough to choose one.
    fn choose(
        &self,
        wanted: Option<&'static dyn Decoder>,
        quantization: &QuantizationRules,
        settings: &Settings,
        labels: &Labels,
    ) -> Result<Choice, FrameError> {
        let options = self.decoder_options(settings, labels);
        let tensors = quantization.applied(self.tensors);
        let choice = decoder::choose(&tensors, wanted, options);
        let Some(family) = self.family else { return Ok(choice?) };
        match choice {
            Ok(choice) if wanted.is_some() || choice.reason == Reason::Id => Ok(choice),
            _ => {
                let tensors = tensors.iter().map(ToString::to_string).collect::<Vec<_>>();
                Err(FrameError::ModelFamily { tensors: tensors.join(", "), family })
            }
        }
    }
}

impl ModelPlan {
    /// The plan for `input`.
    ///
    /// # Errors
    /// Those of [`FramePlan::new`] and [`ClassifierPlan::new`].
    pub fn new(
        input: PlanInput<'_>,
        settings: &Settings,
        labels: &Labels,
        engine: &dyn Engine,
    ) -> Result<Self, FrameError> {
        if ClassifierPlan::is_wanted(input, settings) {
            return Ok(Self::Classifier(ClassifierPlan::new(input, settings)?));
        }
        Ok(Self::Detector(FramePlan::new(input, settings, labels, engine)?))
    }

    /// Adapts the plan, as [`FramePlan::adapt`].
    ///
    /// # Errors
    /// Those of [`FramePlan::adapt`].
    pub fn adapt(
        &mut self,
        input: PlanInput<'_>,
        settings: &Settings,
        labels: &Labels,
    ) -> Result<bool, FrameError> {
        match self {
            Self::Detector(plan) if !ClassifierPlan::is_wanted(input, settings) => {
                plan.adapt(input, settings, labels)
            }
            _ => Ok(false),
        }
    }

    /// Whether the plan was made for such tensors, as [`FramePlan::matches`].
    pub fn matches(&self, input: PlanInput<'_>, settings: &Settings) -> bool {
        match self {
            Self::Detector(plan) => plan.matches(input, settings),
            Self::Classifier(plan) => {
                input.batch.is_none() && plan.tensors().has_tensors(input.tensors)
            }
        }
    }

    /// Whether the plan was made for tensors with these ids, element types and shapes.
    #[cfg(feature = "v1_28")]
    pub fn has_tensors(&self, tensors: &[TensorView<'_>]) -> bool {
        match self {
            Self::Detector(plan) => plan.plan.has_tensors(tensors),
            Self::Classifier(plan) => plan.tensors().has_tensors(tensors),
        }
    }

    /// Whether the plan was made for tensors with these ids, in any shapes.
    #[cfg(feature = "v1_28")]
    pub fn has_ids(&self, tensors: &[TensorView<'_>]) -> bool {
        match self {
            Self::Detector(plan) => plan.plan.has_ids(tensors),
            Self::Classifier(plan) => plan.tensors().has_ids(tensors),
        }
    }
}

impl FramePlan {
    /// The plan for `input`.
    ///
    /// # Errors
    /// If settings, tensors and the frame cannot be used together, or the engine does not support
    /// them.
    pub fn new(
        input: PlanInput<'_>,
        settings: &Settings,
        labels: &Labels,
        engine: &dyn Engine,
    ) -> Result<Self, FrameError> {
        settings.check()?;
        settings.check_attach(input.batch)?;
        let quantization = QuantizationRules::new(settings.quantization.as_deref())?;
        quantization.check(input.tensors)?;
        let wanted = settings.wanted_decoder()?;
        let choice = input.choose(wanted, &quantization, settings, labels)?;
        let class_rules = ClassRules::new(settings, labels, &choice)?;
        let region_rules = RegionRules::new(settings, &class_rules.rules);
        let mapping = input.mapping(settings)?;
        let input_size = mapping.model();
        let plan = Plan::new(input.tensors, choice, settings.params(class_rules));
        engine.supports(&plan.choice().layout, plan.params())?;
        let batch = input.has_more_frames();
        Ok(Self {
            plan,
            batch,
            quantization,
            wanted,
            input_size,
            region_rules,
            separate_images: None,
        })
    }

    /// Adapts the plan to tensors of other shapes, and to a model with an input of another size. Returns false if they
    /// need a new plan. `settings` and `labels` must be equal to the ones with which the plan was made. Does not allocate
    /// if the tensors' ids are known.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or the frame has no pixels.
    pub fn adapt(
        &mut self,
        input: PlanInput<'_>,
        settings: &Settings,
        labels: &Labels,
    ) -> Result<bool, FrameError> {
        let mapping = input.mapping(settings)?;
        if self.batch != input.has_more_frames() || !self.has_input_size(&mapping) {
            return Ok(false);
        }
        let Self { plan, quantization, wanted, .. } = self;
        let choose = || input.choose(*wanted, quantization, settings, labels);
        if !plan.adapt(input.tensors, choose)? {
            return Ok(false);
        }
        self.input_size = mapping.model();
        self.separate_images = None;
        Ok(true)
    }

    /// Returns true if the plan was made for tensors with these ids, element types and shapes, and for the size of the
    /// model's input if the layout depends on it. `settings` must be those with which the plan was made.
    pub fn matches(&self, input: PlanInput<'_>, settings: &Settings) -> bool {
        self.batch == input.has_more_frames()
            && input.mapping(settings).is_ok_and(|mapping| self.has_input_size(&mapping))
            && self.plan.has_tensors(input.tensors)
    }

    /// Returns true if the layout is valid for frames with this mapping: layouts of grids depend on the size of the
    /// model's input.
    pub fn has_input_size(&self, mapping: &Mapping) -> bool {
        self.input_size == mapping.model() || !has_grid(&self.choice().layout)
    }

    /// The values of the property `quantization`, which the engine's tensors must have.
    pub fn quantization(&self) -> &QuantizationRules {
        &self.quantization
    }

    /// The decoder and its layout.
    pub fn choice(&self) -> &Choice {
        self.plan.choice()
    }

    /// Makes the layout of the images of `tensors`, which are in separate allocations, each with the tensors that the
    /// plan was made for. Does not allocate if it has been made before.
    pub fn prepare_images(&mut self, images: usize, tensors: &[TensorView<'_>]) {
        let layout = &self.plan.choice().layout;
        let prepared = self.separate_images.get_or_insert_with(|| layout.clone());
        prepared.set_separate_images(images, tensors);
    }

    /// The layout of the tensors that the plan was made for, or of the separate images that were prepared last.
    pub fn layout(&self, are_separate: bool) -> &Layout {
        let separate = self.separate_images.as_ref().filter(|_| are_separate);
        separate.unwrap_or(&self.choice().layout)
    }

    /// Where the details of survivors are in their columns.
    pub fn details(&self) -> &Details {
        self.plan.details()
    }

    /// The rules by which regions are attached.
    pub fn region_rules(&self) -> &RegionRules {
        &self.region_rules
    }

    /// The engine's parameters.
    pub fn params(&self) -> &Params {
        self.plan.params()
    }

    /// The reading of the tensors, in frames of which one has this mapping.
    pub fn reading(&self, mapping: &Mapping) -> Reading {
        Reading::new(self.choice(), self.params(), Some(mapping.model()), true)
    }

    /// The number of anchors of a frame, or with `multi-label`, the number of pairs of anchor and class.
    pub fn anchors(&self) -> usize {
        self.plan.anchors()
    }
}

fn has_grid(layout: &Layout) -> bool {
    let is_grid =
        |reference: &Reference| matches!(reference, Reference::Grid(_) | Reference::Table(_));
    layout.groups.iter().any(|group| is_grid(&group.reference))
}
