// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GstAnalyticsBatchMeta` (1.28): several streams on one buffer.

use gst::glib::translate::from_glib_none;
use gst::prelude::*;

use crate::ffi::{GstAnalyticsBatchMeta, GstAnalyticsBatchStream};
use crate::library::{BatchTable, Missing};
use crate::metadata::metadata;

metadata! {
    AnalyticsBatchMeta, GstAnalyticsBatchMeta, BatchTable,
    gst_analytics_batch_meta_api_get_type, gst_buffer_add_analytics_batch_meta,
    /// Adds metadata without streams.
}

/// A stream of a batch: events and buffers.
#[derive(Debug)]
#[repr(transparent)]
pub struct AnalyticsBatchStream(GstAnalyticsBatchStream);

/// # Safety
/// `items` is null, or the address of so many values of type `T`, which stay as they are during `'a`.
unsafe fn slice<'a, T, P>(items: *mut P, count: usize) -> &'a [T] {
    // SAFETY: this function requires it.
    if items.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(items.cast(), count) } }
}

/// # Safety
/// As `slice`, and nothing else reads or writes the values during `'a`.
unsafe fn slice_mut<'a, T, P>(items: *mut P, count: usize) -> &'a mut [T] {
    if items.is_null() {
        return &mut [];
    }
    // SAFETY: this function requires it.
    unsafe { std::slice::from_raw_parts_mut(items.cast(), count) }
}

impl AnalyticsBatchMeta {
    /// The streams.
    pub fn streams(&self) -> &[AnalyticsBatchStream] {
        // SAFETY: the metadata owns the array.
        unsafe { slice(self.0.streams, self.0.n_streams) }
    }

    /// The streams, to change their objects.
    pub fn streams_mut(&mut self) -> &mut [AnalyticsBatchStream] {
        // SAFETY: the metadata owns the array, and is borrowed mutably.
        unsafe { slice_mut(self.0.streams, self.0.n_streams) }
    }
}

impl AnalyticsBatchStream {
    /// The number of the stream.
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The caps that are in force before the first object, if there are any.
    pub fn caps(&self) -> Option<gst::Caps> {
        let get = BatchTable::get().ok()?.gst_analytics_batch_stream_get_caps;
        // SAFETY: the stream is valid, and the function only reads it. It returns caps that an event owns, or null.
        unsafe { from_glib_none(get(std::ptr::from_ref(&self.0).cast_mut())) }
    }

    /// The buffers, lists of buffers and events, in their order.
    pub fn objects(&self) -> &[gst::MiniObject] {
        // SAFETY: the stream owns the array and the objects, each of which is the address of a mini object.
        unsafe { slice(self.0.objects, self.0.n_objects) }
    }

    /// The objects, to replace them.
    pub fn objects_mut(&mut self) -> &mut [gst::MiniObject] {
        // SAFETY: as above, and the stream is borrowed mutably.
        unsafe { slice_mut(self.0.objects, self.0.n_objects) }
    }
}
