// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a tracker of the crate trackforge.
//!
//! In: the boxes and scores of a frame's objects. Out: the objects that have a track, with its number.
//!
//! What is worked around here and in [`stream`](crate::stream), in version 0.5.1 of the library:
//!
//! - Its trackers match boxes of any classes: each class has a tracker of its own, unless `class-agnostic` is set.
//! - A box that is not finite or has no area matches a track and makes its position NaN: such boxes are not given to it.
//! - Its numbers begin at 1 in each tracker: a stream has identities of its own.
//! - Its matching is greedy and compares all pairs, whose list it sorts: `MAX_PAIRS` limits their number.
//! - It does not return tracks that were not matched, and OC-SORT's cannot be predicted: a stream has a filter for each
//!   track, of the library's type.

use trackforge::trackers::byte_track::{ByteTrack, ByteTrackParams};
use trackforge::trackers::common::CommonParams;
use trackforge::trackers::ocsort::{OcSort, OcSortParams};
use trackforge::trackers::sort::{Sort, SortParams};
use trackforge::traits;
pub(crate) use trackforge::traits::Detection;

use crate::settings::{Algorithm, Settings};

/// A match of a detection with a track.
#[derive(Clone, Copy)]
pub(crate) struct Match {
    /// The index of the detection.
    pub detection: usize,
    /// The library's number of the track.
    pub track: u64,
}

/// A tracker: advances by a frame, and returns the detections that have a track, in their order.
pub(crate) type Tracker = Box<dyn FnMut(Vec<Detection>) -> Vec<Match> + Send>;

/// Creates a tracker for frames of this duration in seconds.
pub(crate) fn tracker(settings: &Settings, frame: f64) -> Tracker {
    let max_age = (settings.max_age(frame) / frame).round().clamp(0.0, 1e6) as usize;
    let common = CommonParams { max_age, min_hits: settings.min_hits as usize };
    let iou_threshold = settings.iou_threshold;
    match settings.algorithm {
        Algorithm::ByteTrack => {
            let tracker = ByteTrack::from_params(ByteTrackParams {
                common,
                track_thresh: settings.track_threshold,
                match_thresh: settings.match_threshold,
                det_thresh: settings.new_track_threshold,
                second_match_thresh: settings.second_match_threshold,
            });
            run(tracker, |it| (it.det_ind, it.track_id))
        }
        Algorithm::OcSort => {
            let delta_t = settings.delta_t as usize;
            let inertia = settings.inertia;
            let params = OcSortParams { common, iou_threshold, delta_t, inertia };
            run(OcSort::from_params(params), |it| (it.det_ind, it.track_id))
        }
        Algorithm::Sort => {
            let tracker = Sort::from_params(SortParams { common, iou_threshold });
            run(tracker, |it| (it.det_ind, it.track_id))
        }
    }
}

fn run<T: traits::Tracker + Send + 'static>(
    mut tracker: T,
    of: fn(&T::Track) -> (Option<usize>, u64),
) -> Tracker {
    Box::new(move |detections| {
        let tracks = tracker.update(detections);
        let found = tracks.iter().map(of);
        let mut matches: Vec<Match> = found
            .filter_map(|(detection, track)| Some(Match { detection: detection?, track }))
            .collect();
        matches.sort_unstable_by_key(|it| it.detection);
        matches
    })
}
