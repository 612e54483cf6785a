// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's words: its properties in the texts of the core, and the texts of its own notices.

use crate::deepstream::layout::{StructureLayout, Version, versions_with_regions};
use crate::input::MAX_TENSORS;
use crate::input::deepstream::OutsideObject;
use crate::output::Labels;
use nmsfilter_core::decoder::{ChoiceError, classifier};
use nmsfilter_core::reading::Notice;
use nmsfilter_core::tensor::MAX_DIMENSIONS;
use nmsfilter_core::wording::{self, Setting};

/// The text of an error or a notice of the core, with the element's words.
pub(super) fn phrase(text: impl std::fmt::Display) -> String {
    wording::phrase(text, word)
}

/// The text of a notice of the core, with the label of the class that it names.
pub(super) fn of_notice(notice: &Notice, labels: &mut Labels) -> String {
    let text = phrase(notice);
    let named = notice.class().and_then(|(output, class)| {
        Some(format!("{text}; the label of class {class} is {}", labels.named(output, class)?))
    });
    named.unwrap_or(text)
}

/// The text of an error of the choice of a decoder.
pub(super) fn of_choice(error: &ChoiceError) -> String {
    let text = phrase(error);
    match error {
        ChoiceError::NoBoxes { .. } => {
            format!("{text}, or set decoder={} for the classes of images", classifier::NAME)
        }
        _ => text,
    }
}

/// A notice of input and settings that can be processed but are probably a mistake, beside those of a reading.
#[derive(Debug, thiserror::Error)]
pub(super) enum ElementNotice {
    // A setting, and the fact that it contradicts.
    #[error(
        "{origin} has {labels} labels, but decoder {decoder} reads {classes} classes, so labels are probably \
         wrong; set label-file to the labels of this model, or correct decoder"
    )]
    Labels { origin: &'static str, labels: usize, decoder: &'static str, classes: usize },
    /// One label too few, which a background among the scores explains.
    #[error(
        "{origin} has {labels} labels, but decoder {decoder} reads {} classes, so labels are probably wrong; if one of the \
         classes is the background, set background=first or background=last, otherwise set label-file to the labels of \
         this model, or correct decoder",
        labels + 1
    )]
    LabelsWithoutBackground { origin: &'static str, labels: usize, decoder: &'static str },
    #[error(
        "{origin} has {labels} labels, but tensor {tensor} has scores of {classes} classes, so labels are probably \
         wrong; set label-file to the labels of this model"
    )]
    LabelsOfOutput { origin: &'static str, labels: usize, tensor: String, classes: usize },
    #[error(
        "{origin} has {labels} labels, but the model has {total} classes: those of {outputs}; {unlabelled} has no labels \
         (class-0, ...): set label-file to the labels of all outputs, one output after the other"
    )]
    LabelsOfOutputs {
        origin: &'static str,
        labels: usize,
        outputs: String,
        total: usize,
        unlabelled: String,
    },
    #[error(
        "the first label of {origin} is {label:?}, but decoder {decoder} has no class for the background: its first \
         class is {first}, so each label is that of another class; remove the first label"
    )]
    Background { origin: &'static str, label: String, decoder: &'static str, first: u32 },
    #[error(
        "letterbox={set}, but the tensors' model has letterbox {known}, so boxes are displaced; set letterbox=auto"
    )]
    Letterbox { set: &'static str, known: &'static str },
    #[error(
        "model-width={} and model-height={}, but the tensors' model has an input of {}x{}, so boxes are \
         displaced; set both to 0",
        set[0], set[1], known[0], known[1]
    )]
    ModelSize { set: [u32; 2], known: [u32; 2] },
    #[error(
        "layout-file is set, but decoder {decoder} reads the tensors; set decoder=layout, or unset layout-file"
    )]
    UnusedLayoutFile { decoder: &'static str },
    #[error(
        "unique-id={id} has no effect: it selects tensors of DeepStream, and the buffer has no batch of DeepStream; \
         unset it, or select an element with tensors-from"
    )]
    UnusedId { id: u32 },
    #[error(
        "attach=0 attaches no detection to a buffer: only stats counts them; set attach, as in attach=roi"
    )]
    NothingAttached,
    #[error(
        "with this network-type nvinfer attaches objects of its own beside those of nmsfilter; set network-type=100 in its \
         configuration"
    )]
    ObjectsOfNvinfer,
    // What DeepStream's metadata does not contain, and what is assumed.
    #[error(
        "this plugin does not know DeepStream {version}; its structures have the sizes of {} and are read as such: compare \
         the boxes with the picture; if they are right, set deepstream-version={}, otherwise use a newer plugin",
        layout.versions(), layout.last
    )]
    UnknownVersion { version: Version, layout: &'static StructureLayout },
    #[error(
        "DeepStream's libraries do not have nvds_version; the structures have the sizes of {} and are read as such: set \
         deepstream-version to the version that is installed",
        layout.versions()
    )]
    NoVersion { layout: &'static StructureLayout },
    #[error(
        "nvinfer kept the aspect ratio, but the tensors do not contain symmetric-padding; it is assumed not to be set: set \
         letterbox=center if it is, else letterbox=top-left"
    )]
    UnknownPadding,
    #[error(
        "the tensors do not contain maintain-aspect-ratio; it is assumed not to be set: set letterbox=top-left if it is set \
         in nvinfer's configuration, letterbox=center with symmetric-padding too, else letterbox=none"
    )]
    UnknownAspectRatio,
    #[error(
        "the tensors do not contain the size of the model's input, because nvinfer up to DeepStream 7.1 does not copy it \
         with a buffer: set model-width, model-height and letterbox, or place nmsfilter before the element that copies \
         buffers"
    )]
    UnknownModelSize,
    #[error(
        "the frames of the batch have no sizes of their own, and that of the caps, {}x{}, is used for all; if sources have \
         other sizes, keep the frames in NVMM memory up to nmsfilter, or set width and height of nvstreammux",
        .0[0], .0[1]
    )]
    SizeOfCaps([u32; 2]),
    // Tensors that are not decoded.
    #[error(
        "the buffer carries {} tensors, of which {read} are read: at most {MAX_TENSORS}, each of at most {MAX_DIMENSIONS} \
         dimensions; attach the detector's tensors alone, or first",
        read + unread
    )]
    UnreadTensors { read: usize, unread: usize },
    #[error(
        "the frames carry tensors of {count} inference elements: {sets}; those of 0 are decoded: set tensors-from to the \
         number or the name of the one to decode"
    )]
    OtherSets { count: usize, sets: String },
    #[error(
        "the frames carry tensors of more than one inference element, {read} and {other}; those of {read} are decoded: set \
         unique-id to the one to decode"
    )]
    OtherInference { read: u32, other: u32 },
    #[error(
        "the tensors are attached to objects, and without unique-id only those of frames are decoded; set unique-id={id} if \
         the model of the inference element {id} is a detector: the outputs of a classifier (network-type=1) have no boxes"
    )]
    OnObjects { id: u32 },
    #[error(
        "the tensors are attached to regions of interest, and without unique-id only those of frames are decoded; set \
         unique-id={id}"
    )]
    OnRegions { id: u32 },
    #[error(
        "the tensors are attached to regions of interest, whose structures are known for DeepStream {}, not for \
         {version}; set input-tensor-meta=0 in nvinfer's configuration",
        versions_with_regions()
    )]
    OnUnknownRegions { version: Version },
    #[error(
        "an object or region at {},{} of {}x{} pixels is not inside its frame of {}x{}, or has less than 2x2 pixels there; \
         its tensors are not decoded, because the picture that nvinfer cut out is not known: place nmsfilter directly \
         downstream of nvinfer, before elements that move objects",
        .0.rect[0], .0.rect[1], .0.rect[2], .0.rect[3], .0.frame[0], .0.frame[1]
    )]
    ObjectOutside(OutsideObject),
    #[error("no buffer of the {period} carried tensors{missing}")]
    NoTensors { period: &'static str, missing: String },
    // What is attached.
    #[error(
        "the buffer already carries the best region that is about to be attached, so all regions may be attached twice; if \
         an nmsfilter upstream has read the same tensors, set keep-tensors=false on that one"
    )]
    RepeatedRegion,
    #[error(
        "an object already has the class that is about to be attached, with the same score, so all classes may be attached \
         twice; if an nmsfilter upstream has read the same tensors, remove one of the two, or set keep-tensors=false on \
         that one: an nmsfilter reads all outputs of a classifier"
    )]
    RepeatedClasses,
    /// The default of `max-detections`.
    #[error(
        "a frame has {limit} detections or more, and only the best {limit} are attached, which is the default of \
         max-detections; set max-detections to a larger number, or to 0 for all"
    )]
    DefaultLimit { limit: usize },
    /// A limit that was set, so that this is only logged.
    #[error("max-detections={limit} is reached")]
    Limit { limit: usize },
}

impl ElementNotice {
    /// Returns true if settings, or what is assumed in place of them, are to be corrected, rather than input.
    pub fn is_of_settings(&self) -> bool {
        use ElementNotice::*;
        !matches!(
            self,
            UnknownModelSize
                | SizeOfCaps(_)
                | UnreadTensors { .. }
                | OtherSets { .. }
                | ObjectOutside(_)
                | NoTensors { .. }
                | RepeatedRegion
                | RepeatedClasses
        ) && !self.explains_missing_tensors()
    }

    /// Returns true if it says why no tensors are decoded.
    pub fn explains_missing_tensors(&self) -> bool {
        use ElementNotice::*;
        matches!(
            self,
            OtherInference { .. } | OnObjects { .. } | OnRegions { .. } | OnUnknownRegions { .. }
        )
    }
}

fn word(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Background => "background",
        Setting::Batch => "an inference element that says how many images a buffer has",
        Setting::BoxFormat => "box-format",
        Setting::Channels => "channels",
        Setting::ClassThresholds => "class-thresholds",
        Setting::Classes => "classes",
        Setting::Coordinates => "coordinates",
        Setting::Decoder => "decoder",
        Setting::Device => "cuda-device-id",
        Setting::Exclusion => {
            "class-thresholds, or topk and filter-out-class-ids in nvinfer-config"
        }
        Setting::Ids => "the ids",
        Setting::KeypointShape => "keypoint-shape",
        Setting::Labels => "label-file",
        Setting::ModelSize => "model-width and model-height",
        Setting::MultiLabel => "multi-label",
        Setting::NumClasses => "num-classes",
        Setting::Place => "model-width, model-height and letterbox",
        Setting::Quantization => "the property quantization",
        Setting::RegionEdges => "region-edges",
        Setting::ScoreActivation => "score-activation",
        Setting::ScoreThreshold => "score-threshold",
        Setting::Sizes => "min-size, max-size or class-sizes",
    };
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_properties() {
        let text = "set `decoder = end2end`, or `options.num_classes = 2`, or `model_size` with `TensorView::quantization`";
        assert_eq!(
            phrase(text),
            "set decoder=end2end, or num-classes=2, or model-width and model-height with the property quantization"
        );
        let tensors = String::from("out (f32 1x1000)");
        let text = of_choice(&ChoiceError::NoBoxes { tensors });
        assert!(text.ends_with("or set decoder=classifier for the classes of images"), "{text}");
    }
}
