// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of all elements: their table, the check of a new value, and the list of values that are not the default.

use std::ops::RangeInclusive;

use gst::glib;
use gst::prelude::*;

use crate::bindings::strings;

/// Declares the settings of an element, a structure whose members are its properties, and their table. A line has the
/// member, which with hyphens names the property, its type, a default other than the type has, the range of
/// a number, the nick, when the property may be set (`ready`, `playing`), and the blurb, which is its documentation.
/// Members behind `and` are no properties.
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $settings:ident {
            $($member:ident: $type:ty $(= $default:expr)? $(, $range:expr)?; $nick:literal, $when:ident, $blurb:literal;)*
        }
        $(and {
            $($(#[$attribute_of_other:meta])* $other:ident: $type_of_other:ty = $default_of_other:expr;)*
        })?
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility struct $settings {
            $(pub $member: $type,)*
            $($($(#[$attribute_of_other])* pub $other: $type_of_other,)*)?
        }

        impl Default for $settings {
            fn default() -> Self {
                Self {
                    $($member: $crate::settings!(@default $($default)?),)*
                    $($($other: $default_of_other,)*)?
                }
            }
        }

        impl $crate::elements::property::Properties for $settings {
            const ALL: &[$crate::elements::property::Property<Self>] = &[$({
                use $crate::elements::property::{Kind, Property, Text};
                Property {
                    member: stringify!($member),
                    spec: |settings, name| {
                        let range = $crate::settings!(@option $($range)?);
                        Kind::spec(settings.$member, name, Text::$when($nick, $blurb), range)
                    },
                    get: |settings| gst::glib::value::ToValue::to_value(&settings.$member),
                    set: |settings, value| {
                        settings.$member =
                            value.get().expect("GObject passes values of the property's type");
                    },
                }
            }),*];
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
}

/// A property, whose value is a member of `S`.
pub struct Property<S> {
    /// The name, with underscores.
    pub member: &'static str,
    /// The specification, with the value of the member as the default.
    pub spec: fn(S, &str) -> glib::ParamSpec,
    /// Returns the value.
    pub get: fn(&S) -> glib::Value,
    /// Sets the value, which GObject has checked.
    pub set: fn(&mut S, &glib::Value),
}

/// Settings whose members are properties.
pub trait Properties: Default + 'static {
    /// The properties.
    const ALL: &[Property<Self>];

    /// The specifications of all properties.
    fn specs() -> impl Iterator<Item = glib::ParamSpec> {
        Self::ALL.iter().map(|it| (it.spec)(Self::default(), &name(it.member)))
    }

    /// The value of the property with this name, if there is one.
    fn value(&self, property: &str) -> Option<glib::Value> {
        find::<Self>(property).map(|it| (it.get)(self))
    }

    /// Sets the property with this name. Returns false if the element does not have it.
    fn set_value(&mut self, property: &str, value: &glib::Value) -> bool {
        find::<Self>(property).inspect(|it| (it.set)(self, value)).is_some()
    }
}

fn find<S: Properties>(property: &str) -> Option<&'static Property<S>> {
    S::ALL.iter().find(|it| name(it.member) == property)
}

/// The name of the property that is a member with this name.
pub fn name(member: &str) -> String {
    member.replace('_', "-")
}

/// The specification of the property `stats`.
pub fn stats(blurb: &str) -> glib::ParamSpec {
    let builder = glib::ParamSpecBoxed::builder::<gst::Structure>("stats");
    builder.nick("Stats").blurb(blurb).read_only().build()
}

/// What `gst-inspect-1.0` prints of a property, and when it may be set.
pub struct Text {
    nick: &'static str,
    blurb: &'static str,
    flags: glib::ParamFlags,
}

impl Text {
    /// The text of a property that may be set at any time.
    pub fn playing(nick: &'static str, blurb: &'static str) -> Self {
        let flags = glib::ParamFlags::READWRITE | gst::PARAM_FLAG_MUTABLE_PLAYING;
        Self { nick, blurb, flags }
    }

    /// The text of a property that is read when the element starts.
    pub fn ready(nick: &'static str, blurb: &'static str) -> Self {
        let flags = glib::ParamFlags::READWRITE | gst::PARAM_FLAG_MUTABLE_READY;
        Self { nick, blurb, flags }
    }

    /// Adds the text to a specification.
    pub fn add_to<'b, B: ParamSpecBuilderExt<'b>>(self, builder: B) -> B {
        builder.nick(self.nick).blurb(self.blurb).flags(self.flags)
    }
}

/// A type of properties.
pub trait Kind: ToValue + for<'v> glib::value::FromValue<'v> {
    /// The specification of a property, with this value as the default; the range is for numbers.
    fn spec(self, name: &str, text: Text, range: Option<RangeInclusive<Self>>) -> glib::ParamSpec;
}

/// Implements [`Kind`] for a type, by the builder of its specification.
#[macro_export]
macro_rules! property_kind {
    ($type:ty, |$default:pat_param, $name:ident, $range:pat_param| $builder:expr) => {
        impl $crate::elements::property::Kind for $type {
            fn spec(
                self,
                $name: &str,
                text: $crate::elements::property::Text,
                $range: Option<std::ops::RangeInclusive<Self>>,
            ) -> glib::ParamSpec {
                let $default = self;
                text.add_to($builder).build()
            }
        }
    };
}

macro_rules! number_kinds {
    ($($type:ident: $spec:ident),*) => {$(
        property_kind!($type, |default, name, range| {
            let (minimum, maximum) = range.unwrap_or($type::MIN..=$type::MAX).into_inner();
            glib::$spec::builder(name).minimum(minimum).maximum(maximum).default_value(default)
        });
    )*};
}

number_kinds!(u32: ParamSpecUInt, i32: ParamSpecInt, f32: ParamSpecFloat, f64: ParamSpecDouble);
property_kind!(bool, |default, name, _| glib::ParamSpecBoolean::builder(name)
    .default_value(default));
property_kind!(Option<String>, |_, name, _| glib::ParamSpecString::builder(name));

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
