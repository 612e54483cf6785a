// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstAnalyticsRelationMeta` (1.24): items of several kinds, and the relations between them.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use gst::glib;
use gst::glib::translate::from_glib;
use gst::prelude::*;

use crate::ffi::{GstAnalyticsMtd, GstAnalyticsRelationMeta, GstAnalyticsRelationMetaInitParams};
use crate::library::{Missing, MtdType, RelationTable};
use crate::metadata::metadata;

metadata! {
    AnalyticsRelationMeta, GstAnalyticsRelationMeta, RelationTable,
    gst_analytics_relation_meta_api_get_type, gst_buffer_add_analytics_relation_meta,
    /// Adds metadata to the buffer, unless it has some.
}

/// Types of relation, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelTypes(u32);

impl RelTypes {
    /// The first item is a part of the second.
    pub const IS_PART_OF: Self = Self(1 << 1);
    /// The first item contains the second.
    pub const CONTAIN: Self = Self(1 << 2);
    /// The first item relates to the second.
    pub const RELATE_TO: Self = Self(1 << 3);

    /// Both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A kind of item.
pub trait AnalyticsMtd {
    /// The type of the kind, or `None` if the running GStreamer does not have it.
    fn mtd_type() -> Option<MtdType>;
}

/// An item of the kind `T`.
#[derive(Debug)]
pub struct AnalyticsMtdRef<'a, T> {
    id: u32,
    meta: &'a AnalyticsRelationMeta,
    kind: PhantomData<T>,
}

impl<T> AnalyticsMtdRef<'_, T> {
    /// The id of the item in the metadata.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The structure that functions read.
    pub(crate) fn handle(&self) -> GstAnalyticsMtd {
        GstAnalyticsMtd { id: self.id, meta: self.meta.address() }
    }
}

/// The functions of metadata that exists.
pub(crate) fn table() -> &'static RelationTable {
    RelationTable::get().expect("metadata of this type is found only with its functions")
}

/// Returns the id of an item that a function has added, if it has.
pub(crate) fn added(
    what: &str,
    add: impl FnOnce(*mut GstAnalyticsMtd) -> glib::ffi::gboolean,
) -> Result<u32, glib::BoolError> {
    let mut added = MaybeUninit::<GstAnalyticsMtd>::uninit();
    if add(added.as_mut_ptr()) == glib::ffi::GFALSE {
        return Err(glib::bool_error!("{what} cannot be added"));
    }
    // SAFETY: the function has written the structure of the new item.
    Ok(unsafe { added.assume_init().id })
}

impl AnalyticsRelationMeta {
    /// Adds metadata to the buffer, unless it has some, with room for this number of items of so many bytes together.
    ///
    /// # Errors
    /// If the running GStreamer has no such metadata.
    pub fn add_with_room(
        buffer: &mut gst::BufferRef,
        items: usize,
        bytes: usize,
    ) -> Result<gst::MetaRefMut<'_, Self, gst::meta::Standalone>, Missing> {
        let table = RelationTable::get()?;
        let mut params = GstAnalyticsRelationMetaInitParams {
            initial_relation_order: items,
            initial_buf_size: bytes,
        };
        // SAFETY: the buffer is writable; the function returns metadata of this type, and only reads the parameters.
        unsafe {
            let add = table.gst_buffer_add_analytics_relation_meta_full;
            let meta = add(buffer.as_mut_ptr(), &mut params);
            Ok(Self::from_mut_ptr(buffer, meta))
        }
    }

    /// The address, for functions that only read.
    pub(crate) fn address(&self) -> *mut GstAnalyticsRelationMeta {
        std::ptr::from_ref(&self.0).cast_mut()
    }

    /// The address, for functions that write.
    pub(crate) fn as_mut(&mut self) -> *mut GstAnalyticsRelationMeta {
        &mut self.0
    }

    /// The number of items.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        // SAFETY: the metadata is valid.
        unsafe { (table().gst_analytics_relation_get_length)(&self.0) }
    }

    /// Relates one item to another, in one direction.
    ///
    /// # Errors
    /// If there is no such item.
    pub fn set_relation(
        &mut self,
        kind: RelTypes,
        from: u32,
        to: u32,
    ) -> Result<(), glib::BoolError> {
        let set = table().gst_analytics_relation_meta_set_relation;
        // SAFETY: the metadata is valid and writable. The function checks the ids.
        let is_set: bool = unsafe { from_glib(set(self.as_mut(), kind.0, from, to)) };
        is_set.then_some(()).ok_or_else(|| glib::bool_error!("{from} and {to} cannot be related"))
    }

    /// The types of relation from one item to another.
    pub fn relation(&self, from: u32, to: u32) -> RelTypes {
        let get = table().gst_analytics_relation_meta_get_relation;
        // SAFETY: the metadata is valid. The function checks the ids.
        RelTypes(unsafe { get(&self.0, from, to) })
    }

    /// The item with this id, if it is of the kind `T`.
    pub fn mtd<T: AnalyticsMtd>(&self, id: u32) -> Option<AnalyticsMtdRef<'_, T>> {
        let kind = T::mtd_type()?;
        let get = table().gst_analytics_relation_meta_get_mtd;
        let mut found = MaybeUninit::uninit();
        // SAFETY: the metadata is valid. The function checks the id.
        let is_found = unsafe { get(self.address(), id, kind, found.as_mut_ptr()) };
        (is_found != glib::ffi::GFALSE).then_some(AnalyticsMtdRef {
            id,
            meta: self,
            kind: PhantomData,
        })
    }

    /// The items of the kind `T`, in the order in which they were added.
    pub fn iter<T: AnalyticsMtd>(&self) -> AnalyticsMtdIter<'_, T> {
        AnalyticsMtdIter { meta: self, state: null_mut(), related: None, kind: PhantomData }
    }

    /// The items of the kind `T` to which the item with this id has a relation of one of these types.
    pub fn iter_direct_related<T: AnalyticsMtd>(
        &self,
        id: u32,
        kinds: RelTypes,
    ) -> AnalyticsMtdIter<'_, T> {
        AnalyticsMtdIter { related: Some((id, kinds)), ..self.iter() }
    }
}

/// An iterator over items of the kind `T`.
#[derive(Debug)]
pub struct AnalyticsMtdIter<'a, T> {
    meta: &'a AnalyticsRelationMeta,
    /// The state of GStreamer's function.
    state: *mut std::ffi::c_void,
    /// The item to which the others are related, and how.
    related: Option<(u32, RelTypes)>,
    kind: PhantomData<T>,
}

impl<'a, T: AnalyticsMtd> Iterator for AnalyticsMtdIter<'a, T> {
    type Item = AnalyticsMtdRef<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = T::mtd_type()?;
        let (meta, table) = (self.meta.address(), table());
        let mut found = MaybeUninit::<GstAnalyticsMtd>::uninit();
        // SAFETY: the metadata is valid; the state is null at first, and is written by the function that reads it.
        let is_found = unsafe {
            match self.related {
                None => {
                    let iterate = table.gst_analytics_relation_meta_iterate;
                    iterate(meta, &mut self.state, kind, found.as_mut_ptr())
                }
                Some((id, kinds)) => {
                    let next = table.gst_analytics_relation_meta_get_direct_related;
                    next(meta, id, kinds.0, kind, &mut self.state, found.as_mut_ptr())
                }
            }
        };
        if is_found == glib::ffi::GFALSE {
            return None;
        }
        // SAFETY: the function has written the structure.
        let GstAnalyticsMtd { id, .. } = unsafe { found.assume_init() };
        Some(AnalyticsMtdRef { id, meta: self.meta, kind: PhantomData })
    }
}
