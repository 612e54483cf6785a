// SPDX-License-Identifier: MIT OR Apache-2.0
//! Additions to GStreamer's bindings: fields that are found without a look-up of their names, strings that may not be
//! valid UTF-8, and names of types in a process with several copies of this crate.

pub(crate) mod field_name;
pub mod strings;
pub(crate) mod type_names;
