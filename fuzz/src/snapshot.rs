// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores the values of an element's properties at one point in time.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use gst::glib;
use gst::glib::ParamFlags;
use gst::prelude::*;

/// Values of the properties that the element's own type declares, without read-only properties.
#[derive(Clone)]
pub struct Snapshot(BTreeMap<String, Setting>);

#[derive(Clone)]
struct Setting {
    value: glib::Value,
    is_changed: bool,
}

impl Snapshot {
    pub fn take(element: &gst::Element) -> Self {
        let all = element.list_properties();
        let own = all.iter().filter(|spec| {
            spec.owner_type() == element.type_() && spec.flags().contains(ParamFlags::READWRITE)
        });
        let setting = |spec: &glib::ParamSpec| {
            let value = element.property_value(spec.name());
            let is_changed = value.compare(spec.default_value()) != Some(Ordering::Equal);
            (spec.name().to_owned(), Setting { value, is_changed })
        };
        Self(own.map(setting).collect())
    }

    fn setting(&self, name: &str) -> &Setting {
        self.0.get(name).unwrap_or_else(|| panic!("there is no property {name}"))
    }

    /// Returns the value of a property with this type.
    pub fn get<T: for<'a> glib::value::FromValue<'a> + 'static>(&self, name: &str) -> T {
        let value = &self.setting(name).value;
        value.get_owned().unwrap_or_else(|_| panic!("{name} is {value:?}"))
    }

    /// Returns the nick of an enumeration's value.
    pub fn nick(&self, name: &str) -> String {
        let value = &self.setting(name).value;
        let (_class, value) =
            glib::EnumValue::from_value(value).unwrap_or_else(|| panic!("{name} is {value:?}"));
        value.nick().to_owned()
    }

    /// Returns the nicks of the flags that are set.
    pub fn nicks(&self, name: &str) -> Vec<String> {
        let value = &self.setting(name).value;
        let (_class, flags) =
            glib::FlagsValue::from_value(value).unwrap_or_else(|| panic!("{name} is {value:?}"));
        flags.into_iter().map(|flag| flag.nick().to_owned()).collect()
    }

    /// Returns the properties that differ from their defaults.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, setting)| setting.is_changed).map(|(name, _)| name.as_str())
    }
}

/// Prints only properties that differ from their defaults.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = self.0.iter().filter(|(_, setting)| setting.is_changed);
        f.debug_map().entries(changed.map(|(name, setting)| (name, &setting.value))).finish()
    }
}
