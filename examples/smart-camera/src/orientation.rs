// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a picture is turned upright. In: a JPEG file. Out: the direction in which `videoflip` turns it.
//!
//! Cameras store pictures as the sensor has them, and in EXIF data how to show them. GStreamer reads the EXIF data
//! in `jpegparse`, which is not among the base and good plugins.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Values of `video-direction` for the orientations 1 to 8 of EXIF.
const DIRECTIONS: [&str; 8] = ["identity", "horiz", "180", "vert", "ul-lr", "90r", "ur-ll", "90l"];

/// The direction for the EXIF data of the JPEG file at `path`; `None` for other files, and without such data.
pub fn of_jpeg(path: &Path) -> Option<&'static str> {
    // To open a FIFO waits for its writer.
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
