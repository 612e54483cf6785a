// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of DeepStream 9.1: NVIDIA's own metadata libraries, and elements compiled from NVIDIA's
//! source.
//!
//! `tests/nvidia/build.sh` builds the kit with libraries of the Python Package Index. When it runs
//! as root, it also installs the Debian packages that it needs (`tests/run.sh` has installed them
//! before). The result is kept in the folder `NMSFILTER_CACHE`. [`FOLDER`] names a kit that was
//! built elsewhere, which GPU machines use.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::skip::skip;
use crate::support::{data, library, project};

/// Variable with the folder of a kit. It is set for processes that need the kit.
pub const FOLDER: &str = "NMSFILTER_NVIDIA_KIT";

/// The folder of a kit.
pub struct Kit(PathBuf);

impl Kit {
    /// Returns the kit, and builds it if necessary. If it cannot be built on this machine, returns
    /// `None` and reports a skip.
    pub fn get() -> Option<Self> {
        static KIT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        if let Some(kit) = Self::given() {
            return Some(kit);
        }
        let sources = data::path("deepstream-9.1")?;
        if !library::has_compiler() {
            return None;
        }
        match KIT.get_or_init(|| build(&sources)) {
            Ok(folder) => Some(Self(folder.clone())),
            Err(problem) => {
                skip(&format!("a part of DeepStream, which cannot be built here: {problem}"));
                None
            }
        }
    }

    /// Returns the kit that [`FOLDER`] names.
    pub fn given() -> Option<Self> {
        Some(Self(std::env::var_os(FOLDER)?.into()))
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns true if this kit's nvinfer runs in host memory.
    pub fn is_on_host(&self) -> bool {
        self.0.join("host").is_dir()
    }

    /// Returns the folder of the libraries.
    pub fn libraries(&self) -> PathBuf {
        self.0.join("lib")
    }

    /// Returns the plugin file with nvstreammux.
    pub fn nvstreammux(&self) -> PathBuf {
        self.plugin("nvdsgst_multistream")
    }

    /// Returns the plugin file with this name.
    pub fn plugin(&self, name: &str) -> PathBuf {
        self.0.join(format!("plugins/lib{name}.so"))
    }
}

/// Returns the folder in which tests keep what they build.
fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("NMSFILTER_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").unwrap_or_else(std::env::temp_dir).join(".cache");
        variable("XDG_CACHE_HOME").unwrap_or_else(home).join("nmsfilter")
    })
}

fn build(sources: &Path) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    let parts =
        ["tests/nvidia", "tests/deepstream/nvmsgconv/stubs", "pipelines/deepstream/no_objects.c"];
    for part in parts {
        hash_files(&project::path(part), &mut hasher)
            .map_err(|error| format!("{part}: {error}"))?;
    }
    let folder = cache().join(format!("nvidia-kit-{:016x}", hasher.finish()));
    if folder.is_dir() {
        return Ok(folder);
    }
    // Another process may build the kit meanwhile, so the build has a folder for this
    // process.
    let new = folder.with_extension(std::process::id().to_string());
    let script = project::path("tests/nvidia/build.sh");
    let output = Command::new(script).args([sources, &new]).arg("--no-gpu").output();
    let output = output.map_err(|error| error.to_string())?;
    let moved = output.status.success() && std::fs::rename(&new, &folder).is_ok();
    if !moved {
        // Leftover files of a failed build are harmless.
        let _ = std::fs::remove_dir_all(&new);
    }
    if folder.is_dir() {
        Ok(folder)
    } else {
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(messages.trim().lines().last().unwrap_or("no message").to_owned())
    }
}

/// Hashes a file, or all files of a folder.
pub fn hash_files(path: &Path, hasher: &mut DefaultHasher) -> std::io::Result<()> {
    if !path.is_dir() {
        path.file_name().hash(hasher);
        std::fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| hash_files(entry, hasher))
}
