// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of `--tracker`, which give each object the id of its track.
//!
//! In: a description of elements, and the objects of each frame. Out: an error that says what is
//! missing, instead of lines without tracks.

use crate::Error;
use crate::report::Object;

/// Number of frames with objects of which at least one must have a track. Some trackers wait a few
/// frames before they confirm a track.
const FRAMES: u32 = 100;

/// Returns an error if the elements do not exist, or if this program does not attach the objects
/// that they read.
pub fn check(tracker: &str) -> Result<(), Error> {
    if let Err(error) = gst::parse::bin_from_description(tracker, true) {
        let is_missing = error.kind() == Some(gst::ParseError::NoSuchElement);
        let why = if is_missing {
            format!(
                "; ioutracker is one of GStreamer's bad plugins from 1.28 on, and this is {}",
                gst::version_string()
            )
        } else {
            String::new()
        };
        return Err(format!("--tracker {tracker}: {error}{why}").into());
    }
    if !cfg!(feature = "v1_24") {
        return Err(format!(
            "--tracker {tracker}: expected objects as GstAnalyticsODMtd, which this program \
             attaches if it is built for GStreamer 1.24 or later: build it with --features v1_24, \
             or v1_28 for ioutracker"
        )
        .into());
    }
    Ok(())
}

/// Waits for the first track.
pub struct FirstTrack {
    tracker: String,
    frames: u32,
}

impl FirstTrack {
    /// Waits for a track from these elements.
    pub fn new(tracker: &str) -> Self {
        Self { tracker: tracker.to_owned(), frames: 0 }
    }

    /// Returns whether an object of the frame has a track.
    pub fn is_in(&mut self, objects: &[Object]) -> Result<bool, Error> {
        self.frames += u32::from(!objects.is_empty());
        let is_there = objects.iter().any(|object| object.id.is_some());
        if !is_there && self.frames == FRAMES {
            return Err(format!(
                "--tracker {}: expected a GstAnalyticsTrackingMtd that is related to an object, \
                 but {FRAMES} frames had objects and no track",
                self.tracker
            )
            .into());
        }
        Ok(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Detection, Edges};

    fn object(track: Option<u64>) -> Object {
        let bounding_box = Edges { x_min: 0.0, y_min: 0.0, x_max: 1.0, y_max: 1.0 };
        Object { id: track, label: String::new(), detection: Detection { bounding_box } }
    }

    #[test]
    fn a_hundred_frames_with_objects_and_without_a_track_are_an_error() {
        let mut first = FirstTrack::new("identity");
        for _ in 1..FRAMES {
            assert!(!first.is_in(&[object(None)]).unwrap());
            assert!(!first.is_in(&[]).unwrap(), "an empty frame says nothing");
        }
        let error = first.is_in(&[object(None)]).unwrap_err().to_string();
        assert!(error.starts_with("--tracker identity: expected"), "{error}");
    }

    #[test]
    fn a_track_ends_the_wait() {
        let mut first = FirstTrack::new("ioutracker");
        assert!(!first.is_in(&[object(None)]).unwrap());
        assert!(first.is_in(&[object(None), object(Some(0))]).unwrap());
    }
}
