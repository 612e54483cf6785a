//! What every element checks before one of its properties takes a new value.

use gst::glib;
use gst::prelude::*;

use crate::text;

/// Whether the property may take the value. A string must be UTF-8, which `g_object_set_property`
/// does not check: one that is not is refused with a warning, and the property stays as it is.
///
/// A property that is only read when the element starts may be set later, but that earns a
/// warning, too.
pub(super) fn accepts(
    category: gst::DebugCategory,
    element: &gst::Element,
    value: &glib::Value,
    spec: &glib::ParamSpec,
) -> bool {
    let name = spec.name();
    if text::of_value(value).is_err() {
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
        gst::warning!(category, obj = element, "{name} is set, but not followed before a restart");
        gst::element_warning!(
            element,
            gst::LibraryError::Settings,
            ("{name} is set, but not followed before a restart; take the element to READY and back"),
            ["the element is in the state {:?}", element.current_state()]
        );
    }
    true
}

/// The element's own properties that differ from their defaults, as gst-launch takes them.
pub(super) fn non_default(element: &gst::Element) -> String {
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
