// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zones and lines in the pictures. In: an element `roioverlay`. Out: its frames have regions for
//! zones and lines, too. The report uses other buffers, which do not have these regions.

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use crate::crossings::Line;
use crate::options::Options;
use crate::report::Zone;

/// Lets the element draw the zones and lines together with the detections.
pub fn draw(options: &Options, overlay: &gst::Element) {
    let (zones, lines) = (options.zones.clone(), options.lines.clone());
    let pad = overlay.static_pad("sink").expect("a filter has a sink pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let video = pad.current_caps().and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok());
        if let (Some(video), Some(frame)) = (video, info.buffer_mut()) {
            let (frame, size) = (frame.make_mut(), [video.width(), video.height()]);
            zones.iter().for_each(|zone| add_zone(frame, zone, size));
            lines.iter().for_each(|line| add_line(frame, line, size));
        }
        gst::PadProbeReturn::Ok
    });
}

fn add_zone(frame: &mut gst::BufferRef, zone: &Zone, size: [u32; 2]) {
    let [x, y, w, h] = zone.area;
    let [x, w] = [x, w].map(|part| (part * f64::from(size[0])) as u32);
    let [y, h] = [y, h].map(|part| (part * f64::from(size[1])) as u32);
    VideoRegionOfInterestMeta::add(frame, &zone.name, (x, y, w, h));
}

/// Adds a line as an oriented box without height.
fn add_line(frame: &mut gst::BufferRef, line: &Line, size: [u32; 2]) {
    let [[x1, y1], [x2, y2]] =
        line.ends.map(|[x, y]| [x * f64::from(size[0]), y * f64::from(size[1])]);
    // The bounds are not drawn. They are in the frame, and so wide that there is space for the name.
    let bounds = |from: f64, to: f64, side: u32, least: u32| {
        let low = (from.min(to) as u32).min(side.saturating_sub(least));
        (low, (from.max(to) as u32).clamp(low + least, side.max(low + least)) - low)
    };
    let ((x, w), (y, h)) = (bounds(x1, x2, size[0], size[0] / 8 + 1), bounds(y1, y2, size[1], 1));
    let detection = gst::Structure::builder("detection")
        .field("rotation", (y2 - y1).atan2(x2 - x1))
        .field("center-x", (x1 + x2) / 2.0)
        .field("center-y", (y1 + y2) / 2.0)
        .field("width", (x2 - x1).hypot(y2 - y1))
        .field("height", 0.0)
        .build();
    VideoRegionOfInterestMeta::add(frame, &line.name, (x, y, w, h)).add_param(detection);
}
