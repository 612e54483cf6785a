// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of all elements: the check of a new value, and the list of values that are not the
//! default.

use gst::glib;
use gst::prelude::*;

use crate::bindings::strings;

/// Returns true if the property may be set to the value. A string must be valid UTF-8, which
/// `g_object_set_property` does not check. Other strings are refused with a warning, and the
/// property keeps its value.
///
/// A property that is only read when the element starts may be set later; a warning is posted then.
pub fn accepts(
    category: gst::DebugCategory,
    element: &gst::Element,
    value: &glib::Value,
    spec: &glib::ParamSpec,
) -> bool {
    let name = spec.name();
    if strings::of_value(value).is_err() {
        gst::warning!(category, obj = element, "{name}: refused a value that is not UTF-8");
        gst::element_warning!(
            element,
            gst::LibraryError::Settings,
            ("{name}: expected text in UTF-8, got other bytes; the property keeps its value")
        );
        return false;
    }
    let needs_restart = spec.flags().contains(gst::PARAM_FLAG_MUTABLE_READY);
    if needs_restart && element.current_state() > gst::State::Ready {
        gst::warning!(category, obj = element, "{name} is set, but not applied before a restart");
        gst::element_warning!(
            element,
            gst::LibraryError::Settings,
            ("{name} is set, but not applied before a restart; take the element to READY and back"),
            ["the element is in the state {:?}", element.current_state()]
        );
    }
    true
}

/// The properties of the element's own class that differ from their defaults, in gst-launch syntax.
pub fn non_default(element: &gst::Element) -> String {
    let changed = |spec: &glib::ParamSpec| {
        let own = spec.owner_type() == element.type_();
        if !own || !spec.flags().contains(glib::ParamFlags::READWRITE) {
            return None;
        }
        let text = |value: &glib::Value| value.serialize().ok();
        let value = element.property_value(spec.name());
        let is_default = text(&value) == text(spec.default_value());
        (!is_default).then(|| format!("{}={}", spec.name(), text(&value).unwrap_or_default()))
    };
    let all: Vec<String> = element.list_properties().iter().filter_map(changed).collect();
    if all.is_empty() { "no property set".to_owned() } else { all.join(" ") }
}
