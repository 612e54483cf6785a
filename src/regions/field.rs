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
        Some(match number(self.value(structure)?)? {
            Number::Double(number) => number,
            Number::Float(number) => f64::from(number),
            Number::Integer(number) => number as f64,
        })
    }

    /// Returns a whole number within the range of the type.
    pub(super) fn int(&self, structure: &gst::StructureRef) -> Option<i32> {
        match number(self.value(structure)?)? {
            Number::Integer(number) => number.try_into().ok(),
            Number::Float(number) => whole(number.into()),
            Number::Double(number) => whole(number),
        }
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

/// The value of a field of a numeric type.
enum Number {
    Double(f64),
    Float(f32),
    Integer(i128),
}

fn whole(number: f64) -> Option<i32> {
    // The cast saturates, so that a number out of range or with a fraction differs.
    Some(number as i32).filter(|&it| f64::from(it) == number)
}

/// Returns the number in a value; `None` if it has another type.
fn number(value: &glib::Value) -> Option<Number> {
    use glib::gobject_ffi::*;
    let value = value.to_glib_none().0;
    // SAFETY: each function is called for a value of its type.
    Some(unsafe {
        match (*value).g_type {
            G_TYPE_DOUBLE => Number::Double(g_value_get_double(value)),
            G_TYPE_INT => Number::Integer(g_value_get_int(value).into()),
            G_TYPE_FLOAT => Number::Float(g_value_get_float(value)),
            G_TYPE_UINT => Number::Integer(g_value_get_uint(value).into()),
            G_TYPE_INT64 => Number::Integer(g_value_get_int64(value).into()),
            G_TYPE_UINT64 => Number::Integer(g_value_get_uint64(value).into()),
            G_TYPE_LONG => Number::Integer(g_value_get_long(value).into()),
            G_TYPE_ULONG => Number::Integer(g_value_get_ulong(value).into()),
            G_TYPE_UCHAR => Number::Integer(g_value_get_uchar(value).into()),
            G_TYPE_CHAR => Number::Integer(g_value_get_schar(value).into()),
            _ => return None,
        }
    })
}
