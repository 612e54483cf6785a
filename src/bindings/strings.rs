// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strings from C, which may not be valid UTF-8.
//!
//! In: GLib values, quarks and pointers. Out: `&str` after validation, or `&CStr`. The conversions
//! of the bindings assume valid UTF-8: they panic, or create an invalid `str`.

use std::ffi::{CStr, c_char};
use std::str::Utf8Error;

use gst::glib;
use gst::glib::translate::ToGlibPtr;

/// The text of a value of type string; `None` if it is NULL or of another type.
///
/// # Errors
/// If the text is not valid UTF-8.
pub fn of_value(value: &glib::Value) -> Result<Option<&str>, Utf8Error> {
    c_str_of_value(value).map(CStr::to_str).transpose()
}

/// The text of a value of type string, in any encoding; `None` if it is NULL or of another type.
pub fn c_str_of_value(value: &glib::Value) -> Option<&CStr> {
    if value.type_() != glib::Type::STRING {
        return None;
    }
    // SAFETY: `value` is of type string. Its text is NULL or ends with a zero byte, and is neither
    // freed nor changed while `value` is borrowed.
    unsafe { of_pointer(glib::gobject_ffi::g_value_get_string(value.to_glib_none().0)) }
}

/// The string of a quark, in any encoding; `None` for 0.
pub fn of_quark(quark: glib::ffi::GQuark) -> Option<&'static CStr> {
    // SAFETY: `g_quark_to_string` returns NULL for 0, or a zero-terminated string that GLib never
    // frees or changes.
    unsafe { of_pointer(glib::ffi::g_quark_to_string(quark)) }
}

/// # Safety
/// `text` is NULL, or a zero-terminated string that is neither freed nor changed during `'a`.
unsafe fn of_pointer<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: `text` is not NULL here; this function requires the rest of it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
