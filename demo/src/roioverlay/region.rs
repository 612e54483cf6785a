// SPDX-License-Identifier: MIT OR Apache-2.0
//! A region in the form in which it is drawn.
//!
//! In: the metadata of a region from any element. Out: its shapes, color and texts. Texts are
//! ranges within one string, so that no text is allocated per frame.

use std::ffi::CStr;
use std::fmt::Write;
use std::ops::Range;

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;

use super::ColorBy;
use super::color::{self, Rgb};
use super::details::{Keypoints, oriented_box};
use super::font;
use super::label_placement::Caption;
use super::mask::Mask;
use super::shapes::Position;
use super::surface::Rect;
use gstnmsfilter::bindings::strings;
use gstnmsfilter::output::roi_type;

/// A region with its caption, shapes and color.
pub(super) struct StyledRegion {
    pub caption: Caption,
    /// Confidence, or infinity if it is missing.
    pub confidence: f64,
    /// Index of the region in the frame.
    pub order: usize,
    pub color: Rgb,
    pub oriented: Option<[Position; 4]>,
    pub keypoints: Option<Keypoints>,
    pub mask: Option<Mask>,
    /// The region's type.
    pub label: glib::ffi::GQuark,
    /// Text that is drawn instead of the label, if the font lacks some of its characters.
    pub replacement: Option<Range<usize>>,
    /// The id of its track.
    pub track: Option<i32>,
}

impl StyledRegion {
    /// Makes a region, and appends its texts to `texts`.
    pub fn new(
        meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>,
        order: usize,
        color_by: ColorBy,
        texts: &mut String,
    ) -> Self {
        let detection = meta.param("detection");
        let class = detection.and_then(|detection| detection.get::<i32>("label_id").ok());
        let confidence = detection
            .and_then(|detection| detection.get::<f64>("confidence").ok())
            .filter(|confidence| confidence.is_finite());
        let label = roi_type(&meta);
        let color = match (color_by, class) {
            (ColorBy::None, _) => color::for_class(0),
            (ColorBy::Class, Some(class)) => color::for_class(class),
            (ColorBy::Class, None) => color::for_label(characters(label)),
        };

        let full = texts.len();
        let is_replaced = push_label(texts, label, class);
        let replacement = is_replaced.then_some(full..texts.len());
        let track = meta.param("object_id").and_then(|track| track.get::<i32>("id").ok());
        let end = texts.len();
        if let Some(track) = track {
            write!(texts, " #{track}").expect("it is a string");
        }
        if let Some(confidence) = confidence {
            texts.push(' ');
            push_confidence(texts, confidence);
        }
        // Without the space.
        let short = texts.len().min(end + 1)..texts.len();
        push_classes(texts, &meta);
        Self {
            caption: Caption { region: rect(&meta), full: full..texts.len(), short },
            confidence: confidence.unwrap_or(f64::INFINITY),
            order,
            color,
            oriented: detection.and_then(oriented_box),
            keypoints: meta.param("keypoints").and_then(Keypoints::new),
            mask: meta.param("mask").and_then(Mask::new),
            label,
            replacement,
            track,
        }
    }
}

/// Returns the region's rectangle. Large coordinates are outside of every frame. They are clamped,
/// so that calculations cannot overflow.
fn rect(meta: &gst::MetaRef<'_, VideoRegionOfInterestMeta>) -> Rect {
    let (x, y, w, h) = meta.rect();
    let clamp = |value: u32| value.min(1 << 24) as i32;
    Rect {
        x1: clamp(x),
        y1: clamp(y),
        x2: clamp(x.saturating_add(w)),
        y2: clamp(y.saturating_add(h)),
    }
}

/// Returns the characters of a region's type. Each sequence of invalid UTF-8 becomes U+FFFD,
/// because an element in C can set any bytes, or NULL.
pub(super) fn characters(label: glib::ffi::GQuark) -> impl Iterator<Item = char> + Clone {
    let bytes = strings::of_quark(label).map_or(&[][..], CStr::to_bytes);
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(invalid)
    })
}

/// Appends the text that is drawn for a label, and returns true if it differs from the label. A
/// label without any letter or digit of the font is drawn as its class number, so that different
/// labels remain distinguishable. In all other labels, and if there is no class, a question mark
/// replaces each character that the font lacks.
fn push_label(texts: &mut String, label: glib::ffi::GQuark, class: Option<i32>) -> bool {
    let characters = characters(label);
    if characters.clone().all(font::has) {
        texts.extend(characters);
        return false;
    }
    let is_legible = characters.clone().any(|c| c.is_alphanumeric() && font::has(c));
    match class {
        Some(class) if !is_legible => write!(texts, "class-{class}").expect("it is a string"),
        _ => texts.extend(characters.map(|c| if font::has(c) { c } else { '?' })),
    }
    true
}

/// Appends a line for each class that classifiers have found, except for the region's own label.
fn push_classes(texts: &mut String, meta: &gst::MetaRef<'_, VideoRegionOfInterestMeta>) {
    let classes = meta.params().filter(|structure| structure.name() == "classification");
    for class in classes {
        let Ok(label) = class.get::<&str>("label") else { continue };
        if characters(roi_type(meta)).eq(label.chars()) {
            continue;
        }
        texts.push('\n');
        texts.extend(label.chars().map(|c| if font::has(c) { c } else { '?' }));
        if let Ok(confidence) = class.get::<f64>("confidence") {
            texts.push(' ');
            push_confidence(texts, confidence);
        }
    }
}

/// Appends a confidence: as a percentage if it is between 0 and 1, otherwise as a number.
pub(super) fn push_confidence(texts: &mut String, confidence: f64) {
    let written = match confidence {
        0.0..=1.0 => write!(texts, "{:.0}", confidence * 100.0),
        other if other.abs() < 1e6 => write!(texts, "{other:.1}"),
        other => write!(texts, "{other:.1e}"),
    };
    written.expect("it is a string");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(confidence: f64) -> String {
        let mut text = String::new();
        push_confidence(&mut text, confidence);
        text
    }

    #[test]
    fn confidences_above_one_are_not_shown_as_percentages() {
        assert_eq!([0.0, 0.873, 1.0, 41.84].map(text), ["0", "87", "100", "41.8"]);
    }

    #[test]
    fn large_confidences_are_shown_with_an_exponent() {
        assert_eq!(text(-1e300), "-1.0e300");
    }
}
