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
use gst::glib::value::FromValue;

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
        for (name, side) in ["width", "height"].into_iter().zip(self.size.into_iter().flatten()) {
            let side = number(MAX_MODEL_SIDE, side).map_err(|got| wrong(name, got))?;
            caps = caps.field(name, side as i32);
        }
        let letterbox = self.letterbox.map(|letterbox| {
            let value = |(_, known, rounding): &&(&str, Letterbox, Rounding)| {
                *known == letterbox && (*rounding == self.rounding || letterbox == Letterbox::None)
            };
            LETTERBOXES.iter().find(value).expect("each pair has a name").0
        });
        let ratio = self.pixel_aspect_ratio.map(|numbers| ratio(numbers.map(i64::from)));
        let ratio = ratio.transpose().map_err(|got| wrong("pixel-aspect-ratio", got))?;
        check_number_of_labels(self.labels.len())?;
        // GStreamer's strings end at the first zero byte.
        if let Some(class) = self.labels.iter().position(|label| label.contains('\0')) {
            return Err(InputError::Model(format!(
                "expected text as label {class}, got a zero byte"
            )));
        }
        if self.task.as_ref().is_some_and(|task| task.contains('\0')) {
            return Err(wrong("task", "a zero byte"));
        }
        let queries = self.queries.map(|queries| number(MAX_NUMBER, queries.get())).transpose();
        let queries = queries.map_err(|got| wrong("queries", got))?;
        let keypoints = self.keypoints.map(keypoints).transpose();
        let keypoints = keypoints.map_err(|got| wrong("keypoints", got))?;
        let array = |names: &[String]| gst::Array::new(names.iter().map(String::as_str));
        let int = |number: u32| number as i32;
        let caps = caps
            .field_if_some("letterbox", letterbox)
            .field_if_some(
                "pixel-aspect-ratio",
                ratio.map(|[w, h]| gst::Fraction::new(int(w), int(h))),
            )
            .field_if("labels", array(&self.labels), !self.labels.is_empty())
            .field_if_some("task", self.task.as_deref())
            .field_if("end2end", true, self.end2end)
            .field_if("suppressed", true, self.is_suppressed)
            .field_if_some("queries", queries.map(int))
            .field_if("signatures", array(&self.signatures), !self.signatures.is_empty())
            .field_if_some("keypoints", keypoints.map(|it| gst::Array::new(it.map(int))))
            .field_if_some("keypoint-layout", self.keypoint_layout.map(KeypointLayout::name));
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
                return Err(InputError::Model(format!("expected caps {MEDIA_TYPE}, got {name}")));
            }
            (_, number) => {
                return Err(InputError::Model(format!(
                    "expected caps {MEDIA_TYPE} with one structure, got {number} structures"
                )));
            }
        };
        let flag = |name| field(structure, name, get).map(Option::unwrap_or_default);
        let (letterbox, rounding) = field(structure, "letterbox", letterbox)?.unzip();
        Ok(Self {
            size: size(structure)?,
            letterbox,
            rounding: rounding.unwrap_or_default(),
            pixel_aspect_ratio: field(structure, "pixel-aspect-ratio", |value| {
                let read: gst::Fraction = get(value)?;
                ratio([read.numer(), read.denom()].map(i64::from))
            })?,
            labels: names(structure, "labels", "label")?,
            task: field(structure, "task", |value| string(value).map(str::to_owned))?,
            end2end: flag("end2end")?,
            is_suppressed: flag("suppressed")?,
            queries: field(structure, "queries", |value| number(MAX_NUMBER, get::<i32>(value)?))?
                .and_then(NonZeroU32::new),
            signatures: names(structure, "signatures", "name")?,
            keypoints: field(structure, "keypoints", keypoints_of_array)?,
            keypoint_layout: field(structure, "keypoint-layout", |value| {
                let name = string(value)?;
                KeypointLayout::by_name(name).ok_or_else(|| format!("{name:?}"))
            })?,
        })
    }
}

/// The greatest number that caps can have.
const MAX_NUMBER: u32 = i32::MAX as u32;

/// Reads the field `name`, if the structure has it. The error of `read` is what came instead of the expected value.
fn field<'s, T>(
    structure: &'s gst::StructureRef,
    name: &str,
    read: impl FnOnce(&'s Value) -> Result<T, String>,
) -> Result<Option<T>, InputError> {
    let value = structure.value(name).ok();
    value.map(|value| read(value)).transpose().map_err(|got| wrong(name, got))
}

/// The error for a field that is not what it has to be.
fn wrong(field: &str, got: impl Display) -> InputError {
    let expected = match field {
        "width" | "height" => format!("{field} of type int, 1 to {MAX_MODEL_SIDE}"),
        "letterbox" => {
            format!("letterbox as one of {}", LETTERBOXES.map(|(name, ..)| name).join(", "))
        }
        "pixel-aspect-ratio" => format!("{field} as a fraction above 0"),
        "labels" | "signatures" => format!("{field} as an array of strings"),
        "task" => "text as task".to_owned(),
        "queries" => format!("queries as an int from 1 to {MAX_NUMBER}"),
        "keypoints" => {
            format!("keypoints as an array of two int, 1 to {MAX_KEYPOINTS} and 2 or 3")
        }
        "keypoint-layout" => {
            let names = KeypointLayout::ALL.map(KeypointLayout::name).join(", ");
            format!("keypoint-layout as one of {names}")
        }
        _ => format!("{field} of type boolean"),
    };
    InputError::Model(format!("expected {expected}, got {got}"))
}

fn check_number_of_labels(number: usize) -> Result<(), InputError> {
    if number <= MAX_CLASSES {
        Ok(())
    } else {
        Err(InputError::Model(format!("expected at most {MAX_CLASSES} labels, got {number}")))
    }
}

fn size(structure: &gst::StructureRef) -> Result<Option<[u32; 2]>, InputError> {
    let side = |name| field(structure, name, |value| number(MAX_MODEL_SIDE, get::<i32>(value)?));
    match (side("width")?, side("height")?) {
        (Some(width), Some(height)) => Ok(Some([width, height])),
        (None, None) => Ok(None),
        (width, _) => {
            let got = if width.is_some() { "width" } else { "height" };
            Err(InputError::Model(format!("expected both width and height, got {got} only")))
        }
    }
}

/// The number, if it is from 1 to `most`.
fn number(most: u32, number: impl Into<i64>) -> Result<u32, String> {
    let number = number.into();
    let valid = u32::try_from(number).ok().filter(|number| (1..=most).contains(number));
    valid.ok_or_else(|| number.to_string())
}

fn letterbox(value: &Value) -> Result<(Letterbox, Rounding), String> {
    let name = string(value)?;
    let known = LETTERBOXES.iter().find(|(known, ..)| *known == name);
    known.map(|&(_, letterbox, rounding)| (letterbox, rounding)).ok_or_else(|| format!("{name:?}"))
}

fn ratio(numbers: [i64; 2]) -> Result<[u32; 2], String> {
    match numbers.map(|it| number(MAX_NUMBER, it)) {
        [Ok(width), Ok(height)] => Ok([width, height]),
        _ => Err(format!("{}/{}", numbers[0], numbers[1])),
    }
}

/// The texts of the array in the field `name`, of which each is a `what`; none without the field.
fn names(structure: &gst::StructureRef, name: &str, what: &str) -> Result<Vec<String>, InputError> {
    let names = field(structure, name, get::<gst::ArrayRef<'_>>)?;
    let names = names.as_ref().map_or(&[][..], |names| names.as_slice());
    check_number_of_labels(names.len())?;
    let name = |(index, value): (usize, &gst::glib::SendValue)| {
        string(value)
            .map(str::to_owned)
            .map_err(|got| InputError::Model(format!("expected text as {what} {index}, got {got}")))
    };
    names.iter().enumerate().map(name).collect()
}

fn keypoints([count, components]: [u32; 2]) -> Result<[u32; 2], String> {
    let is_valid = (1..=MAX_KEYPOINTS).contains(&count) && matches!(components, 2 | 3);
    is_valid.then_some([count, components]).ok_or_else(|| format!("{count} and {components}"))
}

fn keypoints_of_array(value: &Value) -> Result<[u32; 2], String> {
    let array: gst::ArrayRef<'_> = get(value)?;
    let number = |value: &gst::glib::SendValue| u32::try_from(value.get::<i32>().ok()?).ok();
    match array.as_slice() {
        [count, components] => {
            let numbers = number(count).zip(number(components));
            keypoints(numbers.ok_or("other values")?.into())
        }
        values => Err(format!("{} values", values.len())),
    }
}

/// The content of a value, or else its type.
fn get<'v, T: FromValue<'v>>(value: &'v Value) -> Result<T, String> {
    value.get().map_err(|_| value.type_().to_string())
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
