// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enumerations of C.
//!
//! In: the number in a field. Out: the core's value, or an error with the names of field and enumeration.

/// The value of the core for a number of an enumeration of C, whose variants have equal names. `field` is the field's
/// name in the error for other numbers.
macro_rules! value_of {
    ($field:expr, $number:expr, $of_c:ident => $module:ident::$of_core:ident, [$($variant:ident),+]) => {
        match $number {
            $(it if it == $of_c::$variant as u32 => Ok($module::$of_core::$variant),)+
            other => Err($crate::border::Failure::argument(format!(
                concat!("{}: expected an Nmsfilter", stringify!($of_c), ", got {}"),
                $field, other
            ))),
        }
    };
}
pub(crate) use value_of;
