// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of `GstCustomMeta` (GStreamer 1.20) that this crate registers.

use std::sync::OnceLock;

/// A kind of custom metadata, which is registered with GStreamer when it is first used.
pub(super) struct RegisteredMeta {
    name: &'static str,
    tags: &'static [&'static str],
    /// The API type. It is cached, because GStreamer's comparison by name allocates memory.
    api: OnceLock<gst::glib::Type>,
}

impl RegisteredMeta {
    /// A kind with this name and these tags.
    pub(super) const fn new(name: &'static str, tags: &'static [&'static str]) -> Self {
        Self { name, tags, api: OnceLock::new() }
    }

    /// Returns the API type, and registers it if necessary. Another copy of this crate in the process (for example in an
    /// application that also loads the plugin) uses the registered type, too.
    pub(super) fn api(&self) -> gst::glib::Type {
        *self.api.get_or_init(|| {
            if !gst::meta::CustomMeta::is_registered(self.name) {
                gst::meta::CustomMeta::register(self.name, self.tags);
            }
            gst::glib::Type::from_name(format!("{}-api", self.name))
                .expect("the API type of custom metadata has this name")
        })
    }

    /// Adds an item with an empty structure.
    pub(super) fn add<'b>(
        &self,
        buffer: &'b mut gst::BufferRef,
    ) -> gst::MetaRefMut<'b, gst::meta::CustomMeta, gst::meta::Standalone> {
        self.api();
        gst::meta::CustomMeta::add(buffer, self.name)
            .expect("the metadata is registered and the buffer writable")
    }

    /// Returns the structures of the items, in the order in which they were added.
    pub(super) fn structures<'b>(
        &self,
        buffer: &'b gst::BufferRef,
    ) -> impl Iterator<Item = &'b gst::StructureRef> + use<'b> {
        let api = self.api();
        buffer
            .iter_meta::<gst::Meta>()
            .filter(move |meta| meta.api() == api)
            .filter_map(|meta| meta.try_as_custom_meta().map(structure))
    }
}

/// Returns the structure of an item, with the lifetime of the buffer's borrow.
fn structure<'a>(meta: &gst::MetaRef<'a, gst::meta::CustomMeta>) -> &'a gst::StructureRef {
    let structure: *const gst::StructureRef = meta.structure();
    // SAFETY: the metadata owns the structure, and the buffer, which is borrowed immutably for `'a`, owns the
    // metadata. `structure()` returns a reference with the shorter lifetime of the borrow of `meta`.
    unsafe { &*structure }
}
