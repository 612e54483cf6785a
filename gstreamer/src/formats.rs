// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats of pictures in memory, of which each version has more.

use std::ffi::c_int;

use crate::library::{FormatTable, Missing};

/// The numbers (`GstVideoFormat`) of all formats that the running GStreamer can read and write, best first.
///
/// # Errors
/// Before GStreamer 1.18.
pub fn raw_video_formats() -> Result<&'static [c_int], Missing> {
    let table = FormatTable::get()?;
    let mut count = 0;
    // SAFETY: the function returns an array of `count` numbers, which it keeps.
    unsafe {
        let formats = (table.gst_video_formats_raw)(&mut count);
        Ok(std::slice::from_raw_parts(formats, count as usize))
    }
}
