// SPDX-License-Identifier: MIT OR Apache-2.0
//! A detection as plain data, independent of the kind of metadata that it was read from.

use std::borrow::Cow;
use std::ffi::CStr;

use super::runs::MaskRuns;

/// A label. Borrowed for labels of quarks, which live until the process ends.
pub(super) type Label = Cow<'static, str>;

/// A detection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    /// Left, top, width and height in pixels of the frame. With a rotation, this is the box before the rotation
    /// about its center.
    pub rect: [i64; 4],
    /// Left, top, width and height of the upright box in pixels of the frame. Differs from `rect` only with a
    /// rotation.
    pub upright: [i64; 4],
    /// The box, or the bounds of an oriented box, normalized to the frame: `x_min`, `y_min`, `x_max`, `y_max`.
    pub bounds: [f64; 4],
    pub region_id: i64,
    pub parent_id: Option<i64>,
    pub track_id: Option<u64>,
    /// True if the object was not detected on this frame, but predicted.
    pub is_predicted: bool,
    pub label: Option<Label>,
    pub label_id: Option<i32>,
    pub confidence: Option<Confidence>,
    /// The angle in radians, clockwise.
    pub rotation: Option<f32>,
    pub keypoints: Option<Keypoints>,
    pub mask: Option<MaskRuns>,
    /// The classes that classifiers have found.
    pub classification: Vec<Class>,
}

/// A class that a classifier has found for an object.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Class {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_name: Option<Label>,
}

/// A confidence in the precision of the metadata. Its text is the shortest that is read as this number again, or `null` if
/// it is not finite.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Confidence {
    F32(f32),
    F64(f64),
}

impl Confidence {
    /// Returns whether both numbers are equal when rounded to single precision.
    pub fn is_near(self, other: Self) -> bool {
        let single = |number| match number {
            Self::F32(number) => number,
            Self::F64(number) => number as f32,
        };
        single(self).to_bits() == single(other).to_bits()
    }
}

/// The keypoints of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Keypoints {
    pub layout: Label,
    /// The numbers per point. 2: x, y; 3: x, y, visibility.
    pub components: usize,
    pub numbers: Vec<f32>,
}

/// Converts a C string to a label. Bytes that are not UTF-8 become U+FFFD. `None` if the string is empty.
pub(super) fn label(text: Option<&'static CStr>) -> Option<Label> {
    text.map(CStr::to_string_lossy).filter(|label| !label.is_empty())
}

/// Normalizes a box, given by its edges in pixels, to a frame of this size, and clips it to the frame.
pub(super) fn normalized(edges: [f64; 4], [width, height]: [u32; 2]) -> [f64; 4] {
    let sides = [width, height, width, height].map(|side| f64::from(side.max(1)));
    std::array::from_fn(|edge| (edges[edge] / sides[edge]).clamp(0.0, 1.0))
}

/// Returns the edges of a box: left, top, right, bottom.
pub(super) fn edges([x, y, w, h]: [i64; 4]) -> [f64; 4] {
    [x, y, x.saturating_add(w), y.saturating_add(h)].map(|edge| edge as f64)
}
