// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of DeepStream 9.1: NVIDIA's own libraries of metadata, and the new nvstreammux, compiled from its source.
//!
//! A script in the folder of inputs builds it, with libraries of the Python Package Index. As root it also installs
//! the Debian packages that it needs, which `tests/run.sh` has installed before. What is built is kept in the folder
//! `NMSFILTER_CACHE`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::skip::skip;
use crate::support::{data, library};

/// The folders of the kit.
pub struct Kit(PathBuf);

impl Kit {
    /// The kit, which is built if it was not before; `None`, which is reported as a skip, if it cannot be built here.
    pub fn get() -> Option<Self> {
        static KIT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let sources = data::path("deepstream-9.1")?;
        let script = data::path("tools/deepstream-kit.sh")?;
        if !library::has_compiler() {
            return None;
        }
        match KIT.get_or_init(|| build(&script, &sources)) {
            Ok(folder) => Some(Self(folder.clone())),
            Err(problem) => {
                skip(&format!("a part of DeepStream, which cannot be built here: {problem}"));
                None
            }
        }
    }

    /// The folder of the libraries.
    pub fn libraries(&self) -> PathBuf {
        self.0.join("lib")
    }

    /// The plugin file with nvstreammux.
    pub fn nvstreammux(&self) -> PathBuf {
        self.0.join("plugins/libnvdsgst_multistream.so")
    }
}

/// The folder in which what is built for tests is kept.
fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("NMSFILTER_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").unwrap_or_else(std::env::temp_dir).join(".cache");
        variable("XDG_CACHE_HOME").unwrap_or_else(home).join("nmsfilter")
    })
}

fn build(script: &Path, sources: &Path) -> Result<PathBuf, String> {
    let text = std::fs::read(script).map_err(|error| error.to_string())?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let folder = cache().join(format!("deepstream-kit-{:016x}", hasher.finish()));
    if folder.is_dir() {
        return Ok(folder);
    }
    // Another process may build it at the same time.
    let new = folder.with_extension(std::process::id().to_string());
    let output = Command::new(script).args([sources, &new]).arg("--no-gpu").output();
    let output = output.map_err(|error| error.to_string())?;
    let moved = output.status.success() && std::fs::rename(&new, &folder).is_ok();
    if !moved {
        // What is left of it does no harm.
        let _ = std::fs::remove_dir_all(&new);
    }
    match folder.is_dir() {
        true => Ok(folder),
        false => {
            let messages = String::from_utf8_lossy(&output.stderr);
            Err(messages.trim().lines().last().unwrap_or("no message").to_owned())
        }
    }
}
