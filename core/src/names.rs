// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of settings in each interface.
//!
//! In: an [`Interface`] and a setting. Out: the words for the setting, such as `score-threshold` for the element
//! and `score_threshold` for Python.

use std::fmt;

/// The interface whose names a text uses for settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interface {
    /// The properties of the element `nmsfilter`.
    Element,
    /// The fields and methods of [`Nms`](crate::nms::Nms).
    Rust,
    /// The fields of C's structures.
    C,
    /// The arguments of Python's `Decoder`.
    Python,
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Background,
    BoxFormat,
    Channels,
    ClassThresholds,
    Coordinates,
    Decoder,
    /// The decoder, if none is set.
    DecoderChoice,
    KeypointShape,
    Labels,
    ModelSize,
    MultiLabel,
    NumClasses,
    Quantization,
    RegionEdges,
    ScoreActivation,
    ScoreThreshold,
    Sizes,
    /// The tensors of a run.
    Tensors,
}

/// A setting with a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Where the scores of the background are.
    Background(&'static str),
    Decoder(&'static str),
    NormalizedCoordinates,
    NumClasses(usize),
    PixelCoordinates,
}

impl Interface {
    /// Returns the name of a setting.
    pub(crate) fn name(self, name: Name) -> &'static str {
        let [element, rust, c, python] = match name {
            Name::Background => ["background", "Options::background", "background", "background"],
            Name::BoxFormat => ["box-format", "Options::box_format", "box_format", "box_format"],
            Name::Channels => ["channels", "Options::channels", "channels", "channels"],
            Name::ClassThresholds => [
                "class-thresholds",
                "ClassThresholds::per_class",
                "class_score_thresholds",
                "its elements",
            ],
            Name::Coordinates => {
                ["coordinates", "Options::coordinates", "coordinates", "coordinates"]
            }
            Name::Decoder => ["decoder", "the decoder", "the decoder", "decoder"],
            Name::DecoderChoice => [
                "the property decoder",
                "the decoder (Nms::set_decoder)",
                "the decoder (nmsfilter_set_decoder)",
                "decoder",
            ],
            Name::KeypointShape => [
                "keypoint-shape",
                "Options::keypoints",
                "keypoint_count and keypoint_components",
                "keypoint_shape",
            ],
            Name::Labels => ["label-file", "Options::labels", "label_count", "labels"],
            Name::ModelSize => [
                "model-width and model-height",
                "Nms::model_size",
                "model_width and model_height",
                "model_size",
            ],
            Name::MultiLabel => {
                ["multi-label", "Params::multi_label", "multi_label", "multi_label"]
            }
            Name::Tensors => ["the buffer's tensors", "the tensors", "the tensors", "outputs"],
            Name::NumClasses => {
                ["num-classes", "Options::num_classes", "class_count", "num_classes"]
            }
            Name::Quantization => {
                ["quantization", "TensorView::quantization", "the scale", "quantization"]
            }
            Name::ScoreActivation => [
                "score-activation",
                "Options::score_activation",
                "score_activation",
                "score_activation",
            ],
            Name::RegionEdges => {
                ["region-edges", "Params::region_edges", "region_edges", "region_edges"]
            }
            Name::ScoreThreshold => {
                ["score-threshold", "Params::thresholds", "score_threshold", "score_threshold"]
            }
            Name::Sizes => [
                "min-size, max-size or class-sizes",
                "Params::sizes or ClassRule::sizes",
                "min_size, max_size or class_rules",
                "min_size, max_size or class_sizes",
            ],
        };
        match self {
            Self::Element => element,
            Self::Rust => rust,
            Self::C => c,
            Self::Python => python,
        }
    }

    /// Returns a setting with its value, as words that can follow "set".
    pub(crate) fn value(self, value: Value) -> Assignment {
        Assignment { interface: self, value }
    }

    fn write_coordinates(self, f: &mut fmt::Formatter<'_>, unit: &str) -> fmt::Result {
        let name = self.name(Name::Coordinates);
        match self {
            Self::Element => write!(f, "{name}={unit}"),
            Self::Python => write!(f, "{name}={unit:?}"),
            Self::C => write!(f, "{name} to NMSFILTER_COORDINATES_{}", unit.to_uppercase()),
            Self::Rust => write!(f, "{name} to Coordinates::{}", capitalized(unit)),
        }
    }
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// A setting with its value, in the words of an interface.
pub(crate) struct Assignment {
    interface: Interface,
    value: Value,
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, value } = *self;
        match (value, interface) {
            (Value::Background(place), Interface::Element) => write!(f, "background={place}"),
            (Value::Background(place), Interface::Python) => write!(f, "background={place:?}"),
            (Value::Background(place), Interface::Rust) => {
                write!(f, "Options::background to Background::{}", capitalized(place))
            }
            (Value::Background(place), Interface::C) => {
                write!(f, "background to NMSFILTER_BACKGROUND_{}", place.to_uppercase())
            }
            (Value::Decoder(name), Interface::Element) => write!(f, "decoder={name}"),
            (Value::Decoder(name), Interface::Python) => write!(f, "decoder={name:?}"),
            (Value::Decoder(name), Interface::Rust | Interface::C) => {
                write!(f, "the decoder {name}")
            }
            (Value::NumClasses(number), Interface::Element | Interface::Python) => {
                write!(f, "{}={number}", interface.name(Name::NumClasses))
            }
            (Value::NumClasses(number), Interface::Rust | Interface::C) => {
                write!(f, "{} to {number}", interface.name(Name::NumClasses))
            }
            (Value::NormalizedCoordinates, _) => interface.write_coordinates(f, "normalized"),
            (Value::PixelCoordinates, _) => interface.write_coordinates(f, "pixels"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_its_own_words() {
        let words = |interface: Interface| {
            let value = |value| interface.value(value).to_string();
            [
                value(Value::Decoder("end2end")),
                value(Value::NumClasses(2)),
                value(Value::NormalizedCoordinates),
                interface.name(Name::ScoreThreshold).to_owned(),
            ]
        };
        assert_eq!(
            words(Interface::Element),
            ["decoder=end2end", "num-classes=2", "coordinates=normalized", "score-threshold"]
        );
        assert_eq!(
            words(Interface::Python),
            [
                "decoder=\"end2end\"",
                "num_classes=2",
                "coordinates=\"normalized\"",
                "score_threshold"
            ]
        );
        assert_eq!(
            words(Interface::C),
            [
                "the decoder end2end",
                "class_count to 2",
                "coordinates to NMSFILTER_COORDINATES_NORMALIZED",
                "score_threshold"
            ]
        );
        assert_eq!(
            words(Interface::Rust),
            [
                "the decoder end2end",
                "Options::num_classes to 2",
                "Options::coordinates to Coordinates::Normalized",
                "Params::thresholds"
            ]
        );
    }
}
