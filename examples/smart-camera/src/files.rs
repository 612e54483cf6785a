// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording or an output must not change a file that the program reads. In: its path, and the pipelines.
//! Out: an error, before any file is written.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gst::glib;

use crate::Error;
use crate::pipeline::Pipeline;

/// Checks that no element of these pipelines has a property with the path, or the `file:` URI, of the file that
/// `option` names.
pub fn check_written(option: &str, file: &str, pipelines: &[&Pipeline]) -> Result<(), Error> {
    // A file that does not exist is not read.
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

/// The path that a name or a `file:` URI means.
pub fn path(name: &str) -> PathBuf {
    match glib::filename_from_uri(name) {
        Ok((path, _)) => path,
        Err(_) => PathBuf::from(name),
    }
}

/// The device and the inode, which links have in common with their file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
