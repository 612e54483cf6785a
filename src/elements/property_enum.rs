// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of an enumeration that is the type of a property.

/// Declares the enumeration of a property: `Value = number, "nick", "description"`. Its values can be those of an
/// enumeration of the core (`for`), or those and one that leaves the choice open (`for Option of`, `auto`).
#[macro_export]
macro_rules! property_enum {
    (
        $(#[$doc:meta])*
        $name:ident as $type_name:literal {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $nick:literal, $blurb:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
        #[repr(u32)]
        #[enum_type(name = $type_name, allow_name_conflict)]
        pub enum $name {
            $($(#[$value_doc])* #[enum_value(name = $blurb, nick = $nick)] $value = $number,)+
        }

        $crate::property_kind!($name, |default, name, _| {
            glib::ParamSpecEnum::builder_with_default(name, default)
        });
    };
    (
        $(#[$doc:meta])*
        $name:ident as $type_name:literal for Option of $core:path {
            auto = $auto:literal, $auto_blurb:literal;
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $nick:literal, $blurb:literal;)+
        }
    ) => {
        $crate::property_enum! {
            $(#[$doc])*
            $name as $type_name {
                /// The choice is open.
                #[default]
                Auto = $auto, "auto", $auto_blurb;
                $($(#[$value_doc])* $value = $number, $nick, $blurb;)+
            }
        }

        $crate::property_enum!(@chosen $name, $core, $($value)+);
    };
    (@chosen $name:ident, $core:path, $($value:ident)+) => {
        impl $name {
            /// The value of the core; `None` for `auto`.
            pub fn chosen(self) -> Option<$core> {
                match self {
                    Self::Auto => None,
                    $(Self::$value => Some(<$core>::$value),)+
                }
            }
        }
    };
    (
        $(#[$doc:meta])*
        $name:ident as $type_name:literal for $core:path {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $nick:literal, $blurb:literal;)+
        }
    ) => {
        $crate::property_enum! {
            $(#[$doc])*
            $name as $type_name {
                $($(#[$value_doc])* $value = $number, $nick, $blurb;)+
            }
        }

        impl From<$name> for $core {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$value => <$core>::$value,)+
                }
            }
        }
    };
}
