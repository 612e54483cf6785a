// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values and metadata that programs in C can make and the Rust bindings cannot.

use std::ffi::CString;

use gst::glib;
use gst::glib::gobject_ffi;
use gst::glib::translate::{IntoGlib, ToGlibPtr, ToGlibPtrMut};
use gst::prelude::*;

/// A string value of any bytes but 0; NULL for `None`.
pub fn string(text: Option<&[u8]>) -> glib::Value {
    let mut value = glib::Value::from_type(glib::Type::STRING);
    if let Some(text) = text {
        let text: Vec<u8> = text.iter().copied().filter(|&byte| byte != 0).collect();
        let text = CString::new(text).expect("there is no 0 in it");
        // SAFETY: the value holds a string, which is copied into it.
        unsafe { gobject_ffi::g_value_set_string(value.to_glib_none_mut().0, text.as_ptr()) };
    }
    value
}

/// An enumeration's value of any number.
pub fn enumeration(of: glib::Type, number: i32) -> glib::Value {
    let mut value = glib::Value::from_type(of);
    // SAFETY: the value holds an enumeration.
    unsafe { gobject_ffi::g_value_set_enum(value.to_glib_none_mut().0, number) };
    value
}

/// Flags of any bits.
pub fn flags(of: glib::Type, bits: u32) -> glib::Value {
    let mut value = glib::Value::from_type(of);
    // SAFETY: the value holds flags.
    unsafe { gobject_ffi::g_value_set_flags(value.to_glib_none_mut().0, bits) };
    value
}

/// `g_object_set_property`, which ignores a value of the wrong type with a warning.
pub fn set_property(object: &impl IsA<glib::Object>, name: &str, value: &glib::Value) {
    let name = CString::new(name).expect("names of properties have no 0");
    // SAFETY: object, name and value live during the call; any value is allowed.
    unsafe {
        let object = object.as_ref().to_glib_none().0;
        gobject_ffi::g_object_set_property(object, name.as_ptr(), value.to_glib_none().0);
    }
}

/// `gst_structure_set_value`.
pub fn set_field(structure: &mut gst::StructureRef, name: &str, value: &glib::Value) {
    let name = CString::new(name).expect("names of fields have no 0");
    // SAFETY: structure, name and value live during the call; the value is copied.
    unsafe {
        let structure = structure.as_mut_ptr();
        gst::ffi::gst_structure_set_value(structure, name.as_ptr(), value.to_glib_none().0);
    }
}

/// Sets a field to a string of any bytes. `gst_structure_set_value` refuses that, so the value of an
/// existing field is overwritten.
pub fn set_text_field(structure: &mut gst::StructureRef, name: &str, text: &[u8]) {
    structure.set(name, "");
    let name = CString::new(name).expect("names of fields have no 0");
    let text = CString::new(text).expect("there is no 0 in it");
    // SAFETY: the structure is borrowed exclusively, so that its value, which holds a string, can be
    // written to; the text is copied.
    unsafe {
        let value = gst::ffi::gst_structure_get_value(structure.as_ptr(), name.as_ptr());
        gobject_ffi::g_value_set_string(value.cast_mut(), text.as_ptr());
    }
}

/// The quark of any bytes but 0.
#[cfg(feature = "v1_26")]
pub fn quark(text: &[u8]) -> glib::ffi::GQuark {
    let text = CString::new(text).expect("there is no 0 in it");
    // SAFETY: the text ends with a zero byte, and is copied.
    unsafe { glib::ffi::g_quark_from_string(text.as_ptr()) }
}

/// A region of interest whose type is any string.
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

/// Whether type `is` is `wanted` or derived from it.
pub fn is_a(is: glib::Type, wanted: glib::Type) -> bool {
    // SAFETY: both are types.
    unsafe { gobject_ffi::g_type_is_a(is.into_glib(), wanted.into_glib()) != 0 }
}
