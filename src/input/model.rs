// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model description: known facts about the model that tensors come from.
//!
//! In: the size of the model's input, the letterbox and the labels, if they are known. Out: caps for
//! [`NewTensor::with_model`](super::custom_meta::NewTensor::with_model), and the content of such caps. The element
//! `nmsfilter` uses the model description for properties that the user has not set.
//!
//! The caps have a single structure named [`MEDIA_TYPE`]. All of its fields are optional, and unknown fields are
//! ignored:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `width`, `height` | int, 1 to [`MAX_MODEL_SIDE`] | the size of the model's input in pixels; both or neither |
//! | `letterbox` | string | how the frame was fitted into the model's input: `none`; `center-exact`, `top-left-exact` ([`Rounding::Exact`]); `center`, `top-left` ([`Rounding::EvenSides`]) |
//! | `pixel-aspect-ratio` | fraction | the shape of the frame's pixels, if they are not square and the letterbox keeps the displayed aspect ratio |
//! | `labels` | array of strings | the names of the classes, starting with class 0; at most [`MAX_CLASSES`] |
//! | `task` | string | the task that the model was trained for, in the words of Ultralytics: `detect`, `segment`, ... |
//! | `end2end` | boolean | whether the model selects the detections itself, and outputs their classes |
//! | `suppressed` | boolean | whether the detections need no suppression |
//! | `queries` | int, from 1 on | the detections are so many best pairs of box and class |
//! | `signatures` | array of strings | the exporters whose inputs and outputs the model has, if there are several ([`Signature`]) |
//! | `keypoint-layout` | string | the meaning of the keypoints of every class: `coco-17`, `face-5`, or `points` for any other ([`KeypointLayout`]) |
//! | `keypoints` | array of two int | the number of keypoints per detection, and of components per keypoint (2 or 3) |
//!
//! [`Signature`]: nmsfilter_core::signature::Signature
//!
//! `task` and `end2end` are not required. If they name another model family than the chosen decoder's, for example
//! `segment`, the errors and warnings of `nmsfilter` name this family. `keypoints` is required if the shape of the
//! output does not determine these numbers.
//!
//! Versions of this crate that do not know the letterbox values with `-exact` return an error. This is intended,
//! because they would map boxes with other numbers.
//!
//! An empty label stands for a class without a name. Caps are reference counted: create them once and attach them
//! to every tensor, so that nothing is copied per frame.
//!
//! ```
//! use gstnmsfilter::input::model::{Letterbox, ModelInfo};
//!
//! gst::init()?;
//! let info = ModelInfo {
//!     size: Some([640, 640]),
//!     letterbox: Some(Letterbox::Center),
//!     labels: vec!["person".to_owned(), "bicycle".to_owned()],
//!     ..ModelInfo::default()
//! };
//! let caps = info.to_caps()?;
//! let text = "application/x-nmsfilter-model, width=640, height=640, letterbox=center-exact, \
//!             labels=(string)<person, bicycle>";
//! assert_eq!(caps, text.parse::<gst::Caps>()?);
//! assert_eq!(ModelInfo::from_caps(&caps)?, info);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Display;
use std::num::NonZeroU32;

use gst::glib::Value;

use super::InputError;
use crate::bindings::strings;
use crate::output::KeypointLayout;
use nmsfilter_core::decoder;

pub use nmsfilter_core::geometry::{Fit, FitRule, Letterbox, Rounding};

/// The name of the caps' structure.
pub const MEDIA_TYPE: &str = "application/x-nmsfilter-model";

/// The maximum side of a model's input in pixels.
pub const MAX_MODEL_SIDE: u32 = 65_535;

/// The values of the field `letterbox`.
const LETTERBOXES: [(&str, Letterbox, Rounding); 5] = [
    ("none", Letterbox::None, Rounding::Exact),
    ("center-exact", Letterbox::Center, Rounding::Exact),
    ("top-left-exact", Letterbox::TopLeft, Rounding::Exact),
    ("center", Letterbox::Center, Rounding::EvenSides),
    ("top-left", Letterbox::TopLeft, Rounding::EvenSides),
];

/// The maximum number of labels.
pub const MAX_CLASSES: usize = decoder::MAX_CLASSES;

/// The maximum number of keypoints per detection.
pub const MAX_KEYPOINTS: u32 = decoder::MAX_KEYPOINTS as u32;

/// Known facts about a model. By default, nothing is known. Programs end the list of fields with `..ModelInfo::default()`,
/// because further fields may be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// The width and height of the model's input in pixels, each from 1 to [`MAX_MODEL_SIDE`].
    pub size: Option<[u32; 2]>,
    /// How the frame was fitted into the model's input.
    pub letterbox: Option<Letterbox>,
    /// How the sides of a letterboxed frame were rounded to whole pixels.
    pub rounding: Rounding,
    /// The width of the frame's pixels divided by their height (numerator and denominator, each from 1 to
    /// `i32::MAX`), if the letterbox keeps the displayed aspect ratio. `None` if pixels count as square.
    pub pixel_aspect_ratio: Option<[u32; 2]>,
    /// The names of the classes, starting with class 0; empty if they are unknown. An empty name stands for a class
    /// without a name.
    pub labels: Vec<String>,
    /// The task that the model was trained for, such as `detect` or `segment`.
    pub task: Option<String>,
    /// True if the model selects the detections itself, so that its output has a row per detection.
    pub end2end: bool,
    /// True if the detections need no suppression, because the model suppresses them, or was trained to give one for each
    /// object.
    pub is_suppressed: bool,
    /// The number of best pairs of box and class that are the detections of a frame, if a box can have several classes.
    pub queries: Option<NonZeroU32>,
    /// The names of the model's signatures, if there are several, of which none is taken.
    pub signatures: Vec<String>,
    /// The number of keypoints per detection, 1 to [`MAX_KEYPOINTS`], and of components per keypoint, 2 or 3.
    pub keypoints: Option<[u32; 2]>,
    /// The meaning of the keypoints of every class. If it is unknown, it follows from the label of a class.
    pub keypoint_layout: Option<KeypointLayout>,
}

/// The model's input, and how a frame was fitted into it. Unknown facts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelInput {
    /// See [`ModelInfo::size`].
    pub size: Option<[u32; 2]>,
    /// See [`ModelInfo::letterbox`].
    pub letterbox: Option<Letterbox>,
    /// See [`ModelInfo::rounding`].
    pub rounding: Rounding,
    /// See [`ModelInfo::pixel_aspect_ratio`].
    pub pixel_aspect_ratio: Option<[u32; 2]>,
    /// See [`ModelInfo::keypoints`].
    pub keypoints: Option<[u32; 2]>,
    /// See [`ModelInfo::is_suppressed`].
    pub is_suppressed: bool,
    /// See [`ModelInfo::queries`].
    pub queries: Option<NonZeroU32>,
    /// True if the letterbox is an assumption, because the metadata does not contain it.
    pub letterbox_is_assumed: bool,
}

impl ModelInput {
    /// Returns the letterbox, unless it is an assumption.
    pub(crate) fn known_letterbox(self) -> Option<Letterbox> {
        self.letterbox.filter(|_| !self.letterbox_is_assumed)
    }

    /// Returns the rule by which the frame was fitted, with this letterbox.
    pub(crate) fn fit_rule(self, letterbox: Letterbox) -> FitRule {
        FitRule::from(letterbox)
            .with_rounding(self.rounding)
            .with_pixel_aspect_ratio(self.pixel_aspect_ratio.unwrap_or([1; 2]))
    }
}

impl ModelInfo {
    /// Returns the known facts about the model's input.
    pub(crate) fn input(&self) -> ModelInput {
        ModelInput {
            size: self.size,
            letterbox: self.letterbox,
            rounding: self.rounding,
            pixel_aspect_ratio: self.pixel_aspect_ratio,
            keypoints: self.keypoints,
            is_suppressed: self.is_suppressed,
            queries: self.queries,
            letterbox_is_assumed: false,
        }
    }

    /// Creates caps with these facts. GStreamer must be initialized.
    ///
    /// # Errors
    /// If a side is 0 or more than [`MAX_MODEL_SIDE`], if a number of the pixel aspect ratio is 0 or more than
    /// `i32::MAX`, if there are more than [`MAX_CLASSES`] labels, if a label or the task contains a zero byte, or
    /// if the number of keypoints or of their components is invalid.
    pub fn to_caps(&self) -> Result<gst::Caps, InputError> {
        let mut caps = gst::Caps::builder(MEDIA_TYPE);
        if let Some(size) = self.size {
            for (name, side) in ["width", "height"].into_iter().zip(size) {
                let number = i32::try_from(side).ok().filter(|_| is_side(side));
                let number = number.ok_or_else(|| wrong_side(name, &side))?;
                caps = caps.field(name, number);
            }
        }
        if let Some(letterbox) = self.letterbox {
            let value = |(_, known, rounding): &&(&str, Letterbox, Rounding)| {
                *known == letterbox && (*rounding == self.rounding || letterbox == Letterbox::None)
            };
            let (name, ..) = LETTERBOXES.iter().find(value).expect("each pair has a name");
            caps = caps.field("letterbox", *name);
        }
        if let Some(ratio) = self.pixel_aspect_ratio {
            let numbers = ratio.map(|number| i32::try_from(number).ok().filter(|&it| it > 0));
            let [Some(width), Some(height)] = numbers else {
                return Err(wrong_ratio(&format!("{}/{}", ratio[0], ratio[1])));
            };
            caps = caps.field("pixel-aspect-ratio", gst::Fraction::new(width, height));
        }
        if !self.labels.is_empty() {
            check_number_of_labels(self.labels.len())?;
            // GStreamer's strings end at the first zero byte.
            if let Some(class) = self.labels.iter().position(|label| label.contains('\0')) {
                return Err(malformed(format!("expected text as label {class}, got a zero byte")));
            }
            caps = caps.field("labels", gst::Array::new(self.labels.iter().map(String::as_str)));
        }
        if let Some(task) = &self.task {
            if task.contains('\0') {
                return Err(malformed("expected text as task, got a zero byte".to_owned()));
            }
            caps = caps.field("task", task.as_str());
        }
        for (name, is_true) in [("end2end", self.end2end), ("suppressed", self.is_suppressed)] {
            if is_true {
                caps = caps.field(name, true);
            }
        }
        if let Some(queries) = self.queries {
            let number = i32::try_from(queries.get()).map_err(|_| wrong_queries(&queries))?;
            caps = caps.field("queries", number);
        }
        if !self.signatures.is_empty() {
            let names = self.signatures.iter().map(String::as_str);
            caps = caps.field("signatures", gst::Array::new(names));
        }
        if let Some(keypoints) = self.keypoints {
            check_keypoints(keypoints)?;
            caps = caps.field("keypoints", gst::Array::new(keypoints.map(|number| number as i32)));
        }
        if let Some(layout) = self.keypoint_layout {
            caps = caps.field("keypoint-layout", layout.name());
        }
        Ok(caps.build())
    }

    /// Reads the content of `caps`.
    ///
    /// # Errors
    /// If the caps do not have exactly one structure, named [`MEDIA_TYPE`], or if one of its fields has the wrong
    /// type or an invalid value.
    pub fn from_caps(caps: &gst::CapsRef) -> Result<Self, InputError> {
        let structure = match (caps.structure(0), caps.size()) {
            (Some(structure), 1) if structure.name() == MEDIA_TYPE => structure,
            (Some(structure), 1) => {
                let name = structure.name();
                return Err(malformed(format!("expected caps {MEDIA_TYPE}, got {name}")));
            }
            (_, number) => {
                return Err(malformed(format!(
                    "expected caps {MEDIA_TYPE} with one structure, got {number} structures"
                )));
            }
        };
        let (letterbox, rounding) = field(structure, "letterbox", letterbox)?.unzip();
        Ok(Self {
            size: size(structure)?,
            letterbox,
            rounding: rounding.unwrap_or_default(),
            pixel_aspect_ratio: field(structure, "pixel-aspect-ratio", pixel_aspect_ratio)?,
            labels: field(structure, "labels", |value| names(value, "labels", "label"))?
                .unwrap_or_default(),
            task: field(structure, "task", task)?,
            end2end: flag(structure, "end2end")?,
            is_suppressed: flag(structure, "suppressed")?,
            queries: field(structure, "queries", queries)?,
            signatures: field(structure, "signatures", |value| names(value, "signatures", "name"))?
                .unwrap_or_default(),
            keypoints: field(structure, "keypoints", keypoints)?,
            keypoint_layout: field(structure, "keypoint-layout", keypoint_layout)?,
        })
    }
}

/// Reads the field `name`, if the structure has it.
fn field<T>(
    structure: &gst::StructureRef,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T, InputError>,
) -> Result<Option<T>, InputError> {
    structure.value(name).ok().map(|value| read(value)).transpose()
}

fn malformed(problem: String) -> InputError {
    InputError::Model { problem }
}

fn is_side(side: u32) -> bool {
    (1..=MAX_MODEL_SIDE).contains(&side)
}

fn wrong_side(name: &str, got: &dyn Display) -> InputError {
    malformed(format!("expected {name} of type int, 1 to {MAX_MODEL_SIDE}, got {got}"))
}

fn check_number_of_labels(number: usize) -> Result<(), InputError> {
    if number <= MAX_CLASSES {
        Ok(())
    } else {
        Err(malformed(format!("expected at most {MAX_CLASSES} labels, got {number}")))
    }
}

fn size(structure: &gst::StructureRef) -> Result<Option<[u32; 2]>, InputError> {
    let side = |name: &str| {
        field(structure, name, |value| {
            let number: i32 = value.get().map_err(|_| wrong_side(name, &value.type_()))?;
            let side = u32::try_from(number).ok().filter(|&side| is_side(side));
            side.ok_or_else(|| wrong_side(name, &number))
        })
    };
    match (side("width")?, side("height")?) {
        (Some(width), Some(height)) => Ok(Some([width, height])),
        (None, None) => Ok(None),
        (width, _) => {
            let got = if width.is_some() { "width" } else { "height" };
            Err(malformed(format!("expected both width and height, got {got} only")))
        }
    }
}

fn letterbox(value: &Value) -> Result<(Letterbox, Rounding), InputError> {
    let wrong = |got: &dyn Display| {
        let names = LETTERBOXES.map(|(name, ..)| name).join(", ");
        malformed(format!("expected letterbox as one of {names}, got {got}"))
    };
    let name = string(value).map_err(|got| wrong(&got))?;
    let known = LETTERBOXES.iter().find(|(known, ..)| *known == name);
    let (_, letterbox, rounding) = known.ok_or_else(|| wrong(&format_args!("{name:?}")))?;
    Ok((*letterbox, *rounding))
}

fn wrong_ratio(got: &dyn Display) -> InputError {
    malformed(format!("expected pixel-aspect-ratio as a fraction above 0, got {got}"))
}

fn pixel_aspect_ratio(value: &Value) -> Result<[u32; 2], InputError> {
    let ratio: gst::Fraction = value.get().map_err(|_| wrong_ratio(&value.type_()))?;
    let numbers = [ratio.numer(), ratio.denom()].map(|number| u32::try_from(number).ok());
    match numbers {
        [Some(width @ 1..), Some(height @ 1..)] => Ok([width, height]),
        _ => Err(wrong_ratio(&format_args!("{}/{}", ratio.numer(), ratio.denom()))),
    }
}

/// The texts of the array in `field`, of which each is a `what`.
fn names(value: &Value, field: &str, what: &str) -> Result<Vec<String>, InputError> {
    let names: gst::ArrayRef<'_> = value.get().map_err(|_| {
        malformed(format!("expected {field} as an array of strings, got {}", value.type_()))
    })?;
    let names = names.as_slice();
    check_number_of_labels(names.len())?;
    let name = |(index, value): (usize, &gst::glib::SendValue)| {
        string(value)
            .map(str::to_owned)
            .map_err(|got| malformed(format!("expected text as {what} {index}, got {got}")))
    };
    names.iter().enumerate().map(name).collect()
}

fn task(value: &Value) -> Result<String, InputError> {
    let task = string(value).map(str::to_owned);
    task.map_err(|got| malformed(format!("expected text as task, got {got}")))
}

fn queries(value: &Value) -> Result<NonZeroU32, InputError> {
    let number: i32 = value.get().map_err(|_| wrong_queries(&value.type_()))?;
    let queries = u32::try_from(number).ok().and_then(NonZeroU32::new);
    queries.ok_or_else(|| wrong_queries(&number))
}

fn wrong_queries(got: &dyn Display) -> InputError {
    malformed(format!("expected queries as an int from 1 to {}, got {got}", i32::MAX))
}

fn flag(structure: &gst::StructureRef, name: &str) -> Result<bool, InputError> {
    let wrong = |value: &Value| {
        malformed(format!("expected {name} of type boolean, got {}", value.type_()))
    };
    let flag = field(structure, name, |value| value.get().map_err(|_| wrong(value)))?;
    Ok(flag.unwrap_or_default())
}

fn check_keypoints([count, components]: [u32; 2]) -> Result<(), InputError> {
    if (1..=MAX_KEYPOINTS).contains(&count) && matches!(components, 2 | 3) {
        Ok(())
    } else {
        Err(wrong_keypoints(&format!("{count} and {components}")))
    }
}

fn wrong_keypoints(got: &dyn Display) -> InputError {
    malformed(format!(
        "expected keypoints as an array of two int, 1 to {MAX_KEYPOINTS} and 2 or 3, got {got}"
    ))
}

fn keypoint_layout(value: &Value) -> Result<KeypointLayout, InputError> {
    let name = strings::of_value(value).ok().flatten();
    name.and_then(KeypointLayout::by_name).ok_or_else(|| {
        let names = KeypointLayout::ALL.map(KeypointLayout::name).join(", ");
        malformed(format!("expected keypoint-layout as one of {names}, got {value:?}"))
    })
}

fn keypoints(value: &Value) -> Result<[u32; 2], InputError> {
    let array: gst::ArrayRef<'_> = value.get().map_err(|_| wrong_keypoints(&value.type_()))?;
    let number = |value: &gst::glib::SendValue| u32::try_from(value.get::<i32>().ok()?).ok();
    match array.as_slice() {
        [count, components] => {
            let keypoints = number(count).zip(number(components));
            let keypoints = keypoints.ok_or_else(|| wrong_keypoints(&"other values"))?.into();
            check_keypoints(keypoints)?;
            Ok(keypoints)
        }
        values => Err(wrong_keypoints(&format!("{} values", values.len()))),
    }
}

/// Returns the text of a value, or else a description of the value for a message.
fn string(value: &Value) -> Result<&str, String> {
    match strings::of_value(value) {
        Ok(Some(text)) => Ok(text),
        Ok(None) if value.type_() == gst::glib::Type::STRING => Err("NULL".to_owned()),
        Ok(None) => Err(value.type_().to_string()),
        Err(_) => Err("text that is not UTF-8".to_owned()),
    }
}
