// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of `--tracker`, which give each object the id of its track.
//!
//! In: a description of elements, and the objects of each frame. Out: an error that says what is
//! missing, instead of lines without tracks.

use crate::report::Object;
use crate::{Error, messages};

/// The tracker where lines are counted, unless another one is set.
pub const DEFAULT: &str = "objecttracker";

/// Number of frames with objects of which at least one must have a track. Some trackers wait a few
/// frames before they confirm a track.
const FRAMES: u32 = 100;

/// Returns an error if the elements do not exist.
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

    /// Returns whether the wait is over, because an object of the frame has a track, or it was said
    /// why there is none.
    pub fn is_in(&mut self, objects: &[Object]) -> Result<bool, Error> {
        self.frames += u32::from(!objects.is_empty());
        let is_there = objects.iter().any(|object| object.id.is_some());
        if !is_there && self.frames == FRAMES && self.tracker.contains(DEFAULT) {
            messages::print(&format!(
                "warning: {FRAMES} frames had objects and no track; {DEFAULT} begins tracks at the \
                 score new-track-threshold: set a lower one with --tracker"
            ));
            return Ok(true);
        }
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
        let detection = Detection { bounding_box };
        Object { id: track, label: String::new(), predicted: false, detection }
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
    fn scores_that_begin_no_track_of_objecttracker_are_only_a_warning() {
        let mut first = FirstTrack::new("objecttracker max-age=2");
        let is_over = (0..FRAMES).map(|_| first.is_in(&[object(None)]).unwrap());
        assert_eq!(is_over.filter(|&is_over| is_over).count(), 1);
    }

    #[test]
    fn a_track_ends_the_wait() {
        let mut first = FirstTrack::new("ioutracker");
        assert!(!first.is_in(&[object(None)]).unwrap());
        assert!(first.is_in(&[object(None), object(Some(0))]).unwrap());
    }
}
