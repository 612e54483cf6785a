// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the fields of a structure without looking up names.
//!
//! In: the structure, and the name of a field. Out: the field's value, if it has the expected type.

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

    pub fn double(&self, name: &FieldName) -> Option<f64> {
        let value = self.value(name)?;
        // SAFETY: the value has this type.
        (value.g_type == glib::gobject_ffi::G_TYPE_DOUBLE)
            .then(|| unsafe { glib::gobject_ffi::g_value_get_double(value) })
    }

    pub fn int(&self, name: &FieldName) -> Option<i32> {
        let value = self.value(name)?;
        // SAFETY: the value has this type.
        (value.g_type == glib::gobject_ffi::G_TYPE_INT)
            .then(|| unsafe { glib::gobject_ffi::g_value_get_int(value) })
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
