// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that contradict the tensors, or known facts about their model.
//!
//! In: a reading, and what it was made of. Out: an [`ElementNotice`] for each setting in force that
//! contradicts a known fact. No number of a tensor is read.

use super::enums::Decoder;
use super::settings::Settings;
use super::words::ElementNotice;
use crate::input::model::ModelInput;
use crate::output::Labels;
use nmsfilter_core::decoder::classifier::ClassOutput;
use nmsfilter_core::decoder::{Choice, MAX_CLASSES};
use nmsfilter_core::engine::ClassThresholds;
use nmsfilter_core::geometry::{Letterbox, Mapping};
use nmsfilter_core::reading::{BoxReading, ClassReading};
use nmsfilter_core::tensor::TensorView;

/// Finds the contradictions of `settings`, with which the tensors of `model`, of a batch of DeepStream or not, are read for
/// frames with this `mapping`, besides the reading's own. `is_decoder_wrong` says if the decoder is probably wrong.
pub(super) fn of_settings(
    detector: &BoxReading,
    (model, is_batch): (ModelInput, bool),
    mapping: &Mapping,
    settings: &Settings,
    labels: &Labels,
    is_decoder_wrong: bool,
) -> impl Iterator<Item = ElementNotice> {
    let is_normalized = detector.choice().layout.normalized;
    let thresholds = &detector.params().thresholds;
    // With the wrong decoder, the number of classes is wrong, too.
    let of_labels = || of_labels(detector, thresholds, labels);
    [
        if is_decoder_wrong { None } else { of_labels() },
        of_letterbox(settings, model, mapping),
        of_model_size(settings, model, is_normalized),
        of_layout_file(detector, settings),
        of_unique_id(settings).filter(|_| !is_batch),
        settings.attach.is_empty().then_some(ElementNotice::NothingAttached),
    ]
    .into_iter()
    .flatten()
}

/// Labels of a classifier, which [`Labels::set_classifier`] has assigned to its outputs.
pub(super) fn of_class_labels(
    reading: &ClassReading,
    tensors: &[TensorView<'_>],
    labels: &Labels,
) -> Option<ElementNotice> {
    let (origin, count, outputs) = (labels.source()?, labels.count(), reading.outputs());
    let total = outputs.iter().map(|output| output.classes).sum::<usize>();
    let tensor = |output: &ClassOutput| tensors[output.tensor].to_string();
    if count == total {
        return None;
    }
    if let [output] = outputs {
        let tensor = tensor(output);
        return Some(ElementNotice::LabelsOfOutput {
            origin,
            labels: count,
            tensor,
            classes: total,
        });
    }
    let all: Vec<String> = outputs.iter().map(tensor).collect();
    let unlabelled = all.iter().enumerate().filter(|(index, _)| !labels.are_of_output(*index));
    let unlabelled: Vec<&str> = unlabelled.map(|(_, tensor)| tensor.as_str()).collect();
    let (outputs, unlabelled) = (all.join(", "), unlabelled.join(", "));
    Some(ElementNotice::LabelsOfOutputs { origin, labels: count, outputs, total, unlabelled })
}

/// Fewer labels than classes are correct if the classes without a label are excluded.
fn of_labels(
    detector: &BoxReading,
    thresholds: &ClassThresholds,
    labels: &Labels,
) -> Option<ElementNotice> {
    let (origin, count) = (labels.source()?, labels.count());
    let Choice { decoder, layout, .. } = detector.choice();
    let (decoder, classes, first) = (decoder.name(), layout.classes, layout.first_label());
    if let Some(label) =
        labels.background(first).filter(|_| first > 0 || decoder == "ssd-postprocess")
    {
        return Some(ElementNotice::Background { origin, label: label.into(), decoder, first });
    }
    // A class that is a number in a tensor has any value, unless the number of classes is set.
    if layout.has_class_field() && classes == MAX_CLASSES {
        return None;
    }
    let labeled = count + labels.first_class(detector.choice()) as usize;
    let without_label = labeled as u32..classes as u32;
    let are_excluded = || without_label.map(|class| thresholds.of(class)).all(f32::is_infinite);
    if count == 0 || labeled == classes || (labeled < classes && are_excluded()) {
        return None;
    }
    let classes = classes - first as usize;
    let labels = count;
    Some(match classes == labels + 1 && !layout.has_class_field() {
        true => ElementNotice::LabelsWithoutBackground { origin, labels, decoder },
        false => ElementNotice::Labels { origin, labels, decoder, classes },
    })
}

/// A letterbox contradicts nothing if it is only assumed, because the tensors do not describe it completely, or if
/// this frame has an equal place in the model's input with it.
fn of_letterbox(
    settings: &Settings,
    model: ModelInput,
    mapping: &Mapping,
) -> Option<ElementNotice> {
    let (set, known) = (settings.letterbox.chosen()?, model.known_letterbox()?);
    let is_same = |known: Letterbox| {
        Mapping::new(mapping.frame(), mapping.model_size(), model.fit_rule(known))
            .is_ok_and(|as_known| as_known == *mapping)
    };
    (set != known && !is_same(known))
        .then(|| ElementNotice::Letterbox { set: set.name(), known: known.name() })
}

/// Without a letterbox, normalized coordinates do not depend on the size of the model's tensors.
fn of_model_size(
    settings: &Settings,
    model: ModelInput,
    is_normalized: bool,
) -> Option<ElementNotice> {
    let set = [settings.model_width, settings.model_height];
    let known = model.size?;
    let has_letterbox = settings.letterbox(model).0 != Letterbox::None;
    let is_used = has_letterbox || !is_normalized;
    (set != [0, 0] && set != known && is_used).then_some(ElementNotice::ModelSize { set, known })
}

fn of_layout_file(detector: &BoxReading, settings: &Settings) -> Option<ElementNotice> {
    let is_set = settings.layout_file.as_ref().is_some_and(|file| !file.is_empty());
    (is_set && settings.decoder != Decoder::Layout)
        .then(|| ElementNotice::UnusedLayoutFile { decoder: detector.choice().decoder.name() })
}

/// The id can also come from a configuration of nvinfer.
fn of_unique_id(settings: &Settings) -> Option<ElementNotice> {
    let id = settings.unique_id;
    let is_set = id != 0 && settings.was_set.contains("unique-id");
    is_set.then_some(ElementNotice::UnusedId { id })
}
