// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enumerations whose values have names, as in layout files and as values of properties.

/// Declares an enumeration with a number and a name for each value.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident {
            $($(#[$of_value:meta])* $value:ident = $number:literal $name:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $type {
            $($(#[$of_value])* $value = $number,)*
        }

        impl $type {
            /// All values.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$value),*];

            /// The name, as in layout files and as the value of a property.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;
