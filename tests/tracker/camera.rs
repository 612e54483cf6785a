// SPDX-License-Identifier: MIT OR Apache-2.0
//! A source of frames with objects, in front of the element.

use std::sync::Once;

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::inference_mark;
use gstnmsfilter::regions;

use crate::support::pipeline;

/// The size of frames.
pub const SIZE: [u32; 2] = [640, 480];

/// An object: its label, its left, upper, right and lower edge in pixels, and its confidence.
pub type Object = (&'static str, [f64; 4], f64);

/// An object that left the element.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    pub id: Option<i32>,
    pub is_predicted: bool,
    pub label: String,
    pub rectangle: [u32; 4],
}

pub fn init() {
    static INIT: Once = Once::new();
    pipeline::init();
    INIT.call_once(|| gstobjecttracker::plugin_register_static().unwrap());
}

/// The element, with the source of its frames.
pub struct Camera {
    pub harness: gst_check::Harness,
    pub bus: gst::Bus,
}

impl Camera {
    /// Frames of this size and rate.
    pub fn with_caps(properties: &str, caps: &str) -> Self {
        init();
        let element = gst::parse::launch(&format!("objecttracker {properties}")).unwrap();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str(caps);
        Self { harness, bus }
    }

    /// 25 frames per second.
    pub fn new(properties: &str) -> Self {
        let [width, height] = SIZE;
        let caps = "video/x-raw,format=GRAY8,framerate=25/1";
        Self::with_caps(properties, &format!("{caps},width={width},height={height}"))
    }

    /// Pushes a buffer.
    pub fn push_buffer(&mut self, buffer: gst::Buffer) -> Result<Vec<Tracked>, gst::FlowError> {
        self.harness.push(buffer)?;
        Ok(tracked(&self.harness.pull().expect("each frame passes")))
    }

    /// Pushes a frame with a mark, if inference is given.
    pub fn push(&mut self, time: u64, inferred: Option<bool>, objects: &[Object]) -> Vec<Tracked> {
        self.push_buffer(frame(time, inferred, objects)).unwrap()
    }

    /// Pushes a frame with inference. Returns the ids.
    pub fn ids(&mut self, time: u64, objects: &[Object]) -> Vec<i32> {
        self.push(time, Some(true), objects).iter().filter_map(|it| it.id).collect()
    }
}

/// The objects of a buffer.
pub fn tracked(buffer: &gst::BufferRef) -> Vec<Tracked> {
    let tracked = |region: regions::AttachedRegion<'_>| Tracked {
        id: region.track_id,
        is_predicted: region.is_predicted,
        label: region.label.to_str().unwrap().to_owned(),
        rectangle: region.rectangle,
    };
    regions::iter(buffer).map(tracked).collect()
}

/// A frame with these objects, at this time in milliseconds.
pub fn frame(time: u64, inferred: Option<bool>, objects: &[Object]) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    let new = buffer.get_mut().unwrap();
    new.set_pts(gst::ClockTime::from_mseconds(time));
    for &(label, edges, confidence) in objects {
        add_object(new, SIZE, label, edges, confidence);
    }
    if let Some(inferred) = inferred {
        inference_mark::attach(new, inferred);
    }
    buffer
}

/// Adds a region of interest as DL Streamer's detectors do.
pub fn add_object(
    buffer: &mut gst::BufferRef,
    size: [u32; 2],
    label: &str,
    [x1, y1, x2, y2]: [f64; 4],
    confidence: f64,
) {
    let [w, h] = size.map(f64::from);
    let [x, y, right, bottom] = [x1, y1, x2, y2].map(|edge| edge.round() as u32);
    let detection = gst::Structure::builder("detection")
        .field("x_min", x1 / w)
        .field("y_min", y1 / h)
        .field("x_max", x2 / w)
        .field("y_max", y2 / h)
        .field("confidence", confidence)
        .build();
    VideoRegionOfInterestMeta::add(buffer, label, (x, y, right - x, bottom - y))
        .add_param(detection);
}

/// The edges of a square.
pub fn square(left: f64, top: f64, side: f64) -> [f64; 4] {
    [left, top, left + side, top + side]
}
