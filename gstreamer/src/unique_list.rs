// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists without an order (`GstUniqueList`, 1.28), which tensors in caps are.

use std::ops::Deref;

use gst::glib;
use gst::glib::translate::{IntoGlib, ToGlibPtr};

use crate::library::UniqueListTable;

/// The elements of a value that is such a list; `None` if it is not.
pub fn unique_list(value: &glib::SendValue) -> Option<impl Iterator<Item = &glib::SendValue>> {
    let table = UniqueListTable::get().ok()?;
    let value: &glib::Value = value.deref();
    // SAFETY: the functions read a value of this type, and the index is less than the size. The list owns its elements,
    // which can be sent, as it can. `glib::SendValue` has the representation of `GValue`.
    unsafe {
        if value.type_().into_glib() != (table.gst_value_unique_list_get_type)() {
            return None;
        }
        let raw = value.to_glib_none().0;
        let size = (table.gst_value_unique_list_get_size)(raw);
        Some((0..size).map(move |index| {
            &*(table.gst_value_unique_list_get_value)(raw, index).cast::<glib::SendValue>()
        }))
    }
}
