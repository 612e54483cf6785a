// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reading of a detector's tensors.
//!
//! In: the choice of a decoder, and parameters. Out: the layout and the parameters of a run; notices about outcomes.

use std::time::Duration;

use super::facts;
use super::interpretation::Interpretation;
use super::notice::Notice;
use super::watch::Watch;
use super::{Facts, Settings};
use crate::decoder::layout::Reference;
use crate::decoder::{Choice, Layout};
use crate::engine::detail::Details;
use crate::engine::{ClassThresholds, EngineError, ImagePlace, Job, Outcome, Params};
use crate::tensor::TensorView;

/// How the tensors of a detector are read.
pub struct BoxReading {
    choice: Choice,
    details: Details,
    params: Params,
    /// The layout of several images in separate allocations; `None` until it is needed.
    separate_images: Option<Layout>,
    pub(super) watch: Watch,
}

impl BoxReading {
    /// The reading by a choice, and the notices that follow from facts and settings alone.
    ///
    /// # Errors
    /// If the engine does not support the layout or the parameters.
    pub(super) fn new(
        mut choice: Choice,
        params: Params,
        facts: &Facts<'_>,
        settings: &Settings<'_>,
    ) -> Result<(Self, Vec<Notice>), EngineError> {
        let details = Details::prepare(&mut choice.layout, params.masks);
        if let Some(engine) = facts.engine {
            engine.supports(&choice.layout, &params)?;
        }
        let (mut notices, watch) = watch(&choice, &params, facts, settings);
        notices.extend(facts::number_notices(&choice, facts.tensors));
        Ok((Self { choice, details, params, separate_images: None, watch }, notices))
    }

    /// Takes the choice for tensors of other shapes. Returns false if its layout has other parameters.
    pub(super) fn adapt(&mut self, mut choice: Choice) -> bool {
        let facts = |Layout { decoder, classes, normalized, .. }: &Layout| {
            (*decoder, *classes, *normalized)
        };
        if facts(&self.choice.layout) != facts(&choice.layout) {
            return false;
        }
        self.details = Details::prepare(&mut choice.layout, self.params.masks);
        self.choice = choice;
        self.separate_images = None;
        true
    }

    /// The decoder and its layout of the tensors.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Where the details of survivors are in their columns.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    pub(super) fn set_params(
        &mut self,
        params: &Params,
        facts: &Facts<'_>,
        settings: &Settings<'_>,
    ) -> Vec<Notice> {
        copy(params, &mut self.params);
        let (notices, watch) = watch(&self.choice, &self.params, facts, settings);
        let earlier = std::mem::replace(&mut self.watch, watch);
        self.watch.follow(earlier);
        notices
    }

    /// Returns true if the layout depends on the size of the model's input.
    pub(super) fn has_grid(&self) -> bool {
        let is_grid =
            |reference: &Reference| matches!(reference, Reference::Grid(_) | Reference::Table(_));
        self.choice.layout.groups.iter().any(|group| is_grid(&group.reference))
    }

    /// Makes the layout of the images of `tensors`, which are in separate allocations, each with the tensors that the
    /// reading was made for. Does not allocate if it has been made before.
    pub fn prepare_images(&mut self, images: usize, tensors: &[TensorView<'_>]) {
        let layout = &self.choice.layout;
        let prepared = self.separate_images.get_or_insert_with(|| layout.clone());
        prepared.images = images;
        prepared.for_each_field(|field| {
            let elements = tensors.get(field.tensor).and_then(|tensor| tensor.shape.elements());
            // A field without a tensor is an error of the engine.
            field.image_stride = elements.unwrap_or(0) / images.max(1);
        });
    }

    /// The layout of the tensors that the reading was made for, or of the separate images that were prepared last.
    pub fn layout(&self, are_separate: bool) -> &Layout {
        let separate = self.separate_images.as_ref().filter(|_| are_separate);
        separate.unwrap_or(&self.choice.layout)
    }

    /// Looks at the outcome of a run of `tensors` with these `images`, in separate allocations or not. `now` is the time
    /// since any moment; without a clock, images are counted instead. Returns what is to be told; notices of one kind can
    /// come again. Allocates with the first image only, unless there is a notice.
    pub fn observe(
        &mut self,
        outcome: &Outcome<'_>,
        tensors: &[TensorView<'_>],
        images: &[ImagePlace],
        are_separate: bool,
        now: Option<Duration>,
    ) -> Vec<Notice> {
        let Self { choice, details, params, separate_images, watch } = self;
        let separate = separate_images.as_ref().filter(|_| are_separate);
        let layout = separate.unwrap_or(&choice.layout);
        watch.observe(Job::new(tensors, layout, params, images), outcome, details, now)
    }
}

/// The notices that follow from facts and settings alone, and the watch of runs.
fn watch(
    choice: &Choice,
    params: &Params,
    facts: &Facts<'_>,
    settings: &Settings<'_>,
) -> (Vec<Notice>, Watch) {
    let notices = facts::notices(choice, facts, settings, &params.thresholds);
    let explains_silence = notices.iter().any(Notice::explains_silence);
    let taken_for = Interpretation::new(choice, params, &settings.options, facts.in_frame);
    (notices, Watch::new(taken_for, explains_silence))
}

/// Copies parameters into the memory of others.
fn copy(from: &Params, to: &mut Params) {
    let mut class_rules = std::mem::take(&mut to.class_rules);
    class_rules.clone_from(&from.class_rules);
    let mut per_class = std::mem::take(&mut to.thresholds.per_class);
    per_class.clone_from(&from.thresholds.per_class);
    let thresholds = ClassThresholds { default: from.thresholds.default, per_class };
    *to = Params { thresholds, class_rules, ..*from };
}
