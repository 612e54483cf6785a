// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
#![allow(missing_docs, reason = "the macro generates items without documentation")]

use gst::glib;
use gst::glib::ffi::GQuark;
use gstnmsfilter::bindings::strings;
use gstnmsfilter::format_type_name as format;

use crate::algorithm::{self, Parameters};

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

/// The values of the properties.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub algorithm: Algorithm,
    /// The parameters, without the algorithm.
    pub parameters: Parameters,
    pub classes: Option<String>,
    pub class_agnostic: bool,
    pub predict: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            parameters: Parameters::default(),
            classes: None,
            class_agnostic: false,
            predict: true,
        }
    }
}

impl Settings {
    pub fn parameters(&self) -> Parameters {
        let algorithm = match self.algorithm {
            Algorithm::ByteTrack => algorithm::Algorithm::ByteTrack,
            Algorithm::OcSort => algorithm::Algorithm::OcSort,
            Algorithm::Sort => algorithm::Algorithm::Sort,
        };
        Parameters { algorithm, ..self.parameters }
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
