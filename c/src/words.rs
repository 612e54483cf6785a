// SPDX-License-Identifier: MIT OR Apache-2.0
//! C's words in the texts of the core: the fields of its structures.

use nmsfilter_core::nms::{Setting, phrase};

/// The text of an error or a notice of the core, with C's words.
pub fn in_c(text: impl std::fmt::Display) -> String {
    phrase(text, word)
}

fn word(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Background => "background",
        Setting::Batch => "batch = 1",
        Setting::BoxFormat => "box_format",
        Setting::Channels => "channels",
        Setting::ClassThresholds => "class_score_thresholds",
        Setting::Classes | Setting::Exclusion => "score_threshold and class_score_thresholds",
        Setting::Coordinates => "coordinates",
        Setting::Decoder => "the decoder (nmsfilter_set_decoder)",
        Setting::Device => "cuda_device",
        Setting::Ids => "the ids",
        Setting::KeypointShape => "keypoint_count and keypoint_components",
        Setting::Labels => "label_count",
        Setting::ModelSize => "model_width and model_height",
        Setting::MultiLabel => "multi_label",
        Setting::NumClasses => "class_count",
        Setting::Place => "model_width and model_height",
        Setting::Quantization => "the scale",
        Setting::RegionEdges => "region_edges",
        Setting::ScoreActivation => "score_activation",
        Setting::ScoreThreshold => "score_threshold",
        Setting::Sizes => "min_size, max_size or class_rules",
    };
    match (setting, value) {
        (_, None) => name.to_owned(),
        (Setting::Decoder, Some(value)) => format!("the decoder {value}"),
        (
            Setting::Background
            | Setting::BoxFormat
            | Setting::Channels
            | Setting::Coordinates
            | Setting::RegionEdges
            | Setting::ScoreActivation,
            Some(value),
        ) => {
            let constant = format!("{name}_{value}").to_uppercase();
            format!("{name} = NMSFILTER_{constant}")
        }
        (_, Some(value)) => format!("{name} = {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_words_of_the_interface() {
        let text = "set `decoder = end2end`, or `options.num_classes = 2`, or `options.channels = last`, or \
                    `model_size`";
        assert_eq!(
            in_c(text),
            "set the decoder end2end, or class_count = 2, or channels = NMSFILTER_CHANNELS_LAST, or model_width and model_height"
        );
    }
}
