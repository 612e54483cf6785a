// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ensures that a recording or an output does not overwrite a file that the program reads. In: the
//! path of the file to write, and the pipelines. Out: an error, before any file is written.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gst::glib;

use crate::Error;
use crate::pipeline::Pipeline;

/// Returns an error if an element of these pipelines has a property with the path or the `file:`
/// URI of the file that `option` names.
pub fn check_written(option: &str, file: &str, pipelines: &[&Pipeline]) -> Result<(), Error> {
    // If the file does not exist, nothing can be reading it.
    let Some(written) = identity(Path::new(file)) else { return Ok(()) };
    let names = pipelines.iter().flat_map(|pipeline| pipeline.text_properties());
    for name in names {
        if identity(&path(&name)) == Some(written) {
            return Err(format!(
                "--{option} {file}: expected another file than those that are read; it is the same \
                 file as {name}"
            )
            .into());
        }
    }
    Ok(())
}

/// Converts a file name or a `file:` URI to a path.
pub fn path(name: &str) -> PathBuf {
    match glib::filename_from_uri(name) {
        Ok((path, _)) => path,
        Err(_) => PathBuf::from(name),
    }
}

/// Returns the device and the inode, which a file shares with all links to it.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
