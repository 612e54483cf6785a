// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the tensors of a model are read, in the element's terms.
//!
//! In: the tensors of a run, settings, the tensors' model description, labels and the size of the frames. Out: the
//! core's [`Reading`] and what the element adds to it, or an error with the properties to set.

use super::error::FrameError;
use super::settings::Settings;
use super::settings::class_rules::ClassRules;
use super::settings::quantization::QuantizationRules;
use super::settings::region_rules::RegionRules;
use crate::input::model::ModelInput;
use crate::input::tensor_caps;
use crate::output::Labels;
use nmsfilter_core::decoder::Decoder;
use nmsfilter_core::decoder::layout::LayoutProblem;
use nmsfilter_core::decoder::model_family::ModelFamily;
use nmsfilter_core::decoder::{self, ChoiceError};
use nmsfilter_core::engine::{Engine, Params};
use nmsfilter_core::reading::{self, Facts, Reading};
use nmsfilter_core::tensor::TensorView;

/// How the tensors of a model are read, until the tensors, their model, the settings or the caps change.
pub(super) struct ModelReading {
    pub reading: Reading,
    /// The decoder that is set.
    wanted: Option<&'static Decoder>,
    /// The values of the property `quantization`.
    pub quantization: QuantizationRules,
    /// The rules by which regions are attached.
    pub region_rules: RegionRules,
    /// The result of [`ModelTensors::has_more_frames`].
    has_more_frames: Option<bool>,
}

/// The tensors of a model, and what is known of them.
#[derive(Clone, Copy)]
pub(super) struct ModelTensors<'t> {
    pub tensors: &'t [TensorView<'t>],
    /// Width and height of the tensors' frames.
    pub frame: [u32; 2],
    /// The model's input, from the tensors' model description.
    pub model: ModelInput,
    /// The family of the model, if it is known and not a plain detector.
    pub family: Option<ModelFamily>,
    /// The number of frames in DeepStream's batch, including frames without tensors.
    pub batch: Option<usize>,
}

impl ModelTensors<'_> {
    /// Returns true if the batch has more than one frame; `None` without a batch.
    fn has_more_frames(&self) -> Option<bool> {
        self.batch.map(|frames| frames > 1)
    }

    /// The core's settings for these tensors, with the decoder `wanted`.
    fn settings<'s>(
        &self,
        settings: &'s Settings,
        labels: &Labels,
        wanted: Option<&'static Decoder>,
    ) -> reading::Settings<'s> {
        reading::Settings {
            decoder: wanted,
            classifiers: settings.decoder.classifiers(),
            options: settings.decoder_options(
                labels.count(),
                self.batch.is_some(),
                self.model,
                self.frame,
            ),
            has_class_thresholds: settings.class_thresholds.is_some(),
            classes: settings.classes.as_deref(),
        }
    }

    /// The facts about `tensors`, which have their quantization.
    fn facts<'a>(
        &self,
        tensors: &'a [TensorView<'a>],
        engine: Option<&'a dyn Engine>,
    ) -> Facts<'a> {
        Facts { tensors, family: self.family, in_frame: true, engine }
    }
}

impl ModelReading {
    /// Reads `tensors`.
    ///
    /// # Errors
    /// If settings, tensors and the frame cannot be used together, or the engine does not support them.
    pub fn new(
        tensors: ModelTensors<'_>,
        settings: &Settings,
        labels: &Labels,
        engine: &dyn Engine,
    ) -> Result<Self, FrameError> {
        settings.check()?;
        settings.check_attach(tensors.batch)?;
        let quantization = QuantizationRules::new(settings.quantization.as_deref())?;
        quantization.check(tensors.tensors)?;
        let wanted = settings.wanted_decoder()?;
        let quantized = quantization.applied(tensors.tensors);
        let facts = tensors.facts(&quantized, Some(engine));
        let mut region_rules = RegionRules::default();
        let params = |choice: Option<&_>| -> Result<Params, FrameError> {
            let Some(choice) = choice else {
                settings.check_classifier(tensors.batch)?;
                return Ok(settings.scalars.clone());
            };
            let class_rules = ClassRules::new(settings, labels, choice)?;
            region_rules = RegionRules::new(settings, &class_rules.rules);
            settings.mapping(tensors.frame, None, tensors.model)?;
            Ok(settings.params(class_rules, tensors.model))
        };
        let reading = reading::read(&facts, &tensors.settings(settings, labels, wanted), params)?;
        let has_more_frames = tensors.has_more_frames();
        Ok(Self { reading, wanted, quantization, region_rules, has_more_frames })
    }

    /// Returns true if it was made for such tensors. `settings` and `labels` must be equal to the ones with which it was
    /// made. Does not allocate.
    pub fn is_of(&self, tensors: ModelTensors<'_>, settings: &Settings, labels: &Labels) -> bool {
        self.has_more_frames == tensors.has_more_frames() && {
            let quantized = self.quantization.applied(tensors.tensors);
            let settings = tensors.settings(settings, labels, self.wanted);
            self.reading.is_of(&tensors.facts(&quantized, None), &settings)
        }
    }

    /// Adapts the reading to tensors of other shapes, and to a model with an input of another size. Returns false if they
    /// need a new one. `settings` and `labels` must be equal to the ones with which it was made. Does not allocate if the
    /// tensors' ids are known.
    ///
    /// # Errors
    /// If no decoder reads the tensors.
    pub fn adapt(
        &mut self,
        tensors: ModelTensors<'_>,
        settings: &Settings,
        labels: &Labels,
    ) -> Result<bool, FrameError> {
        if self.has_more_frames != tensors.has_more_frames() {
            return Ok(false);
        }
        let quantized = self.quantization.applied(tensors.tensors);
        let settings = tensors.settings(settings, labels, self.wanted);
        Ok(self.reading.adapt(&tensors.facts(&quantized, None), &settings)?)
    }
}

/// Checks that a decoder reads the tensors of each group in the caps (GStreamer 1.28) of frames of this size. The first
/// frame would have this error, too. Caps do not have all that decoders need (labels, the size of the model's input), and
/// dimensions can be unknown. Missing fields are accepted.
///
/// # Errors
/// If it does not read their shapes or element types.
pub(super) fn check_caps(
    caps: &gst::CapsRef,
    settings: &Settings,
    frame: [u32; 2],
) -> Result<(), FrameError> {
    // With tensors of several elements, only the first frame shows which ones are decoded.
    if settings.tensors_from.is_some() {
        return Ok(());
    }
    let wanted = settings.wanted_decoder()?;
    for views in tensor_caps::groups(caps) {
        let is_known = views.iter().any(|tensor| decoder::is_known(tensor.id));
        let model = ModelInput::default();
        let tensors = ModelTensors { tensors: &views, frame, model, family: None, batch: None };
        let facts = tensors.facts(&views, None);
        let settings = tensors.settings(settings, &Labels::default(), wanted);
        match reading::read(&facts, &settings, |_| Ok(Params::default())) {
            Err(FrameError::Choice(error)) if is_known && contradicts(&error) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if the error is about facts that caps contain.
fn contradicts(error: &ChoiceError) -> bool {
    match error {
        ChoiceError::NoFit { .. } | ChoiceError::Incomplete { .. } => true,
        ChoiceError::Layout(error) => {
            use LayoutProblem::{Anchors, ElementType, Lengths, Shape};
            matches!(error.problem, Shape | ElementType | Anchors | Lengths)
        }
        _ => false,
    }
}
