// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout file. In: its path. Out: a decoder.

use std::path::{Path, PathBuf};

use crate::file::{self, FileError};
use nmsfilter_core::decoder::description::MAX_LENGTH;
use nmsfilter_core::decoder::{self, Decoder, DescriptionError};

/// The reason why a layout file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::elements::nmsfilter) enum LayoutFileError {
    #[error("decoder=layout needs a description of the tensors; set layout-file to its path")]
    NotSet,
    #[error("the layout file {path:?} {cause}")]
    File { path: PathBuf, cause: FileError },
    #[error("the layout file {path:?}, {cause}")]
    Description { path: PathBuf, cause: DescriptionError },
}

/// The decoder that the file at `path` describes.
///
/// # Errors
/// If no path is set, the file cannot be read, or it is not in the format.
pub(super) fn load(path: Option<&str>) -> Result<&'static Decoder, LayoutFileError> {
    let path = path.filter(|path| !path.is_empty()).ok_or(LayoutFileError::NotSet)?;
    let path = Path::new(path);
    let of_path = || path.to_owned();
    let text = file::read_text(path, MAX_LENGTH as u64)
        .map_err(|cause| LayoutFileError::File { path: of_path(), cause })?;
    decoder::from_text(&text)
        .map_err(|cause| LayoutFileError::Description { path: of_path(), cause })
}
