// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values and metadata that C programs can make and the Rust bindings cannot.

use std::ffi::CString;

use gst::glib;
use gst::glib::gobject_ffi;
use gst::glib::translate::{IntoGlib, ToGlibPtr, ToGlibPtrMut};
use gst::prelude::*;

/// Makes a string value from any bytes except 0. `None` makes NULL.
pub fn string(text: Option<&[u8]>) -> glib::Value {
    let mut value = glib::Value::from_type(glib::Type::STRING);
    if let Some(text) = text {
        let text: Vec<u8> = text.iter().copied().filter(|&byte| byte != 0).collect();
        let text = CString::new(text).expect("there is no 0 in it");
        // SAFETY: the value has the type string, and the text is copied.
        unsafe { gobject_ffi::g_value_set_string(value.to_glib_none_mut().0, text.as_ptr()) };
    }
    value
}

/// Makes an enumeration value from any number.
pub fn enumeration(kind: glib::Type, number: i32) -> glib::Value {
    let mut value = glib::Value::from_type(kind);
    // SAFETY: the value has an enumeration type.
    unsafe { gobject_ffi::g_value_set_enum(value.to_glib_none_mut().0, number) };
    value
}

/// Makes flags from any bits.
pub fn flags(kind: glib::Type, bits: u32) -> glib::Value {
    let mut value = glib::Value::from_type(kind);
    // SAFETY: the value has a flags type.
    unsafe { gobject_ffi::g_value_set_flags(value.to_glib_none_mut().0, bits) };
    value
}

/// Calls `g_object_set_property`, which ignores values of the wrong type with a warning.
pub fn set_property(object: &impl IsA<glib::Object>, name: &str, value: &glib::Value) {
    let name = CString::new(name).expect("names of properties have no 0");
    // SAFETY: object, name and value are alive during the call, and all values are allowed.
    unsafe {
        let object = object.as_ref().to_glib_none().0;
        gobject_ffi::g_object_set_property(object, name.as_ptr(), value.to_glib_none().0);
    }
}

/// Calls `gst_structure_set_value`.
pub fn set_field(structure: &mut gst::StructureRef, name: &str, value: &glib::Value) {
    let name = CString::new(name).expect("names of fields have no 0");
    // SAFETY: structure, name and value are alive during the call, and the value is copied.
    unsafe {
        let structure = structure.as_mut_ptr();
        gst::ffi::gst_structure_set_value(structure, name.as_ptr(), value.to_glib_none().0);
    }
}

/// Sets a field to a string of any bytes. `gst_structure_set_value` rejects them, so the value of
/// an existing field is overwritten.
pub fn set_text_field(structure: &mut gst::StructureRef, name: &str, text: &[u8]) {
    structure.set(name, "");
    let name = CString::new(name).expect("names of fields have no 0");
    let text = CString::new(text).expect("there is no 0 in it");
    // SAFETY: the structure is borrowed exclusively, so its value may be written. The value has the
    // type string, and the text is copied.
    unsafe {
        let value = gst::ffi::gst_structure_get_value(structure.as_ptr(), name.as_ptr());
        gobject_ffi::g_value_set_string(value.cast_mut(), text.as_ptr());
    }
}

/// Returns the quark of any bytes except 0.
pub fn quark(text: &[u8]) -> glib::ffi::GQuark {
    let text = CString::new(text).expect("there is no 0 in it");
    // SAFETY: the text ends with a zero byte, and is copied.
    unsafe { glib::ffi::g_quark_from_string(text.as_ptr()) }
}

/// Adds a region of interest whose type can be any string.
pub fn add_region(buffer: &mut gst::BufferRef, kind: &[u8], [x, y, w, h]: [u32; 4]) {
    let kind: Vec<u8> = kind.iter().copied().filter(|&byte| byte != 0).collect();
    let kind = CString::new(kind).expect("there is no 0 in it");
    // SAFETY: the buffer is writable, and the type is copied.
    unsafe {
        gst_video::ffi::gst_buffer_add_video_region_of_interest_meta(
            buffer.as_mut_ptr(),
            kind.as_ptr(),
            x,
            y,
            w,
            h,
        );
    }
}

/// Returns true if the type `is` is `wanted`, or is derived from it.
pub fn is_a(is: glib::Type, wanted: glib::Type) -> bool {
    // SAFETY: both are types.
    unsafe { gobject_ffi::g_type_is_a(is.into_glib(), wanted.into_glib()) != 0 }
}
