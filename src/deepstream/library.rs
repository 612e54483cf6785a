// SPDX-License-Identifier: MIT OR Apache-2.0
//! DeepStream's functions.
//!
//! In: nothing. Out: the functions that this crate calls, from DeepStream's libraries, and the version that the
//! libraries report. The libraries are opened at run time. The functions' signatures come from `gstnvdsmeta.h`,
//! `nvdsmeta.h` and `nvds_version.h`; they are equal in all known versions.
//!
//! A library is opened by its name first. If DeepStream's elements are loaded, this finds the library that they
//! use, and otherwise a library in `LD_LIBRARY_PATH`, and otherwise the library in DeepStream's folder is
//! opened.

use std::error::Error;
use std::ffi::{c_uint, c_void};
use std::path::Path;

use libloading::Library as SharedLibrary;

use super::DeepStreamError;
use super::layout::{Version, known_versions};

/// The library folder of an installed DeepStream.
pub const FOLDER: &str = "/opt/nvidia/deepstream/deepstream/lib";

/// The libraries that contain the functions.
const GST_META: &str = "libnvdsgst_meta.so";
const META: &str = "libnvds_meta.so";
/// The libraries that may contain `nvds_version`. In 9.1 the last one does, which needs TensorRT; in a process that
/// uses nvinfer, TensorRT is loaded.
const VERSION: [&str; 3] = [META, GST_META, "libnvds_utils.so"];

/// `NvDsBatchMeta *`, `NvDsFrameMeta *`, `NvDsObjectMeta *` or `NvDsUserMeta *`.
type Meta = *mut c_void;

/// A function that removes user metadata from its owner, a frame or an object, and releases it.
pub type Remove = unsafe extern "C" fn(owner: Meta, user: Meta);

/// DeepStream's functions. The fields have the names of the functions.
#[allow(missing_docs, reason = "DeepStream's headers document them")]
#[derive(Debug)]
pub struct DeepStreamLibraries {
    pub gst_buffer_get_nvds_batch_meta: unsafe extern "C" fn(*mut gst::ffi::GstBuffer) -> Meta,
    pub nvds_acquire_meta_lock: unsafe extern "C" fn(batch: Meta),
    pub nvds_release_meta_lock: unsafe extern "C" fn(batch: Meta),
    pub nvds_acquire_obj_meta_from_pool: unsafe extern "C" fn(batch: Meta) -> Meta,
    pub nvds_add_obj_meta_to_frame: unsafe extern "C" fn(frame: Meta, object: Meta, parent: Meta),
    pub nvds_remove_user_meta_from_frame: Remove,
    pub nvds_remove_user_meta_from_object: Remove,
    /// Keeps the functions loaded.
    _libraries: [SharedLibrary; 2],
}

impl DeepStreamLibraries {
    /// Opens the libraries.
    ///
    /// # Errors
    /// If a library cannot be opened or lacks a function.
    pub fn open() -> Result<Self, DeepStreamError> {
        let [gst_meta, meta] = [(open(GST_META)?, GST_META), (open(META)?, META)];
        macro_rules! function {
            ($library:ident, $function:ident) => {{
                let ((library, name), function) = (&$library, stringify!($function));
                // SAFETY: the field has the type that the function has in DeepStream's headers.
                let symbol = unsafe { library.get(function.as_bytes()) };
                *symbol.map_err(|_| {
                    DeepStreamError(format!(
                        "DeepStream's library {name} has no function {function}; use DeepStream {}",
                        known_versions()
                    ))
                })?
            }};
        }
        // SAFETY: as above. The function is `GType nvds_meta_api_get_type (void)`.
        let register: unsafe extern "C" fn() -> gst::glib::ffi::GType =
            function!(gst_meta, nvds_meta_api_get_type);
        // Registering the type sets a tag that `gst_buffer_get_nvds_batch_meta` looks for.
        // SAFETY: the function registers a type once per process.
        unsafe { register() };
        Ok(Self {
            gst_buffer_get_nvds_batch_meta: function!(gst_meta, gst_buffer_get_nvds_batch_meta),
            nvds_acquire_meta_lock: function!(meta, nvds_acquire_meta_lock),
            nvds_release_meta_lock: function!(meta, nvds_release_meta_lock),
            nvds_acquire_obj_meta_from_pool: function!(meta, nvds_acquire_obj_meta_from_pool),
            nvds_add_obj_meta_to_frame: function!(meta, nvds_add_obj_meta_to_frame),
            nvds_remove_user_meta_from_frame: function!(meta, nvds_remove_user_meta_from_frame),
            nvds_remove_user_meta_from_object: function!(meta, nvds_remove_user_meta_from_object),
            _libraries: [gst_meta.0, meta.0],
        })
    }

    /// Returns the version that the libraries report, or `None` if none of them has the function `nvds_version`.
    pub fn version(&self) -> Option<Version> {
        VERSION.iter().find_map(|name| reported_by(name))
    }
}

/// Opens the library with this name.
fn open(name: &'static str) -> Result<SharedLibrary, DeepStreamError> {
    // SAFETY: DeepStream's elements, which attached the metadata, use these libraries, so their initializers have
    // run anyway.
    unsafe {
        SharedLibrary::new(name)
            .or_else(|error| SharedLibrary::new(Path::new(FOLDER).join(name)).map_err(|_| error))
            .map_err(|error| {
                // The text of the error is just "dlopen failed"; its source contains the reason.
                let problem = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                DeepStreamError(format!(
                    "DeepStream's library {name} cannot be opened: {problem}; install DeepStream, or add the folder of its \
                     libraries ({FOLDER}) to LD_LIBRARY_PATH"
                ))
            })
    }
}

/// Returns the version that a library reports, or `None` if it cannot be opened or has no `nvds_version`.
fn reported_by(name: &'static str) -> Option<Version> {
    let library = open(name).ok()?;
    // SAFETY: the function has this type in nvds_version.h, and both arguments are addresses of integers.
    unsafe {
        let nvds_version =
            library.get::<unsafe extern "C" fn(*mut c_uint, *mut c_uint)>(b"nvds_version").ok()?;
        let (mut major, mut minor) = (0, 0);
        nvds_version(&mut major, &mut minor);
        Some(Version::new(major, minor))
    }
}
