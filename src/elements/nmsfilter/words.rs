// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's words in the texts of the core: its properties.

use super::error::FrameError;
use super::setting_notices::SettingNotice;
use nmsfilter_core::decoder::{ChoiceError, LayoutError, classifier};
use nmsfilter_core::engine::EngineError;
use nmsfilter_core::reading::Notice;
use nmsfilter_core::wording::{self, Setting};

/// The text of an error or a notice of the core, with the element's words.
pub(super) fn phrase(text: impl std::fmt::Display) -> String {
    wording::phrase(text, word)
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

/// The texts of errors and notices, as in the source, for the test of docs/messages.md.
#[doc(hidden)]
pub fn texts() -> Vec<&'static str> {
    [
        Notice::TEXTS,
        ChoiceError::TEXTS,
        LayoutError::TEXTS,
        EngineError::TEXTS,
        SettingNotice::TEXTS,
        FrameError::TEXTS,
    ]
    .concat()
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
