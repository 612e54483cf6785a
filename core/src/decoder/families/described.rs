// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders that are [described](crate::decoder::description) as text: the built-in ones, and users' layout
//! files.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{Family, family};
use crate::decoder::description::{Description, DescriptionError, STRIDES};
use crate::decoder::{Decoder, Form};

/// The decoder of a user's description.
///
/// The text and the decoder stay in memory until the process ends, once for each text: equal texts give one
/// decoder. A text with an error does not.
///
/// # Errors
/// If the text is not in the [format](crate::decoder::description).
pub fn from_text(text: &str) -> Result<&'static Decoder, DescriptionError> {
    static DECODERS: LazyLock<Mutex<HashMap<&'static str, &'static Decoder>>> =
        LazyLock::new(Mutex::default);
    // A panic cannot leave the map half changed.
    let mut decoders = DECODERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&decoder) = decoders.get(text) {
        return Ok(decoder);
    }
    if Description::parse(text)?.has_any_strides {
        Description::with_strides(text, &STRIDES)?;
    }
    let text: &'static str = String::from(text).leak();
    let decoder = Box::leak(Box::new(decoder(&[text], family(&[]))?));
    decoders.insert(text, decoder);
    Ok(decoder)
}

/// The decoder of descriptions of one name.
///
/// # Errors
/// If a text is not a description.
pub(super) fn decoder(texts: &[&'static str], family: Family) -> Result<Decoder, DescriptionError> {
    let descriptions: Vec<Description<'static>> =
        texts.iter().map(|text| Description::parse(text)).collect::<Result<_, _>>()?;
    let mut expects: Vec<String> = descriptions.iter().map(Description::expects).collect();
    expects.dedup();
    let expects: &'static str = expects.join(", or ").leak();
    let first = &descriptions[0];
    let (name, scores, label) = (first.name, first.values, first.label);
    let forms = texts.iter().zip(descriptions);
    let forms =
        forms.map(|(text, it)| Form::of_text(text, it, expects)).collect::<Result<_, _>>()?;
    Ok(Decoder { name, expects, scores, label, forms, family })
}
