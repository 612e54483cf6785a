// SPDX-License-Identifier: MIT OR Apache-2.0
//! DeepStream's functions.
//!
//! In: nothing. Out: the functions that this crate calls, from DeepStream's libraries, which are opened at
//! run time, and the version that they report. Their signatures are those of `gstnvdsmeta.h`, `nvdsmeta.h` and
//! `nvds_version.h`; they are the same in all versions from 6.0 to 9.1.
//!
//! A library is opened by its name, so that the one that DeepStream's elements use is found if they are
//! loaded, or one in `LD_LIBRARY_PATH`; otherwise in DeepStream's folder.

use std::error::Error;
use std::ffi::{c_uint, c_void};
use std::path::Path;

use libloading::Library as SharedLibrary;

use super::layout::Version;

/// The folder of an installed DeepStream.
pub const FOLDER: &str = "/opt/nvidia/deepstream/deepstream/lib";

/// The libraries that have the functions.
const GST_META: &str = "libnvdsgst_meta.so";
const META: &str = "libnvds_meta.so";
/// The libraries in which `nvds_version` is searched for. In 9.1 it is in the last one, which needs TensorRT; in
/// a process with nvinfer that is loaded.
const VERSION: [&str; 3] = [META, GST_META, "libnvds_utils.so"];

/// Why DeepStream's functions cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeepStreamLibraryError {
    /// A library cannot be opened.
    #[error(
        "DeepStream's library {name} cannot be opened: {problem}; install DeepStream, or add the folder of \
         its libraries ({FOLDER}) to LD_LIBRARY_PATH"
    )]
    Missing {
        /// The library.
        name: &'static str,
        /// The error of the dynamic loader.
        problem: String,
    },
    /// A library does not have a function.
    #[error("DeepStream's library {name} has no function {function}; use DeepStream 6.0 to 9.1")]
    NoFunction {
        /// The library.
        name: &'static str,
        /// The function.
        function: &'static str,
    },
    /// No library reports the version, and several have the same sizes.
    #[error(
        "none of DeepStream's libraries has the function nvds_version, and not one version alone has structures of \
         these sizes; set deepstream-version to the version that is installed"
    )]
    NoVersion,
}

/// `NvDsBatchMeta *`, `NvDsFrameMeta *`, `NvDsObjectMeta *` or `NvDsUserMeta *`.
type Meta = *mut c_void;

/// DeepStream's functions, under their names.
#[allow(missing_docs, reason = "DeepStream's headers document them")]
#[derive(Debug)]
pub struct DeepStreamLibraries {
    pub gst_buffer_get_nvds_batch_meta: unsafe extern "C" fn(*mut gst::ffi::GstBuffer) -> Meta,
    pub nvds_acquire_meta_lock: unsafe extern "C" fn(batch: Meta),
    pub nvds_release_meta_lock: unsafe extern "C" fn(batch: Meta),
    pub nvds_acquire_obj_meta_from_pool: unsafe extern "C" fn(batch: Meta) -> Meta,
    pub nvds_add_obj_meta_to_frame: unsafe extern "C" fn(frame: Meta, object: Meta, parent: Meta),
    pub nvds_remove_user_meta_from_frame: unsafe extern "C" fn(frame: Meta, user: Meta),
    /// Keep the functions loaded.
    _libraries: [SharedLibrary; 2],
}

impl DeepStreamLibraries {
    /// Opens the libraries.
    ///
    /// # Errors
    /// If a library cannot be opened or lacks a function.
    pub fn open() -> Result<Self, DeepStreamLibraryError> {
        let (gst_meta, meta) = (open(GST_META)?, open(META)?);
        macro_rules! function {
            ($library:ident, $name:ident, $function:ident) => {{
                const NAME: &str = stringify!($function);
                // SAFETY: the type of the field is that of the function in DeepStream's headers.
                let symbol = unsafe { $library.get(NAME.as_bytes()) };
                *symbol.map_err(|_| DeepStreamLibraryError::NoFunction {
                    name: $name,
                    function: NAME,
                })?
            }};
        }
        // SAFETY: as above: `GType nvds_meta_api_get_type (void)`.
        let register: unsafe extern "C" fn() -> gst::glib::ffi::GType =
            function!(gst_meta, GST_META, nvds_meta_api_get_type);
        // `gst_buffer_get_nvds_batch_meta` compares with a tag that this function sets.
        // SAFETY: it registers a type, once per process.
        unsafe { register() };
        Ok(Self {
            gst_buffer_get_nvds_batch_meta: function!(
                gst_meta,
                GST_META,
                gst_buffer_get_nvds_batch_meta
            ),
            nvds_acquire_meta_lock: function!(meta, META, nvds_acquire_meta_lock),
            nvds_release_meta_lock: function!(meta, META, nvds_release_meta_lock),
            nvds_acquire_obj_meta_from_pool: function!(meta, META, nvds_acquire_obj_meta_from_pool),
            nvds_add_obj_meta_to_frame: function!(meta, META, nvds_add_obj_meta_to_frame),
            nvds_remove_user_meta_from_frame: function!(
                meta,
                META,
                nvds_remove_user_meta_from_frame
            ),
            _libraries: [gst_meta, meta],
        })
    }

    /// The version that the libraries report; `None` if none of them has the function `nvds_version`.
    pub fn version(&self) -> Option<Version> {
        VERSION.iter().find_map(|name| reported_by(name))
    }
}

/// Opens the library of that name.
fn open(name: &'static str) -> Result<SharedLibrary, DeepStreamLibraryError> {
    // SAFETY: DeepStream's elements, which attached the metadata, use the same libraries, so their
    // initializers are run in any case.
    unsafe {
        SharedLibrary::new(name)
            .or_else(|error| SharedLibrary::new(Path::new(FOLDER).join(name)).map_err(|_| error))
            .map_err(|error| {
                // The text of the error is "dlopen failed"; that of its source has the reason.
                let problem = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                DeepStreamLibraryError::Missing { name, problem }
            })
    }
}

/// The version that a library reports; `None` if it cannot be opened or has no `nvds_version`.
fn reported_by(name: &'static str) -> Option<Version> {
    let library = open(name).ok()?;
    // SAFETY: the type is that of the function in nvds_version.h. The addresses are those of integers.
    unsafe {
        let nvds_version =
            library.get::<unsafe extern "C" fn(*mut c_uint, *mut c_uint)>(b"nvds_version").ok()?;
        let (mut major, mut minor) = (0, 0);
        nvds_version(&mut major, &mut minor);
        Some(Version::new(major, minor))
    }
}
