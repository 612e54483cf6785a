// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locates the project's folder.

use std::path::{Path, PathBuf};

/// The path of a file or folder of the project. Test programs belong to packages in folders of it.
pub fn path(relative: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [("core", ".."), ("tests", ".."), ("examples/smart-camera", "../..")];
    let folder = folders.iter().find(|(folder, _)| manifest.ends_with(folder));
    let root = folder.map_or_else(|| manifest.into(), |(_, root)| manifest.join(root));
    root.join(relative)
}
