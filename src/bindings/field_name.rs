// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the fields of structures.
//!
//! In: a structure. Out: the value of a field. GStreamer looks up a field's name in a table of the whole process, under a
//! lock. A [`FieldName`] is looked up once, so that reading a field compares only numbers.

use std::sync::OnceLock;

use gst::glib;
use gst::glib::translate::IntoGlib;

/// The name of a field, in a static variable.
pub struct FieldName {
    name: &'static str,
    quark: OnceLock<glib::Quark>,
}

impl FieldName {
    /// A field of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, quark: OnceLock::new() }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value of the field, or `None` if the structure does not have it.
    pub fn value<'a>(&self, structure: &'a gst::StructureRef) -> Option<&'a glib::Value> {
        let quark = *self.quark.get_or_init(|| glib::Quark::from_str(self.name));
        // SAFETY: the structure is valid, and is borrowed immutably for as long as the result. `glib::Value` has the
        // representation of `GValue`.
        unsafe {
            let value = gst::ffi::gst_structure_id_get_value(structure.as_ptr(), quark.into_glib());
            value.cast::<glib::Value>().as_ref()
        }
    }
}
