// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns pictures upright. In: a JPEG file. Out: the direction in which `videoflip` must turn it.
//!
//! Cameras store pictures in the orientation of the sensor, together with EXIF data that says how
//! to display them. In GStreamer, `jpegparse` reads the EXIF data, but it is not part of the base
//! and good plugins.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Values of `video-direction` for the EXIF orientations 1 to 8.
const DIRECTIONS: [&str; 8] = ["identity", "horiz", "180", "vert", "ul-lr", "90r", "ur-ll", "90l"];

/// Returns the direction for the EXIF data in the JPEG file at `path`. Returns `None` if the file
/// has another format or no EXIF data.
pub fn jpeg_direction(path: &Path) -> Option<&'static str> {
    // Opening a FIFO would block until there is a writer.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut file = BufReader::new(File::open(path).ok()?);
    let data = exif::get_exif_attr_from_jpeg(&mut file).ok()?;
    let data = exif::Reader::new().read_raw(data).ok()?;
    let orientation =
        data.get_field(exif::Tag::Orientation, exif::In::PRIMARY)?.value.get_uint(0)?;
    DIRECTIONS.get((orientation as usize).checked_sub(1)?).copied()
}
