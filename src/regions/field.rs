// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the fields of a structure without looking up names.
//!
//! In: the structure, and the name of a field. Out: the field's value, if it has the expected type. A number has any type of
//! numbers, since elements and programs differ in the type that they choose.

use std::ffi::CStr;
use std::marker::PhantomData;

use gst::glib;

use crate::bindings::field_name::FieldName;

/// The name of a field, which is looked up once.
macro_rules! field {
    ($name:literal) => {{
        static NAME: $crate::bindings::field_name::FieldName =
            $crate::bindings::field_name::FieldName::new($name);
        &NAME
    }};
}
pub(super) use field;

/// A structure that exists and does not change during `'a`.
pub(super) struct Structure<'a> {
    pointer: *const gst::ffi::GstStructure,
    lifetime: PhantomData<&'a gst::StructureRef>,
}

impl<'a> Structure<'a> {
    /// # Safety
    /// The structure must be valid during `'a`.
    pub unsafe fn from_ptr(pointer: *const gst::ffi::GstStructure) -> Self {
        Self { pointer, lifetime: PhantomData }
    }

    pub fn name(&self) -> &'a CStr {
        // SAFETY: the structure is valid, and its name ends with a zero byte.
        unsafe { CStr::from_ptr(gst::ffi::gst_structure_get_name(self.pointer)) }
    }

    pub fn field_count(&self) -> usize {
        // SAFETY: the structure is valid.
        let count = unsafe { gst::ffi::gst_structure_n_fields(self.pointer) };
        usize::try_from(count).unwrap_or_default()
    }

    /// Returns the value of a field.
    fn value(&self, name: &FieldName) -> Option<&'a glib::gobject_ffi::GValue> {
        // SAFETY: the structure is valid. It owns the value, which does not change during `'a`.
        unsafe { name.find(self.pointer).as_ref() }
    }

    /// Returns a number.
    pub fn double(&self, name: &FieldName) -> Option<f64> {
        Some(match number(self.value(name)?)? {
            Number::Double(number) => number,
            Number::Float(number) => f64::from(number),
            Number::Integer(number) => number as f64,
        })
    }

    /// Returns a whole number within the range of the type.
    pub fn int(&self, name: &FieldName) -> Option<i32> {
        match number(self.value(name)?)? {
            Number::Integer(number) => number.try_into().ok(),
            Number::Float(number) => whole(number.into()),
            Number::Double(number) => whole(number),
        }
    }

    pub fn boolean(&self, name: &FieldName) -> Option<bool> {
        let value = self.value(name)?;
        if value.g_type != glib::gobject_ffi::G_TYPE_BOOLEAN {
            return None;
        }
        // SAFETY: the value has this type.
        Some(unsafe { glib::gobject_ffi::g_value_get_boolean(value) } != glib::ffi::GFALSE)
    }

    pub fn string(&self, name: &FieldName) -> Option<&'a CStr> {
        let value = self.value(name)?;
        if value.g_type != glib::gobject_ffi::G_TYPE_STRING {
            return None;
        }
        // SAFETY: the value has this type. Its text is NULL or ends with a zero byte.
        unsafe {
            let text = glib::gobject_ffi::g_value_get_string(value);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }

    /// Returns the content of a field of type `GBytes`.
    pub fn bytes(&self, name: &FieldName) -> Option<&'a [u8]> {
        let value = self.value(name)?;
        // SAFETY: the value has this type. It owns a reference to the bytes, which do not change.
        unsafe {
            if value.g_type != glib::ffi::g_bytes_get_type() {
                return None;
            }
            let bytes = glib::gobject_ffi::g_value_get_boxed(value).cast::<glib::ffi::GBytes>();
            if bytes.is_null() {
                return None;
            }
            let mut size = 0;
            let data = glib::ffi::g_bytes_get_data(bytes, &mut size).cast::<u8>();
            Some(if data.is_null() { &[] } else { std::slice::from_raw_parts(data, size) })
        }
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
fn number(value: &glib::gobject_ffi::GValue) -> Option<Number> {
    use glib::gobject_ffi::*;
    // SAFETY: each function is called for a value of its type.
    Some(unsafe {
        match value.g_type {
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
