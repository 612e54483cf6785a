// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the tensors of a model are read: computed once, for many runs of an engine.
//!
//! In: the [`Facts`] that are known before a run, and [`Settings`]. Out: a [`Reading`], which has the layout and the
//! parameters of a run, or a [`Refusal`]; and [`Notice`]s about tensors that are probably misread. Notices that follow
//! from facts and settings alone (`facts.rs`) are there at once. Others follow from the outcomes of runs
//! ([`Reading::observe`]): a score that contradicts the decoder with the first run that has one, other numbers
//! (`evidence.rs`) as soon as there are enough of them, and images in which nothing is found (`silence.rs`) after a
//! while. [`Reading::finish`] judges what there is.
//!
//! No element of a tensor is read here, except for the best score of images in which nothing is found. The places of
//! images are not part of a reading.

mod evidence;
mod facts;
mod interpretation;
mod notice;
mod signature;
mod silence;
mod watch;

use std::time::Duration;

use crate::decoder::layout::Reference;
use crate::decoder::model_family::ModelFamily;
use crate::decoder::{self, Choice, ChoiceError, Decoder, Layout, Options, Reason};
use crate::engine::detail::Details;
use crate::engine::{ClassThresholds, Engine, EngineError, ImagePlace, Outcome, Params};
use crate::tensor::TensorView;

pub use notice::{Notice, NoticeKind};
pub use signature::Signatures;

use interpretation::Interpretation;
use watch::{Seen, Watch};

/// Facts that are known before a run.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The tensors, including their quantization.
    pub tensors: &'a [TensorView<'a>],
    /// The family of the model. `None` if it is unknown, or if the model is a plain detector.
    pub family: Option<ModelFamily>,
    /// True if boxes outside of a frame are rejected.
    pub in_frame: bool,
    /// The engine that will run; `None` if it checks layout and parameters itself.
    pub engine: Option<&'a dyn Engine>,
}

/// The user's settings, beside the parameters.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The decoder that is set.
    pub decoder: Option<&'static dyn Decoder>,
    /// The decoder's options. Those that are facts, such as the number of labels, are known before a run.
    pub options: Options,
    /// True if some classes have score thresholds in addition to the general threshold.
    pub has_class_thresholds: bool,
    /// The list of included classes, if there is one.
    pub classes: Option<&'a str>,
}

/// The reason why tensors are not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No decoder reads the tensors, or several do.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The engine does not support the layout or the parameters.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// How tensors are read, until their ids, types or shapes or the settings change.
pub struct Reading {
    tensors: Signatures,
    decoder: Option<&'static dyn Decoder>,
    options: Options,
    in_frame: bool,
    choice: Choice,
    details: Details,
    params: Params,
    /// The layout of several images in separate allocations; `None` until it is needed.
    separate_images: Option<Layout>,
    notices: Vec<Notice>,
    watch: Watch,
}

/// Reads tensors: chooses the decoder, and takes the parameters that `params` returns for its choice.
///
/// # Errors
/// If no decoder reads the tensors, the engine does not support the layout or the parameters, and the errors of
/// `params`.
pub fn read<E: From<Refusal>>(
    facts: &Facts<'_>,
    settings: &Settings<'_>,
    params: impl FnOnce(&Choice) -> Result<Params, E>,
) -> Result<Reading, E> {
    let mut choice = choose(facts, settings)?;
    let params = params(&choice)?;
    let details = Details::prepare(&mut choice.layout, params.masks);
    if let Some(engine) = facts.engine {
        engine.supports(&choice.layout, &params).map_err(Refusal::from)?;
    }
    let mut tensors = Signatures::default();
    tensors.set(facts.tensors);
    let (notices, watch) = watch(&choice, &params, facts, settings);
    let &Settings { decoder, options, .. } = settings;
    let in_frame = facts.in_frame;
    let separate_images = None;
    Ok(Reading {
        tensors,
        decoder,
        options,
        in_frame,
        choice,
        details,
        params,
        separate_images,
        notices,
        watch,
    })
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

/// Chooses the decoder. If no decoder reads the model's family, a shape alone is not enough to choose one.
///
/// # Errors
/// If no decoder reads the tensors, or several do.
pub fn choose(facts: &Facts<'_>, settings: &Settings<'_>) -> Result<Choice, Refusal> {
    let choice = decoder::choose(facts.tensors, settings.decoder, settings.options);
    let Some(family) = facts.family else { return Ok(choice?) };
    match choice {
        Ok(choice) if settings.decoder.is_some() || choice.reason == Reason::Id => Ok(choice),
        _ => Err(ChoiceError::family(facts.tensors, family).into()),
    }
}

impl Reading {
    /// Continues an earlier reading: the evidence for it counts if the tensors are taken for the same.
    pub fn follow(&mut self, earlier: Self) {
        self.watch.follow(earlier.watch);
    }

    /// The notices that follow from facts and settings alone. They are returned once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns true if the tensors have the ids, element types and shapes, and the settings the values, with which the
    /// reading was made.
    pub fn is_of(&self, facts: &Facts<'_>, settings: &Settings<'_>) -> bool {
        self.has_settings(facts, settings) && self.tensors.has_tensors(facts.tensors)
    }

    /// Layouts of grids depend on the size of the model's input.
    fn has_settings(&self, facts: &Facts<'_>, settings: &Settings<'_>) -> bool {
        let model_size = match has_grid(&self.choice.layout) {
            true => self.options.model_size,
            false => settings.options.model_size,
        };
        let decoder = |decoder: Option<&'static dyn Decoder>| {
            decoder.map(|decoder| (decoder.name(), std::ptr::from_ref(decoder).cast::<()>()))
        };
        self.in_frame == facts.in_frame
            && decoder(self.decoder) == decoder(settings.decoder)
            && Options { model_size, ..self.options } == settings.options
    }

    /// Adapts the reading to tensors of other shapes, such as windows, whose number differs from frame to frame. Returns
    /// false if they, or the settings, need a new reading. Does not allocate if the tensors' ids are equal, unless the
    /// choice of the decoder does.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or several do.
    pub fn adapt(&mut self, facts: &Facts<'_>, settings: &Settings<'_>) -> Result<bool, Refusal> {
        if !self.has_settings(facts, settings) {
            return Ok(false);
        }
        if self.tensors.has_tensors(facts.tensors) {
            return Ok(true);
        }
        let mut choice = choose(facts, settings)?;
        if !self.choice.layout.has_same_params(&choice.layout) {
            return Ok(false);
        }
        self.details = Details::prepare(&mut choice.layout, self.params.masks);
        self.choice = choice;
        self.separate_images = None;
        self.tensors.set(facts.tensors);
        Ok(true)
    }

    /// The ids, element types and shapes of the tensors.
    pub fn tensors(&self) -> &Signatures {
        &self.tensors
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

    /// Replaces the parameters by others with an equal [`Params::masks`], on which the layout depends. Does not allocate if
    /// there have been as many thresholds and rules of classes, unless there is a notice.
    pub fn set_params(&mut self, params: &Params, facts: &Facts<'_>, settings: &Settings<'_>) {
        copy(params, &mut self.params);
        let (notices, watch) = watch(&self.choice, &self.params, facts, settings);
        let earlier = std::mem::replace(&mut self.watch, watch);
        self.watch.follow(earlier);
        self.notices = notices;
    }

    /// Returns true if the layout is valid for a model's input of this size.
    pub fn has_model_size(&self, size: [f32; 2]) -> bool {
        self.options.model_size == Some(size) || !has_grid(&self.choice.layout)
    }

    /// Makes the layout of the images of `tensors`, which are in separate allocations, each with the tensors that the
    /// reading was made for. Does not allocate if it has been made before.
    pub fn prepare_images(&mut self, images: usize, tensors: &[TensorView<'_>]) {
        let layout = &self.choice.layout;
        let prepared = self.separate_images.get_or_insert_with(|| layout.clone());
        prepared.set_separate_images(images, tensors);
    }

    /// The layout of the tensors that the reading was made for, or of the separate images that were prepared last.
    pub fn layout(&self, are_separate: bool) -> &Layout {
        let separate = self.separate_images.as_ref().filter(|_| are_separate);
        separate.unwrap_or(&self.choice.layout)
    }

    /// The number of anchors of an image, or with multi-label, of pairs of anchor and class.
    fn anchors(&self) -> usize {
        let layout = &self.choice.layout;
        let anchors = layout.anchors();
        if self.params.multi_label && !layout.has_class_field() {
            anchors.saturating_mul(layout.score.components)
        } else {
            anchors
        }
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
        let anchors = self.anchors();
        let Self { choice, details, params, separate_images, watch, .. } = self;
        let separate = separate_images.as_ref().filter(|_| are_separate);
        let layout = separate.unwrap_or(&choice.layout);
        watch.observe(&Seen { outcome, tensors, layout, details, params, images, anchors }, now)
    }

    /// Starts the times again for which notices wait, because the clock has.
    pub fn restart_clock(&mut self) {
        self.watch.restart_clock();
    }

    /// Judges the evidence, after the last image. Returns what is to be told.
    pub fn finish(&mut self) -> Vec<Notice> {
        self.watch.finish()
    }
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

fn has_grid(layout: &Layout) -> bool {
    let is_grid =
        |reference: &Reference| matches!(reference, Reference::Grid(_) | Reference::Table(_));
    layout.groups.iter().any(|group| is_grid(&group.reference))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [f32; 70] = [0.5; 70];
    fn settings(num_classes: usize) -> Settings<'static> {
        let options = Options { num_classes, ..Options::default() };
        Settings { decoder: None, options, has_class_thresholds: false, classes: None }
    }

    fn facts<'a>(tensors: &'a [TensorView<'a>]) -> Facts<'a> {
        Facts { tensors, family: None, in_frame: false, engine: None }
    }

    fn reading(tensor: TensorView<'_>) -> Reading {
        let params = |_: &Choice| Ok::<_, Refusal>(Params::default());
        read(&facts(&[tensor]), &settings(0), params).unwrap()
    }

    fn windows(count: usize) -> TensorView<'static> {
        TensorView::from_slice("windows", &[count, 4], &NUMBERS[..4 * count])
    }

    #[test]
    fn other_shapes_of_a_layout_with_equal_parameters_need_no_new_reading() {
        let mut adapted = reading(windows(3));
        assert!(adapted.is_of(&facts(&[windows(3)]), &settings(0)));
        assert_eq!(adapted.adapt(&facts(&[windows(5)]), &settings(0)), Ok(true));
        assert_eq!(adapted.choice().layout, reading(windows(5)).choice().layout);
        assert!(!adapted.is_of(&facts(&[windows(3)]), &settings(0)));
        let unknown = TensorView::from_slice("unknown", &[7], &NUMBERS[..7]);
        assert!(adapted.adapt(&facts(&[unknown]), &settings(0)).is_err());
        assert!(adapted.is_of(&facts(&[windows(5)]), &settings(0)));
        assert_eq!(adapted.adapt(&facts(&[windows(5)]), &settings(1)), Ok(false));
    }

    #[test]
    fn a_layout_of_other_classes_needs_a_new_reading() {
        let yolov8 = |rows: usize| {
            TensorView::from_slice("yolo-v8-out", &[1, rows, 10], &NUMBERS[..10 * rows])
        };
        let mut adapted = reading(yolov8(6));
        assert_eq!(adapted.adapt(&facts(&[yolov8(7)]), &settings(0)), Ok(false));
        // The reading is unchanged.
        assert!(adapted.is_of(&facts(&[yolov8(6)]), &settings(0)));
        assert_eq!(adapted.choice().layout, reading(yolov8(6)).choice().layout);
    }
}
