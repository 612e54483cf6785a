// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVIDIA DeepStream's metadata.
//!
//! In: a `GstBuffer`. Out: [`BatchMeta`], which reads and writes the frames of a batch, their tensors and their
//! objects; and [`Surfaces`], which has the sizes of frames in NVMM memory. Metadata is read and written here only,
//! for `input::deepstream`, `output::deepstream` and `json`.
//!
//! DeepStream is not linked, and is not needed to build. [`library`] opens its libraries when the first buffer with
//! its metadata comes. [`layout`] has the offsets of the fields in its structures, and [`structures`] decides which
//! layout a stream's batches have. Lists are read by following their `GList` links, but only DeepStream's functions
//! change them.
//!
//! # Memory
//! The metadata belongs to the buffer. It does not move as long as the buffer exists and DeepStream's functions
//! remove nothing from it. Other threads may only change a buffer's metadata while they hold the batch's lock
//! ([`BatchMeta::lock`]).

mod batch;
mod found_object;
pub mod layout;
pub mod library;
mod object;
mod record;
pub mod region;
pub mod structures;
mod surface;
mod tensor;
mod version;

use std::fmt::Display;
use std::ptr::NonNull;

use gst::glib;
use gst::glib::translate::IntoGlib;
use once_cell::sync::OnceCell;

pub use batch::{BatchMeta, FrameMeta, LockedBatch};
pub use found_object::{FoundMask, FoundObject, ObjectMeta};
use layout::{BATCH_META, META_TAG, Version, base};
use library::DeepStreamLibraries;
pub use object::{NewObject, ObjectColors, ObjectMask};
use record::Record;
pub use region::{RegionMeta, RegionScaling};
use structures::{StructureSizes, Structures};
pub use surface::{FrameCaps, NVMM, Surfaces};
pub use tensor::{LayerMeta, NetworkInfo, TensorMeta};

/// The reason why DeepStream's libraries or metadata cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeepStreamError(pub(crate) String);

impl DeepStreamError {
    /// The metadata, read as that of `version`, has a `problem`.
    fn damaged(version: Version, problem: impl Display) -> Self {
        Self(format!(
            "DeepStream's {problem}; the metadata is damaged, or comes from another version than {version}: correct \
             deepstream-version, or the element upstream"
        ))
    }

    /// There is a null pointer in the place of `what`.
    fn null(version: Version, what: &str) -> Self {
        Self::damaged(version, format_args!("metadata has a null pointer where {what} is expected"))
    }
}

/// Returns whether `buffer` has DeepStream metadata. Opens no library.
pub fn is_on(buffer: &gst::BufferRef) -> bool {
    // SAFETY: the tag is a C string. There is no quark for it before DeepStream has registered its metadata, so in
    // processes without DeepStream this function returns early, and does not search the buffer's metadata.
    let tag = unsafe { glib::ffi::g_quark_try_string(META_TAG.as_ptr()) };
    tag != 0
        && buffer.iter_meta::<gst::Meta>().any(|meta| {
            // SAFETY: the metadata's API type stays registered until the process ends.
            unsafe { gst::ffi::gst_meta_api_type_has_tag(meta.api().into_glib(), tag) != 0 }
        })
}

/// DeepStream's functions, and the structures of a stream's batches.
#[derive(Debug, Default)]
pub struct DeepStream {
    forced: Option<Version>,
    /// Opened for the first buffer with DeepStream metadata.
    library: OnceCell<DeepStreamLibraries>,
    /// The structures of the first batch.
    structures: OnceCell<Structures>,
}

impl DeepStream {
    /// The structures have the layout of the version `forced`, if there is one, or of the version that the libraries
    /// report. No library is opened yet.
    pub fn new(forced: Option<Version>) -> Self {
        Self { forced, ..Self::default() }
    }

    /// Returns the batch of video frames on `buffer`, or `None` if the buffer has no such batch.
    ///
    /// # Errors
    /// If the buffer has DeepStream metadata, and a library or a function is missing, or the structures of the first batch
    /// are unknown.
    pub fn batch<'a>(
        &'a self,
        buffer: &'a gst::BufferRef,
    ) -> Result<Option<BatchMeta<'a>>, DeepStreamError> {
        if !is_on(buffer) {
            return Ok(None);
        }
        let library = self.library.get_or_try_init(DeepStreamLibraries::open)?;
        // SAFETY: the function only reads the buffer's list of metadata.
        let batch = unsafe { (library.gst_buffer_get_nvds_batch_meta)(buffer.as_mut_ptr()) };
        // SAFETY: the batch belongs to the buffer. A batch of audio frames has the field that is read here, too.
        let batch = NonNull::new(batch).map(|batch| unsafe { Record::new(batch) });
        let is_of_video =
            |it: &Record<'_, _>| it.part(layout::batch::BASE).read(base::TYPE) == BATCH_META;
        let Some(batch) = batch.filter(is_of_video) else { return Ok(None) };
        let structures = self.structures.get_or_try_init(|| {
            let sizes = StructureSizes::from_pools(batch)?;
            Structures::recognize(self.forced.or_else(|| library.version()), sizes)
        })?;
        Ok(Some(BatchMeta { library, structures, batch }))
    }
}
