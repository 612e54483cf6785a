// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared libraries in C++ that tests build and load.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;

use super::skip::skip;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;

/// Whether there is a C++ compiler; if not, this is reported as a skip.
pub fn has_compiler() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let answer = Command::new(&compiler).arg("--version").output();
    if let Err(error) = &answer {
        skip(&format!("the C++ compiler {compiler}: {error}"));
    }
    answer.is_ok()
}

/// Runs `script INPUT FOLDER`, which compiles something of `input` into the folder, and returns the folder.
pub fn build(script: &str, input: &Path, folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let script = crate::support::project::path(script);
    let output = Command::new(&script).args([input, &folder]).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", script.display());
    folder
}

/// A loaded library. It stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

// SAFETY: a library's handle may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; nothing is changed through it.
unsafe impl Sync for Library {}

impl Library {
    /// Loads the library `path`.
    ///
    /// # Safety
    /// Its initializers run.
    pub unsafe fn open(path: &Path) -> Self {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a C string; the caller answers for the initializers.
        let library = NonNull::new(unsafe { dlopen(name.as_ptr(), RTLD_NOW) });
        Self(library.unwrap_or_else(|| {
            // SAFETY: after a failure it is a C string.
            panic!("{}", unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy())
        }))
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `T` is the type of a pointer to the function.
    pub unsafe fn function<T: Copy>(self, name: &CStr) -> T {
        assert_eq!(size_of::<T>(), size_of::<*mut c_void>());
        // SAFETY: the library is loaded.
        let function = unsafe { dlsym(self.0.as_ptr(), name.as_ptr()) };
        assert!(!function.is_null(), "the library has no {}", name.to_string_lossy());
        // SAFETY: the sizes are equal, and the caller answers for the type.
        unsafe { std::mem::transmute_copy(&function) }
    }
}
