// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all types of metadata have that are read as structures.

/// Declares the type of metadata with this structure. In: the table of its functions, the one that returns the API type,
/// and the one that adds metadata to a buffer.
macro_rules! metadata {
    ($name:ident, $structure:ident, $table:ident, $api:ident, $add:ident, $(#[$doc:meta])*) => {
        /// The metadata.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($structure);

        // SAFETY: the buffer that owns the metadata guards it.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        // SAFETY: metadata with this API type are of this structure.
        unsafe impl gst::meta::MetaAPI for $name {
            type GstType = $structure;

            fn meta_api() -> gst::glib::Type {
                // SAFETY: the function has no preconditions.
                $table::get().map_or($crate::NO_META, |table| unsafe {
                    gst::glib::translate::from_glib((table.$api)())
                })
            }
        }

        impl $name {
            $(#[$doc])*
            ///
            /// # Errors
            /// If the running GStreamer has no such metadata.
            pub fn add(
                buffer: &mut gst::BufferRef,
            ) -> Result<gst::MetaRefMut<'_, Self, gst::meta::Standalone>, Missing> {
                let table = $table::get()?;
                // SAFETY: the buffer is writable; the function returns metadata of this type.
                unsafe {
                    let meta = (table.$add)(buffer.as_mut_ptr());
                    Ok(Self::from_mut_ptr(buffer, meta))
                }
            }
        }
    };
}

pub(crate) use metadata;
