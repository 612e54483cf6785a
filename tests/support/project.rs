// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's folder.

use std::path::{Path, PathBuf};

/// The path of a file or folder of the project. Test programs belong to the main package, or to a
/// package in a folder of it.
pub fn path(relative: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let in_folder = ["inference", "tests"].iter().any(|folder| manifest.ends_with(folder));
    let root = if in_folder { manifest.join("..") } else { manifest.into() };
    root.join(relative)
}
