// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout file. In: its path. Out: a decoder.

use std::path::Path;

use super::SettingsError;
use crate::file;
use nmsfilter_core::decoder::description::MAX_LENGTH;
use nmsfilter_core::decoder::{self, Decoder};

/// The decoder that the file at `path` describes.
///
/// # Errors
/// If no path is set, the file cannot be read, or it is not in the format.
pub(super) fn load(path: Option<&str>) -> Result<&'static Decoder, SettingsError> {
    let path = path.filter(|path| !path.is_empty()).ok_or_else(|| {
        let text = "decoder=layout needs a description of the tensors; set layout-file to its path";
        SettingsError(text.into())
    })?;
    let text = file::read_text(Path::new(path), MAX_LENGTH as u64)
        .map_err(|cause| SettingsError(format!("the layout file {path:?} {cause}")))?;
    decoder::from_text(&text)
        .map_err(|cause| SettingsError(format!("the layout file {path:?}, {cause}")))
}
