// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed once for many frames.
//!
//! In: shapes of tensors, settings, the tensors' model description, labels and the frame's size.
//! Out: decoder and layout, and for each size of frames and each input of a model the mapping to the frame and
//! engine parameters.

use arrayvec::ArrayVec;

use super::class_rules;
use super::contradictions::Reading;
use super::error::FrameError;
use super::quantization::QuantizationRules;
use super::settings::Settings;
use super::unread_family::UnreadFamily;
use crate::decoder::{self, Choice, Decoder, Reason};
use crate::engine::{ClassThresholds, Engine, Params};
use crate::input::model::ModelInput;
use crate::output::{Labels, Mapping};
use crate::tensor::{ElementType, Quantization, Shape, TensorView};

/// How to process frames until the shapes of tensors, their model, the settings or the caps change.
pub(super) struct Plan {
    tensors: Vec<Signature>,
    /// Whether the tensors are of a batch of DeepStream, and have more than one frame.
    batch: Option<bool>,
    /// What `quantization` sets. Tensors that the plan is used for must have it.
    pub quantization: QuantizationRules,
    /// The decoder that is set.
    wanted: Option<&'static dyn Decoder>,
    pub choice: Choice,
    /// One for each size of frames and input of a model, which differ within a batch if the muxer does not scale
    /// frames, or the batches of several inference elements are muxed.
    frames: ArrayVec<FramePlan, MAX_FRAME_PLANS>,
}

/// What depends on the size of the frame and on the model's input.
pub(super) struct FramePlan {
    model: ModelInput,
    pub mapping: Mapping,
    pub params: Params,
}

/// The greatest number of [`FramePlan`]s that are kept.
const MAX_FRAME_PLANS: usize = 64;

/// The tensors to plan for.
#[derive(Clone, Copy)]
pub(super) struct PlanInput<'t> {
    pub tensors: &'t [TensorView<'t>],
    /// Width and height of the frames that they are of; `None` before caps.
    pub frame: Option<[u32; 2]>,
    /// The model's input, from the tensors' model description.
    pub model: ModelInput,
    /// The family of the model, if no decoder reads it.
    pub family: Option<UnreadFamily>,
    /// The number of frames of the batch of DeepStream that the tensors are of, also of frames without tensors.
    pub batch: Option<usize>,
}

impl PlanInput<'_> {
    /// Whether the batch has more than one frame; `None` without a batch.
    fn has_more_frames(&self) -> Option<bool> {
        self.batch.map(|frames| frames > 1)
    }
}

/// What the choice of a decoder depends on, for one tensor.
#[derive(Default)]
struct Signature {
    id: String,
    element: ElementType,
    quantization: Option<Quantization>,
    shape: Shape,
}

impl PartialEq<TensorView<'_>> for Signature {
    fn eq(&self, tensor: &TensorView<'_>) -> bool {
        self.id == tensor.id
            && self.element == tensor.element
            && self.quantization == tensor.quantization
            && self.shape == tensor.shape
    }
}

impl Plan {
    /// Chooses the decoder for the tensors of `input` and derives the engine's parameters.
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
        let choice = choose(input, wanted, &quantization, settings, labels)?;
        let thresholds = class_rules::thresholds(
            settings.score_threshold,
            settings.classes.as_deref(),
            settings.class_thresholds.as_deref(),
            labels,
            &choice,
        )?;
        let size = input.frame.ok_or(FrameError::NoCaps)?;
        let frame = FramePlan::new(size, &choice, settings, input.model, thresholds)?;
        engine.supports(&choice.layout, &frame.params)?;
        let (batch, frames) = (input.has_more_frames(), ArrayVec::from_iter([frame]));
        let mut plan = Self { tensors: Vec::new(), batch, quantization, wanted, choice, frames };
        plan.set_signatures(input.tensors);
        Ok(plan)
    }

    /// Adapts the plan to tensors of other shapes, such as windows, whose number differs from frame
    /// to frame, and to frames of another size, or of a model with another input, in a batch. Returns false if they
    /// need a new plan. `settings` and `labels` must be those with which the plan was made. Does not allocate if the
    /// tensors' ids and the sizes of frames are known.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or the frame has no pixels.
    pub fn adapt(
        &mut self,
        input: PlanInput<'_>,
        settings: &Settings,
        labels: &Labels,
    ) -> Result<bool, FrameError> {
        if self.batch != input.has_more_frames() {
            return Ok(false);
        }
        if !self.has_signatures(input.tensors) {
            let choice = choose(input, self.wanted, &self.quantization, settings, labels)?;
            if !self.choice.layout.has_same_params(&choice.layout) {
                return Ok(false);
            }
            self.choice = choice;
            self.set_signatures(input.tensors);
        }
        let size = input.frame.ok_or(FrameError::NoCaps)?;
        if self.position(size, input.model).is_none() {
            let thresholds = self.frames[0].params.thresholds.clone();
            let frame = FramePlan::new(size, &self.choice, settings, input.model, thresholds)?;
            if self.frames.is_full() {
                self.frames.truncate(1);
            }
            self.frames.push(frame);
        }
        Ok(true)
    }

    /// Whether the plan was made for such tensors: their ids, element types and shapes, the size of the frame, and
    /// the model's input.
    pub fn matches(&self, input: PlanInput<'_>) -> bool {
        self.batch == input.has_more_frames()
            && input.frame.is_some_and(|size| self.position(size, input.model).is_some())
            && self.has_signatures(input.tensors)
    }

    /// The part for frames of this size and model, for which the plan was made or adapted.
    pub fn frame(&self, size: [u32; 2], model: ModelInput) -> &FramePlan {
        let position = self.position(size, model);
        &self.frames[position.expect("the plan was made for frames of this size and model")]
    }

    /// How the tensors of `input`, for which the plan was made or adapted, are read.
    pub fn reading(&self, input: PlanInput<'_>) -> Reading {
        let (layout, FramePlan { mapping, params, .. }) =
            (&self.choice.layout, self.frame_of(input));
        Reading {
            decoder: self.choice.decoder,
            class_field: layout.has_class_field(),
            rows_without_objectness: layout.has_rows_without_objectness(),
            classes: layout.classes,
            threshold: params.thresholds.lowest(layout.classes),
            normalized: layout.normalized,
            model: mapping.model(),
        }
    }

    /// The part for the frames of `input`, for which the plan was made or adapted.
    pub fn frame_of(&self, input: PlanInput<'_>) -> &FramePlan {
        self.frame(input.frame.expect("the plan was made with the size of the frame"), input.model)
    }

    fn position(&self, size: [u32; 2], model: ModelInput) -> Option<usize> {
        self.frames.iter().position(|frame| frame.mapping.frame() == size && frame.model == model)
    }

    fn has_signatures(&self, tensors: &[TensorView<'_>]) -> bool {
        self.tensors.len() == tensors.len()
            && self.tensors.iter().zip(tensors).all(|(signature, tensor)| signature == tensor)
    }

    fn set_signatures(&mut self, tensors: &[TensorView<'_>]) {
        self.tensors.resize_with(tensors.len(), Signature::default);
        for (signature, tensor) in self.tensors.iter_mut().zip(tensors) {
            if signature.id != tensor.id {
                signature.id = tensor.id.to_owned();
            }
            signature.element = tensor.element;
            signature.quantization = tensor.quantization;
            signature.shape = tensor.shape.clone();
        }
    }
}

impl FramePlan {
    /// The number of anchors of a frame, or with multi-label, of pairs of anchor and class.
    pub fn anchors(&self, layout: &decoder::Layout) -> usize {
        match self.params.multi_label && !layout.has_class_field() {
            true => layout.anchors().saturating_mul(layout.score.components),
            false => layout.anchors(),
        }
    }

    fn new(
        size: [u32; 2],
        choice: &Choice,
        settings: &Settings,
        model: ModelInput,
        thresholds: ClassThresholds,
    ) -> Result<Self, FrameError> {
        let (model_size, letterbox) = (settings.model_size(model).0, settings.letterbox(model).0);
        let mapping = Mapping::new(size, model_size, letterbox)?;
        let params = settings.params(&choice.layout, &mapping, thresholds);
        Ok(Self { model, mapping, params })
    }
}

/// Chooses the decoder. A shape alone is not enough for one if the model is of a family that no decoder reads.
fn choose(
    input: PlanInput<'_>,
    wanted: Option<&'static dyn Decoder>,
    quantization: &QuantizationRules,
    settings: &Settings,
    labels: &Labels,
) -> Result<Choice, FrameError> {
    let tensors = quantization.applied(input.tensors);
    let options =
        settings.decoder_options(labels.count(), input.batch.is_some(), input.model, input.frame);
    let choice = decoder::choose(&tensors, wanted, options);
    let Some(family) = input.family else { return Ok(choice?) };
    match choice {
        Ok(choice) if wanted.is_some() || choice.reason == Reason::Id => Ok(choice),
        _ => {
            let tensors = tensors.iter().map(ToString::to_string).collect::<Vec<_>>();
            Err(FrameError::UnreadFamily { tensors: tensors.join(", "), family })
        }
    }
}
