//! Strings that C programs have written, which need not be UTF-8.
//!
//! The bindings' own conversions take that for granted and panic, or read past what `str` allows.

use std::ffi::{CStr, c_char};
use std::str::Utf8Error;

use gst::glib;
use gst::glib::translate::ToGlibPtr;

/// The text of a value of type string; `None` where it is NULL or of another type.
///
/// # Errors
/// Where it is not UTF-8.
pub fn of_value(value: &glib::Value) -> Result<Option<&str>, Utf8Error> {
    if value.type_() != glib::Type::STRING {
        return Ok(None);
    }
    // SAFETY: the value is of type string; what it holds lives and stays as long as the borrow.
    let text = unsafe { of_pointer(glib::gobject_ffi::g_value_get_string(value.to_glib_none().0)) };
    text.map(CStr::to_str).transpose()
}

/// The bytes of a quark, in whatever encoding; `None` for 0.
pub fn of_quark(quark: glib::ffi::GQuark) -> Option<&'static CStr> {
    // SAFETY: GLib never frees or changes a quark's text, and gives NULL for 0.
    unsafe { of_pointer(glib::ffi::g_quark_to_string(quark)) }
}

/// # Safety
/// `text` is NULL, or ends with a zero byte and lives and stays for `'a`.
unsafe fn of_pointer<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
