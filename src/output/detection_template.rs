// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the structure `detection` of each region of a class.
//!
//! In: the class and its label, and the numbers of each region. Out: a structure with the fields that roi.rs documents.
//!
//! A structure is a copy of one that all regions of the class share, in which the numbers are set first. Building a
//! structure for each region would look up names, which takes a process-wide lock, on which the streams of a batch would
//! wait. Setting five fields by their names in the copy would take a quarter of the time of a region's metadata.

use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::gobject_ffi::{GValue, g_value_set_double};
use gst::glib::translate::IntoGlib;

/// The fields that differ from region to region. All have the type double.
const NUMBERS: [&str; 5] = ["confidence", "x_min", "y_min", "x_max", "y_max"];

/// `g_value_set_interned_string`, in GLib 2.66 and later. Copies of such a value share the text.
type SetInterned = unsafe extern "C" fn(*mut GValue, *const c_char);

static SET_INTERNED: LazyLock<Option<SetInterned>> = LazyLock::new(|| {
    // SAFETY: the function has this type in all versions of GLib that have it, and GLib stays loaded.
    unsafe {
        let program = libloading::os::unix::Library::this();
        program.get(b"g_value_set_interned_string\0").ok().map(|function| *function)
    }
});

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
        let value = |name| {
            let name = glib::Quark::from_str(name).into_glib();
            // SAFETY: the structure is valid.
            let value = unsafe { gst::ffi::gst_structure_id_get_value(structure.as_ptr(), name) };
            NonNull::new(value.cast_mut()).expect("the field was just added")
        };
        if let Some(set_interned) = *SET_INTERNED {
            // SAFETY: the value has the type string and nothing else refers to it. The text of a quark ends with a zero
            // byte and is never freed.
            unsafe { set_interned(value("label").as_ptr(), label.as_str().as_ptr()) };
        }
        let numbers = NUMBERS.map(value);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_keep_their_numbers_and_label_when_the_template_changes_and_is_gone() {
        gst::init().unwrap();
        let mut template = DetectionTemplate::new(7, glib::Quark::from_str("a label"));
        let regions = [[0.5, 0.0, 0.1, 0.2, 0.3], [0.25, 0.4, 0.5, 0.6, 0.7]];
        let structures = regions.map(|numbers| template.with_numbers(numbers));
        drop(template);
        for (structure, numbers) in structures.iter().zip(regions) {
            assert_eq!(structure.name(), "detection");
            assert_eq!(structure.get::<i32>("label_id"), Ok(7));
            assert_eq!(structure.get::<&str>("label"), Ok("a label"));
            assert_eq!(NUMBERS.map(|name| structure.get::<f64>(name).unwrap()), numbers);
        }
        // A reader can replace the label of one region.
        let [mut first, second] = structures;
        first.set("label", "another");
        assert_eq!(second.get::<&str>("label"), Ok("a label"));
    }
}
