// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of parameters with a single value.
//!
//! [`Params::SCALARS`] is the table of these parameters. Interfaces offer each entry under its
//! name, with its range, its text, and its default in [`Params`].

use super::Params;

/// A parameter that is a number or a truth value.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// The name in C and Python. Names of GStreamer's properties have hyphens instead of
    /// underscores.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The effect and the unit.
    pub text: &'static str,
    /// The type, the range and the field.
    pub kind: ScalarKind,
}

/// The type and the range of a [`Scalar`], and its field in [`Params`].
#[derive(Clone, Copy, Debug)]
pub enum ScalarKind {
    /// A truth value.
    Flag(ScalarField<bool>),
    /// A number of items, where 0 means no limit.
    Count(ScalarField<usize>),
    /// A number, and its least and greatest value.
    Number(ScalarField<f32>, [f32; 2]),
}

/// A field of [`Params`].
#[derive(Clone, Copy, Debug)]
pub struct ScalarField<T> {
    /// Reads the field.
    pub get: fn(&Params) -> T,
    /// Writes the field.
    pub set: fn(&mut Params, T),
}

/// The table of the parameters. A line has the name, the kind, the path of the field in [`Params`], and both texts.
macro_rules! scalars {
    ($(
        $name:ident: $kind:ident $(($minimum:expr, $maximum:expr))? of $($path:ident).+;
            $title:literal, $text:literal;
    )*) => {
        &[$(Scalar {
            name: stringify!($name),
            title: $title,
            text: $text,
            kind: ScalarKind::$kind(
                ScalarField {
                    get: |params| params.$($path).+,
                    set: |params, value| params.$($path).+ = value,
                }
                $(, [$minimum, $maximum])?
            ),
        }),*]
    };
}
pub(super) use scalars;
