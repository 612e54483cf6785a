// SPDX-License-Identifier: MIT OR Apache-2.0
//! The properties for parameters with a single value, made of the core's table.
//!
//! In: [`Params::SCALARS`]. Out: specifications of properties, and access to their values.

use gst::glib;
use gst::prelude::*;

use super::settings::Settings;
use nmsfilter_core::engine::{Params, Scalar, ScalarKind};

/// The properties, with the element's defaults.
pub(super) fn properties() -> impl Iterator<Item = glib::ParamSpec> {
    let defaults = Settings::default().scalars;
    Params::SCALARS.iter().map(move |scalar| property(scalar, &defaults))
}

fn property(scalar: &Scalar, defaults: &Params) -> glib::ParamSpec {
    let name = &property_name(scalar);
    match scalar.kind {
        ScalarKind::Flag(flag) => glib::ParamSpecBoolean::builder(name)
            .default_value((flag.get)(defaults))
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
        ScalarKind::Count(count) => glib::ParamSpecUInt::builder(name)
            .default_value((count.get)(defaults) as u32)
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
        ScalarKind::Number { minimum, maximum, field } => glib::ParamSpecFloat::builder(name)
            .minimum(minimum)
            .maximum(maximum)
            .default_value((field.get)(defaults))
            .nick(scalar.title)
            .blurb(scalar.text)
            .mutable_playing()
            .build(),
    }
}

fn property_name(scalar: &Scalar) -> String {
    scalar.name.replace('_', "-")
}

fn find(property: &str) -> Option<&'static Scalar> {
    Params::SCALARS.iter().find(|scalar| property_name(scalar) == property)
}

/// The value of a property, or `None` if the property is not in the table.
pub(super) fn get(params: &Params, property: &str) -> Option<glib::Value> {
    Some(match find(property)?.kind {
        ScalarKind::Flag(flag) => (flag.get)(params).to_value(),
        ScalarKind::Count(count) => ((count.get)(params) as u32).to_value(),
        ScalarKind::Number { field, .. } => (field.get)(params).to_value(),
    })
}

/// Sets a property to a value of its type. Returns false if the property is not in the table.
pub(super) fn set(params: &mut Params, property: &str, value: &glib::Value) -> bool {
    const TYPE: &str = "GObject passes values of the property's type";
    let Some(scalar) = find(property) else { return false };
    match scalar.kind {
        ScalarKind::Flag(flag) => (flag.set)(params, value.get().expect(TYPE)),
        ScalarKind::Count(count) => {
            (count.set)(params, value.get::<u32>().expect(TYPE) as usize);
        }
        ScalarKind::Number { field, .. } => (field.set)(params, value.get().expect(TYPE)),
    }
    true
}

/// The property whose number is NaN, if there is one.
pub(super) fn not_a_number(params: &Params) -> Option<String> {
    let is_nan = |scalar: &&Scalar| match scalar.kind {
        ScalarKind::Number { field, .. } => (field.get)(params).is_nan(),
        ScalarKind::Flag(_) | ScalarKind::Count(_) => false,
    };
    Params::SCALARS.iter().find(is_nan).map(property_name)
}
