// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON line of a frame.
//!
//! In: the line that `detectionjson` makes of a frame's detections. Out: this line, preceded by
//! when and by which engines the detections were found, by the number of detections whose center is
//! in each zone, and by the number of tracks that have crossed each line.

use std::collections::BTreeMap;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::crossings::{self, Crossings};
use crate::frames::Frames;
use crate::options::Options;
use crate::tracker::FirstTrack;
use crate::view::Values;
use crate::{Error, named_numbers, output};

/// A zone of the frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Name in the report.
    pub name: String,
    /// Left, top, width and height as fractions of the frame.
    pub area: [f64; 4],
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("--zone: expected NAME=x,y,w,h inside 0,0,1,1, got {text:?}");
        let (name, area) = named_numbers::parse(text).ok_or_else(wrong)?;
        let [x, y, w, h] = area;
        let inside = |from: f64, side: f64| from >= 0.0 && side > 0.0 && from + side <= 1.0 + 1e-9;
        let valid = inside(x, w) && inside(y, h);
        valid.then(|| Self { name: name.to_owned(), area }).ok_or_else(wrong)
    }
}

impl Zone {
    fn contains_center(&self, object: &Object) -> bool {
        let [left, top, width, height] = self.area;
        let [x, y] = object.detection.bounding_box.center();
        (left..left + width).contains(&x) && (top..top + height).contains(&y)
    }
}

/// The fields that precede the fields of `detectionjson` in a line, in order.
#[derive(Serialize)]
struct Line<'a> {
    /// Unix time in seconds: when the source captured the frame, if it says so, or now.
    time: f64,
    /// Position in the file in seconds. If the source can be restarted, seconds since the program
    /// started.
    position: f64,
    /// Seconds since the frame arrived, if the source can be restarted.
    latency: Option<f64>,
    /// Number of the frame. Missing numbers are frames that were dropped because there was too
    /// little time.
    frame: u64,
    /// The provider that runs the model.
    provider: Option<String>,
    /// The engine that decodes the model's outputs and suppresses duplicates.
    engine: Option<String>,
    /// The counts; `None` if the model did not run on the frame.
    zones: Option<BTreeMap<&'a str, BTreeMap<&'a str, u64>>>,
    /// The crossings since the program started.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<crossings::Counts<'a>>,
}

/// The part of `detectionjson`'s line that is counted.
#[derive(Deserialize)]
struct Found {
    /// True if a model ran on the frame; `None` if the detections come from another source.
    inferred: Option<bool>,
    rtp: Option<Captured>,
    objects: Vec<Object>,
}

/// When the source captured the frame.
#[derive(Deserialize)]
struct Captured {
    #[serde(rename = "sender_ntp_unix_timestamp_ns")]
    unix_time: u64,
}

/// An object in the line.
#[derive(Deserialize)]
pub struct Object {
    /// The id of the track.
    pub id: Option<u64>,
    #[serde(default, rename = "roi_type")]
    pub label: String,
    /// True if the tracker has predicted the box, on a frame on which no model ran.
    #[serde(default)]
    pub predicted: bool,
    pub detection: Detection,
}

/// The detection of an object.
#[derive(Deserialize)]
pub struct Detection {
    pub bounding_box: Edges,
}

/// The edges of a box, as fractions of the frame.
#[derive(Clone, Copy, Deserialize)]
pub struct Edges {
    pub x_min: f64,
    pub y_min: f64,
    pub x_max: f64,
    pub y_max: f64,
}

impl Edges {
    pub fn center(&self) -> [f64; 2] {
        [(self.x_min + self.x_max) / 2.0, (self.y_min + self.y_max) / 2.0]
    }

    /// Returns width and height.
    pub fn size(&self) -> [f64; 2] {
        [self.x_max - self.x_min, self.y_max - self.y_min]
    }
}

/// Writes the lines.
pub struct Report {
    zones: Vec<Zone>,
    crossings: Crossings,
    /// Is set until an object has a track, if there is a tracker.
    first_track: Option<FirstTrack>,
    /// Labels that every line contains, with the count 0 if there are no detections.
    labels: Vec<String>,
    inference: Option<gst::Element>,
    nms: gst::Element,
    frames: Frames,
    view: Option<Arc<Values>>,
    lines: u64,
    limit: Option<u64>,
    output: Box<dyn Write + Send>,
}

impl Report {
    /// Makes a report that reads these elements.
    pub fn new(
        options: &Options,
        inference: Option<gst::Element>,
        nms: gst::Element,
        frames: Frames,
        view: Option<Arc<Values>>,
    ) -> Result<Self, Error> {
        let output = output::open(options.output.as_deref())?;
        let labels: Vec<_> = options.labels().map(str::to_owned).collect();
        let crossings = Crossings::new(&options.lines, &labels);
        let first_track = options.tracker.as_deref().map(FirstTrack::new);
        let mut zones = options.zones.clone();
        if zones.is_empty() {
            zones.push(Zone { name: "frame".to_owned(), area: [0.0, 0.0, 1.0, 1.0] });
        }
        let limit = options.frames;
        Ok(Self {
            zones,
            crossings,
            first_track,
            labels,
            inference,
            nms,
            frames,
            view,
            lines: 0,
            limit,
            output,
        })
    }

    /// Writes the line of a frame. `found` is the line of `detectionjson`. Ends the stream after
    /// the last line.
    pub fn write(&mut self, found: &gst::BufferRef) -> Result<gst::FlowSuccess, Error> {
        if Some(self.lines) == self.limit {
            return Ok(gst::FlowSuccess::Ok);
        }
        let text = found.map_readable()?;
        let Found { inferred, rtp, objects } = serde_json::from_slice(&text)?;
        if let Some(first) = &mut self.first_track
            && first.is_in(&objects)?
        {
            self.first_track = None;
        }
        self.crossings.update(&objects);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let captured = rtp.map_or(now, |rtp| Duration::from_nanos(rtp.unix_time));
        let zones = self.zones.iter();
        let zones = zones.map(|zone| (zone.name.as_str(), self.counts(zone, &objects)));
        let line = Line {
            time: round(captured.as_secs_f64()),
            position: seconds(found.pts().unwrap_or_default()),
            latency: self.frames.age(found).map(seconds),
            frame: found.offset(),
            provider: self.inference.as_ref().and_then(|element| stat(element, "provider")),
            engine: stat(&self.nms, "engine"),
            zones: (inferred != Some(false)).then(|| zones.collect()),
            lines: self.crossings.report(),
        };
        let mut whole = serde_json::to_vec(&line)?;
        if let Some(view) = &self.view {
            view.add_line(line.zones.is_some().then_some(&whole));
        }
        // Two JSON objects are merged into one, by omitting the end of the first and the beginning
        // of the second.
        whole.pop();
        whole.push(b',');
        whole.extend_from_slice(&text[1..]);
        let written = self.output.write_all(&whole).and_then(|()| self.output.flush());
        written.map_err(|error| format!("output: {error}"))?;

        self.lines += 1;
        if Some(self.lines) == self.limit {
            self.frames.end();
        }
        Ok(gst::FlowSuccess::Ok)
    }

    /// Returns the number of objects whose center is in the zone, for each label.
    fn counts<'a>(&'a self, zone: &Zone, found: &'a [Object]) -> BTreeMap<&'a str, u64> {
        let mut counts: BTreeMap<&str, u64> =
            self.labels.iter().map(|label| (label.as_str(), 0)).collect();
        for object in found.iter().filter(|object| zone.contains_center(object)) {
            *counts.entry(&object.label).or_default() += 1;
        }
        counts
    }
}

/// Returns a field of an element's property `stats` that says where it processed the last frame.
fn stat(element: &gst::Element, field: &str) -> Option<String> {
    element.property::<gst::Structure>("stats").get(field).ok()
}

fn seconds(time: gst::ClockTime) -> f64 {
    round(time.nseconds() as f64 / 1e9)
}

/// Rounds to four digits after the decimal point.
fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
