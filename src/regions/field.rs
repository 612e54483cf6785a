// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the fields of a structure without looking up names.
//!
//! In: the structure, and the name of a field. Out: the field's value, if it has the expected type. A number has any type of
//! numbers, since elements and programs differ in the type that they choose.

use std::ffi::CStr;

use gst::glib;
use gst::glib::translate::ToGlibPtr;

use crate::bindings::field_name::FieldName;
use crate::bindings::strings;

/// The name of a field, which is looked up once.
macro_rules! field {
    ($name:literal) => {{
        static NAME: $crate::bindings::field_name::FieldName =
            $crate::bindings::field_name::FieldName::new($name);
        &NAME
    }};
}
pub(super) use field;

impl FieldName {
    /// Returns a number.
    pub(super) fn double(&self, structure: &gst::StructureRef) -> Option<f64> {
        number(self.value(structure)?)
    }

    /// Returns a whole number within the range of the type.
    pub(super) fn int(&self, structure: &gst::StructureRef) -> Option<i32> {
        let number = number(self.value(structure)?)?;
        // The cast saturates, so that a number out of range or with a fraction differs.
        Some(number as i32).filter(|&it| f64::from(it) == number)
    }

    pub(super) fn boolean(&self, structure: &gst::StructureRef) -> Option<bool> {
        self.value(structure)?.get().ok()
    }

    pub(super) fn string<'a>(&self, structure: &'a gst::StructureRef) -> Option<&'a CStr> {
        strings::c_str_of_value(self.value(structure)?)
    }

    /// Returns the content of a field of type `GBytes`.
    pub(super) fn bytes<'a>(&self, structure: &'a gst::StructureRef) -> Option<&'a [u8]> {
        self.value(structure)?.get::<&glib::Bytes>().ok().map(|bytes| &**bytes)
    }
}

/// Returns the number in a value; `None` if it has another type. All numbers within the range of `i32` are exact.
fn number(value: &glib::Value) -> Option<f64> {
    use glib::gobject_ffi::*;
    let value = value.to_glib_none().0;
    // SAFETY: each function is called for a value of its type.
    Some(unsafe {
        match (*value).g_type {
            G_TYPE_DOUBLE => g_value_get_double(value),
            G_TYPE_INT => g_value_get_int(value).into(),
            G_TYPE_FLOAT => g_value_get_float(value).into(),
            G_TYPE_UINT => g_value_get_uint(value).into(),
            G_TYPE_INT64 => g_value_get_int64(value) as f64,
            G_TYPE_UINT64 => g_value_get_uint64(value) as f64,
            G_TYPE_LONG => g_value_get_long(value) as f64,
            G_TYPE_ULONG => g_value_get_ulong(value) as f64,
            G_TYPE_UCHAR => g_value_get_uchar(value).into(),
            G_TYPE_CHAR => g_value_get_schar(value).into(),
            _ => return None,
        }
    })
}
