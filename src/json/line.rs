// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a line of JSON.
//!
//! In: plain structures. Out: JSON text in one line. Each structure in this file is one object of the JSON text;
//! [`super`] documents the fields.

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::object::{Class, Keypoints, Number, Object};
use super::runs::MaskRuns;
use super::{Detections, FrameDetections, Rtp, Size};

/// The parts of a line other than the detections.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The width and height of the frame.
    pub size: [u32; 2],
    /// The number of frames, or of batches, before this one.
    pub index: u64,
    /// The value of the property `source`.
    pub source: Option<&'a str>,
    /// The path of the file that the frame comes from.
    pub file: Option<&'a str>,
    /// The frame's stream time in nanoseconds.
    pub timestamp: Option<u64>,
    /// The wall-clock time at which the source captured the frame, in nanoseconds since 1970.
    pub unix_time: Option<u64>,
    /// The value of the property `tags`.
    pub tags: Option<&'a RawValue>,
    /// True if a model ran on the frame, if this is known.
    pub inferred: Option<bool>,
}

impl Line<'_> {
    /// Replaces the content of `text` with the line, which ends with `\n`.
    ///
    /// # Errors
    /// Never: only writing to memory could fail.
    pub fn write(&self, detections: &Detections, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let is_batch = detections.is_batch;
        let line = LineText {
            resolution: self.size.into(),
            index: self.index,
            source: self.source,
            file: self.file,
            timestamp: self.timestamp,
            rtp: self.unix_time.map(Rtp::from),
            tags: self.tags,
            inferred: self.inferred,
            objects: (!is_batch).then_some(&detections.objects),
            streams: is_batch.then_some(&detections.streams),
        };
        text.clear();
        serde_json::to_writer(&mut *text, &line)?;
        text.push(b'\n');
        Ok(())
    }
}

#[derive(serde::Serialize)]
struct LineText<'a> {
    resolution: Size,
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtp: Option<Rtp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inferred: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<&'a Vec<Object>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<&'a Vec<FrameDetections>>,
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct ObjectText<'a> {
            x: i64,
            y: i64,
            w: i64,
            h: i64,
            region_id: i64,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent_id: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            predicted: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            roi_type: Option<&'a str>,
            detection: DetectionText<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            rotation: Option<f32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            keypoints: Option<&'a Keypoints>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mask: Option<&'a MaskRuns>,
            #[serde(skip_serializing_if = "<[Class]>::is_empty")]
            classification: &'a [Class],
        }

        #[derive(serde::Serialize)]
        struct DetectionText<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            bounding_box: Option<BoxText>,
            #[serde(skip_serializing_if = "Option::is_none")]
            confidence: Option<Number>,
            #[serde(skip_serializing_if = "Option::is_none")]
            label_id: Option<i32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            label: Option<&'a str>,
        }

        #[derive(serde::Serialize)]
        struct BoxText {
            x_min: f64,
            y_min: f64,
            x_max: f64,
            y_max: f64,
        }

        let [x, y, w, h] = self.rect;
        let label = self.label.as_deref();
        let text = ObjectText {
            x,
            y,
            w,
            h,
            region_id: self.region_id,
            parent_id: self.parent_id,
            id: self.track_id,
            predicted: self.is_predicted.then_some(true),
            roi_type: label,
            detection: DetectionText {
                bounding_box: self.bounds.map(|[x_min, y_min, x_max, y_max]| BoxText {
                    x_min,
                    y_min,
                    x_max,
                    y_max,
                }),
                confidence: self.confidence,
                label_id: self.label_id,
                label,
            },
            rotation: self.rotation,
            keypoints: self.keypoints.as_ref(),
            mask: self.mask.as_ref(),
            classification: &self.classification,
        };
        text.serialize(serializer)
    }
}

/// Writes `null` if the number is not finite.
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::F32(number) => serializer.serialize_f32(number),
            Self::F64(number) => serializer.serialize_f64(number),
        }
    }
}

impl Serialize for Keypoints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct KeypointsText<'a> {
            layout: &'a str,
            points: Points<'a>,
        }

        struct Points<'a>(&'a Keypoints);

        impl Serialize for Points<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Keypoints { components, numbers, .. } = self.0;
                let points = numbers.chunks_exact(*components);
                let mut all = serializer.serialize_seq(Some(points.len()))?;
                points.into_iter().try_for_each(|point| all.serialize_element(point))?;
                all.end()
            }
        }

        KeypointsText { layout: &self.layout, points: Points(self) }.serialize(serializer)
    }
}
