// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings in the texts of errors and notices.
//!
//! In: a text of this crate, which names settings as Rust does, between backticks: "set `options.num_classes = 2`".
//! Out: the text with the words of a host, such as "set num-classes=2". The table of these words is the host's.

use std::fmt;

macro_rules! settings {
    ($($(#[doc = $doc:literal])* $setting:ident = $name:literal,)*) => {
        /// A setting, or another thing for which each host has another name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names say what they are")]
        pub enum Setting {
            $($(#[doc = $doc])* $setting,)*
        }

        impl Setting {
            /// All settings, with their names in Rust.
            const ALL: &[(Self, &str)] = &[$((Self::$setting, $name)),*];
        }
    };
}

settings! {
    Background = "options.background",
    /// The setting that says if tensors hold several images.
    Batch = "options.batch",
    BoxFormat = "options.box_format",
    Channels = "options.channels",
    ClassThresholds = "params.thresholds.per_class",
    /// The list of included classes.
    Classes = "classes",
    Coordinates = "options.coordinates",
    Decoder = "decoder",
    /// The number of a GPU.
    Device = "ordinal",
    /// The setting that excludes classes.
    Exclusion = "params.thresholds",
    /// The names of tensors.
    Ids = "the ids",
    KeypointShape = "options.keypoints",
    Labels = "options.labels",
    ModelSize = "model_size",
    MultiLabel = "params.multi_label",
    NumClasses = "options.num_classes",
    /// The settings that determine where the frame is in the model's input.
    Place = "model_size or visible",
    Quantization = "TensorView::quantization",
    RegionEdges = "params.region_edges",
    ScoreActivation = "options.score_activation",
    ScoreThreshold = "params.thresholds.default",
    Sizes = "params.sizes or ClassRule::sizes",
}

impl Setting {
    /// The setting with a value.
    pub(crate) fn to(self, value: impl fmt::Display) -> String {
        format!("`{} = {value}`", self.name())
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// Replaces the settings in a text of this crate by the words of a host, for a setting with or without a value.
pub fn phrase(text: impl fmt::Display, word: impl Fn(Setting, Option<&str>) -> String) -> String {
    let text = text.to_string();
    let (mut phrased, mut rest) = (String::with_capacity(text.len()), &text[..]);
    while let Some((before, after)) = rest.split_once('`') {
        phrased += before;
        // Ids of tensors can have backticks, too.
        let found = after.split_once('`').and_then(|(span, rest)| {
            let (name, value) = match span.split_once(" = ") {
                Some((name, value)) => (name, Some(value)),
                None => (span, None),
            };
            let (setting, _) = Setting::ALL.iter().find(|(_, known)| *known == name)?;
            Some((word(*setting, value), rest))
        });
        let (word, after) = found.unwrap_or_else(|| ("`".to_owned(), after));
        phrased += &word;
        rest = after;
    }
    phrased + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_replaces_the_settings_of_a_text() {
        let text = format!(
            "tensor `a`, {}`: set {} or {}",
            Setting::Decoder,
            Setting::NumClasses.to(2),
            Setting::Ids
        );
        assert_eq!(text, "tensor `a`, `decoder``: set `options.num_classes = 2` or `the ids`");
        let word = |setting: Setting, value: Option<&str>| match value {
            Some(value) => format!("<{setting:?}={value}>"),
            None => format!("<{setting:?}>"),
        };
        assert_eq!(phrase(text, word), "tensor `a`, <Decoder>`: set <NumClasses=2> or <Ids>");
    }

    #[test]
    fn names_are_in_the_order_of_settings_and_unique() {
        for (index, (setting, name)) in Setting::ALL.iter().enumerate() {
            assert_eq!(*setting as usize, index);
            assert!(Setting::ALL[..index].iter().all(|(_, other)| other != name), "{name}");
        }
    }
}
