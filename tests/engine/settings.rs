// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a case is decoded, in the words of the engines or of the element.

use nmsfilter_core::decoder::BoxFormat;
use nmsfilter_core::engine::Params;

/// The settings of a case.
#[derive(Clone, Copy)]
pub enum Settings<'a> {
    /// The parameters of an engine and a format of boxes.
    Params(&'a Params, BoxFormat),
    /// Properties of `nmsfilter`: name and value.
    Properties(&'a [(&'a str, &'a str)]),
}
