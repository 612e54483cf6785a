// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVIDIA DeepStream's metadata.
//!
//! In: a `GstBuffer`. Out: [`BatchMeta`], by which the frames of a batch, their tensors and their objects
//! are read and written, and [`Surfaces`], the sizes of frames in NVMM memory. `input::deepstream` and `output::deepstream` use it; no other module knows
//! DeepStream.
//!
//! DeepStream is neither linked nor needed to build: [`library`] opens its libraries when the first buffer
//! with its metadata comes, and [`layout`] has the offsets of the fields of its structures. A list is read by
//! its `GList` links, and changed by DeepStream's functions only.
//!
//! # Memory
//! The metadata belongs to the buffer. It stays where it is as long as the buffer exists and DeepStream's
//! functions remove nothing from it. Other threads may change the metadata of a buffer only while they
//! hold the batch's lock ([`BatchMeta::lock`]).

mod batch;
pub mod layout;
pub mod library;
mod object;
mod record;
mod surface;
mod tensor;

use std::ptr::NonNull;

use gst::glib;
use gst::glib::translate::IntoGlib;

use batch::MAX_LIST;
pub use batch::{BatchMeta, FrameMeta, LockedBatch};
use layout::{META_TAG, StructureLayout, StructureLayoutError, Version};
use library::{DeepStreamLibraries, DeepStreamLibraryError};
pub use object::{NewObject, ObjectColors, ObjectMask};
pub use surface::{NVMM, Surfaces};
pub use tensor::{LayerMeta, NetworkInfo, TensorMeta};

/// Why DeepStream's metadata cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages are the documentation")]
pub enum DeepStreamError {
    #[error(transparent)]
    Library(#[from] DeepStreamLibraryError),
    #[error(transparent)]
    Layout(#[from] StructureLayoutError),
    #[error(
        "DeepStream's batch has num_frames_in_batch={count}, but its list has {listed} frames; the metadata is \
         damaged, or of another version than {version}: correct deepstream-version, or the element upstream"
    )]
    FrameCount { count: usize, listed: usize, version: Version },
    #[error(
        "DeepStream's metadata has a null pointer where {what} is expected; it is damaged, or of another \
         version than {version}: correct deepstream-version, or the element upstream"
    )]
    Null { what: &'static str, version: Version },
    #[error(
        "DeepStream's list of {what} has more than {MAX_LIST} entries; it is damaged, or of another \
         version than {version}: correct deepstream-version, or the element upstream"
    )]
    Endless { what: &'static str, version: Version },
    #[error(
        "DeepStream's tensors of a frame have {count} output layers; expected at most {most}; the metadata is \
         damaged, or of another version than {version}: correct deepstream-version, or the element upstream"
    )]
    Layers { count: usize, most: usize, version: Version },
    #[error(
        "DeepStream has no room for another object: nvds_acquire_obj_meta_from_pool returned null"
    )]
    NoObject,
}

/// Whether `buffer` has metadata of DeepStream. Opens no library.
pub fn is_on(buffer: &gst::BufferRef) -> bool {
    // SAFETY: the tag is a C string. There is no quark for it before DeepStream has registered its metadata, so that
    // in other processes the buffer's metadata is not walked.
    let tag = unsafe { glib::ffi::g_quark_try_string(META_TAG.as_ptr()) };
    tag != 0
        && buffer.iter_meta::<gst::Meta>().any(|meta| {
            // SAFETY: the metadata's API type is registered for as long as the process runs.
            unsafe { gst::ffi::gst_meta_api_type_has_tag(meta.api().into_glib(), tag) != 0 }
        })
}

/// DeepStream's functions and the layout of its structures, for one version.
#[derive(Debug)]
pub struct DeepStream {
    library: DeepStreamLibraries,
    layout: &'static StructureLayout,
    version: Version,
}

impl DeepStream {
    /// Opens the libraries. The layout is that of `forced`, or of the version that the libraries report.
    ///
    /// # Errors
    /// If a library or a function is missing, or the version's layout is not known.
    pub fn open(forced: Option<Version>) -> Result<Self, DeepStreamError> {
        let library = DeepStreamLibraries::open()?;
        let version = match forced {
            Some(version) => version,
            None => library.version()?,
        };
        Ok(Self { library, layout: StructureLayout::of(version)?, version })
    }

    /// The version whose layout is used.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The batch of video frames of `buffer`; `None` if it has none.
    pub fn batch<'a>(&'a self, buffer: &'a gst::BufferRef) -> Option<BatchMeta<'a>> {
        // SAFETY: the function reads the buffer's list of metadata.
        let batch = unsafe { (self.library.gst_buffer_get_nvds_batch_meta)(buffer.as_mut_ptr()) };
        let batch = NonNull::new(batch)?;
        // SAFETY: the batch belongs to the buffer.
        unsafe { BatchMeta::new(self, batch) }
    }
}
