// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model whose tensors are read, and the settings in force for it.
//!
//! In: the properties, the tensors of each run, and their model description. Out: how they are read, and the places of
//! images in their frames. Changed settings are pending until the tensors can be read with them; if they stay invalid for
//! a second, that is a warning.

use std::time::Duration;

use gst::prelude::*;

use super::CAT;
use super::NmsFilter;
use super::clock::SECOND;
use super::error::FrameError;
use super::notices::Notices;
use super::reading::{ModelReading, ModelTensors};
use super::setting_notices;
use super::settings::Settings;
use crate::elements::property;
use crate::input::InputError;
use crate::input::model::{ModelInfo, ModelInput};
use crate::input::source::ImageFrame;
use crate::output::Labels;
use nmsfilter_core::decoder;
use nmsfilter_core::decoder::classifier::ClassOutput;
use nmsfilter_core::decoder::model_family::ModelFamily;
use nmsfilter_core::engine::{Engine, ImagePlace};
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::reading::{BoxReading, ClassReading, Notice, Output, Reading};
use nmsfilter_core::tensor::TensorView;

/// A model, its settings, and how its tensors are read.
#[derive(Default)]
pub(super) struct Model {
    pub labels: Labels,
    /// The model's index in the element.
    pub index: usize,
    /// The stream for whose tensors it was made, of a batch of GStreamer's analytics library.
    pub stream: Option<u32>,
    /// The caps that describe the model of the latest tensors, and their content.
    caps: Option<gst::Caps>,
    pub info: ModelInfo,
    /// The settings in force, with the configuration of nvinfer, which applies where a property was not set. Once a frame is decoded, they are always valid for the stream.
    pub settings: Settings,
    /// Settings that were set later and are not in force.
    pending: Option<PendingSettings>,
    /// How tensors are read with the settings in force; `None` before the first frame with tensors.
    reading: Option<ModelReading>,
    /// True if the reading is of other caps, or of another model description.
    pub is_stale: bool,
    /// True if any frame has been decoded.
    pub decoded: bool,
}

/// Settings that were set while frames are decoded with others. An application sets properties one after the other, so
/// settings that are invalid in between are tolerated for a second.
struct PendingSettings {
    settings: Settings,
    /// The reason why the tensors cannot be read with them; `None` before the first attempt.
    error: Option<FrameError>,
    /// When the pending settings were first invalid, or the last warning was posted.
    rejected_since: Option<Duration>,
    /// The text of the last warning.
    last_warning: Option<String>,
}

impl PendingSettings {
    /// Stores the reason why the tensors cannot be read with them.
    fn reject(&mut self, element: &NmsFilter, error: FrameError, now: Duration) {
        if self.error.is_none() {
            gst::info!(CAT, obj = element, "new settings cannot be used yet: {error}");
        }
        self.error = Some(error);
        self.rejected_since.get_or_insert(now);
    }

    /// Posts a warning after they have been invalid for a second, once per text.
    fn warn_if_unusable(&mut self, element: &NmsFilter, now: Duration) {
        let (Some(error), Some(since)) = (&self.error, self.rejected_since) else { return };
        if now - since < SECOND {
            return;
        }
        self.rejected_since = Some(now);
        let text = error.to_string();
        if self.last_warning.as_ref() != Some(&text) {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("{text}; the settings from before the change stay in force"),
                ["{}", property::non_default(element.upcast_ref())]
            );
            self.last_warning = Some(text);
        }
    }
}

impl Model {
    /// A model whose `settings` come from the properties and a configuration of nvinfer.
    pub fn new(labels: Labels, settings: Settings) -> Self {
        Self { labels, settings, ..Self::default() }
    }

    /// The model of the element with this index, for tensors of a stream.
    pub fn of_stream(&self, index: usize, stream: u32) -> Self {
        let model = Self::new(self.labels.of_file(), self.latest_settings().clone());
        Self { index, stream: Some(stream), ..model }
    }

    /// Returns true if these caps describe the model.
    pub fn has_description(&self, caps: Option<&gst::Caps>) -> bool {
        self.caps.as_ref() == caps
    }

    /// Stores the element's settings if they have changed. They come into force with the next frame
    /// that has tensors, if they are valid for it.
    pub fn update_settings(&mut self, properties: &Settings) {
        let settings = properties.with_nvinfer(self.settings.nvinfer.as_ref());
        if *self.latest_settings() != settings {
            let previous = self.pending.take().map(|it| (it.rejected_since, it.last_warning));
            let (rejected_since, last_warning) = previous.unwrap_or_default();
            let error = None;
            self.pending = Some(PendingSettings { settings, error, rejected_since, last_warning });
        }
    }

    /// The settings that were stored last, in force or not.
    fn latest_settings(&self) -> &Settings {
        self.pending.as_ref().map_or(&self.settings, |pending| &pending.settings)
    }

    /// Takes the caps that describe the tensors' model, if there are any, and returns its input. Does not allocate if they
    /// are equal to those before.
    ///
    /// # Errors
    /// If they describe no model. The previous model stays.
    pub fn set_description(&mut self, caps: Option<&gst::Caps>) -> Result<ModelInput, InputError> {
        if !self.has_description(caps) {
            let info = caps.map(|caps| ModelInfo::from_caps(caps)).transpose()?;
            self.info = info.unwrap_or_default();
            self.labels.set_model(&self.info.labels);
            self.is_stale = true;
        }
        // With a reference to the latest caps, the next comparison is mostly one of addresses.
        self.caps = caps.cloned();
        Ok(self.info.input())
    }

    /// The family of the tensors' model, if it is known and not a plain detector.
    pub fn family(&self) -> Option<ModelFamily> {
        ModelFamily::for_task(self.info.task.as_deref()?, self.info.end2end)
    }

    /// How tensors are read with the settings in force.
    pub fn reading(&self) -> Option<&Reading> {
        self.reading.as_ref().map(|made| &made.reading)
    }

    /// Returns true if a frame with tensors has come since the caps.
    pub fn has_reading(&self) -> bool {
        self.reading.is_some() && !self.is_stale
    }

    /// The reading that [`update`](Self::update) made.
    ///
    /// # Panics
    /// If it has made no reading.
    pub fn made(&mut self) -> &mut ModelReading {
        self.reading.as_mut().expect("`update` has made it")
    }

    /// Starts the times again for which notices wait.
    pub fn restart_clock(&mut self) {
        if let Some(made) = &mut self.reading {
            made.reading.restart_clock();
        }
    }

    /// Posts what the stream has shown, after its last buffer.
    pub fn finish(&mut self, element: &NmsFilter, notices: &mut Notices) {
        if let Some(made) = &mut self.reading {
            notices.of_reading(element, made.reading.finish(), &mut self.labels);
        }
    }

    /// The mapping and the place of an image for each of these frames. Each frame is a separate group; the regions of a
    /// frame are one group.
    ///
    /// # Errors
    /// If the size of the model's input is not known, a frame has no pixels, a region is not inside its
    /// frame, or the layout is not valid for the model's input of each frame.
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
            let region = frame.region.map(|region| region.pixels);
            let mapping = self.settings.mapping(frame.size, region, frame.model)?;
            if let Some(made) = &self.reading
                && !made.reading.has_model_size(mapping.model())
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

    /// Reads the tensors, with the pending settings if they are valid for them; they are in force then. Before the first
    /// frame is decoded, invalid settings are an error. Afterwards, the previous settings stay in force, and a warning is
    /// posted if the pending settings stay invalid for a second.
    ///
    /// # Errors
    /// If no decoder reads the tensors, or before the first frame is decoded, if settings are not valid for them.
    pub fn update(
        &mut self,
        (element, notices): (&NmsFilter, &mut Notices),
        engine: &dyn Engine,
        tensors: ModelTensors<'_>,
        now: Duration,
    ) -> Result<(), FrameError> {
        let Self { settings, labels, .. } = self;
        let is_read = !self.is_stale
            && self.reading.as_ref().is_some_and(|it| it.is_of(tensors, settings, labels));
        if let Some(mut pending) = self.pending.take() {
            if !is_read || pending.error.is_none() {
                match ModelReading::new(tensors, &pending.settings, labels, engine) {
                    Ok(reading) => {
                        self.settings = pending.settings;
                        self.install((element, notices), tensors, reading);
                        return Ok(());
                    }
                    Err(error) if self.decoded => pending.reject(element, error, now),
                    Err(error) => {
                        self.pending = Some(pending);
                        return Err(error);
                    }
                }
            }
            pending.warn_if_unusable(element, now);
            self.pending = Some(pending);
        }
        if is_read {
            return Ok(());
        }
        self.read_again((element, notices), engine, tensors).map_err(|error| {
            // If neither the pending settings nor those in force are valid, the error of the
            // pending ones is more useful: these are the current values of the properties.
            self.pending.take().and_then(|pending| pending.error).unwrap_or(error)
        })
    }

    /// Reads other tensors, or tensors of frames with other caps, with the settings in force.
    fn read_again(
        &mut self,
        (element, notices): (&NmsFilter, &mut Notices),
        engine: &dyn Engine,
        tensors: ModelTensors<'_>,
    ) -> Result<(), FrameError> {
        let Self { settings, labels, .. } = self;
        if let Some(reading) = &mut self.reading
            && !self.is_stale
            && reading.adapt(tensors, settings, labels)?
        {
            return Ok(());
        }
        let reading = ModelReading::new(tensors, settings, labels, engine)?;
        self.install((element, notices), tensors, reading);
        Ok(())
    }

    fn install(
        &mut self,
        (element, notices): (&NmsFilter, &mut Notices),
        tensors: ModelTensors<'_>,
        mut made: ModelReading,
    ) {
        if let Some(earlier) = self.reading.take() {
            made.reading.follow(earlier.reading);
        }
        let of_reading = made.reading.take_notices();
        let is_decoder_wrong = of_reading.iter().any(Notice::is_of_decoder);
        notices.of_reading(element, of_reading, &mut self.labels);
        match &made.reading.output {
            Output::Boxes(detector) => {
                self.begin_detector((element, notices), tensors, detector, is_decoder_wrong);
            }
            Output::Classes(classifier) => {
                self.begin_classifier((element, notices), tensors.tensors, classifier);
            }
        }
        self.reading = Some(made);
        self.is_stale = false;
    }

    fn begin_classifier(
        &mut self,
        (element, notices): (&NmsFilter, &mut Notices),
        tensors: &[TensorView<'_>],
        classifier: &ClassReading,
    ) {
        let labels = &mut self.labels;
        for &ClassOutput { tensor, classes, activation } in classifier.outputs() {
            gst::info!(
                CAT,
                obj = element,
                "decoder {}: tensor {}, {classes} classes, {} labels, score-activation {}, {:?}",
                decoder::classifier::NAME,
                tensors[tensor],
                labels.count(),
                activation.name(),
                classifier.limits(),
            );
        }
        let outputs = classifier.outputs().iter();
        labels.set_classifier(
            &element.name(),
            outputs.map(|output| (tensors[output.tensor].id, output.classes)),
        );
        let of_labels = setting_notices::of_class_labels(classifier, tensors, labels);
        notices.post(element, of_labels);
    }

    fn begin_detector(
        &mut self,
        (element, notices): (&NmsFilter, &mut Notices),
        tensors: ModelTensors<'_>,
        detector: &BoxReading,
        is_decoder_wrong: bool,
    ) {
        let Self { settings, labels, .. } = self;
        let mapping = settings.mapping(tensors.frame, None, tensors.model);
        let mapping = mapping.expect("the tensors are read with it");
        let (choice, frame) = (detector.choice(), mapping.frame());
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
            if tensors.tensors.iter().any(TensorView::is_on_device) { "device" } else { "host" },
        );
        let (model, model_source) = (mapping.model(), settings.model_size(tensors.model).1);
        let (letterbox, letterbox_source) = settings.letterbox(tensors.model);
        gst::debug!(
            CAT,
            obj = element,
            "model's input {}x{} {model_source}, letterbox {} {letterbox_source}, {} labels{}",
            model[0],
            model[1],
            letterbox.name(),
            labels.count(),
            labels.source().map(|source| format!(" of {source}")).unwrap_or_default(),
        );
        gst::debug!(CAT, obj = element, "{:?}, {mapping:?}", detector.params());
        let of_settings = setting_notices::of_settings(
            detector,
            (tensors.model, tensors.batch.is_some()),
            &mapping,
            settings,
            labels,
            is_decoder_wrong,
        );
        notices.post(element, of_settings);
        let keypoints = self.settings.keypoint_layout.chosen().or(self.info.keypoint_layout);
        self.labels.set_choice(detector.choice(), keypoints);
    }
}
