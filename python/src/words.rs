// SPDX-License-Identifier: MIT OR Apache-2.0
//! Python's words in the texts of the core: the arguments of `Decoder` and of functions.

use nmsfilter_core::nms::{EngineError, NmsError, ParamError, Setting, phrase};

/// The text of an error or a notice of the core, with Python's words.
pub fn in_python(text: impl std::fmt::Display) -> String {
    phrase(text, word)
}

/// The text of an error, with Python's words.
pub fn of_error(error: &NmsError) -> String {
    match error {
        NmsError::Param(error) => of_param(error),
        NmsError::Engine(EngineError::Overlap { overlap, boxes }) => {
            format!("overlap: {overlap:?} is not defined for {boxes} boxes; choose \"iou\"")
        }
        NmsError::Engine(EngineError::NeedsHost { what, instead }) => {
            format!("results in device memory: {what}; {instead}, or pass results=\"host\"")
        }
        NmsError::Engine(EngineError::Unsupported { what, value }) => format!(
            "the engine cuda does not support the {what} {value}; pass the arrays in host memory"
        ),
        error => in_python(error),
    }
}

/// The text of an error about a parameter.
pub fn of_param(error: &ParamError) -> String {
    let name = match (error.parameter, error.class) {
        ("thresholds", _) => "score_threshold",
        ("iou_threshold", Some(_)) => "class_iou_thresholds",
        ("sizes.min", None) => "min_size",
        ("sizes.max", None) => "max_size",
        ("sizes.min" | "sizes.max", Some(_)) => "class_sizes",
        ("frame.size", _) => "frame_size",
        // No argument sets these.
        ("frame.ratio" | "frame.offset", _) => return error.to_string(),
        (name, _) => name,
    };
    let class = error.class.map(|class| format!("[{class}]")).unwrap_or_default();
    format!("{name}{class}: expected {}, got {}", error.expected, error.got)
}

fn word(setting: Setting, value: Option<&str>) -> String {
    let name = match setting {
        Setting::Background => "background",
        Setting::Batch => "batch",
        Setting::BoxFormat => "box_format",
        Setting::Channels => "channels",
        Setting::ClassThresholds => "its elements",
        Setting::Classes | Setting::Exclusion => "score_threshold",
        Setting::Coordinates => "coordinates",
        Setting::Decoder => "decoder",
        Setting::Device => "device",
        Setting::Ids => "the names of a dictionary",
        Setting::KeypointShape => "keypoint_shape",
        Setting::Labels => "labels",
        Setting::ModelSize | Setting::Place => "model_size",
        Setting::MultiLabel => "multi_label",
        Setting::NumClasses => "num_classes",
        Setting::Quantization => "quantization",
        Setting::RegionEdges => "region_edges",
        Setting::ScoreActivation => "score_activation",
        Setting::ScoreThreshold => "score_threshold",
        Setting::Sizes => "min_size, max_size or class_sizes",
    };
    match value {
        None => name.to_owned(),
        Some(value) if value.parse::<f64>().is_ok() => format!("{name}={value}"),
        Some(value) => format!("{name}={value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_words_of_the_interface() {
        let text = "set `decoder = end2end`, or `options.num_classes = 2`, or `options.coordinates = pixels`, or \
                    `model_size`";
        assert_eq!(
            in_python(text),
            "set decoder=\"end2end\", or num_classes=2, or coordinates=\"pixels\", or model_size"
        );
    }
}
