// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed once for many frames.
//!
//! In: shapes of tensors, settings, what the tensors say of their model, labels and the frame's size.
//! Out: decoder and layout, mapping to the frame, and engine parameters.

use super::class_rules;
use super::error::FrameError;
use super::settings::Settings;
use crate::decoder::{self, Choice};
use crate::engine::{Engine, Params};
use crate::input::model::ModelInfo;
use crate::output::{Labels, Mapping};
use crate::tensor::{ElementType, Shape, TensorView};

/// How to process frames until the shapes of tensors, their model, the settings or the caps change.
pub(super) struct Plan {
    tensors: Vec<Signature>,
    pub choice: Choice,
    pub mapping: Mapping,
    pub params: Params,
}

/// What the choice of a decoder depends on, for one tensor.
#[derive(Default)]
struct Signature {
    id: String,
    element: ElementType,
    shape: Shape,
}

impl PartialEq<TensorView<'_>> for Signature {
    fn eq(&self, tensor: &TensorView<'_>) -> bool {
        self.id == tensor.id && self.element == tensor.element && self.shape == tensor.shape
    }
}

impl Plan {
    /// Chooses the decoder for `tensors` and derives the engine's parameters.
    ///
    /// # Errors
    /// If settings, tensors and the frame cannot be used together, or the engine does not support
    /// them.
    pub fn new(
        tensors: &[TensorView<'_>],
        settings: &Settings,
        model: &ModelInfo,
        labels: &Labels,
        frame: Option<[u32; 2]>,
        engine: &dyn Engine,
    ) -> Result<Self, FrameError> {
        settings.check()?;
        let choice = choose(tensors, settings, labels)?;
        let (size, letterbox) = (settings.model_size(model).0, settings.letterbox(model).0);
        let frame = frame.ok_or(FrameError::NoCaps)?;
        let mapping = Mapping::new(frame, size, letterbox)?;
        let thresholds = class_rules::thresholds(
            settings.score_threshold,
            settings.classes.as_deref(),
            settings.class_thresholds.as_deref(),
            labels,
        )?;
        let params = settings.params(&choice.layout, &mapping, thresholds);
        engine.supports(&choice.layout, &params)?;
        let mut plan = Self { tensors: Vec::new(), choice, mapping, params };
        plan.set_signatures(tensors);
        Ok(plan)
    }

    /// Adapts the plan to tensors of other shapes, such as windows, whose number differs from frame
    /// to frame. Returns false if they need a new plan. `settings` and `labels` must be those with
    /// which the plan was made. Does not allocate if the tensors' ids stay the same.
    ///
    /// # Errors
    /// If no decoder reads the tensors.
    pub fn adapt(
        &mut self,
        tensors: &[TensorView<'_>],
        settings: &Settings,
        labels: &Labels,
    ) -> Result<bool, FrameError> {
        let choice = choose(tensors, settings, labels)?;
        if !self.choice.layout.has_same_params(&choice.layout) {
            return Ok(false);
        }
        self.choice = choice;
        self.set_signatures(tensors);
        Ok(true)
    }

    /// Whether the plan was made for tensors with these ids, element types and shapes.
    pub fn matches(&self, tensors: &[TensorView<'_>]) -> bool {
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
            signature.shape = tensor.shape.clone();
        }
    }
}

fn choose(
    tensors: &[TensorView<'_>],
    settings: &Settings,
    labels: &Labels,
) -> Result<Choice, FrameError> {
    let options = settings.decoder_options(labels.count());
    Ok(decoder::choose(tensors, settings.decoder.decoder(), options)?)
}
