// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstCustomMeta` (1.20): metadata that is a structure, with a name.

use std::ffi::CString;
use std::sync::OnceLock;

use gst::glib::translate::from_glib;
use gst::glib::{self, IntoGStr};

use crate::NO_META;
use crate::library::{CustomMetaTable, Missing};

/// A kind of custom metadata, which is registered with GStreamer when it is first used.
pub struct CustomMeta {
    name: &'static str,
    tags: &'static [&'static str],
    /// The API type. It is cached, because GStreamer's comparison by name allocates memory.
    api: OnceLock<glib::Type>,
}

impl CustomMeta {
    /// A kind with this name and these tags.
    pub const fn new(name: &'static str, tags: &'static [&'static str]) -> Self {
        Self { name, tags, api: OnceLock::new() }
    }

    /// Returns the API type, and registers it if necessary. Another copy of this crate in the process (for example in an
    /// application that also loads the plugin) uses the registered type, too. Without custom metadata, no metadata has the
    /// type.
    pub fn api(&self) -> glib::Type {
        *self.api.get_or_init(|| {
            let Ok(table) = CustomMetaTable::get() else { return NO_META };
            let c_string = |text: &str| CString::new(text).expect("the text has no zero byte");
            let name = c_string(self.name);
            // SAFETY: the name and the array of tags end with zero, and are copied.
            unsafe {
                let info = gst::ffi::gst_meta_get_info(name.as_ptr());
                if !info.is_null() {
                    return from_glib((*info).api);
                }
                let tags: Vec<CString> = self.tags.iter().map(|tag| c_string(tag)).collect();
                let tags: Vec<_> =
                    tags.iter().map(|tag| tag.as_ptr()).chain([std::ptr::null()]).collect();
                let no_data = std::ptr::null_mut();
                let register = table.gst_meta_register_custom;
                let info = register(name.as_ptr(), tags.as_ptr(), None, no_data, None);
                from_glib((*info).api)
            }
        })
    }

    /// Adds an item with this structure.
    ///
    /// # Errors
    /// If the running GStreamer has no custom metadata.
    pub fn add(
        &self,
        buffer: &mut gst::BufferRef,
        write: impl FnOnce(&mut gst::StructureRef),
    ) -> Result<(), Missing> {
        let table = CustomMetaTable::get()?;
        self.api();
        // SAFETY: the metadata is registered and the buffer writable, so that the function returns metadata. It owns the
        // structure, and nothing else refers to it.
        unsafe {
            // Every frame comes here: the name is copied to the stack.
            let meta = self.name.run_with_gstr(|name| {
                (table.gst_buffer_add_custom_meta)(buffer.as_mut_ptr(), name.as_ptr())
            });
            let structure = (table.gst_custom_meta_get_structure)(meta);
            write(gst::StructureRef::from_glib_borrow_mut(structure));
        }
        Ok(())
    }

    /// Returns the structures of the items, in the order in which they were added.
    pub fn structures<'b>(
        &self,
        buffer: &'b gst::BufferRef,
    ) -> impl Iterator<Item = &'b gst::StructureRef> + use<'b> {
        let api = self.api();
        let metas = buffer.iter_meta::<gst::Meta>().filter(move |meta| meta.api() == api);
        metas.filter_map(|meta| Self::structure_of(&meta))
    }

    /// Returns the structure of an item of any kind, or `None` if it is no custom metadata.
    pub fn structure_of<'b>(meta: &gst::MetaRef<'b, gst::Meta>) -> Option<&'b gst::StructureRef> {
        let table = CustomMetaTable::get().ok()?;
        let meta = meta.as_ptr().cast_mut();
        // SAFETY: the metadata is valid, and is cast to `GstCustomMeta` only if it is one. The buffer, which is borrowed
        // immutably for `'b`, owns the metadata, which owns the structure.
        unsafe {
            let is_custom: bool = from_glib((table.gst_meta_info_is_custom)((*meta).info));
            is_custom.then(|| {
                let structure = (table.gst_custom_meta_get_structure)(meta.cast());
                gst::StructureRef::from_glib_borrow(structure)
            })
        }
    }

    /// Removes the items whose structure `remove` selects.
    pub fn remove_if(
        &self,
        buffer: &mut gst::BufferRef,
        remove: impl Fn(&gst::StructureRef) -> bool,
    ) {
        use gst::buffer::BufferMetaForeachAction::{Keep, Remove};
        let api = self.api();
        buffer.foreach_meta_mut(|meta| {
            let is_ours = meta.api() == api;
            let is_removed = is_ours && Self::structure_of(meta.as_ref()).is_none_or(&remove);
            std::ops::ControlFlow::Continue(if is_removed { Remove } else { Keep })
        });
    }
}
