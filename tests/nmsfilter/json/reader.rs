// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads only the fields that DL Streamer documents for `gvametaconvert`. Panics if a field is
//! missing or has another type.

use serde_json::Value;

/// A frame of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub resolution: [u64; 2],
    pub source: Option<String>,
    pub timestamp: Option<u64>,
    pub tags: Option<Value>,
    pub objects: Vec<Object>,
}

/// An item of `objects`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The fields `x`, `y`, `w` and `h`.
    pub rect: [i64; 4],
    pub region_id: i64,
    pub parent_id: Option<i64>,
    /// The field `id`.
    pub track: Option<u64>,
    pub roi_type: Option<String>,
    pub detection: Option<Detection>,
}

/// The fields of `detection`.
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// The fields `x_min`, `x_max`, `y_min` and `y_max`.
    pub bounding_box: [f64; 4],
    pub confidence: Option<f64>,
    pub label_id: Option<i64>,
    pub label: Option<String>,
}

/// Parses a line.
pub fn read(line: &str) -> Frame {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let objects = frame.get("objects").map(|objects| objects.as_array().expect("it is an array"));
    Frame {
        resolution: ["width", "height"].map(|side| frame["resolution"][side].as_u64().unwrap()),
        source: text(&frame, "source"),
        timestamp: frame.get("timestamp").map(|time| time.as_u64().unwrap()),
        tags: frame.get("tags").cloned(),
        objects: objects.into_iter().flatten().map(object).collect(),
    }
}

fn object(object: &Value) -> Object {
    Object {
        rect: ["x", "y", "w", "h"].map(|side| object[side].as_i64().unwrap()),
        region_id: object["region_id"].as_i64().unwrap(),
        parent_id: object.get("parent_id").map(|id| id.as_i64().unwrap()),
        track: object.get("id").map(|id| id.as_u64().unwrap()),
        roi_type: text(object, "roi_type"),
        detection: object.get("detection").map(|detection| Detection {
            bounding_box: ["x_min", "x_max", "y_min", "y_max"]
                .map(|edge| detection["bounding_box"][edge].as_f64().unwrap()),
            confidence: detection.get("confidence").map(|number| number.as_f64().unwrap()),
            label_id: detection.get("label_id").map(|id| id.as_i64().unwrap()),
            label: text(detection, "label"),
        }),
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).map(|text| text.as_str().expect("it is a text").to_owned())
}
