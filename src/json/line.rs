// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a line of JSON.
//!
//! In: plain structures. Out: JSON text in one line. Each `serialize` in this file writes one object of the JSON text;
//! [`super`] documents the fields.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::object::{Keypoints, Object};
use super::{Detections, Rtp, Size};

/// The parts of a line.
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
    /// What was found.
    pub detections: &'a Detections,
}

impl Line<'_> {
    /// Replaces the content of `text` with the line, which ends with `\n`.
    ///
    /// # Errors
    /// Never: only writing to memory could fail.
    pub fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        text.clear();
        serde_json::to_writer(&mut *text, self)?;
        text.push(b'\n');
        Ok(())
    }
}

/// Adds a field, unless its value is unknown.
fn add<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, &value))
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resolution", &Size::from(self.size))?;
        map.serialize_entry("index", &self.index)?;
        add(&mut map, "source", self.source)?;
        add(&mut map, "file", self.file)?;
        add(&mut map, "timestamp", self.timestamp)?;
        let rtp = |sender_ntp_unix_timestamp_ns| Rtp { sender_ntp_unix_timestamp_ns };
        add(&mut map, "rtp", self.unix_time.map(rtp))?;
        add(&mut map, "tags", self.tags)?;
        add(&mut map, "inferred", self.inferred)?;
        match self.detections.is_batch {
            true => map.serialize_entry("streams", &self.detections.streams)?,
            false => map.serialize_entry("objects", &self.detections.objects)?,
        }
        map.end()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, side) in ["x", "y", "w", "h"].into_iter().zip(self.rect) {
            map.serialize_entry(name, &side)?;
        }
        map.serialize_entry("region_id", &self.region_id)?;
        add(&mut map, "parent_id", self.parent_id)?;
        add(&mut map, "id", self.track_id)?;
        add(&mut map, "predicted", self.is_predicted.then_some(true))?;
        add(&mut map, "roi_type", self.label.as_deref())?;
        map.serialize_entry("detection", &DetectionText(self))?;
        add(&mut map, "rotation", self.rotation)?;
        add(&mut map, "keypoints", self.keypoints.as_ref())?;
        add(&mut map, "mask", self.mask.as_ref())?;
        let classes = Some(&self.classification).filter(|classes| !classes.is_empty());
        add(&mut map, "classification", classes)?;
        map.end()
    }
}

struct DetectionText<'a>(&'a Object);

impl Serialize for DetectionText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("bounding_box", &BoxText(self.0.bounds))?;
        add(&mut map, "confidence", self.0.confidence)?;
        add(&mut map, "label_id", self.0.label_id)?;
        add(&mut map, "label", self.0.label.as_deref())?;
        map.end()
    }
}

struct BoxText([f64; 4]);

impl Serialize for BoxText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(["x_min", "y_min", "x_max", "y_max"].into_iter().zip(self.0))
    }
}

impl Serialize for Keypoints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("layout", &self.layout)?;
        map.serialize_entry("points", &Points(self))?;
        map.end()
    }
}

struct Points<'a>(&'a Keypoints);

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.numbers.chunks_exact(self.0.components))
    }
}
