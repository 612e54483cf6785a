// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the structure `detection` of each region of a class.
//!
//! In: the class and its label, and the numbers of each region. Out: a structure with the fields that roi.rs documents.
//!
//! A structure is a copy of one that all regions of the class share, in which the numbers are set first. Building a
//! structure for each region would look up names, which takes a process-wide lock, on which the streams of a batch would
//! wait. Setting five fields by their names in the copy would take a quarter of the time of a region's metadata.

use std::ptr::NonNull;

use gst::glib;
use gst::glib::gobject_ffi::{GValue, g_value_set_double};
use gst::glib::translate::IntoGlib;

/// The fields that differ from region to region. All have the type double.
const NUMBERS: [&str; 5] = ["confidence", "x_min", "y_min", "x_max", "y_max"];

/// The structure that all regions of a class share.
pub(super) struct DetectionTemplate {
    structure: gst::Structure,
    /// The values of [`NUMBERS`] in `structure`.
    numbers: [NonNull<GValue>; NUMBERS.len()],
}

// SAFETY: the values belong to the structure, which may be sent, and only a mutable borrow changes them.
unsafe impl Send for DetectionTemplate {}

impl DetectionTemplate {
    /// A template for regions of `class`. It has the fields that the elements of DL Streamer read.
    pub fn new(class: u32, label: glib::Quark) -> Self {
        let fields = gst::Structure::builder("detection")
            .field("label_id", class as i32)
            .field("label", label.as_str());
        let structure =
            NUMBERS.iter().fold(fields, |fields, name| fields.field(*name, 0.0)).build();
        let numbers = NUMBERS.map(|name| {
            let name = glib::Quark::from_str(name).into_glib();
            // SAFETY: the structure is valid.
            let value = unsafe { gst::ffi::gst_structure_id_get_value(structure.as_ptr(), name) };
            NonNull::new(value.cast_mut()).expect("the field was just added")
        });
        Self { structure, numbers }
    }

    /// Creates the structure of a region with these values of [`NUMBERS`].
    pub fn with_numbers(&mut self, numbers: [f64; NUMBERS.len()]) -> gst::Structure {
        for (value, number) in self.numbers.into_iter().zip(numbers) {
            // SAFETY: the value has the type double. It is in memory of the structure, which has got no further field
            // since, so that the value has not moved; and the structure is borrowed mutably.
            unsafe { g_value_set_double(value.as_ptr(), number) };
        }
        self.structure.clone()
    }
}
