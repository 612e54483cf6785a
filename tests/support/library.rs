// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds and loads shared libraries in C++.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libloading::os::unix::{Library as SharedLibrary, RTLD_NOW};

use super::skip::skip;

/// Returns true if there is a C++ compiler. Otherwise returns false and reports a skip.
pub fn has_compiler() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let answer = Command::new(&compiler).arg("--version").output();
    if let Err(error) = &answer {
        skip(&format!("the C++ compiler {compiler}: {error}"));
    }
    answer.is_ok()
}

/// Runs `script INPUT FOLDER`, which compiles a library from `input` into the folder. Returns the
/// folder.
pub fn build(script: &str, input: &Path, folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let script = crate::support::project::path(script);
    let output = Command::new(&script).args([input, &folder]).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", script.display());
    folder
}

/// A loaded library. It is never unloaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadedLibrary(&'static SharedLibrary);

impl LoadedLibrary {
    /// Loads the library at `path`.
    ///
    /// # Safety
    /// Loading runs the initializers of the library.
    pub unsafe fn open(path: &Path) -> Self {
        // SAFETY: required of the caller.
        let library = unsafe { SharedLibrary::open(Some(path), RTLD_NOW) };
        let library = library.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        Self(Box::leak(Box::new(library)))
    }

    /// Returns the library that the dynamic loader knows by this name, if the process has already
    /// loaded it.
    pub fn loaded(name: &str) -> Option<Self> {
        const RTLD_NOLOAD: i32 = 4;
        // SAFETY: nothing is loaded, so no initializers run.
        let library = unsafe { SharedLibrary::open(Some(name), RTLD_NOW | RTLD_NOLOAD) };
        Some(Self(Box::leak(Box::new(library.ok()?))))
    }

    /// Returns true if the library has a symbol with this name.
    pub fn has(self, name: &CStr) -> bool {
        // SAFETY: the symbol is not used.
        unsafe { self.0.get::<*const ()>(name) }.is_ok()
    }

    /// Returns the function `name`.
    ///
    /// # Safety
    /// `T` must be the type of a pointer to the function.
    pub unsafe fn function<T: Copy>(self, name: &CStr) -> T {
        // SAFETY: required of the caller.
        let function = unsafe { self.0.get::<T>(name) };
        *function.unwrap_or_else(|error| panic!("{error:?}"))
    }
}
