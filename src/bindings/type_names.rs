// SPDX-License-Identifier: MIT OR Apache-2.0
//! GLib type names, if the process has several copies of this crate.
//!
//! A process has two if an application links the crate and also loads the plugin. The types of the copy
//! that registers second are called `Name-1`.

/// `format!` for modules that derive [`glib::Enum`](gst::glib::Enum) or use `glib::flags` with
/// `allow_name_conflict`: those macros (glib-macros 0.22) expand to `if i == 0 { "Name" } else {
/// format!("{}-{}", "Name", i) }`, whose branches differ in type. For that call, this macro returns
/// a `&'static str` (a few bytes per type are leaked); all other calls go to the standard
/// library.
#[doc(hidden)]
#[macro_export]
macro_rules! format_type_name {
    ("{}-{}", $name:literal, $i:ident) => {
        &*::std::format!("{}-{}", $name, $i).leak()
    };
    ($($arguments:tt)*) => {
        ::std::format!($($arguments)*)
    };
}

pub(crate) use format_type_name as format;
