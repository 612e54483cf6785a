// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's folder.

use std::path::{Path, PathBuf};

/// The path of a file or folder of the project. Test programs belong to the main package, or to the
/// package in the folder `tests`.
pub fn path(relative: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = if manifest.ends_with("tests") { manifest.join("..") } else { manifest.into() };
    root.join(relative)
}
