// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gst::glib;
use gst::glib::ffi::GQuark;
use gstnmsfilter::bindings::strings;
use gstnmsfilter::format_type_name as format;
use trackforge::trackers::byte_track::ByteTrackParams;
use trackforge::trackers::ocsort::OcSortParams;

/// The algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstObjectTrackerAlgorithm", allow_name_conflict)]
pub enum Algorithm {
    /// ByteTrack.
    #[default]
    #[enum_value(name = "ByteTrack: objects with low scores continue tracks", nick = "bytetrack")]
    ByteTrack = 0,
    /// OC-SORT.
    #[enum_value(name = "OC-SORT: the direction of movement counts", nick = "ocsort")]
    OcSort = 1,
    /// SORT.
    #[enum_value(name = "SORT: overlap with the predicted box", nick = "sort")]
    Sort = 2,
}

/// The values of the properties, with their names.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub algorithm: Algorithm,
    pub classes: Option<String>,
    pub class_agnostic: bool,
    pub predict: bool,
    pub max_age: f64,
    pub track_threshold: f32,
    pub new_track_threshold: f32,
    pub match_threshold: f32,
    pub second_match_threshold: f32,
    pub min_hits: u32,
    pub iou_threshold: f32,
    pub delta_t: u32,
    pub inertia: f32,
}

impl Default for Settings {
    fn default() -> Self {
        let (byte, oc) = (ByteTrackParams::default(), OcSortParams::default());
        Self {
            algorithm: Algorithm::default(),
            classes: None,
            class_agnostic: false,
            predict: true,
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

impl Settings {
    /// Returns how long a track without a detection is kept, in seconds, where frames have this duration. The library's
    /// default of 30 frames is the one of the authors of ByteTrack, who scale it to one second.
    pub fn max_age(&self, frame: f64) -> f64 {
        match self.algorithm {
            _ if self.max_age >= 0.0 => self.max_age,
            Algorithm::Sort => frame,
            Algorithm::ByteTrack | Algorithm::OcSort => 1.0,
        }
    }

    /// Returns whether objects with this label are tracked.
    pub fn has_class(&self, label: GQuark) -> bool {
        let Some(classes) = self.classes.as_ref().filter(|classes| !classes.is_empty()) else {
            return true;
        };
        let label = strings::of_quark(label).and_then(|label| label.to_str().ok());
        classes.split(',').any(|class| Some(class.trim()) == label)
    }
}
