// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats of frames in memory.

use gst::glib::translate::from_glib;
use gst_video::VideoFormat;

/// All formats that the running GStreamer can read and write, best first. The bindings know those of 1.14.
pub fn raw_formats() -> Vec<VideoFormat> {
    match gst_newer::raw_video_formats() {
        // SAFETY: the running GStreamer has these formats.
        Ok(all) => all.iter().map(|&format| unsafe { from_glib(format) }).collect(),
        Err(_) => VideoFormat::iter_raw().collect(),
    }
}
