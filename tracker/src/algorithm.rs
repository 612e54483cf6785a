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

pub use trackforge::traits::Detection;

/// An algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// ByteTrack.
    #[default]
    ByteTrack,
    /// OC-SORT.
    OcSort,
    /// SORT.
    Sort,
}

/// The parameters of all algorithms, with the names of the element's properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How long a track without a detection is kept, in seconds; negative for the library's default.
    pub max_age: f64,
    /// ByteTrack: the least score of a detection that is matched first.
    pub track_threshold: f32,
    /// ByteTrack: the least score of a detection that begins a track.
    pub new_track_threshold: f32,
    /// ByteTrack: the greatest distance (1 - IoU) of a match.
    pub match_threshold: f32,
    /// ByteTrack: the greatest distance of a match with a detection below `track_threshold`.
    pub second_match_threshold: f32,
    /// SORT, OC-SORT: the number of detections before a track has an id.
    pub min_hits: u32,
    /// SORT, OC-SORT: the least IoU of a match.
    pub iou_threshold: f32,
    /// OC-SORT: the number of detections over which the direction is computed.
    pub delta_t: u32,
    /// OC-SORT: the weight of the direction.
    pub inertia: f32,
}

impl Default for Parameters {
    fn default() -> Self {
        let (byte, oc) = (ByteTrackParams::default(), OcSortParams::default());
        Self {
            algorithm: Algorithm::default(),
            max_age: -1.0,
            track_threshold: byte.track_thresh,
            new_track_threshold: byte.det_thresh,
            match_threshold: byte.match_thresh,
            second_match_threshold: byte.second_match_thresh,
            min_hits: oc.common.min_hits as u32,
            iou_threshold: oc.iou_threshold,
            delta_t: oc.delta_t as u32,
            inertia: oc.inertia,
        }
    }
}

impl Parameters {
    /// Returns how long a track without a detection is kept, in seconds, where frames have this duration. The library's
    /// default of 30 frames is the one of the authors of ByteTrack, who scale it to one second.
    pub fn max_age(&self, frame: f64) -> f64 {
        match self.algorithm {
            _ if self.max_age >= 0.0 => self.max_age,
            Algorithm::Sort => frame,
            Algorithm::ByteTrack | Algorithm::OcSort => 1.0,
        }
    }
}

/// A match of a detection with a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The index of the detection.
    pub detection: usize,
    /// The library's number of the track.
    pub track: u64,
}

/// A tracker of the library.
pub enum Tracker {
    /// ByteTrack.
    ByteTrack(Box<ByteTrack>),
    /// OC-SORT.
    OcSort(Box<OcSort>),
    /// SORT.
    Sort(Box<Sort>),
}

impl Tracker {
    /// Creates a tracker for frames of this duration in seconds.
    pub fn new(parameters: &Parameters, frame: f64) -> Self {
        let max_age = (parameters.max_age(frame) / frame).round().clamp(0.0, 1e6) as usize;
        let common = CommonParams { max_age, min_hits: parameters.min_hits as usize };
        match parameters.algorithm {
            Algorithm::ByteTrack => {
                Self::ByteTrack(Box::new(ByteTrack::from_params(ByteTrackParams {
                    common,
                    track_thresh: parameters.track_threshold,
                    match_thresh: parameters.match_threshold,
                    det_thresh: parameters.new_track_threshold,
                    second_match_thresh: parameters.second_match_threshold,
                })))
            }
            Algorithm::OcSort => Self::OcSort(Box::new(OcSort::from_params(OcSortParams {
                common,
                iou_threshold: parameters.iou_threshold,
                delta_t: parameters.delta_t as usize,
                inertia: parameters.inertia,
            }))),
            Algorithm::Sort => Self::Sort(Box::new(Sort::from_params(SortParams {
                common,
                iou_threshold: parameters.iou_threshold,
            }))),
        }
    }

    /// Advances by a frame. Returns the detections that have a track, in their order.
    pub fn update(&mut self, detections: Vec<Detection>) -> Vec<Match> {
        let of =
            |(detection, track): (Option<usize>, u64)| Some(Match { detection: detection?, track });
        let mut matches: Vec<Match> = match self {
            Self::ByteTrack(it) => it
                .update(detections)
                .iter()
                .filter_map(|it| of((it.det_ind, it.track_id)))
                .collect(),
            Self::OcSort(it) => it
                .update(detections)
                .iter()
                .filter_map(|it| of((it.det_ind, it.track_id)))
                .collect(),
            Self::Sort(it) => it
                .update(detections)
                .iter()
                .filter_map(|it| of((it.det_ind, it.track_id)))
                .collect(),
        };
        matches.sort_unstable_by_key(|it| it.detection);
        matches
    }
}
