// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders and files that exist only while a test uses them.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns a path that no other test uses, in this program or another.
fn unique_path(suffix: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("scratch-{}-{n}{suffix}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A folder that is removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new, empty folder.
    pub fn new() -> Self {
        let folder = unique_path("");
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file that is removed when it is dropped.
pub struct ScratchFile(PathBuf);

impl ScratchFile {
    /// Makes a new file that contains `bytes`. The extension matters, since `tensorreplay` chooses
    /// a format by it.
    pub fn new(extension: &str, bytes: &[u8]) -> Self {
        let path = unique_path(&format!(".{extension}"));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Deref for ScratchFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
