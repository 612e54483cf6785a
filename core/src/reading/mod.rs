// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the tensors of a model are read: computed once, for many runs of an engine.
//!
//! In: the [`Facts`] that are known before a run, and [`Settings`]. Out: a [`Reading`], which has the layout and the
//! parameters of a run, or a classifier, or an error; and [`Notice`]s about tensors that are probably misread.
//! Notices that follow from facts and settings alone (`facts.rs`) are there at once. Others follow from images
//! ([`BoxReading::observe`], [`ClassReading::classify`]): a score that contradicts the decoder with the first run that has one, other numbers
//! (`evidence.rs`) as soon as there are enough of them, and images in which nothing is found (`silence.rs`) after a
//! while. [`Reading::finish`] judges what there is.
//!
//! No element of a tensor is read here, except for the best score of images in which nothing is found. The places of
//! images are not part of a reading.

mod boxes;
mod classes;
mod evidence;
mod facts;
mod interpretation;
mod notice;
mod signature;
mod silence;
mod watch;

use crate::decoder::classifier;
use crate::decoder::model_family::ModelFamily;
use crate::decoder::{self, Choice, ChoiceError, Decoder, Options, Reason};
use crate::engine::{Engine, EngineError, Params};
use crate::tensor::TensorView;

pub use boxes::BoxReading;
pub use classes::{ClassReading, Classified, Classifiers};
pub use notice::{Notice, NoticeKind};
pub use signature::Signatures;

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
    pub decoder: Option<&'static Decoder>,
    /// The tensors that can be a classifier's.
    pub classifiers: Classifiers,
    /// The decoder's options. Those that are facts, such as the number of labels, are known before a run.
    pub options: Options,
    /// True if some classes have score thresholds in addition to the general threshold.
    pub has_class_thresholds: bool,
    /// The list of included classes, if there is one.
    pub classes: Option<&'a str>,
}

/// How tensors are read, until their ids, types or shapes or the settings change.
pub struct Reading {
    tensors: Signatures,
    decoder: Option<&'static Decoder>,
    classifiers: Classifiers,
    options: Options,
    in_frame: bool,
    notices: Vec<Notice>,
    /// The kind of the tensors' contents.
    pub output: Output,
}

/// The contents of tensors, and how they are read.
#[expect(clippy::large_enum_variant, reason = "there is one for each model")]
pub enum Output {
    /// The boxes of a detector.
    Boxes(BoxReading),
    /// The classes of a classifier.
    Classes(ClassReading),
}

/// Reads tensors: chooses the decoder, and takes the parameters that `params` returns for its choice. A classifier has no
/// choice, and of the parameters only the threshold, the limit of detections and multi-label.
///
/// # Errors
/// If no decoder reads the tensors, the engine does not support the layout or the parameters, and the errors of
/// `params`.
pub fn read<E: From<ChoiceError> + From<EngineError>>(
    facts: &Facts<'_>,
    settings: &Settings<'_>,
    params: impl FnOnce(Option<&Choice>) -> Result<Params, E>,
) -> Result<Reading, E> {
    let (output, notices) = if classes::are_classes(facts, settings) {
        // Ultralytics' models end with softmax.
        let is_softmaxed = facts.has_classifier();
        let outputs = classifier::choose(facts.tensors, &settings.options, is_softmaxed)?;
        let params = params(None)?;
        let (reading, notices) = ClassReading::new(outputs, &params, facts, settings);
        (Output::Classes(reading), notices)
    } else {
        let choice = choose(facts, settings)?;
        let params = params(Some(&choice))?;
        let (reading, notices) = BoxReading::new(choice, params, facts, settings)?;
        (Output::Boxes(reading), notices)
    };
    let mut tensors = Signatures::default();
    tensors.set(facts.tensors);
    let &Settings { decoder, classifiers, options, .. } = settings;
    let in_frame = facts.in_frame;
    Ok(Reading { tensors, decoder, classifiers, options, in_frame, notices, output })
}

/// Chooses the decoder of boxes. If no decoder reads the model's family, a shape alone is not enough to choose one.
fn choose(facts: &Facts<'_>, settings: &Settings<'_>) -> Result<Choice, ChoiceError> {
    let choice = decoder::choose(facts.tensors, settings.decoder, settings.options);
    let Some(family) = facts.family else { return choice };
    match choice {
        Ok(choice) if settings.decoder.is_some() || choice.reason == Reason::Id => Ok(choice),
        _ => Err(ChoiceError::family(facts.tensors, family)),
    }
}

impl Facts<'_> {
    /// True if the model is known to be a classifier.
    fn has_classifier(&self) -> bool {
        self.family.is_some_and(|family| family.is_classifier())
    }
}

impl Reading {
    /// Continues an earlier reading: the evidence for it counts if the tensors are taken for equal ones.
    pub fn follow(&mut self, earlier: Self) {
        match (&mut self.output, earlier.output) {
            (Output::Boxes(reading), Output::Boxes(earlier)) => reading.watch.follow(earlier.watch),
            (Output::Classes(reading), Output::Classes(earlier)) => reading.follow(earlier),
            _ => {}
        }
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
        let has_grid = self.boxes().is_some_and(BoxReading::has_grid);
        let model_size = if has_grid { self.options } else { settings.options }.model_size;
        self.in_frame == facts.in_frame
            && self.classifiers == settings.classifiers
            && self.decoder == settings.decoder
            && Options { model_size, ..self.options } == settings.options
    }

    /// Adapts the reading to tensors of other shapes, such as windows, whose number differs from frame to frame. Returns
    /// false if they, or the settings, need a new reading. Does not allocate if the tensors' ids are equal, unless the
    /// choice of the decoder does.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or several do.
    pub fn adapt(
        &mut self,
        facts: &Facts<'_>,
        settings: &Settings<'_>,
    ) -> Result<bool, ChoiceError> {
        if !self.has_settings(facts, settings) {
            return Ok(false);
        }
        if self.tensors.has_tensors(facts.tensors) {
            return Ok(true);
        }
        match &mut self.output {
            Output::Boxes(reading) if !classes::are_classes(facts, settings) => {
                if !reading.adapt(choose(facts, settings)?) {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
        self.tensors.set(facts.tensors);
        Ok(true)
    }

    /// The ids, element types and shapes of the tensors.
    pub fn tensors(&self) -> &Signatures {
        &self.tensors
    }

    /// How boxes are read; `None` if the tensors are a classifier's.
    pub fn boxes(&self) -> Option<&BoxReading> {
        match &self.output {
            Output::Boxes(reading) => Some(reading),
            Output::Classes(_) => None,
        }
    }

    /// Replaces the parameters by others with an equal [`Params::masks`], on which the layout depends. Does not allocate if
    /// there have been as many thresholds and rules of classes, unless there is a notice.
    pub fn set_params(&mut self, params: &Params, facts: &Facts<'_>, settings: &Settings<'_>) {
        match &mut self.output {
            Output::Boxes(reading) => self.notices = reading.set_params(params, facts, settings),
            Output::Classes(reading) => reading.set_params(params),
        }
    }

    /// Returns true if the reading is valid for a model's input of this size.
    pub fn has_model_size(&self, size: [f32; 2]) -> bool {
        let has_grid = self.boxes().is_some_and(BoxReading::has_grid);
        !has_grid || self.options.model_size == Some(size)
    }

    /// Starts the times again for which notices wait, because the clock has.
    pub fn restart_clock(&mut self) {
        match &mut self.output {
            Output::Boxes(reading) => reading.watch.restart_clock(),
            Output::Classes(reading) => reading.restart_clock(),
        }
    }

    /// Judges the evidence, after the last image. Returns what is to be told.
    pub fn finish(&mut self) -> Vec<Notice> {
        match &mut self.output {
            Output::Boxes(reading) => reading.watch.finish(),
            Output::Classes(reading) => reading.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nms::NmsError;

    const NUMBERS: [f32; 70] = [0.5; 70];
    fn settings(num_classes: usize) -> Settings<'static> {
        let options = Options { num_classes, ..Options::default() };
        Settings {
            decoder: None,
            classifiers: Classifiers::Never,
            options,
            has_class_thresholds: false,
            classes: None,
        }
    }

    fn facts<'a>(tensors: &'a [TensorView<'a>]) -> Facts<'a> {
        Facts { tensors, family: None, in_frame: false, engine: None }
    }

    fn reading(tensor: TensorView<'_>) -> Reading {
        let params = |_: Option<&Choice>| Ok::<_, NmsError>(Params::default());
        read(&facts(&[tensor]), &settings(0), params).unwrap()
    }

    fn layout(reading: &Reading) -> &decoder::Layout {
        &reading.boxes().unwrap().choice().layout
    }

    fn windows(count: usize) -> TensorView<'static> {
        TensorView::from_slice("windows", &[count, 4], &NUMBERS[..4 * count])
    }

    #[test]
    fn other_shapes_of_a_layout_with_equal_parameters_need_no_new_reading() {
        let mut adapted = reading(windows(3));
        assert!(adapted.is_of(&facts(&[windows(3)]), &settings(0)));
        assert_eq!(adapted.adapt(&facts(&[windows(5)]), &settings(0)), Ok(true));
        assert_eq!(layout(&adapted), layout(&reading(windows(5))));
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
        assert_eq!(layout(&adapted), layout(&reading(yolov8(6))));
    }
}
