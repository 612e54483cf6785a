//! GLib type names that another copy of this crate in the process may have taken, as where an
//! application links the crate and also loads the plugin. Such a copy's types are called `Name-1`.

/// `format!` for modules that derive [`glib::Enum`](gst::glib::Enum) or use `glib::flags` with
/// `allow_name_conflict`: those macros (glib-macros 0.22) expand to
/// `if i == 0 { "Name" } else { format!("{}-{}", "Name", i) }`, whose branches differ in type. This
/// gives that one call a `str` (a few bytes that are leaked once for each type); every other call is
/// the standard library's.
macro_rules! format_type_name {
    ("{}-{}", $name:literal, $i:ident) => {
        &*::std::format!("{}-{}", $name, $i).leak()
    };
    ($($arguments:tt)*) => {
        ::std::format!($($arguments)*)
    };
}

pub(crate) use format_type_name as format;
