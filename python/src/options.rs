// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of arguments.

use gstnmsfilter::nms::{Activation, BoxFormat, Coordinates, Method, Overlap};

use crate::error::{Error, Result};

/// A number from 0 to 1.
pub fn threshold(name: &str, number: f64) -> Result<f64> {
    match (0.0..=1.0).contains(&number) {
        true => Ok(number),
        false => Err(Error::Input(format!("{name}: expected a number from 0 to 1, got {number}"))),
    }
}

/// The value of this name.
fn named<T: Copy>(argument: &str, name: &str, values: &[(&str, T)]) -> Result<T> {
    let found = values.iter().find(|(known, _)| *known == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<_> = values.iter().map(|(known, _)| format!("{known:?}")).collect();
        Error::Input(format!("{argument}: expected one of {}, got {name:?}", known.join(", ")))
    })
}

pub fn method(name: Option<&str>) -> Result<Method> {
    let Some(name) = name else { return Ok(Method::Greedy) };
    named(
        "method",
        name,
        &[Method::Greedy, Method::MapReduce].map(|method| (method.name(), method)),
    )
}

/// The same, or "none".
pub fn method_or_none(name: Option<&str>) -> Result<Method> {
    let Some(name) = name else { return Ok(Method::Greedy) };
    let all = [Method::Greedy, Method::MapReduce, Method::None];
    named("method", name, &all.map(|method| (method.name(), method)))
}

pub fn overlap(name: Option<&str>) -> Result<Overlap> {
    use Overlap::{Diou, Iou, ProbIou, Representative, Smaller};
    let Some(name) = name else { return Ok(Iou) };
    let all = [Iou, Smaller, Representative, Diou, ProbIou];
    named("overlap", name, &all.map(|overlap| (overlap.name(), overlap)))
}

pub fn box_format(name: &str) -> Result<BoxFormat> {
    let all = [BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square, BoxFormat::Distances];
    named("box_format", name, &all.map(|format| (format.name(), format)))
}

pub fn coordinates(name: &str) -> Result<Coordinates> {
    let all = [
        ("auto", Coordinates::Auto),
        ("pixels", Coordinates::Pixels),
        ("normalized", Coordinates::Normalized),
    ];
    named("coordinates", name, &all)
}

pub fn activation(name: &str) -> Result<Activation> {
    let all = [Activation::None, Activation::Sigmoid, Activation::Softmax];
    named("score_activation", name, &all.map(|activation| (activation.name(), activation)))
}
